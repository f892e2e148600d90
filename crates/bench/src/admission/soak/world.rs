//! Who takes part in the soak: engines with fault proxies before half of them, a canary, a mirror,
//! and two gateways with everything on.

use super::faults::{DURING, Fault, script};
use crate::admission::rig::{Gateway, Kind, Rig, keys, model};
use crate::programs::page::json;
use crate::programs::running::{Cores, Running, post};
use anyhow::{Context, Result, ensure};
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

/// Engines of the model that most ask for. The first two are behind fault proxies.
const ENGINES: usize = 4;
const BEHIND_PROXIES: usize = 2;

/// A small model at its own speed: a stream of 50 tokens takes some 0.4 s.
const KIND: Kind = Kind {
    model: "llama-3.1-8b",
    gpu: "h100",
    tensor: 1,
    max_running: 64,
    step_tokens: 2_048,
    speed_up: 1.0,
};

pub(super) struct World {
    pub(super) gateways: Vec<Gateway>,
    engines: Vec<(SocketAddr, Option<Running>)>,
    _others: Vec<Running>,
    proxies: Vec<Running>,
    folder: std::path::PathBuf,
    /// The fault under way, and at which engine.
    now: Option<(Fault, usize)>,
    faults: u64,
}

impl World {
    pub(super) fn start(rig: &mut Rig, seconds: f64) -> Result<Self> {
        let mut engines = Vec::new();
        for _ in 0..ENGINES {
            let address = rig.ports.next()?;
            let running = rig.start_engines(&KIND, "chat", &[address])?;
            engines.push((address, Some(running)));
        }
        let mut others = Vec::new();
        let mut alone = Vec::new();
        for name in ["canary", "copy"] {
            let started = rig.engines(&KIND, name, 1)?;
            alone.push(started.addresses);
            others.push(started.running);
        }
        let mut fronts: Vec<SocketAddr> = engines.iter().map(|(address, _)| *address).collect();
        let mut proxies = Vec::new();
        for (index, front) in fronts.iter_mut().enumerate().take(BEHIND_PROXIES) {
            let file = rig.folder.join(format!("soak-proxy-{index}.toml"));
            std::fs::write(&file, script(rig.seed + index as u64, seconds))?;
            let listen = rig.ports.next()?;
            let mut command = Command::new(rig.program("proving-faults"));
            command.args(["--listen", &listen.to_string(), "--upstream", &front.to_string()]);
            command.arg("--script").arg(file);
            let name = format!("soak-proxy-{index}");
            proxies.push(Running::start(&name, &command, Cores::All, &rig.folder)?);
            *front = listen;
        }
        let settings = settings(&fronts, &alone[0], &alone[1]);
        let mut gateways = Vec::new();
        for number in 0..2 {
            gateways.push(rig.gateway(&format!("soak-gateway-{number}"), &settings)?);
        }
        let folder = rig.folder.clone();
        Ok(Self { gateways, engines, _others: others, proxies, folder, now: None, faults: 0 })
    }

    /// Breaks and mends what this moment asks for.
    pub(super) fn follow(&mut self, rig: &Rig, since: Duration) -> Result<()> {
        let (minute, second) = (since.as_secs() / 60, since.as_secs() % 60);
        // Each engine in turn, so that three of four work.
        let engine = minute as usize % ENGINES;
        let due = DURING.contains(&second).then(|| (Fault::of(minute), engine));
        if due == self.now {
            return Ok(());
        }
        if let Some((fault, engine)) = self.now.take() {
            fault.end(rig, self, engine)?;
        }
        if let Some((fault, engine)) = due {
            fault.begin(self, engine)?;
            self.faults += 1;
            self.now = due;
        }
        Ok(())
    }

    /// Ends whatever is still broken.
    pub(super) fn mend(&mut self, rig: &Rig) -> Result<()> {
        match self.now.take() {
            Some((fault, engine)) => fault.end(rig, self, engine),
            None => Ok(()),
        }
    }

    fn engine(&self, engine: usize) -> SocketAddr {
        self.engines[engine].0
    }

    fn kill(&mut self, engine: usize) -> Result<()> {
        let running = self.engines[engine].1.take().context("that engine does not run")?;
        running.signal("KILL")
    }

    fn restart(&mut self, rig: &Rig, engine: usize) -> Result<()> {
        let address = self.engine(engine);
        self.engines[engine].1 = Some(rig.start_engines(&KIND, "chat", &[address])?);
        Ok(())
    }

    /// Requests that each engine works on or has waiting.
    pub(super) fn under_way(&self) -> Result<Vec<u64>> {
        let count = |address: SocketAddr| -> Result<u64> {
            let state = json(address, "/emulator/state")?;
            let of = |name: &str| state[name].as_u64().unwrap_or(0);
            Ok(of("running") + of("waiting"))
        };
        self.engines.iter().map(|(address, _)| count(*address)).collect()
    }

    /// What was broken so far, in words.
    pub(super) fn broken(&self) -> String {
        let hit = |index: usize| {
            let log = self.folder.join(format!("soak-proxy-{index}.log"));
            let text = std::fs::read_to_string(log).unwrap_or_default();
            let line: serde_json::Value =
                serde_json::from_str(text.lines().last().unwrap_or("{}")).unwrap_or_default();
            line["hit"].as_u64().unwrap_or(0)
        };
        let hits: u64 = (0..self.proxies.len()).map(hit).sum();
        format!("{} faults so far, {hits} connections hit by the proxies", self.faults)
    }
}

fn settings(chat: &[SocketAddr], canary: &[SocketAddr], copy: &[SocketAddr]) -> String {
    let waits = "\n[timeouts]\nfirst_byte_ms = 5000\nanswer_idle_ms = 3000\nconnect_ms = 500\n";
    let everything = "cache_responses = true\nshadow = [\"least-load\", \"round-robin\"]";
    let split = "\n[[splits]]\nname = \"next\"\nsticky = \"user\"\n\
                 [[splits.arms]]\nmodel = \"chat\"\nknown_as = \"chat\"\nweight = 70\n\
                 [[splits.arms]]\nmodel = \"canary\"\nknown_as = \"canary\"\nweight = 30\n\
                 [splits.mirror]\nmodel = \"copy\"\nknown_as = \"copy\"\nper_thousand = 200\n";
    keys(&super::names())
        + &model("chat", chat, everything)
        + &model("canary", canary, "")
        + &model("copy", copy, "")
        + split
        + waits
}

impl Fault {
    fn begin(self, world: &mut World, engine: usize) -> Result<()> {
        match self {
            Self::Kill => world.kill(engine),
            Self::Engine(faults) => set_faults(world, engine, faults),
            Self::Network(_) => Ok(()),
        }
    }

    fn end(self, rig: &Rig, world: &mut World, engine: usize) -> Result<()> {
        match self {
            Self::Kill => world.restart(rig, engine),
            Self::Engine(_) => set_faults(world, engine, "{}"),
            Self::Network(_) => Ok(()),
        }
    }
}

fn set_faults(world: &World, engine: usize, faults: &str) -> Result<()> {
    let answer = post(world.engine(engine), "/emulator/faults", faults)?;
    ensure!(answer.starts_with("HTTP/1.1 200"), "an engine does not take {faults}: {answer}");
    Ok(())
}
