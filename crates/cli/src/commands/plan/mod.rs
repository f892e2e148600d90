//! `flyball plan`: which accelerators, how many, in which layout, for how much.
//!
//! `serve` sizes a service, `train` a run, `fleet` puts several services on GPUs that are there. They ask `perf` for all layouts and show the best, the
//! ones that were rejected and why, and what would change the answer. Nothing is decided here.

mod fleet;
mod parts;
pub(crate) mod quantities;
mod range;
mod serve;
mod service;
#[cfg(test)]
mod tests;
mod trace;
mod train;

use clap::{Args, Subcommand};

use crate::output::{Exit, Failure, Printer};

pub(crate) use quantities::whole;
#[cfg(test)]
pub(crate) use {
    fleet::answer::FleetAnswer, serve::answer::ServeAnswer, serve::emit::EngineCommand,
    train::answer::TrainAnswer, train::emit::TrainingCommand, train::manifest::TrainingRunManifest,
};

/// Plan a service, a fleet or a training run
///
/// Works offline, from the model's config.json and the catalog. Numbers show their interval and
/// their source; prices show their date.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Serve(serve::ServeArgs),
    Fleet(fleet::FleetArgs),
    Train(train::TrainArgs),
}

pub(crate) fn run(args: &PlanArgs, printer: &Printer) -> Result<Exit, Failure> {
    match &args.what {
        What::Serve(args) => serve::run(args, printer),
        What::Fleet(args) => fleet::run(args, printer),
        What::Train(args) => train::run(args, printer),
    }
}
