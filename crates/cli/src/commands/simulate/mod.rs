//! `flyball simulate`: a scenario played request by request under several policies, side by side.
//!
//! `args` says what can be typed, `world` reads the file and makes its world, `play` runs every policy in the
//! simulator (`handed_on`: the governor after a restart), and `answer` is what came of it, with a table (`view`) and a page (`page`). What policies are drawn with
//! is `backtest`'s.
//!
//! Nothing is decided here: the simulator plays, the policies decide, and the scenario judges.

mod answer;
mod args;
mod handed_on;
mod page;
mod play;
mod view;
mod world;

use std::time::Instant;

use super::backtest;
use crate::output::{Exit, Failure, Printer};

#[cfg(test)]
pub(crate) use answer::Simulation;
pub(crate) use args::SimulateArgs;

pub(crate) fn run(args: &SimulateArgs, printer: &Printer) -> Result<Exit, Failure> {
    let start = Instant::now();
    let progress = printer.progress();
    progress.show("reading the scenario");
    let world = world::read(args)?;
    let policies = backtest::policies::all(&args.policy, &world.scaled())?;
    let mut answer = play::all(&world, &policies, &progress);
    drop(progress);
    answer.minutes = args.timeline;
    answer.took = start.elapsed();
    if let Some(file) = &args.html {
        let page = page::page(&answer);
        answer.page = Some(backtest::page::written(file, &page, "--html")?);
    }
    Ok(printer.answer(&answer))
}
