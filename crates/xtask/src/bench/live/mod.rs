//! `cargo xtask bench live`: the governor on a real cluster in real time, beside rivals, and beside
//! the simulator.
//!
//! All arms run at once, each in a namespace of its own: llm-d's published ramp under the governor,
//! under Kubernetes' own autoscaler with llm-d's metric, and with as many replicas as there may be; and
//! two shorter scenarios under the governor. What was seen is kept in `docs/live`, and everything that
//! is said about it can be made again from there with `--redraw`.
//!
//! In order: `world` reads a scenario, `stage` is the cluster, `arm` one model under one ruler,
//! `series` what was seen and its score, `simulated` the same in the simulator, `report` tables and
//! figures, `picture` draws.

mod arm;
mod picture;
mod report;
mod series;
mod simulated;
mod stage;
mod world;

use super::programs::running::Running;
use super::{Page, document, programs};
use crate::{cluster, image};
use anyhow::{Context, Result, ensure};
use arm::{Arm, Ruler};
use clap::Args as ClapArgs;
use stage::Stage;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Write the figures and docs/benchmarks-live.md
    #[arg(long)]
    figure: bool,
    /// Run nothing; score and draw what is in docs/live
    #[arg(long)]
    redraw: bool,
    /// Folder with `flyball` and the programs of `proving`; they are built if this is not given
    #[arg(long)]
    programs: Option<PathBuf>,
    /// The image is on the nodes already
    #[arg(long)]
    loaded: bool,
    /// Only arms whose name contains this; nothing is written
    #[arg(long, conflicts_with = "figure")]
    only: Option<String>,
    /// Goes behind the names of namespaces, so that a run can go beside another
    #[arg(long, requires = "only", default_value = "")]
    tag: String,
    /// End after so many minutes; nothing is written
    #[arg(long, conflicts_with = "figure")]
    minutes: Option<f64>,
}

const RAMP: &str = "llm-d-ramp";

/// What is played both live and in the simulator.
const SCENARIOS: [&str; 3] = [RAMP, "live-step", "live-wave"];

/// Time between two looks at the pods.
const EVERY: Duration = Duration::from_secs(5);

/// The longest that an arm may take to come back to its floor after its last answer.
const AFTERWARDS: Duration = Duration::from_secs(1_200);

pub(super) fn run(root: &Path, args: &Args) -> Result<()> {
    if !args.redraw {
        play(root, args)?;
    }
    if args.only.is_some() || args.minutes.is_some() {
        return Ok(());
    }
    let command = "cargo xtask bench live --figure";
    let mut page = Page::new(document::LIVE, command, args.figure);
    page.add(root, 0, "A published ramp against rivals", report::ramp(root)?)?;
    page.add(root, 1, "The simulator against reality", report::truth(root)?)?;
    page.finish(root, false)
}

fn play(root: &Path, args: &Args) -> Result<()> {
    let programs = programs::folder(root, args.programs.as_deref())?;
    for name in ["flyball", "proving-replay", "proving-external"] {
        let file = programs.join(name);
        ensure!(file.exists(), "{} is not there", file.display());
    }
    if !args.loaded {
        let built = image::build(root, false)?;
        cluster::load_image(&cluster::ensure_up(root)?, &built.archive)?;
    }
    let mut arms = arms(root, args.only.as_deref(), &args.tag)?;
    let namespaces = arms.iter().map(|arm| arm.namespace.clone()).collect();
    let mut stage = Stage::new(root, programs, namespaces, args.tag.is_empty())?;
    let link = stage.ports.next()?.port();
    for arm in &arms {
        arm.build(&stage, link)?;
    }
    for arm in &arms {
        arm.ready(&stage)?;
        eprintln!("live: {} is ready", arm.name());
    }
    let _operator = operator(&mut stage, &arms, link)?;
    let mut beside = Vec::new();
    for arm in &arms {
        beside.extend(arm.rule(&mut stage)?);
    }
    let begun = Instant::now();
    for arm in &mut arms {
        arm.send(&stage)?;
    }
    watch(&stage, &mut arms, begun, args.minutes)?;
    let folder = match args.only.is_some() || args.minutes.is_some() {
        true => stage.folder.clone(),
        false => root.join(report::KEPT),
    };
    for arm in arms.iter().filter(|_| args.minutes.is_none()) {
        let series = arm.series(&stage)?;
        series.keep(&folder, arm.name())?;
        eprintln!("live: {}: {:?}", arm.name(), series.score(&arm.world, None));
    }
    Ok(())
}

