//! `flyball trace inspect`: what is in a file of traffic.

use std::path::PathBuf;

use clap::Args;

use super::answer::TraceReport;
use crate::output::{Exit, Failure, Printer};

/// Show what is in a file of traffic: how much, how bursty, how long, what prompts share
///
/// Silences that cannot be quiet times are shown as gaps; nothing is scored in them.
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// File, or folder of ServeGen
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Only this model
    #[arg(long, value_name = "NAME", env = "FLYBALL_TRACE_MODEL", hide_env_values = true)]
    model: Option<String>,
}

pub(super) fn run(args: &InspectArgs, printer: &Printer) -> Result<Exit, Failure> {
    let loaded = super::only(super::load(&args.file)?, args.model.as_deref())?;
    Ok(printer.answer(&TraceReport::new(loaded)))
}
