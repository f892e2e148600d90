//! The operators of a run, on this machine: one for all arms that Flyball rules, and one of its own for each whose
//! operator is replaced.

use super::measured::OperatorTicks;
use super::stage::Stage;
use crate::programs::running::Running;
use anyhow::{Context, Result};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// One operator.
pub(super) struct Operator {
    name: String,
    namespaces: Vec<String>,
    admin: SocketAddr,
    /// Where gateways find it.
    pub(super) link: u16,
    /// When it is replaced, in seconds after the first request.
    restarts: Option<f64>,
    /// Processes that were started.
    begun: u32,
    running: Option<Running>,
}

/// All operators that arms in these namespaces need; none runs yet. Some are replaced, so many seconds after the first
/// request.
pub(super) fn all<'a>(
    stage: &mut Stage,
    arms: impl Iterator<Item = (&'a str, Option<f64>)>,
) -> Result<Vec<Operator>> {
    let mut operators: Vec<Operator> = Vec::new();
    for (namespace, restarts) in arms {
        let shared = operators.iter_mut().find(|one| one.restarts.is_none() && restarts.is_none());
        match shared {
            Some(operator) => operator.namespaces.push(namespace.to_owned()),
            None => operators.push(Operator {
                name: format!("operator-{}", operators.len()),
                namespaces: vec![namespace.to_owned()],
                admin: stage.ports.next()?,
                link: stage.ports.next()?.port(),
                restarts,
                begun: 0,
                running: None,
            }),
        }
    }
    Ok(operators)
}

impl Operator {
    /// Whether it rules the arm in this namespace.
    pub(super) fn rules(&self, namespace: &str) -> bool {
        self.namespaces.iter().any(|one| one == namespace)
    }

    /// Starts it if it does not run yet.
    pub(super) fn ensure_started(&mut self, stage: &Stage) -> Result<()> {
        if self.begun == 0 { self.start(stage) } else { Ok(()) }
    }

    /// Starts it, and waits until it looks after its models.
    fn start(&mut self, stage: &Stage) -> Result<()> {
        let all: Vec<String> = self.namespaces.iter().map(|name| format!("\"{name}\"")).collect();
        let settings = format!(
            "admin = \"{admin}\"\nlink = \"{host}:{link}\"\nnamespaces = [{all}]\n\n\
             [gateways]\nopen = true\n\n[prometheus]\nurl = \"http://{prometheus}\"\n\n\
             [readings]\nfile = \"{readings}\"\nmost_megabytes = 256\n\n\
             [lease]\nnamespace = {first}\n",
            admin = self.admin,
            host = stage.host(),
            link = self.link,
            first = all[0],
            all = all.join(", "),
            prometheus = stage.prometheus,
            readings = self.readings(stage, self.begun).display(),
        );
        let name = format!("{}-{}", self.name, self.begun);
        self.begun += 1;
        let file = stage.folder.join(format!("{name}.toml"));
        std::fs::write(&file, settings)?;
        let mut command = Command::new(stage.program("flyball"));
        command.arg("operator").arg("--config").arg(&file).env("KUBECONFIG", stage.kubeconfig());
        let mut running = stage.start(&name, &command)?;
        let log = stage.folder.join(format!("{name}.log"));
        running
            .ready(self.admin, "/readyz", Duration::from_secs(60))
            .with_context(|| std::fs::read_to_string(log).unwrap_or_default())?;
        self.running = Some(running);
        Ok(())
    }

    /// Replaces it once its time has come.
    pub(super) fn act(&mut self, stage: &Stage, now: f64) -> Result<()> {
        if self.begun > 1 || self.restarts.is_none_or(|at| now < at) {
            return Ok(());
        }
        if let Some(mut running) = self.running.take() {
            running.signal("TERM")?;
            running.wait(Duration::from_secs(20))?;
        }
        eprintln!("live: {} is replaced", self.name);
        self.start(stage)
    }

    /// When it looked, over all its processes.
    pub(super) fn ticks(&self, stage: &Stage, ticks: &mut OperatorTicks) -> Result<()> {
        (0..self.begun).try_for_each(|process| ticks.read(&self.readings(stage, process)))
    }

    fn readings(&self, stage: &Stage, process: u32) -> PathBuf {
        stage.folder.join(format!("{}-{process}-readings.jsonl", self.name))
    }
}
