//! What can be typed to say what is replayed, whatever is then asked about it.

use std::time::Duration;

use clap::Args;
use flyball_perf::engine::{Engine, PREDICTED};
use flyball_simulator::cold_start::ColdStart;
use flyball_simulator::seconds::Seconds;

use crate::catalog::CatalogArgs;
use crate::commands::plan::quantities;
use crate::flags::{time, time_above_zero};
use crate::model::{FormatArgs, engines};

/// What is replayed, whatever is then asked about it.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Traffic: a file of requests or rates, a folder of ServeGen, or FILE#NAME for one model of a
    /// file; several share the cluster, each with its --model
    #[arg(long, value_name = "FILE", env = "FLYBALL_BACKTEST_TRAFFIC", hide_env_values = true)]
    #[arg(required = true)]
    pub(super) traffic: Vec<String>,

    /// Model of the traffic, once per --traffic; with --gpu a folder, a config.json or a name from
    /// flyball explain FLY-603
    #[arg(long, value_name = "MODEL", env = "FLYBALL_BACKTEST_MODEL", hide_env_values = true)]
    pub(super) model: Vec<String>,

    /// Capacity of one replica within the objectives, as in 1.4rps or 84/min; once, or once per
    /// model
    #[arg(long, value_name = "RATE", env = "FLYBALL_BACKTEST_PER_REPLICA", hide_env_values = true)]
    #[arg(value_parser = rate)]
    pub(super) per_replica: Vec<f64>,

    /// Accelerator, to predict capacity and cost of a replica
    #[arg(long, value_name = "NAME", env = "FLYBALL_BACKTEST_GPU", hide_env_values = true)]
    pub(super) gpu: Option<String>,

    /// GPUs of one replica: its tensor-parallel size
    #[arg(long = "tp", alias = "tensor", value_name = "N", env = "FLYBALL_BACKTEST_TENSOR")]
    #[arg(hide_env_values = true, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(super) tensor: u32,

    /// Engine, for the prediction
    #[arg(long, value_name = "NAME", env = "FLYBALL_BACKTEST_ENGINE", hide_env_values = true)]
    #[arg(default_value = "vllm", value_parser = engines(PREDICTED))]
    pub(super) engine: Engine,

    /// Mean prompt tokens, if the traffic does not contain them
    #[arg(long, value_name = "TOKENS", env = "FLYBALL_BACKTEST_INPUT", hide_env_values = true)]
    #[arg(value_parser = quantities::at_least_one)]
    pub(super) input: Option<f64>,

    /// Mean output tokens, if the traffic does not contain them
    #[arg(long, value_name = "TOKENS", env = "FLYBALL_BACKTEST_OUTPUT", hide_env_values = true)]
    #[arg(value_parser = quantities::at_least_one)]
    pub(super) output: Option<f64>,

    /// Time from requesting a replica until it is ready, as in 100s, or 100s/300s for the median
    /// and the 99th percentile
    #[arg(long, value_name = "TIME", env = "FLYBALL_BACKTEST_COLD_START", hide_env_values = true)]
    #[arg(default_value = "100s", value_parser = cold_start)]
    pub(super) cold_start: ColdStart,

    /// Objective for the time to first token (TTFT)
    #[arg(long, value_name = "TIME", env = "FLYBALL_BACKTEST_TTFT", hide_env_values = true)]
    #[arg(default_value = "3s", value_parser = time_above_zero)]
    pub(super) ttft: Duration,

    /// Objective for the mean time per output token (TPOT)
    #[arg(long, value_name = "TIME", env = "FLYBALL_BACKTEST_TPOT", hide_env_values = true)]
    #[arg(default_value = "100ms", value_parser = time_above_zero)]
    pub(super) tpot: Duration,

    /// Share of requests that may miss, for the verdict
    #[arg(long, value_name = "SHARE", env = "FLYBALL_BACKTEST_MISSES", hide_env_values = true)]
    #[arg(default_value = "1%", value_parser = share)]
    pub(super) misses: f64,

    /// Minimum replicas of a model
    #[arg(long, value_name = "N", env = "FLYBALL_BACKTEST_MIN", hide_env_values = true)]
    #[arg(default_value_t = 1)]
    pub(super) min: u32,

    /// Maximum replicas of a model
    #[arg(long, value_name = "N", env = "FLYBALL_BACKTEST_MAX", hide_env_values = true)]
    #[arg(default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max: u32,

    /// Fixed number of accelerators that the models share; if not set, each model buys and returns
    /// its own
    #[arg(long, value_name = "GPUS", env = "FLYBALL_BACKTEST_POOL", hide_env_values = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) pool: Option<u32>,

    /// Dollars per accelerator-hour; with --gpu the cheapest on-demand price if not set
    #[arg(long, value_name = "USD", env = "FLYBALL_BACKTEST_PRICE", hide_env_values = true)]
    #[arg(value_parser = quantities::count)]
    pub(super) price: Option<f64>,

    /// Start of the replay: 13:05, 2d13:05 for the second day, or a date
    #[arg(long, value_name = "TIME", env = "FLYBALL_BACKTEST_FROM", hide_env_values = true)]
    pub(super) from: Option<String>,

    /// End of the replay
    #[arg(long, value_name = "TIME", env = "FLYBALL_BACKTEST_TO", hide_env_values = true)]
    pub(super) to: Option<String>,

    /// Traffic to replay before scoring, as in 24h or 7d: policies learn from it
    #[arg(long, value_name = "TIME", env = "FLYBALL_BACKTEST_WARM_UP", hide_env_values = true)]
    #[arg(default_value = "0", value_parser = long)]
    pub(super) warm_up: f64,

    /// How traffic is replayed
    #[arg(long, value_name = "HOW", env = "FLYBALL_BACKTEST_METHOD", hide_env_values = true)]
    #[arg(default_value = "auto")]
    pub(super) method: Method,

    /// Replays of each policy, each with its own random seed
    #[arg(long, value_name = "N", env = "FLYBALL_BACKTEST_SEEDS", hide_env_values = true)]
    #[arg(default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(super) seeds: u64,

    #[command(flatten)]
    pub(super) formats: FormatArgs,

    #[command(flatten)]
    pub(super) catalog: CatalogArgs,
}

