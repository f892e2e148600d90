//! What a section needs: engines, gateways, and callers that ask.

use super::report::Report;
use super::watch::GatewaySample;
use crate::process;
use crate::programs;
use crate::programs::peers::Peers;
use crate::programs::running::{Cores, Ports, Running};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// What a run of sections shares.
pub(super) struct Rig {
    pub(super) quick: bool,
    pub(super) seed: u64,
    /// Settings, plans, logs and series.
    pub(super) folder: PathBuf,
    pub(super) ports: Ports,
    pub(super) peers: Peers,
    programs: PathBuf,
}

/// What engines are: arguments of `flyball emulate`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub(super) model: &'static str,
    pub(super) gpu: &'static str,
    pub(super) tensor: u32,
    pub(super) max_running: u32,
    pub(super) step_tokens: u32,
    pub(super) speed_up: f64,
}

/// Engines in one process.
pub(super) struct Engines {
    pub(super) running: Running,
    pub(super) addresses: Vec<SocketAddr>,
}

/// A gateway.
pub(super) struct Gateway {
    pub(super) running: Running,
    pub(super) listen: SocketAddr,
    pub(super) admin: SocketAddr,
}

impl Kind {
    /// Llama-3.1-70B on eight H100 with chunks of 2,048 tokens: a prompt of 600 tokens takes about
    /// 50 ms, one of 16,000 about 0.8 s. With larger chunks whoever meets such a prompt in an engine
    /// waits 0.3 s for one step, and no gateway could help that.
    pub(super) const LARGE: Self = Self {
        model: "llama-3.1-70b",
        gpu: "h100",
        tensor: 8,
        max_running: 256,
        step_tokens: 2_048,
        speed_up: 1.0,
    };
}

impl Rig {
    pub(super) fn new(root: &Path, args: &super::Args) -> Result<Self> {
        let programs = programs::folder(root, args.programs.as_deref())?;
        for name in ["flyball", "proving-callers", "proving-upstream", "proving-faults"] {
            let file = programs.join(name);
            ensure!(file.exists(), "{} is not there", file.display());
        }
        Ok(Self {
            quick: args.quick,
            seed: args.seed,
            folder: programs::scratch("admission")?,
            ports: Ports::new(),
            peers: Peers::new()?,
            programs,
        })
    }

    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    /// Starts so many engines that answer to `served`.
    pub(super) fn engines(&mut self, kind: &Kind, served: &str, count: usize) -> Result<Engines> {
        let addresses = self.ports.row(count)?;
        let running = self.start_engines(kind, served, &addresses)?;
        Ok(Engines { running, addresses })
    }

    /// Starts engines on these ports, which are in a row.
    pub(super) fn start_engines(
        &self,
        kind: &Kind,
        served: &str,
        addresses: &[SocketAddr],
    ) -> Result<Running> {
        let (first, last) = addresses.first().zip(addresses.last()).context("no engines")?;
        let mut command = Command::new(self.program("flyball"));
        command.args(["emulate", "--model", kind.model, "--gpu", kind.gpu]);
        command.args(["--tp", &kind.tensor.to_string(), "--served-name", served]);
        command.args(["--engines", &addresses.len().to_string()]);
        command.args(["--port", &first.port().to_string()]);
        command.args(["--max-running", &kind.max_running.to_string()]);
        command.args(["--step-tokens", &kind.step_tokens.to_string()]);
        command.args(["--speed-up", &kind.speed_up.to_string()]);
        let name = format!("engines-{}", first.port());
        let mut running = Running::start(&name, &command, Cores::All, &self.folder)?;
        running.ready(*last, "/health", Duration::from_secs(60))?;
        Ok(running)
    }

    /// Starts a gateway with these settings, to which its two addresses are added.
    pub(super) fn gateway(&mut self, name: &str, settings: &str) -> Result<Gateway> {
        let (listen, admin) = (self.ports.next()?, self.ports.next()?);
        let file = self.folder.join(format!("{name}.toml"));
        let addresses = format!("listen = \"{listen}\"\nadmin = \"{admin}\"\nthreads = 1\n");
        std::fs::write(&file, addresses + settings)?;
        let mut command = Command::new(self.program("flyball"));
        command.arg("gateway").arg("--config").arg(&file);
        let mut running = Running::start(name, &command, Cores::All, &self.folder)?;
        running.ready(admin, "/readyz", Duration::from_secs(60)).with_context(|| {
            let log = self.folder.join(format!("{name}.log"));
            std::fs::read_to_string(log).unwrap_or_default()
        })?;
        Ok(Gateway { running, listen, admin })
    }

    /// Runs callers to their end. Plan and report stay in the folder.
    pub(super) fn callers(&self, name: &str, plan: &Value) -> Result<Report> {
        let file = self.folder.join(format!("{name}.json"));
        std::fs::write(&file, serde_json::to_string_pretty(plan)?)?;
        let mut command = Command::new(self.program("proving-callers"));
        let wrapped = programs::running::wrapped(command.arg(&file), Cores::All);
        let text = process::read(&mut { wrapped })?;
        std::fs::write(self.folder.join(format!("{name}-report.json")), &text)?;
        serde_json::from_str(&text).context("reading the report of the callers")
    }
}

impl Gateway {
    pub(super) fn sample(&self) -> Result<GatewaySample> {
        GatewaySample::at(self.admin)
    }
}

/// Settings for callers, whose keys are their names.
pub(super) fn keys(names: &[String]) -> String {
    let mut text = String::new();
    for name in names {
        let digest: String = Sha256::digest(name).iter().map(|b| format!("{b:02x}")).collect();
        text += &format!("\n[[keys]]\nname = \"{name}\"\nsha256 = \"{digest}\"\n");
    }
    text
}

/// A model, with more settings of it.
pub(super) fn model(name: &str, engines: &[SocketAddr], more: &str) -> String {
    let quoted: Vec<String> = engines.iter().map(|engine| format!("\"{engine}\"")).collect();
    let endpoints = quoted.join(", ");
    format!("\n[[models]]\nname = \"{name}\"\nendpoints = [{endpoints}]\n{more}\n")
}

/// Names of so many alike.
pub(super) fn several(name: &str, count: usize) -> Vec<String> {
    (1..=count).map(|number| format!("{name}-{number}")).collect()
}
