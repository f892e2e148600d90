//! Several callers at once, as a program: one JSON object on standard output.
#![expect(clippy::print_stdout, reason = "its answer is one JSON object")]

use anyhow::Context;
use clap::Parser;
use flyball_proving::callers::{CallersPlan, run};
use std::path::PathBuf;

/// Plays callers that share gateways, and says what each of them got.
#[derive(Parser)]
struct Args {
    /// JSON: targets, seconds and callers; see `callers::Plan`
    plan: PathBuf,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let path = Args::parse().plan;
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading {path:?}"))?;
    let plan: CallersPlan = serde_json::from_str(&text).with_context(|| format!("in {path:?}"))?;
    let report = run(plan).await?;
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}
