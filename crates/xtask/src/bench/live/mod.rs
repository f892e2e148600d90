//! `cargo xtask bench live`: the governor on a real cluster in real time, beside rivals, and beside
//! the simulator.
//!
//! All arms run at once, each in a namespace of its own: llm-d's published ramp and shorter scenarios, each under the
//! governor and under Kubernetes' own autoscaler. What was seen is kept in `docs/live`, and everything that
//! is said about it can be made again from there with `--redraw`.
//!
//! In order: `world` reads a scenario, `stage` is the cluster, `arm` one model under one ruler, `operators` are Flyball's,
//! `series` what was seen and its score, `measured` what the cluster itself was seen to do, `simulated` the same in the
//! simulator, `identical` one stream of readings on both ways, `report` tables and figures, `picture` draws.

mod arm;
mod identical;
mod measured;
mod operators;
mod picture;
mod report;
mod series;
mod simulated;
mod stage;
mod world;

use super::programs::running::Running;
use super::{Page, document, programs};
use crate::{cluster, image};
use anyhow::{Result, ensure};
use arm::{Arm, Ruler};
use clap::Args as ClapArgs;
use measured::{Cores, Looks, Measured, median};
use operators::Operator;
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
    /// Only these sections of the page, from 0 on; the others stay as they were measured
    #[arg(long, value_delimiter = ',', value_name = "PLACE")]
    section: Vec<u8>,
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
const TOLD: &str = "live-told";

/// What is played both live and in the simulator, under the governor and under Kubernetes' autoscaler.
const SCENARIOS: [&str; 6] =
    [RAMP, "live-step", "live-wave", "live-no-gateway", "live-slow", "live-restart"];

/// Every arm.
const ARMS: [(&str, Ruler); 15] = [
    (RAMP, Ruler::Governor),
    (RAMP, Ruler::Hpa),
    (RAMP, Ruler::HpaRunning),
    (SCENARIOS[1], Ruler::Governor),
    (SCENARIOS[1], Ruler::Hpa),
    (SCENARIOS[2], Ruler::Governor),
    (SCENARIOS[2], Ruler::Hpa),
    (SCENARIOS[3], Ruler::Governor),
    (SCENARIOS[3], Ruler::Hpa),
    (SCENARIOS[4], Ruler::Governor),
    (SCENARIOS[4], Ruler::Hpa),
    (SCENARIOS[5], Ruler::Governor),
    (SCENARIOS[5], Ruler::Hpa),
    (TOLD, Ruler::Governor),
    (TOLD, Ruler::Knew),
];

/// Time between two looks at the pods.
const EVERY: Duration = Duration::from_secs(5);

/// The longest that arms are looked at after the last request: who is not back at its floor then is scored up to there.
const AFTERWARDS: Duration = Duration::from_secs(180);

/// Makes a section of the page from what was kept.
type Section = fn(&Path) -> Result<super::Measured>;

pub(super) fn run(root: &Path, args: &Args) -> Result<()> {
    if !args.redraw {
        play(root, args)?;
    }
    if args.only.is_some() || args.minutes.is_some() {
        return Ok(());
    }
    let command = "cargo xtask bench live --figure";
    let mut page = Page::new(document::LIVE, command, args.figure);
    let sections: [(&str, Section); 4] = [
        ("A published ramp against rivals", report::ramp),
        ("The simulator against reality", report::truth),
        ("A capacity that is stated wrong", report::told),
        ("One stream of readings, two ways", identical::measure),
    ];
    for (place, (title, measure)) in (0..).zip(sections) {
        if args.section.is_empty() || args.section.contains(&place) {
            page.add(root, place, title, measure(root)?)?;
        }
    }
    page.finish(root, false)
}

fn play(root: &Path, args: &Args) -> Result<()> {
    let programs = programs::folder(root, args.programs.as_deref())?;
    for name in ["flyball", "proving-replay", "proving-external"] {
        let file = programs.join(name);
        ensure!(file.exists(), "{} is not there", file.display());
    }
    if !args.loaded {
        let built = image::of_program(programs.join("flyball"))?;
        cluster::load_image(&cluster::ensure_up(root)?, &built.archive)?;
    }
    let mut arms = arms(root, args.only.as_deref(), &args.tag)?;
    let namespaces = arms.iter().map(|arm| arm.namespace.clone()).collect();
    let mut stage = Stage::new(root, programs, namespaces, args.tag.is_empty())?;
    let mut operators = operators::all(&mut stage, &arms)?;
    for arm in &arms {
        let link = operators.iter().find(|one| one.rules(arm)).map_or(0, |one| one.link);
        arm.build(&stage, link)?;
    }
    for arm in &arms {
        arm.ready(&stage)?;
        eprintln!("live: {} is ready", arm.name());
    }
    operators.iter_mut().try_for_each(|operator| operator.start(&stage))?;
    let _adapter = adapter(&mut stage, &arms)?;
    arms.iter().try_for_each(|arm| arm.rule(&stage))?;
    // The same quiet seconds as before a scenario's first request: everybody has looked once.
    std::thread::sleep(QUIET);
    let (begun, date) = (Instant::now(), jiff::Timestamp::now().as_millisecond() as f64 / 1e3);
    for arm in &mut arms {
        arm.send(&stage)?;
    }
    let folder = match args.only.is_some() || args.minutes.is_some() {
        true => stage.folder.clone(),
        false => root.join(report::KEPT),
    };
    let idle = watch(&stage, (&mut arms, &mut operators), begun, (args.minutes, &folder))?;
    for arm in arms.iter_mut().filter(|_| args.minutes.is_none()) {
        arm.keep(&stage, &folder)?;
    }
    let measured = measured(&stage, &arms, &operators, (date, idle))?;
    eprintln!("live: {measured:?}, in {}", folder.display());
    measured.keep(&folder)
}