/// How traffic is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Method {
    /// Single requests where they are known, there are few, and --gpu is given; else rates
    Auto,
    /// As a flow: weeks in seconds
    Rates,
    /// Each through the steps of an engine, with its batch and its cache
    Requests,
}

/// `1.4rps`, or as everywhere else `1.4/s`.
fn rate(text: &str) -> Result<f64, String> {
    quantities::rate(text)
        .map_err(|_| "write requests per time, as in 1.4rps, 1.4/s or 84/min".to_owned())
}

/// `100s`, or `100s/300s`: median and 99th percentile.
fn cold_start(text: &str) -> Result<ColdStart, String> {
    let seconds = |text: &str| time(text).map(|time| Seconds(time.as_secs_f64()));
    match text.split_once('/') {
        None => Ok(ColdStart::Constant(seconds(text)?)),
        Some((median, p99)) => {
            let (median, p99) = (seconds(median)?, seconds(p99)?);
            if median > Seconds::ZERO && p99 > median {
                Ok(ColdStart::LogNormal { median, p99 })
            } else {
                Err("write the median and then the longer 99th percentile, as 100s/300s".to_owned())
            }
        }
    }
}

/// `1%` or `0.01`.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let (digits, unit) = match text.trim().strip_suffix('%') {
        Some(digits) => (digits, 100.0),
        None => (text.trim(), 1.0),
    };
    let number = digits.trim().parse::<f64>().map(|number| number / unit).ok();
    number
        .filter(|share| (0.0..1.0).contains(share))
        .ok_or_else(|| "write a share as in 1% or 0.01".to_owned())
}

/// `0`, `90s`, `24h`, `7d`: seconds.
fn long(text: &str) -> Result<f64, String> {
    if text.trim() == "0" { Ok(0.0) } else { quantities::span(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_and_nonsense_is_refused() {
        assert_eq!(rate("1.4rps"), Ok(1.4));
        assert_eq!(rate("84/min"), Ok(1.4));
        assert_eq!(cold_start("100s"), Ok(ColdStart::Constant(Seconds(100.0))));
        let spread = ColdStart::LogNormal { median: Seconds(100.0), p99: Seconds(300.0) };
        assert_eq!(cold_start("100s/5m"), Ok(spread));
        assert_eq!((share("1%"), share("0.01")), (Ok(0.01), Ok(0.01)));
        assert_eq!((long("0"), long("7d")), (Ok(0.0), Ok(604_800.0)));
        assert!(cold_start("300s/100s").is_err() && cold_start("soon").is_err());
        assert!(share("100%").is_err() && rate("fast").is_err() && long("soon").is_err());
    }
}
