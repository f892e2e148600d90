//! The load generator, as a program.
#![expect(clippy::print_stdout, reason = "its answer is one JSON object")]

use clap::Parser;
use flyball_proving::load::{LoadPlan, run};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let report = run(LoadPlan::parse()).await?;
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}
