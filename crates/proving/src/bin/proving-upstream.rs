//! The bare upstream, as a program.

use clap::Parser;
use flyball_proving::upstream::{Upstream, serve};
use std::net::SocketAddr;
use std::time::Duration;

/// Answers every POST with a fixed completion, or with a stream if the body asks for one.
#[derive(Parser)]
struct Args {
    /// Where to listen
    #[arg(long, value_delimiter = ',', default_value = "127.0.0.1:9101")]
    listen: Vec<SocketAddr>,
    #[arg(long, default_value = "mock")]
    model: String,
    /// Chunks of a stream
    #[arg(long, default_value_t = 64)]
    chunks: u32,
    /// Microseconds between chunks
    #[arg(long, default_value_t = 0)]
    pace_us: u64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let Args { listen, model, chunks, pace_us } = Args::parse();
    let pace = Duration::from_micros(pace_us);
    Ok(serve(Upstream { listen, model, chunks, pace }).await?)
}
