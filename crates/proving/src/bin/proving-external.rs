//! The external metrics API with one metric, as a program. Ends by a signal.

use clap::Parser;
use flyball_proving::external::{ExternalPlan, run};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    run(ExternalPlan::parse()).await
}
