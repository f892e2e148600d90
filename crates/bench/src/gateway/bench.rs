//! What every section needs: the programs, a folder, the upstream, and one round of load.

use super::contenders::{Contender, Place, Started};
use super::kernel::{self, Cpu, TICK_NANOS};
use super::peers::Peers;
use super::running::{self, Cores, Ports, Running};
use crate::process;
use crate::programs;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// What a run of sections shares.
pub(super) struct Bench {
    pub(super) quick: bool,
    pub(super) folder: PathBuf,
    pub(super) peers: Peers,
    programs: PathBuf,
    ours: Result<PathBuf, String>,
    before: Option<PathBuf>,
    with: Option<PathBuf>,
    pub(super) ports: Ports,
    /// Load goes before all others on its core.
    pub(super) hurries: bool,
}

/// What `proving-load` prints.
#[derive(Debug, Deserialize)]
pub(super) struct Report {
    pub(super) answered: u64,
    pub(super) otherwise: BTreeMap<String, u64>,
    pub(super) events: u64,
    pub(super) seconds: f64,
    pub(super) most_open: u64,
    pub(super) latency: Summary,
    pub(super) between: Summary,
}

#[derive(Debug, Deserialize)]
pub(super) struct Summary {
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    pub(super) p999_us: f64,
}

/// One round of load on one contender.
pub(super) struct Round {
    pub(super) report: Report,
    /// CPU time of the contender's whole tree.
    pub(super) cpu_nanos: u64,
}

impl Bench {
    /// Builds the programs, unless they were built before.
    pub(super) fn new(root: &Path, args: &super::Args) -> Result<Self> {
        let programs = programs::folder(root, args.programs.as_deref())?;
        let flyball = programs.join("flyball");
        let help = process::read(Command::new(&flyball).args(["gateway", "--help"]));
        let ours = match help {
            Ok(_) => Ok(flyball),
            Err(_) => Err("`flyball gateway` does not exist yet".to_owned()),
        };
        let folder = programs::scratch("bench")?;
        let quick = args.quick;
        Ok(Self {
            quick,
            folder,
            peers: Peers::new()?,
            programs,
            ours,
            before: args.before.clone(),
            with: args.with.clone(),
            ports: Ports::new(),
            hurries: false,
        })
    }

    /// A program of ours.
    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    /// The program `flyball`, if it has a gateway.
    pub(super) fn ours(&self) -> &Result<PathBuf, String> {
        &self.ours
    }

    /// Starts the bare upstream on the first core: as many addresses, each an engine of its own.
    pub(super) fn upstream(
        &mut self,
        engines: usize,
        chunks: u32,
        pace_us: u64,
    ) -> Result<(Running, Vec<SocketAddr>)> {
        let addresses = (0..engines).map(|_| self.ports.next()).collect::<Result<Vec<_>>>()?;
        let mut command = Command::new(self.program("proving-upstream"));
        command.arg("--listen").arg(joined(&addresses));
        command.args(["--chunks", &chunks.to_string(), "--pace-us", &pace_us.to_string()]);
        let mut running = Running::start("upstream", &command, Cores::First, &self.folder)?;
        running.ready(addresses[0], "/health", Duration::from_secs(20))?;
        Ok((running, addresses))
    }

    /// Starts contenders; one that does not start is left out, with its reason.
    pub(super) fn start(
        &mut self,
        contenders: &[Contender],
        upstreams: &[SocketAddr],
        streams: bool,
    ) -> (Vec<Started>, Vec<String>) {
        let (mut started, mut skipped) = (Vec::new(), Vec::new());
        for contender in contenders {
            let is_named = match contender {
                Contender::Before => self.before.is_some(),
                Contender::With => self.with.is_some(),
                _ => true,
            };
            if !is_named {
                continue;
            }
            let place = Place {
                folder: &self.folder,
                peers: &self.peers,
                ours: self.ours.clone(),
                before: self.before.clone(),
                with: self.with.clone(),
                upstreams,
                streams,
            };
            match contender.start(&place, &mut self.ports) {
                Ok(one) => started.push(one),
                Err(error) => {
                    let line = format!("{} is skipped: {error:#}", contender.name());
                    eprintln!("{line}");
                    skipped.push(line);
                }
            }
        }
        (started, skipped)
    }

    /// Runs load from the first core.
    pub(super) fn load(&self, targets: &[SocketAddr], more: &[String]) -> Result<Report> {
        let mut command = Command::new(self.program("proving-load"));
        command.arg("--target").arg(joined(targets)).args(more);
        let mut command = running::wrapped(&command, Cores::First);
        if self.hurries {
            let mut first = Command::new("chrt");
            first.args(["--fifo", "1"]).arg(command.get_program()).args(command.get_args());
            command = first;
        }
        let text = process::read(&mut command)?;
        serde_json::from_str(&text).context("reading the report of the load")
    }

    /// One round on one contender: load, and what it cost there.
    pub(super) fn round(&self, one: &Started, more: &[String]) -> Result<Round> {
        let pid = one.running.pid();
        let before = kernel::cpu(pid)?;
        let report = self.load(&[one.address], more)?;
        let after = kernel::cpu(pid)?;
        let name = one.contender.name();
        let failed: u64 = report.otherwise.values().sum();
        ensure!(
            report.answered > 0 && failed * 100 <= report.answered,
            "{name} answered {} requests and failed {:?}",
            report.answered,
            report.otherwise
        );
        Ok(Round { report, cpu_nanos: spent(name, before, after) })
    }
}

/// The scheduler's count, checked by the other one: threads that ended in between are missing from
/// the first.
fn spent(name: &str, before: Cpu, after: Cpu) -> u64 {
    let fine = after.scheduler_nanos.saturating_sub(before.scheduler_nanos);
    let coarse = (after.ticks - before.ticks) * TICK_NANOS;
    // Two ticks and 5 % apart: they count different things.
    if fine.abs_diff(coarse) > 2 * TICK_NANOS + coarse / 20 {
        eprintln!("{name}: scheduler says {fine} ns, ticks say {coarse} ns; the larger counts");
        return fine.max(coarse);
    }
    fine
}

fn joined(addresses: &[SocketAddr]) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

pub(super) fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}