fn arms(root: &Path, only: Option<&str>, tag: &str) -> Result<Vec<Arm>> {
    let all = [
        (RAMP, Ruler::Governor),
        (RAMP, Ruler::Hpa),
        (RAMP, Ruler::Static),
        (SCENARIOS[1], Ruler::Governor),
        (SCENARIOS[2], Ruler::Governor),
    ];
    let mut arms = Vec::new();
    for (scenario, ruler) in all {
        let arm = Arm::new(root, scenario, ruler, tag)?;
        if only.is_none_or(|part| arm.name().contains(part)) {
            arms.push(arm);
        }
    }
    ensure!(!arms.is_empty(), "no arm has that in its name");
    Ok(arms)
}

/// One operator for all arms that it rules, on this machine.
fn operator(stage: &mut Stage, arms: &[Arm], link: u16) -> Result<Option<Running>> {
    let ruled: Vec<String> = arms
        .iter()
        .filter(|arm| arm.ruler == Ruler::Governor)
        .map(|arm| format!("\"{}\"", arm.namespace))
        .collect();
    let Some(first) = ruled.first() else { return Ok(None) };
    let admin = stage.ports.next()?;
    let settings = format!(
        "admin = \"{admin}\"\nlink = \"{host}:{link}\"\nnamespaces = [{all}]\n\n\
         [gateways]\nopen = true\n\n[prometheus]\nurl = \"http://{prometheus}\"\n\n\
         [lease]\nnamespace = {first}\n",
        host = cluster::HOST,
        all = ruled.join(", "),
        prometheus = stage.prometheus,
    );
    let file = stage.folder.join("operator.toml");
    std::fs::write(&file, settings)?;
    let mut command = Command::new(stage.program("flyball"));
    command.arg("operator").arg("--config").arg(&file).env("KUBECONFIG", stage.kubeconfig());
    let mut running = stage.start("operator", &command)?;
    let log = stage.folder.join("operator.log");
    running
        .ready(admin, "/readyz", Duration::from_secs(60))
        .with_context(|| std::fs::read_to_string(log).unwrap_or_default())?;
    Ok(Some(running))
}

/// Looks at all arms until they are over, and says each minute how they stand.
fn watch(stage: &Stage, arms: &mut [Arm], begun: Instant, minutes: Option<f64>) -> Result<()> {
    let last = arms.iter().map(|arm| arm.world.last_request()).fold(0.0, f64::max);
    let most = Duration::from_secs_f64(minutes.map_or(last, |minutes| minutes * 60.0));
    let most = if minutes.is_some() { most } else { most + AFTERWARDS };
    let mut said = 0;
    loop {
        let mut over = true;
        for arm in arms.iter_mut() {
            // A look that fails is a gap in the series, not the end of an hour's work.
            match arm.look(stage, begun) {
                Ok(done) => over &= done,
                Err(error) => eprintln!("live: {}: {error:#}", arm.name()),
            }
        }
        if over || begun.elapsed() > most {
            return Ok(());
        }
        let minute = begun.elapsed().as_secs() / 60;
        if minute > said {
            said = minute;
            let stand = arms.iter().filter_map(|arm| {
                let look = arm.looks.last()?;
                Some(format!("{} {}+{}-{}", arm.name(), look.ready, look.starting, look.draining))
            });
            let stand: Vec<String> = stand.collect();
            eprintln!("live: minute {minute}: {}", stand.join(", "));
        }
        std::thread::sleep(EVERY);
    }
}
