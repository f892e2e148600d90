//! `flyball heartbeat`: serves the heartbeat of a training run that writes a file or a log.
//!
//! It stands beside the run, in its pod, so that the run needs no server of its own. `source` reads what the run wrote,
//! by `files` and `log`, `instructions` writes what is asked of it, `agent` answers. The folder is the run's: whatever is in it is bounded,
//! checked and written anew before it goes on.

mod agent;
mod files;
mod instructions;
mod log;
mod source;
#[cfg(test)]
mod tests;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use flyball_core::units::Micros;
use flyball_resources::heartbeat::PORT;
use flyball_telemetry::logs;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::output::{Exit, Failure};
use agent::Agent;
use log::LogPattern;
use source::Source;

/// Serve the heartbeat of a training run that writes a file or a log
///
/// GET /heartbeat shows how far the run is, or 503 and why that is unknown. PUT /instructions writes what Flyball asks
/// of the run to FILE.instructions. A run that uses the Python package serves both itself and needs no agent, except
/// where its port cannot be reached.
#[derive(Debug, Args)]
pub(crate) struct HeartbeatArgs {
    /// File that the run writes; instructions are beside it
    #[arg(long, value_name = "FILE", env = "FLYBALL_HEARTBEAT_FILE", hide_env_values = true)]
    #[arg(required_unless_present = "log")]
    file: Option<PathBuf>,

    /// Log that the run writes, read instead of FILE: lines with `flyball-heartbeat {...}`, or --pattern
    #[arg(long, value_name = "FILE", env = "FLYBALL_HEARTBEAT_LOG", hide_env_values = true)]
    log: Option<PathBuf>,

    /// Regular expression for lines of the log, with the named groups step, saved, total; one of the first two at least
    #[arg(long, value_name = "RE", env = "FLYBALL_HEARTBEAT_PATTERN", hide_env_values = true)]
    #[arg(requires = "log")]
    pattern: Option<String>,

    /// Address for Flyball. Whoever reaches it may ask for saves; the run bounds how often
    #[arg(long, value_name = "IP:PORT", env = "FLYBALL_HEARTBEAT_LISTEN", hide_env_values = true)]
    #[arg(default_value_t = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)))]
    listen: SocketAddr,

    /// Seconds after which a heartbeat is too old to serve
    #[arg(long, value_name = "SECONDS", env = "FLYBALL_HEARTBEAT_MAX_AGE", hide_env_values = true)]
    #[arg(default_value_t = 900, value_parser = clap::value_parser!(u32).range(1..=604_800))]
    max_age: u32,
}

/// Runs until SIGTERM or Ctrl-C.
pub(crate) async fn run(args: &HeartbeatArgs) -> Result<Exit, Failure> {
    // Fails only if logging was set up already, by -v.
    let _ = logs::init(logs::Format::Json, "info");
    let agent = agent(args)?;
    let listener = TcpListener::bind(args.listen).await.map_err(|error| {
        Failure::new(Exit::Usage, "cannot listen")
            .at(args.listen.to_string())
            .because(error.to_string())
            .hint("take another address with --listen, or end what has this one")
    })?;
    let mut signal = signal(SignalKind::terminate()).map_err(|error| {
        Failure::new(Exit::Usage, "cannot listen for signals").because(error.to_string())
    })?;
    if let Ok(address) = listener.local_addr() {
        tracing::info!(%address, "heartbeat agent listening");
    }
    tokio::select! {
        () = agent.serve(listener) => {}
        _ = signal.recv() => {}
    }
    Ok(Exit::Yes)
}

fn agent(args: &HeartbeatArgs) -> Result<Agent, Failure> {
    let pattern = args.pattern.as_deref().map(LogPattern::new).transpose().map_err(|why| {
        Failure::new(Exit::Usage, "the pattern is refused")
            .because(why)
            .hint(r"flyball heartbeat --log train.log --pattern 'step (?<step>\d+)/(?<total>\d+)'")
    })?;
    let source = match (&args.log, &args.file) {
        (Some(log), _) => Source::Log(log.clone(), pattern),
        (None, Some(file)) => Source::File(file.clone()),
        // The command line asks for one of them.
        (None, None) => return Err(Failure::new(Exit::Usage, "neither --file nor --log is given")),
    };
    Ok(Agent {
        source,
        instructions: args.file.as_deref().map(instructions::beside),
        max_age: Micros::from_seconds(args.max_age.into()),
    })
}
