//! `cargo xtask bench live`: the governor on a real cluster in real time, beside rivals, and beside
//! the simulator.
//!
//! Each arm has a namespace of its own: llm-d's published ramp and, beside it, shorter scenarios one after another, each
//! under the governor and under Kubernetes' own autoscaler. All at once they were too many for two cores: pods took 79
//! seconds to start instead of one, and every arm lost 10 to 20 points. What was seen is kept in `docs/live`, and everything that
//! is said about it can be made again from there with `--redraw`.
//!
//! In order: `world` reads a scenario, `cluster` asks xtask for one, `stage` is what is done on it, `operators` are
//! Flyball's, `arm` is one model under one ruler, `series` what was seen and its score, `measured` what the cluster itself
//! was seen to do, `simulated` the same in the simulator, `identical` one stream of readings on both ways, `report` tables
//! and figures, `picture` draws.

mod arm;
mod cluster;
mod identical;
mod measured;
mod operators;
mod picture;
mod report;
mod series;
mod simulated;
mod stage;
mod world;

use crate::page::{self, MeasuredPage};
use crate::programs::running::Running;
use crate::{documents, programs};
use anyhow::{Result, bail, ensure};
use arm::{Arm, Ruler};
use clap::Args as ClapArgs;
use cluster::Cluster;
use flyball_figures::quantile::median;
use measured::{Cores, Measured, OperatorTicks, Timers};
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
    /// Only arms whose name contains one of these; with `--figure` the others stay as they were last seen
    #[arg(long)]
    only: Option<String>,
    /// Goes behind the names of namespaces, so that a run can go beside another
    #[arg(long, requires = "only", conflicts_with = "figure", default_value = "")]
    tag: String,
    /// End after so many minutes; nothing is written
    #[arg(long, conflicts_with = "figure")]
    minutes: Option<f64>,
}

const RAMP: &str = "llm-d-ramp";
const MISSTATED: &str = "live-told";

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
    (MISSTATED, Ruler::Governor),
    (MISSTATED, Ruler::Knew),
];

/// Scenarios that wait until all arms of another are over: nine arms at once, and the ramp takes as long as any two of the
/// others.
const AFTER: [(&str, &str); 3] =
    [("live-slow", "live-step"), ("live-restart", "live-wave"), (MISSTATED, "live-no-gateway")];

/// Time between two looks at the pods.
const EVERY: Duration = Duration::from_secs(5);

/// Milliseconds that timers may be late in the mean of a minute, and minutes in a row in which they may be later. The
/// shortest objective between two tokens is 80 ms; a tenth of that moves no verdict. Where the host had 50 to 85 % of the
/// machine's time for half an hour, all arms missed together, and two hours of results had to be thrown away.
const LATE_MS: f64 = 8.0;
const LATE_MINUTES: u32 = 2;

/// Makes a section of the page from what was kept.
type Section = fn(&Path) -> Result<page::Measured>;

