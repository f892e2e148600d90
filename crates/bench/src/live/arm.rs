//! One model under one ruler: its pods, its gateway, its traffic.

use super::cluster::IMAGE;
use super::operators::Operator;
use super::series::{Got, ReplicaSample, Series};
use super::stage::{Pod, Stage};
use super::world::World;
use crate::programs::running::Running;
use anyhow::{Context, Result};
use flyball_core::interval::Interval;
use flyball_core::snapshot::Capacity;
use flyball_core::units::TokensPerSecond;
use flyball_simulator::scenario;
use flyball_simulator::traffic::load::{LoadedPart, Traffic};
use flyball_simulator::traffic::write;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Who decides how many replicas there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ruler {
    Governor,
    /// The same, of a model whose owner states nothing that is wrong.
    Knew,
    /// Kubernetes' autoscaler with llm-d's metric.
    Hpa,
    /// The same with the requests that engines work on.
    HpaRunning,
    /// Nobody: as many as there may be.
    Static,
}

impl Ruler {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Governor => "governor",
            Self::Knew => "knew",
            Self::Hpa => "hpa",
            Self::HpaRunning => "hpa-running",
            Self::Static => "static",
        }
    }

    /// Seconds between a pod's end being asked for and its engine being told. The governor's pods
    /// have drained before; the others must be given the time that a long request takes.
    pub(super) const fn pre_stop(self) -> u32 {
        if self.is_ours() { 2 } else { 60 }
    }

    /// Whether Flyball's operator rules.
    pub(super) const fn is_ours(self) -> bool {
        matches!(self, Self::Governor | Self::Knew)
    }

    /// Whether Kubernetes' autoscaler does.
    pub(super) const fn is_hpa(self) -> bool {
        matches!(self, Self::Hpa | Self::HpaRunning)
    }
}

/// An arm of the run.
pub(super) struct Arm {
    pub(super) world: World,
    pub(super) ruler: Ruler,
    name: String,
    pub(super) namespace: String,
    phase: Phase,
    traffic: Option<Running>,
    pub(super) samples: Vec<ReplicaSample>,
    /// How long its pods took from being made to being ready, by name: those that were made after the first request.
    pub(super) starts: BTreeMap<String, f64>,
    /// Pods that were told to slow down.
    slowed: BTreeSet<String>,
}

/// How far an arm is.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Another scenario goes first.
    Waiting,
    /// Its engines and its gateway start.
    Built,
    /// Whoever decides has it, and everybody has looked once before the first request.
    Ruled(Instant),
    /// Since its first request, also in seconds since 1970.
    Sent(Instant, f64),
    /// The same, and it is back at its floor.
    Over(f64),
}

/// Before the first request, as in the scenarios.
const QUIET: Duration = Duration::from_secs(20);

/// The longest that it is looked at after the last request: who is not back at its floor then is scored up to there.
const AFTERWARDS: Duration = Duration::from_secs(180);

/// The longest that a request may take.
const DEADLINE_SECONDS: u32 = 900;

impl Arm {
    /// `tag` is put behind its namespace, so that two runs can go side by side.
    pub(super) fn new(root: &Path, scenario: &str, ruler: Ruler, tag: &str) -> Result<Self> {
        let world = World::read(root, scenario)?;
        let name = format!("{scenario}-{}", ruler.name());
        let namespace = format!("{name}{tag}");
        Ok(Self {
            world,
            ruler,
            name,
            namespace,
            phase: Phase::Waiting,
            traffic: None,
            samples: Vec::new(),
            starts: BTreeMap::new(),
            slowed: BTreeSet::new(),
        })
    }

