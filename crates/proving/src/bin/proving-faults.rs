//! The fault proxy, as a program. Ends with its input, or by a signal.
#![expect(clippy::print_stdout, reason = "its answer is one JSON object a second")]

use anyhow::Context;
use clap::Parser;
use flyball_proving::faults::Proxy;
use flyball_simulator::network::Script;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Relays TCP to one address and breaks it by a script.
#[derive(Parser)]
struct Args {
    #[arg(long)]
    listen: SocketAddr,
    #[arg(long)]
    upstream: SocketAddr,
    /// TOML: a seed and rules; nothing breaks without
    #[arg(long)]
    script: Option<PathBuf>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let Args { listen, upstream, script } = Args::parse();
    let script = match script {
        Some(path) => {
            let text =
                std::fs::read_to_string(&path).with_context(|| format!("reading {path:?}"))?;
            Script::from_toml(&text)?
        }
        None => Script::default(),
    };
    let proxy = Proxy::bind(listen, upstream, script)?;
    let counts = proxy.counts();
    let report = async move {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let [connections, hit, steps] = [&counts.connections, &counts.hit, &counts.steps]
                .map(|count| count.load(Ordering::Relaxed));
            println!(r#"{{"connections":{connections},"hit":{hit},"steps":{steps}}}"#);
        }
    };
    tokio::select! {
        () = report => Ok(()),
        ended = proxy.run() => Ok(ended?),
    }
}