pub(super) fn run(root: &Path, args: &Args) -> Result<()> {
    if !args.redraw {
        play(root, args)?;
    }
    if !args.redraw && !args.is_stored() {
        return Ok(());
    }
    let command = "cargo xtask bench live --figure";
    let mut page = MeasuredPage::new(documents::LIVE, command, args.figure);
    let sections: [(&str, Section); 4] = [
        ("A published ramp against rivals", report::ramp),
        ("The simulator against reality", report::truth),
        ("A wrong stated capacity", report::misstated),
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
    let cluster = Cluster::up(root)?;
    if !args.loaded {
        cluster.load(&programs.join("flyball"))?;
    }
    let mut arms = arms(root, args.only.as_deref(), &args.tag)?;
    let namespaces = arms.iter().map(|arm| arm.namespace.clone()).collect();
    let mut stage = Stage::new(root, cluster, programs, namespaces, args.tag.is_empty())?;
    let ours = arms.iter().filter(|arm| arm.ruler.is_ours());
    let ours = ours.map(|arm| (arm.namespace.as_str(), arm.world.restarts()));
    let mut operators = operators::all(&mut stage, ours)?;
    let folder = match args.is_stored() {
        true => root.join(report::STORED),
        false => stage.folder.clone(),
    };
    let watched = watch(&mut stage, (&mut arms, &mut operators), (args.minutes, &folder))?;
    // An arm that was over before the host disturbed the others need not be played again.
    let measured = measured(&stage, &arms, &operators, &watched)?;
    eprintln!("live: {measured:?}, in {}", folder.display());
    let over: Vec<&str> = arms.iter().filter(|arm| arm.is_over()).map(Arm::name).collect();
    measured.keep(&folder, &over)?;
    watched.disturbed.map_or(Ok(()), |why| {
        bail!("{why}; {} arms were over: play the others with --only", over.len())
    })
}

/// How the machine was while arms ran.
struct Watched {
    /// The share of its time in which nothing ran, in percent: over all of it, and in the busiest minute.
    idle: f64,
    least_idle: f64,
    most_late_ms: f64,
    /// Why it ended early.
    disturbed: Option<String>,
}

impl Args {
    /// Whether what is seen goes into the project.
    const fn is_stored(&self) -> bool {
        self.figure || (self.only.is_none() && self.minutes.is_none())
    }
}

fn measured(
    stage: &Stage,
    arms: &[Arm],
    operators: &[Operator],
    watched: &Watched,
) -> Result<Measured> {
    let mut ticks = OperatorTicks::default();
    operators.iter().try_for_each(|operator| operator.ticks(stage, &mut ticks))?;
    let ours = arms.iter().filter(|arm| arm.ruler.is_ours());
    let first = ours.filter_map(|arm| {
        Some((arm.name().to_owned(), ticks.first_after(arm.date()?, &arm.namespace)?))
    });
    let starts = || {
        let each = arms.iter().map(|arm| (f64::from(arm.world.warm_up_seconds), &arm.starts));
        each.flat_map(|(warm_up, all)| all.values().map(move |took| took - warm_up))
    };
    let (report_age_seconds, scrape_age_seconds) = ticks.ages();
    Ok(Measured {
        start_seconds: Some(median(starts())).filter(|middle| !middle.is_nan()).unwrap_or(0.0),
        starts: starts().count(),
        first_look_seconds: first.collect(),
        report_age_seconds,
        scrape_age_seconds,
        uncached_share: ticks.uncached_share(),
        idle_percent: watched.idle,
        least_idle_percent: watched.least_idle,
        most_late_ms: watched.most_late_ms,
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
    let Some(first) = arms.iter().find(|arm| arm.is_built_for_hpa()) else { return Ok(None) };
    let port = stage.ports.next()?.port();
    let mut command = Command::new(stage.program("proving-external"));
    command.args(["--listen", &format!("{}:{port}", stage.host())]);
    command.args(["slo", "--prometheus", &stage.prometheus.to_string()]);
    command.args(["--api", &stage.api.to_string(), "--deployment", "model"]);
    for Arm { namespace, world, .. } in arms.iter().filter(|arm| arm.ruler.is_hpa()) {
        let (first, between) = (world.first_token_ms, world.between_tokens_ms);
        command.args(["--objectives", &format!("{namespace}={first}/{between}")]);
    }
    let running = stage.start("external", &command)?;
    let text = include_str!("templates/adapter.yaml")
        .replace("NAMESPACE", &first.namespace)
        .replace("ADAPTER_PORT", &port.to_string())
        .replace("ADAPTER_ADDRESS", stage.host());
    stage.apply(&text)?;
    Ok(Some(running))
}

/// Plays all arms until they are over, and says each minute how they stand.
fn watch(
    stage: &mut Stage,
    (arms, operators): (&mut [Arm], &mut [Operator]),
    (minutes, folder): (Option<f64>, &Path),
) -> Result<Watched> {
    let begun = Instant::now();
    let (mut minute, mut least_idle, mut external) = (0, 100.0_f64, None);
    let first = Cores::now();
    let (mut before, mut late_minutes, mut most_late_ms, mut disturbed) = (first, 0, 0.0_f64, None);
    let timers = Timers::watch();
    loop {
        for place in ready_to_begin(arms) {
            let operator = operators.iter_mut().find(|one| one.rules(&arms[place].namespace));
            arms[place].build(stage, operator.map_or(0, |one| one.link))?;
        }
        if external.is_none() {
            external = adapter(stage, arms)?;
        }
        for arm in arms.iter_mut() {
            let operator = operators.iter_mut().find(|one| one.rules(&arm.namespace));
            // A look that fails is a gap in the series, not the end of an hour's work.
            if let Err(error) = arm.go_on(stage, operator, folder) {
                eprintln!("live: {}: {error:#}", arm.name());
            }
        }
        if begun.elapsed().as_secs() / 60 > minute {
            minute = begun.elapsed().as_secs() / 60;
            let now = Cores::now();
            let since = now.zip(before);
            let idle = since.map_or(0.0, |(now, before)| now.idle_since(before));
            let stolen = since.map_or(0.0, |(now, before)| now.stolen_since(before));
            let late = timers.late_ms();
            late_minutes = if late > LATE_MS { late_minutes + 1 } else { 0 };
            disturbed = (late_minutes > LATE_MINUTES).then(|| late_in_words(minute, late, stolen));
            (before, least_idle) = (now, least_idle.min(idle));
            most_late_ms = most_late_ms.max(late);
            let stand: Vec<String> = arms.iter().filter_map(Arm::stand).collect();
            eprintln!(
                "live: minute {minute}, {idle:.0} % idle, {stolen:.0} % stolen, timers {late:.1} ms late: {}",
                stand.join(", ")
            );
        }
        let late = minutes.is_some_and(|most| begun.elapsed().as_secs_f64() > most * 60.0);
        if late || disturbed.is_some() || arms.iter().all(Arm::is_over) {
            let idle = Cores::now().zip(first).map_or(0.0, |(now, first)| now.idle_since(first));
            return Ok(Watched { idle, least_idle, most_late_ms, disturbed });
        }
        std::thread::sleep(EVERY);
    }
}

fn late_in_words(minute: u64, late: f64, stolen: f64) -> String {
    format!(
        "timers were {late:.0} ms late in minute {minute}, and the host gave {stolen:.0} % of this machine's time to others \
         (`vmstat 10`, column st): engines and gateways are late for no reason of ours"
    )
}

/// Arms that have not begun, and whose scenario waits for no other any more.
fn ready_to_begin(arms: &[Arm]) -> Vec<usize> {
    let over =
        |scenario: &str| arms.iter().filter(|arm| arm.world.name == scenario).all(Arm::is_over);
    let free = |arm: &Arm| {
        let before = AFTER.iter().find(|(scenario, _)| *scenario == arm.world.name);
        arm.is_waiting() && before.is_none_or(|(_, before)| over(before))
    };
    (0..arms.len()).filter(|place| free(&arms[*place])).collect()
}