/// Before the first request.
const QUIET: Duration = Duration::from_secs(20);

fn measured(
    stage: &Stage,
    arms: &[Arm],
    operators: &[Operator],
    (begun, (idle_percent, least_idle_percent)): (f64, (f64, f64)),
) -> Result<Measured> {
    let mut looks = Looks::default();
    operators.iter().try_for_each(|operator| operator.looks(stage, &mut looks))?;
    let ours = arms.iter().filter(|arm| arm.ruler.is_ours());
    let first = ours
        .filter_map(|arm| Some((arm.name().to_owned(), looks.first_after(begun, &arm.namespace)?)));
    let starts = || {
        let each = arms.iter().map(|arm| (f64::from(arm.world.warm_up_seconds), &arm.starts));
        each.flat_map(|(warm_up, all)| all.values().map(move |took| took - warm_up))
    };
    let (report_age_seconds, scrape_age_seconds) = looks.ages();
    Ok(Measured {
        start_seconds: median(starts()).unwrap_or(0.0),
        starts: starts().count(),
        first_look_seconds: first.collect(),
        report_age_seconds,
        scrape_age_seconds,
        uncached_share: looks.uncached_share(),
        idle_percent,
        least_idle_percent,
    })
}

fn arms(root: &Path, only: Option<&str>, tag: &str) -> Result<Vec<Arm>> {
    let mut arms = Vec::new();
    for (scenario, ruler) in ARMS {
        let arm = Arm::new(root, scenario, ruler, tag)?;
        if only.is_none_or(|parts| parts.split(',').any(|part| arm.name().contains(part))) {
            arms.push(arm);
        }
    }
    ensure!(!arms.is_empty(), "no arm has that in its name");
    Ok(arms)
}

/// Who serves the metrics of Kubernetes' autoscaler for all arms that it rules.
fn adapter(stage: &mut Stage, arms: &[Arm]) -> Result<Option<Running>> {
    let ruled: Vec<&Arm> = arms.iter().filter(|arm| arm.ruler.is_hpa()).collect();
    let Some(first) = ruled.first() else { return Ok(None) };
    let port = stage.ports.next()?.port();
    let mut command = Command::new(stage.program("proving-external"));
    command.args(["--listen", &format!("{}:{port}", cluster::HOST)]);
    command.args(["slo", "--prometheus", &stage.prometheus.to_string()]);
    command.args(["--api", &stage.api.to_string(), "--deployment", "model"]);
    for Arm { namespace, world, .. } in &ruled {
        let (first, between) = (world.first_token_ms, world.between_tokens_ms);
        command.args(["--objectives", &format!("{namespace}={first}/{between}")]);
    }
    let running = stage.start("external", &command)?;
    let text = include_str!("templates/adapter.yaml")
        .replace("NAMESPACE", &first.namespace)
        .replace("ADAPTER_PORT", &port.to_string())
        .replace("ADAPTER_ADDRESS", cluster::HOST);
    stage.apply(&text)?;
    Ok(Some(running))
}

/// Looks at all arms until they are over, and says each minute how they stand. The share of the machine's time in which
/// nothing ran, in percent: over all of it, and in the busiest minute.
fn watch(
    stage: &Stage,
    (arms, operators): (&mut [Arm], &mut [Operator]),
    begun: Instant,
    (minutes, folder): (Option<f64>, &Path),
) -> Result<(f64, f64)> {
    let last = arms.iter().map(|arm| arm.world.last_request()).fold(0.0, f64::max);
    let most = Duration::from_secs_f64(minutes.map_or(last, |minutes| minutes * 60.0));
    let most = if minutes.is_some() { most } else { most + AFTERWARDS };
    let (mut said, mut least) = (0, 100.0_f64);
    let first = Cores::now();
    let mut before = first;
    loop {
        let mut over = true;
        for operator in operators.iter_mut() {
            operator.act(stage, begun.elapsed().as_secs_f64())?;
        }
        for arm in arms.iter_mut() {
            // A look that fails is a gap in the series, not the end of an hour's work.
            match arm.look(stage, begun) {
                Ok(true) => arm.keep(stage, folder)?,
                Ok(false) => over = false,
                Err(error) => eprintln!("live: {}: {error:#}", arm.name()),
            }
        }
        let minute = begun.elapsed().as_secs() / 60;
        if minute > said {
            said = minute;
            let now = Cores::now();
            let idle = now.zip(before).map_or(0.0, |(now, before)| now.idle_since(before));
            (before, least) = (now, least.min(idle));
            let stand = arms.iter().filter_map(|arm| {
                let look = arm.looks.last()?;
                Some(format!("{} {}+{}-{}", arm.name(), look.ready, look.starting, look.draining))
            });
            let stand: Vec<String> = stand.collect();
            eprintln!("live: minute {minute}, {idle:.0} % idle: {}", stand.join(", "));
        }
        if over || begun.elapsed() > most {
            let idle = Cores::now().zip(first).map_or(0.0, |(now, first)| now.idle_since(first));
            return Ok((idle, least));
        }
        std::thread::sleep(EVERY);
    }
}
