//! Plays a trace against gateways, and prints what came of it as one JSON object.
#![expect(clippy::print_stdout, reason = "its answer is one JSON object")]

use clap::Parser;
use flyball_proving::replay::{ReplayPlan, run};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let report = run(ReplayPlan::parse()).await?;
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}
