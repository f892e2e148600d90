//! `flyball backtest train`: what a training run would have cost, and whether it would have been in time, on recorded spot
//! machines.
//!
//! [`TrainArgs`] says what can be typed, `ground` reads recordings and prices and lays out the runs, `play` replays them
//! under each policy, `answer` is the document with its table (`view`) and its page (`page`).
//!
//! Nothing is decided here: the simulator replays, the policies decide.

mod answer;
mod ground;
mod page;
mod play;
#[cfg(test)]
mod tests;
mod view;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;

use super::page::written;
use crate::commands::plan::quantities;
use crate::flags::time;
use crate::output::{Exit, Failure, Printer};
use ground::TrainGround;

pub(crate) use answer::TrainReplay;

/// Replay a training run on recorded spot machines
///
/// Each policy sees only the past. A reclaim comes without notice and takes the work since the last save. The optimum knows
/// the future, and no policy can cost less. The run is replayed from several starts, spread over the recording. Needs no
/// cluster.
#[derive(Debug, Args)]
pub(crate) struct TrainArgs {
    /// Recorded availability: a folder or tar file of spot-traces, one of its files, or a CSV file
    /// with the columns seconds,zone,machines
    #[arg(
        long,
        value_name = "FILE",
        env = "FLYBALL_BACKTEST_AVAILABILITY",
        hide_env_values = true
    )]
    availability: PathBuf,

    /// Recording to use, where the file has several: a part of its name
    #[arg(long, value_name = "NAME", env = "FLYBALL_BACKTEST_RECORDING", hide_env_values = true)]
    recording: Option<String>,

    /// Zones that the run may use; all of the recording if not set
    #[arg(long, value_name = "ZONE", env = "FLYBALL_BACKTEST_ZONES", hide_env_values = true)]
    #[arg(value_delimiter = ',')]
    zones: Vec<String>,

    /// Work of the run without restarts and saves, as in 48h
    #[arg(long, value_name = "TIME", env = "FLYBALL_BACKTEST_WORK", hide_env_values = true)]
    #[arg(value_parser = quantities::span, required_unless_present = "steps")]
    work: Option<f64>,

    /// Work of the run in steps; needs --step-time
    #[arg(long, value_name = "N", env = "FLYBALL_BACKTEST_STEPS", hide_env_values = true)]
    #[arg(value_parser = quantities::count, requires = "step_time", conflicts_with = "work")]
    steps: Option<f64>,

    /// Time of one step, as in 1.2s or 800ms
    #[arg(long, value_name = "TIME", env = "FLYBALL_BACKTEST_STEP_TIME", hide_env_values = true)]
    #[arg(value_parser = time)]
    step_time: Option<Duration>,

    /// Time from the start of the run to its deadline, as in 60h
    #[arg(long, value_name = "TIME", env = "FLYBALL_BACKTEST_DEADLINE", hide_env_values = true)]
    #[arg(value_parser = quantities::span)]
    deadline: f64,

    /// Machines that the run needs at once
    #[arg(long, value_name = "N", env = "FLYBALL_BACKTEST_MACHINES", hide_env_values = true)]
    #[arg(default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    machines: u16,

    /// GPUs of one machine
    #[arg(long, value_name = "N", env = "FLYBALL_BACKTEST_GPUS", hide_env_values = true)]
    #[arg(default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=64))]
    gpus: u32,

    /// Time from asking for machines until the first new step
    #[arg(long, value_name = "TIME", env = "FLYBALL_BACKTEST_RESTART", hide_env_values = true)]
    #[arg(default_value = "13m", value_parser = time)]
    restart: Duration,

    /// Time that steps stand still for a save
    #[arg(long, value_name = "TIME", env = "FLYBALL_BACKTEST_SAVE", hide_env_values = true)]
    #[arg(default_value = "30s", value_parser = time)]
    save: Duration,

    /// Recorded prices: CSV with the columns
    /// day_utc,instance,az_id,ondemand_usd_h,spot_usd_h_timeweighted; needs --instance
    #[arg(long, value_name = "FILE", env = "FLYBALL_BACKTEST_PRICES", hide_env_values = true)]
    #[arg(requires = "instance")]
    prices: Option<PathBuf>,

    /// Kind of machine whose prices are read
    #[arg(long, value_name = "NAME", env = "FLYBALL_BACKTEST_INSTANCE", hide_env_values = true)]
    instance: Option<String>,

    /// Dollars for one GPU for an hour on demand, without --prices
    #[arg(long, value_name = "USD", env = "FLYBALL_BACKTEST_ON_DEMAND", hide_env_values = true)]
    #[arg(value_parser = quantities::count, required_unless_present = "prices")]
    on_demand: Option<f64>,

    /// The same on spot
    #[arg(long, value_name = "USD", env = "FLYBALL_BACKTEST_SPOT", hide_env_values = true)]
    #[arg(value_parser = quantities::count, required_unless_present = "prices")]
    spot: Option<f64>,

    /// Starts, spread over the recording after its first eighth, which is only watched
    #[arg(long, value_name = "N", env = "FLYBALL_BACKTEST_STARTS", hide_env_values = true)]
    #[arg(default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=1000))]
    starts: u32,

    /// Policy: flyball, uniform-progress, greedy, skypilot or on-demand; may be repeated; all if
    /// not set
    #[arg(long, value_name = "POLICY", env = "FLYBALL_BACKTEST_POLICY", value_delimiter = ',')]
    #[arg(hide_env_values = true, hide_default_value = true)]
    #[arg(default_value = "flyball,uniform-progress,greedy,skypilot,on-demand")]
    policy: Vec<String>,

    /// Also write an HTML report
    #[arg(long, value_name = "FILE", env = "FLYBALL_BACKTEST_REPORT", hide_env_values = true)]
    report: Option<PathBuf>,
}

pub(super) fn run(args: &TrainArgs, printer: &Printer) -> Result<Exit, Failure> {
    let begun = Instant::now();
    let progress = printer.progress();
    progress.show("reading recordings");
    let ground = TrainGround::read(args)?;
    let policies = play::policies(&args.policy)?;
    let played = play::all(&ground, &policies, &progress);
    drop(progress);
    let mut answer = TrainReplay::of(&ground, played);
    answer.took = begun.elapsed();
    if let Some(file) = &args.report {
        answer.page = Some(written(file, &page::page(&answer), "--report")?);
    }
    Ok(printer.answer(&answer))
}
