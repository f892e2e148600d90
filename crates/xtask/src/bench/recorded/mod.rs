//! `bench recorded`: recorded hours request by request, under the governor and under every rival, as a user would ask:
//! by `flyball backtest`.
//!
//! [`world`] lists them, [`play`] asks, [`verdict`] judges, [`table`] shows.

mod play;
mod table;
mod verdict;
mod world;

use super::document::RECORDED;
use super::{Measured, Page, measure, programs, sources};
use crate::figures::Op;
use anyhow::{Result, ensure};
use clap::Args as ClapArgs;
use play::Player;
use std::path::{Path, PathBuf};
use verdict::{Verdict, all};
use world::World;

#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Only worlds whose name contains this, as in `code 32b` or `@100`
    #[arg(long)]
    only: Option<String>,
    /// Only these traces: conv, code, mooncake, synthetic
    #[arg(long, value_delimiter = ',')]
    traces: Vec<String>,
    /// The folder with flyball; it is built if none is given
    #[arg(long)]
    bin: Option<PathBuf>,
    /// Write the figures and docs/benchmarks-recorded.md
    #[arg(long, conflicts_with = "only")]
    figure: bool,
}

pub(super) fn run(root: &Path, args: &Args) -> Result<()> {
    let traces = sources::shared(root)?.join("traces");
    let flyball = programs::flyball(root, args.bin.as_deref())?.join("flyball");
    let player = Player { flyball, traces };
    let wanted = |world: &World| {
        let traced =
            args.traces.is_empty() || args.traces.iter().any(|one| one == world.trace.name);
        traced && args.only.as_ref().is_none_or(|only| world.to_string().contains(only.as_str()))
    };
    let worlds: Vec<World> = world::all().into_iter().filter(wanted).collect();
    ensure!(!worlds.is_empty(), "no world is called so; hint: `conv 70b h100 @100` is one");
    let mut verdicts = Vec::new();
    for (n, world) in worlds.iter().enumerate() {
        let verdict =
            Verdict::of(world, &player.whole(world)?, &player.halves(world)?, &player.flow(world)?);
        println!("{}/{} {}", n + 1, worlds.len(), table::line(&verdict));
        verdicts.push(verdict);
    }
    let sums = all(&verdicts);
    let figures = vec![
        measure("sim.methods_agree_pct", sums.agree_pct, "%", Op::AtLeast, 95.0),
        measure("sim.below_clairvoyant", sums.below_clairvoyant, "replays", Op::Exactly, 0.0),
        measure("governor.worlds_kept_pct", sums.kept_pct, "%", Op::AtLeast, 100.0),
        measure("governor.worlds_cheapest_pct", sums.cheapest_pct, "%", Op::AtLeast, 90.0),
        measure("governor.worlds_worst_pct", sums.worst_pct, "%", Op::AtMost, 3.0),
    ];
    let traces = match args.traces.as_slice() {
        [] => String::new(),
        some => format!(" --traces {}", some.join(",")),
    };
    let command = format!("cargo xtask bench recorded{traces} --figure");
    let mut page = Page::new(RECORDED, &command, args.figure);
    let text = table::markdown(&verdicts, &sums);
    page.add(root, 0, "Recorded hours, request by request", Measured { text, figures })?;
    page.finish(root, false)
}
