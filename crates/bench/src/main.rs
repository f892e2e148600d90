//! `flyball-bench`: what the simulator, the governor and the gateway are worth, in numbers.
//!
//! A program of its own and not a part of xtask, because it builds the governor and the simulator; `cargo xtask bench`
//! starts it, and it asks xtask for the test cluster. One module per bench; `programs` has what several of them start.
//! Traces are read in place, beside the checkout, and never copied. Start reading at the bench that you typed.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a developer's tool")]

mod admission;
mod backtest;
mod batch;
mod cells;
mod commands;
mod contenders;
mod cost;
mod datasets;
mod documents;
mod drills;
mod gateway;
mod ledger;
mod live;
mod pace;
mod pool;
mod programs;
mod recorded;
mod sources;
mod speed;
mod spread;
mod tenants;
mod training;
mod truth;
mod worlds;
mod wrong_capacity;
mod yardstick;

use flyball_figures::{checkout, errors, figures, page, parallel, process};

fn main() -> std::process::ExitCode {
    commands::exit_code()
}
