//! One model under one ruler: its pods, its gateway, its traffic.

use super::series::{Got, Look, Series};
use super::stage::Stage;
use super::world::World;
use crate::bench::programs::running::Running;
use crate::{cluster, image};
use anyhow::{Context, Result};
use flyball_simulator::traffic::load::{Part, Traffic};
use flyball_simulator::traffic::write;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Who decides how many replicas there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ruler {
    Governor,
    /// Kubernetes' autoscaler with llm-d's metric.
    Hpa,
    /// Nobody: as many as there may be.
    Static,
}

impl Ruler {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Governor => "governor",
            Self::Hpa => "hpa",
            Self::Static => "static",
        }
    }

    /// Seconds between a pod's end being asked for and its engine being told. The governor's pods
    /// have drained before; the others must be given the time that a long request takes.
    const fn pre_stop(self) -> u32 {
        match self {
            Self::Governor => 2,
            Self::Hpa | Self::Static => 60,
        }
    }
}

/// An arm of the run.
pub(super) struct Arm {
    pub(super) world: World,
    pub(super) ruler: Ruler,
    name: String,
    pub(super) namespace: String,
    traffic: Option<Running>,
    pub(super) looks: Vec<Look>,
}

/// The longest that a request may take.
const DEADLINE_SECONDS: u32 = 900;

impl Arm {
    /// `tag` is put behind its namespace, so that two runs can go side by side.
    pub(super) fn new(root: &Path, scenario: &str, ruler: Ruler, tag: &str) -> Result<Self> {
        let world = World::read(root, scenario)?;
        let name = format!("{scenario}-{}", ruler.name());
        let namespace = format!("{name}{tag}");
        Ok(Self { world, ruler, name, namespace, traffic: None, looks: Vec::new() })
    }

    /// How its files are called.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Engines and gateway. `link` is where the operator listens.
    pub(super) fn build(&self, stage: &Stage, link: u16) -> Result<()> {
        let initial = match self.ruler {
            Ruler::Static => self.world.max,
            Ruler::Governor | Ruler::Hpa => self.world.initial,
        };
        let link = match self.ruler {
            Ruler::Governor => {
                format!("\n    [operator]\n    address = \"http://{}:{link}\"\n", cluster::HOST)
            }
            Ruler::Hpa | Ruler::Static => String::new(),
        };
        let text = self
            .filled(include_str!("templates/arm.yaml"))
            .replace("INITIAL", &initial.to_string())
            .replace("PRE_STOP", &self.ruler.pre_stop().to_string())
            .replace("LINK", &link);
        stage.apply(&text).with_context(|| format!("building {}", self.namespace))
    }

    /// Waits until its engines and its gateway are ready.
    pub(super) fn ready(&self, stage: &Stage) -> Result<()> {
        let most = Duration::from_secs(u64::from(self.world.warm_up_seconds) + 180);
        stage.rolled_out(&self.namespace, "gateway", most)?;
        stage.rolled_out(&self.namespace, "model", most)
    }

    /// Hands it to its ruler; the program that it needs beside, if any.
    pub(super) fn rule(&self, stage: &mut Stage) -> Result<Option<Running>> {
        match self.ruler {
            Ruler::Static => Ok(None),
            Ruler::Governor => {
                let world = &self.world;
                let objectives = format!(
                    "{{ firstTokenMilliseconds: {}, betweenTokensMilliseconds: {}, \
                     attainmentPercent: \"{}\" }}",
                    world.first_token_ms, world.between_tokens_ms, world.attainment_percent
                );
                let text = self.filled(include_str!("templates/governor.yaml"));
                stage.apply(&text.replace("OBJECTIVES", &objectives))?;
                Ok(None)
            }
            Ruler::Hpa => {
                let port = stage.ports.next()?.port();
                let adapter = stage.start("external", &self.adapter(stage, port))?;
                let text = self
                    .filled(include_str!("templates/hpa.yaml"))
                    .replace("ADAPTER_PORT", &port.to_string())
                    .replace("ADAPTER_ADDRESS", cluster::HOST);
                stage.apply(&text)?;
                Ok(Some(adapter))
            }
        }
    }