    /// How its files are called.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) const fn is_waiting(&self) -> bool {
        matches!(self.phase, Phase::Waiting)
    }

    pub(super) const fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over(_))
    }

    /// Whether Kubernetes' autoscaler has engines to decide about.
    pub(super) const fn is_built_for_hpa(&self) -> bool {
        self.ruler.is_hpa() && !self.is_waiting()
    }

    /// When its first request was sent, in seconds since 1970.
    pub(super) const fn date(&self) -> Option<f64> {
        match self.phase {
            Phase::Sent(_, date) | Phase::Over(date) => Some(date),
            _ => None,
        }
    }

    /// How it stands, if it is being played.
    pub(super) fn stand(&self) -> Option<String> {
        let sample = self.samples.last().filter(|_| !self.is_over())?;
        Some(format!("{} {}+{}-{}", self.name, sample.ready, sample.starting, sample.draining))
    }

    /// Does what is next, if its time has come.
    pub(super) fn go_on(
        &mut self,
        stage: &Stage,
        operator: Option<&mut Operator>,
        folder: &Path,
    ) -> Result<()> {
        match self.phase {
            Phase::Waiting | Phase::Over(_) => {}
            Phase::Built if self.is_ready(stage)? => {
                operator.map_or(Ok(()), |operator| operator.ensure_started(stage))?;
                self.rule(stage)?;
                self.phase = Phase::Ruled(Instant::now());
            }
            Phase::Ruled(since) if since.elapsed() >= QUIET => {
                let (begun, date) = (Instant::now(), jiff::Timestamp::now());
                self.send(stage)?;
                self.phase = Phase::Sent(begun, date.as_millisecond() as f64 / 1e3);
                eprintln!("live: {} begins", self.name);
            }
            Phase::Built | Phase::Ruled(_) => {}
            Phase::Sent(begun, date) => {
                let now = begun.elapsed();
                operator.map_or(Ok(()), |operator| operator.act(stage, now.as_secs_f64()))?;
                let last = Duration::from_secs_f64(self.world.last_request());
                if self.sample(stage, begun)? || now > last + AFTERWARDS {
                    // Over even if nothing can be written: the others go on.
                    self.phase = Phase::Over(date);
                    self.keep(stage, folder)?;
                }
            }
        }
        Ok(())
    }

    /// Engines and gateway. `link` is where the operator listens.
    pub(super) fn build(&mut self, stage: &Stage, link: u16) -> Result<()> {
        let initial = match self.ruler {
            Ruler::Static => self.world.max,
            _ => self.world.initial,
        };
        let link = match self.ruler.is_ours() && !self.world.lacks_gateway() {
            true => {
                format!("\n    [operator]\n    address = \"http://{}:{link}\"\n", stage.host())
            }
            false => String::new(),
        };
        let text = self
            .filled(include_str!("templates/arm.yaml"))
            .replace("INITIAL", &initial.to_string())
            .replace("PRE_STOP", &self.ruler.pre_stop().to_string())
            .replace("LINK", &link);
        self.phase = Phase::Built;
        stage.apply(&text).with_context(|| format!("building {}", self.namespace))
    }

    /// Whether its engines and its gateway are ready.
    fn is_ready(&self, stage: &Stage) -> Result<bool> {
        Ok(stage.is_rolled_out(&self.namespace, "gateway")?
            && stage.is_rolled_out(&self.namespace, "model")?)
    }

    /// Hands it to its ruler.
    fn rule(&self, stage: &Stage) -> Result<()> {
        let world = &self.world;
        let text = match self.ruler {
            Ruler::Static => return Ok(()),
            Ruler::Governor | Ruler::Knew => {
                let objectives = format!(
                    "{{ firstTokenMilliseconds: {}, betweenTokensMilliseconds: {}, \
                     attainmentPercent: \"{}\" }}",
                    world.first_token_ms, world.between_tokens_ms, world.attainment_percent
                );
                let stated = world.stated().filter(|_| self.ruler == Ruler::Governor);
                self.filled(include_str!("templates/governor.yaml"))
                    .replace("OBJECTIVES", &objectives)
                    .replace("STATED", &stated.as_ref().map_or_else(String::new, capacity))
            }
            Ruler::Hpa => self.filled(include_str!("templates/hpa.yaml")),
            Ruler::HpaRunning => {
                let target = format!("{:.0}", running_target(world));
                self.filled(include_str!("templates/hpa-running.yaml")).replace("RUNNING", &target)
            }
        };
        stage.apply(&text)
    }

    /// Does to its engines what the scenario does, once its time has come.
    fn slow_down(&mut self, stage: &Stage, pods: &[Pod], now: f64) -> Result<()> {
        let Some((_, factor)) = self.world.slows().filter(|(at, _)| now >= *at) else {
            return Ok(());
        };
        for pod in pods.iter().filter(|pod| pod.runs) {
            if self.slowed.contains(&pod.name) {
                continue;
            }
            let warm_up = self.world.warm_up_seconds;
            let faults = format!(r#"{{"speed":{factor},"slow_start_seconds":{warm_up}}}"#);
            stage.set_engine_faults(&self.namespace, &pod.name, &faults)?;
            self.slowed.insert(pod.name.clone());
        }
        Ok(())
    }

    /// Sends the first request; the others follow as the scenario says.
    fn send(&mut self, stage: &Stage) -> Result<()> {
        let trace = stage.folder.join(format!("{}.jsonl", self.namespace));
        let traffic = Traffic::Trace((*self.world.setup.models[0].trace).clone());
        let part = LoadedPart { model: None, traffic, lengths: None };
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
    fn sample(&mut self, stage: &Stage, begun: Instant) -> Result<bool> {
        let (sample, pods) = stage.sample(&self.namespace, begun)?;
        self.samples.push(sample);
        self.slow_down(stage, &pods, sample.at)?;
        for pod in pods {
            if let Some(took) = pod.start.filter(|_| pod.age < sample.at) {
                self.starts.entry(pod.name).or_insert(took);
            }
        }
        let sent = match &mut self.traffic {
            Some(traffic) => traffic.wait(Duration::from_millis(1))?,
            None => true,
        };
        Ok(sent && (self.ruler == Ruler::Static || sample.replicas <= self.world.min))
    }

    /// Writes down everything that was seen: an arm that is over does not wait for the others.
    fn keep(&self, stage: &Stage, folder: &Path) -> Result<()> {
        let series = self.series(stage)?;
        eprintln!("live: {}: {:?}", self.name, series.score(&self.world, None));
        series.keep(folder, &self.name)
    }

    /// Everything that was seen.
    fn series(&self, stage: &Stage) -> Result<Series> {
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
        Ok(Series { samples: self.samples.clone(), got })
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
            .replace("FLYBALL_IMAGE", IMAGE)
            .replace("HOLD_MS", &self.world.hold_ms.to_string())
            .replace("MODEL", model)
            .replace("ACCELERATOR", accelerator);
        numbers.iter().fold(text, |text, (word, number)| text.replace(word, &number.to_string()))
    }
}

/// A stated capacity, as a field of a variant.
fn capacity(stated: &Capacity) -> String {
    let part = |name: &str, number: Option<u64>| {
        number.map_or_else(String::new, |number| format!("        {name}: {number}\n"))
    };
    let rate = |rate: Option<Interval<TokensPerSecond>>| rate.map(|rate| rate.point().get());
    format!(
        "      capacity:\n{}{}{}",
        part("prefillTokensPerSecond", rate(stated.prefill)),
        part("decodeTokensPerSecond", rate(stated.decode)),
        part("residentTokens", stated.resident.map(|tokens| tokens.point().get())),
    )
}

/// Requests that each engine should work on, for an autoscaler on that.
pub(super) fn running_target(world: &World) -> f64 {
    // GKE's best practices name the batch for low latencies; four fifths of what a replica bears is ours to choose, as
    // in the simulator's rival of this name.
    (0.8 * scenario::facts(&world.setup, 0).max_running).round()
}
