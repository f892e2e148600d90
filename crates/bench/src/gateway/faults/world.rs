//! What a drill is played in: engines without a GPU, a fault proxy before each, two gateways.

use super::super::bench::Bench;
use super::super::running::{Cores, Ports, Running};
use crate::programs::page::json;
use anyhow::{Context, Result, ensure};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Engines; with three quarters of them in trouble one is left.
pub(super) const ENGINES: usize = 4;

pub(super) struct World {
    flyball: PathBuf,
    folder: PathBuf,
    engines: Vec<Option<Running>>,
    engine_addresses: Vec<SocketAddr>,
    proxies: Vec<Running>,
    gateways: Vec<Running>,
    pub(super) gateway_addresses: Vec<SocketAddr>,
    admins: Vec<SocketAddr>,
    /// Gateways that were told to end and did.
    pub(super) restarted: u32,
}

impl World {
    /// Starts everything.
    pub(super) fn start(
        bench: &mut Bench,
        folder: &Path,
        rules: &str,
        proxies: usize,
        seed: u64,
    ) -> Result<Self> {
        let flyball = bench.ours().clone().map_err(anyhow::Error::msg)?;
        std::fs::create_dir_all(folder)?;
        let ports = &mut bench.ports;
        let several = |count: usize, ports: &mut Ports| -> Result<Vec<SocketAddr>> {
            (0..count).map(|_| ports.next()).collect()
        };
        let engine_addresses = several(ENGINES, ports)?;
        let proxy_addresses = several(ENGINES, ports)?;
        let gateway_addresses = several(2, ports)?;
        let admins = several(2, ports)?;
        let mut world = Self {
            flyball,
            folder: folder.to_owned(),
            engines: (0..ENGINES).map(|_| None).collect(),
            engine_addresses,
            proxies: Vec::new(),
            gateways: Vec::new(),
            gateway_addresses,
            admins,
            restarted: 0,
        };
        for engine in 0..ENGINES {
            world.start_engine(engine)?;
        }
        for (index, address) in proxy_addresses.iter().enumerate() {
            let own = if index < proxies { rules } else { "" };
            let script = folder.join(format!("proxy-{index}.toml"));
            std::fs::write(&script, format!("seed = {}\n{own}\n", seed + index as u64))?;
            let mut command = Command::new(bench.program("proving-faults"));
            command.arg("--listen").arg(address.to_string());
            command.arg("--upstream").arg(world.engine_addresses[index].to_string());
            command.arg("--script").arg(script);
            let name = format!("proxy-{index}");
            world.proxies.push(Running::start(&name, &command, Cores::All, folder)?);
        }
        let servers: Vec<String> =
            proxy_addresses.iter().map(|address| format!("\"{address}\"")).collect();
        for index in 0..2 {
            let config = include_str!("../templates/gateway-faults.toml")
                .replace("{listen}", &world.gateway_addresses[index].to_string())
                .replace("{admin}", &world.admins[index].to_string())
                .replace("{servers}", &servers.join(", "));
            std::fs::write(world.config(index), config)?;
            let gateway = world.new_gateway(index)?;
            world.gateways.push(gateway);
        }
        Ok(world)
    }

    pub(super) fn start_engine(&mut self, engine: usize) -> Result<()> {
        let address = self.engine_addresses[engine];
        let mut command = Command::new(&self.flyball);
        // A quarter of the real speed: 200 streams of 64 tokens take some 2 s each, which two cores
        // carry with everything else on them.
        command.args(["emulate", "--served-name", "mock", "--speed-up", "0.25"]);
        command.args(["--port", &address.port().to_string()]);
        let name = format!("engine-{engine}");
        let mut running = Running::start(&name, &command, Cores::All, &self.folder)?;
        running.ready(address, "/health", Duration::from_secs(30))?;
        self.engines[engine] = Some(running);
        Ok(())
    }

    pub(super) fn kill_engine(&mut self, engine: usize) -> Result<()> {
        self.signal_engine(engine, "KILL")?;
        self.engines[engine] = None;
        Ok(())
    }

    pub(super) fn signal_engine(&self, engine: usize, signal: &str) -> Result<()> {
        self.engines[engine].as_ref().context("that engine does not run")?.signal(signal)
    }

    /// Tells a gateway to end, starts another on its port at once, and waits for the end of the
    /// first.
    pub(super) fn restart_gateway(&mut self, index: usize) -> Result<()> {
        // As a rolling update does: the new one serves before the old one is told to go.
        let next = self.new_gateway(index)?;
        let mut old = std::mem::replace(&mut self.gateways[index], next);
        old.signal("TERM")?;
        let began = Instant::now();
        ensure!(old.wait(Duration::from_secs(30))?, "a gateway did not end within 30 s of SIGTERM");
        eprintln!("faults: gateway {index} drained in {:.1} s", began.elapsed().as_secs_f64());
        self.restarted += 1;
        Ok(())
    }

    /// What the proxies say: connections that were hit.
    pub(super) fn hit(&self) -> u64 {
        let last = |index: usize| {
            let log = self.folder.join(format!("proxy-{index}.log"));
            let text = std::fs::read_to_string(log).unwrap_or_default();
            let line = text.lines().last().unwrap_or("{}").to_owned();
            let json: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
            json["hit"].as_u64().unwrap_or(0)
        };
        (0..self.proxies.len()).map(last).sum()
    }

    /// The engines' own logs, with each engine's clock in seconds since 1970.
    pub(super) fn engine_logs(&self) -> Result<Vec<(f64, Vec<serde_json::Value>)>> {
        let mut logs = Vec::new();
        for (address, engine) in self.engine_addresses.iter().zip(&self.engines) {
            if engine.is_none() {
                continue;
            }
            let state: serde_json::Value = json(*address, "/emulator/state")?;
            let unix = jiff::Timestamp::now().as_microsecond() as f64 / 1e6;
            let now = state["now"].as_f64().context("an engine without a clock")?;
            let log = json(*address, "/emulator/log")?;
            let records = log.as_array().cloned().unwrap_or_default();
            // Its clock runs at the speed of its emulation.
            logs.push((unix - now / SPEED, records));
        }
        Ok(logs)
    }

    fn config(&self, index: usize) -> PathBuf {
        self.folder.join(format!("gateway-{index}.toml"))
    }

    fn new_gateway(&self, index: usize) -> Result<Running> {
        let mut command = Command::new(&self.flyball);
        command.arg("gateway").arg("--config").arg(self.config(index));
        let name = format!("gateway-{index}-{}", self.restarted);
        let mut running = Running::start(&name, &command, Cores::All, &self.folder)?;
        running.ready(self.admins[index], "/readyz", Duration::from_secs(30))?;
        Ok(running)
    }
}

/// Of the emulation, as told to the engines.
pub(super) const SPEED: f64 = 0.25;
