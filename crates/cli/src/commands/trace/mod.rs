//! `flyball trace`: look at traffic, turn it into another form, record it from a Prometheus.
//!
//! Files are read and written by the simulator's `traffic`; here is only what is asked and shown.

mod answer;
mod convert;
mod inspect;
mod record;
#[cfg(test)]
mod tests;

use std::path::Path;

use clap::{Args, Subcommand};
use flyball_simulator::traffic::load::{LoadError, Loaded, open};

use crate::flags::ClusterArgs;
use crate::output::{Exit, Failure, FailureCode, Printer};

#[cfg(test)]
pub(crate) use {answer::TraceReport, convert::Converted};

/// Inspect, convert or record traffic
///
/// Traffic is single requests or rates over time. Reads public traces (Azure LLM, Mooncake,
/// BurstGPT, ServeGen, Qwen-Bailian), CSV, Parquet and Prometheus responses, gzipped or not. The
/// format is detected from the content.
#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Inspect(inspect::InspectArgs),
    Convert(convert::ConvertArgs),
    Record(record::RecordArgs),
}

pub(crate) async fn run(
    args: &TraceArgs,
    cluster: &ClusterArgs,
    printer: &Printer,
) -> Result<Exit, Failure> {
    match &args.what {
        What::Inspect(args) => inspect::run(args, printer),
        What::Convert(args) => convert::run(args, printer),
        What::Record(args) => record::run(args, cluster.timeout, printer).await,
    }
}

pub(super) fn load(file: &Path) -> Result<Loaded, Failure> {
    open(file).map_err(unreadable)
}

fn unreadable(error: LoadError) -> Failure {
    let line = error.line.map(|line| format!(" line {line}")).unwrap_or_default();
    let failure = Failure::new(Exit::Usage, "the traffic cannot be read")
        .code(FailureCode::Trace)
        .at(format!("{}{line}", error.file))
        .because(error.what);
    advised(failure, error.hint)
}

/// Hints stand on one line; longer advice wraps above a short hint.
fn advised(failure: Failure, advice: String) -> Failure {
    // "hint: " takes six of a hundred columns.
    match advice.chars().count() {
        0 => failure,
        1..=94 => failure.hint(advice),
        _ => failure
            .problems(vec![format!("what to do: {advice}")])
            .hint("flyball explain FLY-605 says what is read"),
    }
}

/// Only this model's traffic, if one is named.
fn only(mut loaded: Loaded, model: Option<&str>) -> Result<Loaded, Failure> {
    if let Some(name) = model {
        let part = loaded.part(Some(name)).map_err(unreadable)?.clone();
        loaded.parts = vec![part];
    }
    Ok(loaded)
}