    fn adapter(&self, stage: &Stage, port: u16) -> Command {
        let mut command = Command::new(stage.program("proving-external"));
        command.args(["--listen", &format!("{}:{port}", cluster::HOST)]);
        command.args(["slo", "--prometheus", &stage.prometheus.to_string()]);
        command.args(["--api", &stage.api.to_string(), "--deployment", "model"]);
        command.args(["--first-token-ms", &self.world.first_token_ms.to_string()]);
        command.args(["--between-tokens-ms", &self.world.between_tokens_ms.to_string()]);
        command
    }

    /// Sends the first request; the others follow as the scenario says.
    pub(super) fn send(&mut self, stage: &Stage) -> Result<()> {
        let trace = stage.folder.join(format!("{}.jsonl", self.namespace));
        let traffic = Traffic::Trace((*self.world.setup.models[0].trace).clone());
        let part = Part { model: None, traffic, lengths: None };
        write::jsonl(&[part], None, &mut BufWriter::new(File::create(&trace)?))?;
        let mut command = Command::new(stage.program("proving-replay"));
        command.arg("--trace").arg(&trace).args(["--model", &self.namespace]);
        let gateway = stage.service(&self.namespace, "gateway")?;
        command.args(["--target", &gateway.to_string()]);
        command.args(["--deadline-seconds", &DEADLINE_SECONDS.to_string()]);
        command.arg("--record").arg(self.record(stage));
        self.traffic = Some(stage.start(&format!("{}-replay", self.namespace), &command)?);
        Ok(())
    }

    /// Looks at its pods. Whether it is over: all is answered, and it is back at its floor, if it is
    /// one that gives back.
    pub(super) fn look(&mut self, stage: &Stage, begun: Instant) -> Result<bool> {
        let look = stage.look(&self.namespace, begun)?;
        self.looks.push(look);
        let sent = match &mut self.traffic {
            Some(traffic) => traffic.wait(Duration::from_millis(1))?,
            None => true,
        };
        Ok(sent && (self.ruler == Ruler::Static || look.replicas <= self.world.min))
    }

    /// Everything that was seen.
    pub(super) fn series(&self, stage: &Stage) -> Result<Series> {
        let path = self.record(stage);
        let mut reader = csv::Reader::from_path(&path)
            .with_context(|| format!("{} has left no record", self.namespace))?;
        let mut got = Vec::new();
        for row in reader.records() {
            let row = row?;
            let number = |place: usize| row.get(place).and_then(|text| text.parse::<f64>().ok());
            let at = number(0).context("a record without a time")?;
            got.push(Got { at, times: number(1).zip(number(2)) });
        }
        // Its clock begins with the first request: traffic is sent from there on. The scenario's quiet
        // seconds are those in which everything was made ready.
        Ok(Series { looks: self.looks.clone(), got })
    }

    fn record(&self, stage: &Stage) -> PathBuf {
        stage.folder.join(format!("{}.csv", self.namespace))
    }

    fn filled(&self, template: &str) -> String {
        let World { model, accelerator, .. } = &self.world;
        let numbers = [
            ("WARM_UP", self.world.warm_up_seconds),
            ("TENSOR", self.world.tensor),
            ("GPUS", self.world.gpus),
            ("MIN", self.world.min),
            ("MAX", self.world.max),
        ];
        let text = template
            .replace("NAMESPACE", &self.namespace)
            .replace("FLYBALL_IMAGE", image::NAME)
            .replace("HOLD_MS", &self.world.hold_ms.to_string())
            .replace("MODEL", model)
            .replace("ACCELERATOR", accelerator);
        numbers.iter().fold(text, |text, (word, number)| text.replace(word, &number.to_string()))
    }
}
