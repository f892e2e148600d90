//! The load generator, as a program.
#![expect(clippy::print_stdout, reason = "its answer is one JSON object")]

use clap::Parser;
use flyball_proving::load::{Plan, run};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let report = run(Plan::parse()).await?;
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}
