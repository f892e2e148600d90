//! The command line: one variant per bench, as `cargo xtask bench` passes them on.

use crate::{
    admission, backtest, batch, checkout, cost, datasets, errors, gateway, ledger, live, recorded,
    tenants, training, wrong_capacity,
};
use anyhow::Result;
use clap::Parser;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench")]
enum Bench {
    /// Replays: truth, speed, cells, pool, ramp, drills
    Backtest(backtest::Args),
    /// Recorded hours request by request, under the governor and under every rival
    Recorded(recorded::Args),
    /// The gateway beside nginx, `HAProxy` and other routers, and under faults
    Gateway(gateway::Args),
    /// Admission: fairness, overload, splits, and an hour of everything at once
    Admission(admission::Args),
    /// The operator on a real cluster in real time: a published ramp, and the simulator's truth
    Live(live::Args),
    /// A governor that was told a wrong capacity or none, engines that slow down, longer prompts, restarts
    WrongCapacity(wrong_capacity::Args),
    /// Keys, limits and budgets of Tenants: random worlds, strangers, processor time
    Tenants(tenants::Args),
    /// Files and batches in random worlds: lines, deaths, deadlines
    Batch(batch::Args),
    /// The ledger: worlds that end in the middle of everything, and what writing a request down costs
    Ledger(ledger::Args),
    /// Training runs on recorded spot machines: cost, lateness, saves, preemptions
    Training(training::Args),
    /// What GPUs cost: sums of a month, FOCUS, commitments on recorded weeks, changes that are found
    Cost(cost::Args),
    /// The public data that figures rest on: what is absent, and what differs
    Data(datasets::Args),
}

pub(crate) fn exit_code() -> ExitCode {
    let Err(error) = run() else { return ExitCode::SUCCESS };
    // One chain of causes; a backtrace would bury the sentence that says what to do.
    eprintln!("error: {}", errors::in_words(&error));
    ExitCode::from(2)
}

fn run() -> Result<()> {
    let root = checkout::root()?;
    match Bench::parse() {
        Bench::Backtest(args) => backtest::run(&root, &args),
        Bench::Recorded(args) => recorded::run(&root, &args),
        Bench::Gateway(args) => gateway::run(&root, &args),
        Bench::Admission(args) => admission::run(&root, &args),
        Bench::Live(args) => live::run(&root, &args),
        Bench::WrongCapacity(args) => wrong_capacity::run(&root, &args),
        Bench::Tenants(args) => tenants::run(&root, &args),
        Bench::Batch(args) => batch::run(&root, &args),
        Bench::Ledger(args) => ledger::run(&root, &args),
        Bench::Training(args) => training::run(&root, &args),
        Bench::Cost(args) => cost::run(&root, &args),
        Bench::Data(args) => datasets::run(&root, &args),
    }
}
