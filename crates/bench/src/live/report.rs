//! Tables, pictures and figures from kept series: what `--redraw` makes again.

use super::arm::Ruler;
use super::measured::Measured as Cluster;
use super::picture::{self, Line, Panel};
use super::series::{Score, Series};
use super::simulated::{self, Likeness};
use super::world::World;
use super::{ARMS, MISSTATED, RAMP, SCENARIOS};
use crate::figures::Op;
use crate::page::{Measured, measure};
use anyhow::Result;
use std::fmt::Write as _;
use std::path::Path;

/// Where series and pictures are kept, in the project.
pub(super) const STORED: &str = "docs/live";

const STEP: &str = SCENARIOS[1];

/// The ramp under its rulers.
pub(super) fn ramp(root: &Path) -> Result<Measured> {
    let world = World::read(root, RAMP)?;
    let mut text = "llm-d's published ramp (`scenarios/llm-d-ramp.toml`) in real time on a real \
        cluster: API server, controllers, kubelets, Prometheus, one gateway for each arm; engines \
        are emulated. The arms ran at the same time, each in its own namespace. Scores follow \
        llm-d's guide: the share of requests that meet both objectives, and the Deployment's mean \
        replicas from the first request until it is back at its minimum.\n\n\
        | Arm | Attained % | Mean replicas | GPU-hours held | Unanswered | Episode, min |\n\
        |---|---|---|---|---|---|\n"
        .to_owned();
    let (mut scores, mut lines, mut misses) = (Vec::new(), Vec::new(), Vec::new());
    for ruler in [Ruler::Governor, Ruler::Hpa, Ruler::HpaRunning] {
        let series = Series::stored(&root.join(STORED), &format!("{RAMP}-{}", ruler.name()))?;
        let score = series.score(&world, None);
        let _ = writeln!(text, "| {} | {} |", words(ruler), row(&score));
        lines.push(Line { name: ruler.name().to_owned(), points: replicas(&series) });
        misses.push(Line { name: ruler.name().to_owned(), points: attained(&series, &world) });
        scores.push(score);
    }
    text += "| published: llm-d's loop | 95.8 | 5.93 | | | |\n\
             | published: static | 100 | 8 | | | |\n\n\
             ![Replicas and attainment of the ramp](live/ramp.svg)\n\n\
             Raw series: `docs/live/llm-d-ramp-*.csv`.\n";
    let longest = scores.iter().map(|score| score.seconds).fold(0.0, f64::max);
    let rates = Line { name: "requests/s".into(), points: rates(&world) };
    let panels = [
        panel("Traffic", "requests/s", (0.0, 12.0), vec![rates]),
        panel("Replicas (as the Deployment counts)", "replicas", (0.0, 8.0), lines),
        panel("Requests of a minute that met both objectives", "%", (0.0, 100.0), misses),
    ];
    std::fs::write(root.join(STORED).join("ramp.svg"), picture::draw(&panels, longest))?;
    let [ours, hpa, _] = scores[..] else { anyhow::bail!("three arms are scored") };
    Ok(Measured {
        text,
        figures: vec![
            measure("live.ramp_attainment_pct", ours.attained_percent, "%", Op::AtLeast, 98.0),
            measure("live.ramp_replicas", ours.replicas, "replicas", Op::AtMost, 5.2),
            // The rival's, against what was published for it.
            measure("live.hpa_attainment_pct", hpa.attained_percent, "%", Op::AtLeast, 95.8),
            measure("live.hpa_replicas", hpa.replicas, "replicas", Op::AtMost, 5.93),
        ],
    })
}

/// Each scenario under the governor and under Kubernetes' autoscaler, in the simulator and on the cluster.
pub(super) fn truth(root: &Path) -> Result<Measured> {
    let mut runs: Vec<(Vec<String>, Cluster)> = Vec::new();
    let mut text = "The same scenario file, the same requests at the same times, the same law: \
        once in the simulator, once on the cluster. GPU-hours are those of the pods over the same \
        period.\n\n\
        | Scenario | Autoscaler | GPU-hours live | simulated | off by % | Attained live % | simulated % | off by points | with the cluster's replicas % | TPOT off by % | other seeds, GPU-hours | other seeds, attained % |\n\
        |---|---|---|---|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    let (mut hours, mut points, mut panels, mut longest) = (0.0_f64, 0.0_f64, Vec::new(), 0.0_f64);
    for (name, ruler) in ARMS.into_iter().filter(|(name, _)| *name != MISSTATED) {
        let arm = format!("{name}-{}", ruler.name());
        if !Series::is_stored(&root.join(STORED), &arm) {
            let _ = writeln!(text, "| {name} | {} | not played ||||||||||", ruler.name());
            continue;
        }
        let world = World::read(root, name)?;
        let live = Series::stored(&root.join(STORED), &arm)?;
        let cluster = Cluster::stored(&root.join(STORED), &arm)?;
        let there = live.score(&world, None);
        let simulated = simulated::play(&world, ruler, &cluster, Likeness::ALL)?;
        simulated.keep(&root.join(STORED), &format!("{arm}-simulated"))?;
        let here = simulated.score(&world, Some(there.seconds));
        let off = 100.0 * (here.gpu_hours / there.gpu_hours - 1.0);
        let followed = simulated::follow(&world, &live)?;
        let slower = 100.0 * (live.between_tokens_ms() / followed.between_tokens_ms() - 1.0);
        let followed = followed.score(&world, Some(there.seconds));
        let apart = here.attained_percent - there.attained_percent;
        let _ = writeln!(
            text,
            "| {name} | {} | {:.2} | {:.2} | {off:+.1} | {:.2} | {:.2} | {apart:+.2} | {:.2} | {slower:+.1} | {} |",
            ruler.name(),
            there.gpu_hours,
            here.gpu_hours,
            there.attained_percent,
            here.attained_percent,
            followed.attained_percent,
            spread(root, (name, ruler), &cluster, there.seconds)?,
        );
        (hours, points) = (hours.max(off.abs()), points.max(apart.abs()));
        longest = longest.max(there.seconds);
        let lines = vec![
            Line { name: "live".into(), points: held(&live) },
            Line { name: "simulated".into(), points: held(&simulated) },
        ];
        match runs.iter_mut().find(|(_, run)| *run == cluster) {
            Some((arms, _)) => arms.push(arm),
            None => runs.push((vec![arm], cluster)),
        }
        let title = format!("{name}, {}", ruler.name());
        panels.push(panel(&title, "pods", (0.0, f64::from(world.max)), lines));
    }
    text += SEEN;
    for (arms, cluster) in &runs {
        text += &seen(arms, cluster);
    }
    for name in [STEP, RAMP] {
        text += &causes(root, name)?;
    }
    text += TRUTH;
    std::fs::write(root.join(STORED).join("truth.svg"), picture::draw(&panels, longest))?;
    Ok(Measured {
        text,
        figures: vec![
            measure("live.sim_gpu_hours_pct", hours, "%", Op::AtMost, 5.0),
            measure("live.sim_attainment_points", points, "points", Op::AtMost, 2.0),
        ],
    })
}

const SEEN: &str = "
The simulator gets its facts about the cluster from time stamps and counters of the same run, never from the results that
are compared, and from the manifests: a pod ends after 2 s under the operator, which has drained it, and after 60 s under
Kubernetes' autoscaler. The operator reconciles at the same times as on the cluster. Work that ran beside the measurement
under the kernel's idle policy, which only gets time that nothing else uses, counts as busy; the delay of timers shows
whether it slowed the measurement.

";

/// What was measured of the cluster while these arms ran.
fn seen(arms: &[String], cluster: &Cluster) -> String {
    let uncached = cluster.uncached_share.map_or_else(String::new, |share| {
        format!(
            " Gateways reported {:.0} % of prompt tokens as not cached; these prompts share no prefix.",
            100.0 * share
        )
    });
    format!(
        "- {}: pods were ready {:.1} s after their warm-up (median of {} starts). At a decision, the gateways' \
         reports were {:.2} s old and the scrapes of engines {:.2} s.{uncached} The machine was idle {:.0} % of the time \
         and {:.0} % in its busiest minute; in the worst minute, timers were {:.1} ms late on average.\n",
        arms.join(", "),
        cluster.start_seconds,
        cluster.starts,
        cluster.report_age_seconds,
        cluster.scrape_age_seconds,
        cluster.idle_percent,
        cluster.least_idle_percent,
        cluster.most_late_ms,
    )
}

/// What each likeness of the cluster is worth, if the scenario was played.
fn causes(root: &Path, name: &str) -> Result<String> {
    let world = World::read(root, name)?;
    let arm = format!("{name}-{}", Ruler::Governor.name());
    if !Series::is_stored(&root.join(STORED), &arm) {
        return Ok(String::new());
    }
    let live = Series::stored(&root.join(STORED), &arm)?;
    let cluster = Cluster::stored(&root.join(STORED), &arm)?;
    let there = live.score(&world, None);
    let all = Likeness::ALL;
    let cases = [
        ("an ideal cluster", Likeness::NONE),
        ("everything that the cluster does", all),
        (
            "no engine metrics beside the gateways' reports of every second",
            Likeness { sight: false, ..all },
        ),
        ("no capacity predicted from observed traffic", Likeness { predicts: false, ..all }),
        ("no queue in the gateway", Likeness { keeps_back: false, ..all }),
        ("no prompts that gateways take for cached", Likeness { uncached: false, ..all }),
        ("no measured times of starts, ends and reconciles", Likeness { times: false, ..all }),
    ];
    let mut text = format!(
        "\nEffect of each on `{name}` under the governor (live {:.2} GPU-hours, {:.2} %):\n\n\
         | The simulator has | GPU-hours | off by % | Attained % | off by points |\n|---|---|---|---|---|\n",
        there.gpu_hours, there.attained_percent
    );
    for (case, likeness) in cases {
        let here = simulated::play(&world, Ruler::Governor, &cluster, likeness)?;
        let here = here.score(&world, Some(there.seconds));
        let _ = writeln!(
            text,
            "| {case} | {:.2} | {:+.1} | {:.2} | {:+.2} |",
            here.gpu_hours,
            100.0 * (here.gpu_hours / there.gpu_hours - 1.0),
            here.attained_percent,
            here.attained_percent - there.attained_percent,
        );
    }
    Ok(text)
}

/// A capacity that its owner states wrong, beside one that is predicted.
pub(super) fn misstated(root: &Path) -> Result<Measured> {
    let world = World::read(root, MISSTATED)?;
    let mut text = format!(
        "`scenarios/{MISSTATED}.toml` under the governor: once with a stated capacity of three times the real one, once with \
         none, so that it is predicted. The section above has an engine that slows to half its speed after 15 minutes \
         (`live-slow`).\n\n\
         | Stated | Attained live % | GPU-hours live | Attained simulated % | GPU-hours simulated |\n\
         |---|---|---|---|---|\n"
    );
    for (words, ruler) in [("three times too much", Ruler::Governor), ("nothing", Ruler::Knew)] {
        let arm = format!("{MISSTATED}-{}", ruler.name());
        let live = Series::stored(&root.join(STORED), &arm)?;
        let cluster = Cluster::stored(&root.join(STORED), &arm)?;
        let there = live.score(&world, None);
        let here = simulated::play(&world, ruler, &cluster, Likeness::ALL)?;
        let here = here.score(&world, Some(there.seconds));
        let _ = writeln!(
            text,
            "| {words} | {:.2} | {:.2} | {:.2} | {:.2} |",
            there.attained_percent, there.gpu_hours, here.attained_percent, here.gpu_hours
        );
    }
    Ok(Measured { text, figures: Vec::new() })
}

/// What the simulator says with other chance in the traffic and in the moments of looks: least to most.
fn spread(
    root: &Path,
    (name, ruler): (&str, Ruler),
    cluster: &Cluster,
    end: f64,
) -> Result<String> {
    let mut scores = Vec::new();
    for seed in 2..2 + SEEDS {
        let world = World::seeded(root, name, seed)?;
        let played = simulated::play(&world, ruler, cluster, Likeness::ALL)?;
        scores.push(played.score(&world, Some(end)));
    }
    let range = |of: fn(&Score) -> f64| {
        let all = scores.iter().map(of);
        let least = all.clone().fold(f64::INFINITY, f64::min);
        format!("{least:.2} to {:.2}", all.fold(0.0, f64::max))
    };
    Ok(format!("{} | {}", range(|s| s.gpu_hours), range(|s| s.attained_percent)))
}

/// Seeds beside the scenario's own.
const SEEDS: u64 = 8;

const TRUTH: &str = "
The column \"with the cluster's replicas\" excludes decisions: the simulator has the replicas that were ready on the cluster,
at the same times. The remaining difference comes from engines and queues. Beside it is how much longer the median request took per token on
the cluster: the emulated engines keep their time by timers, which are late where the machine is busy. `live-step` under
Kubernetes' autoscaler turns on that: with 24 ms per token instead of 22 before the step, its formula keeps a fourth replica
that it gives up 5 s before the step in the simulator. The last two columns repeat the scenario with
eight other seeds of its traffic and other start times between two reconciles: the range that chance alone explains.

![Pods live and simulated](live/truth.svg)
";

fn words(ruler: Ruler) -> &'static str {
    match ruler {
        Ruler::Governor | Ruler::Knew => "governor (the operator, mode Act)",
        Ruler::Hpa => "HPA on llm-d's latency metric",
        Ruler::HpaRunning => "HPA on running requests per replica",
        Ruler::Static => "static, 8",
    }
}

fn row(score: &Score) -> String {
    format!(
        "{:.2} | {:.2} | {:.2} | {} | {:.1}",
        score.attained_percent,
        score.replicas,
        score.gpu_hours,
        score.unanswered,
        score.seconds / 60.0
    )
}

fn panel(title: &str, unit: &str, (least, most): (f64, f64), lines: Vec<Line>) -> Panel {
    Panel { title: title.to_owned(), unit: unit.to_owned(), least, most, lines }
}

fn replicas(series: &Series) -> Vec<(f64, f64)> {
    series.samples.iter().map(|sample| (sample.at, f64::from(sample.replicas))).collect()
}

/// Pods that hold accelerators.
fn held(series: &Series) -> Vec<(f64, f64)> {
    let pods =
        |sample: &super::series::ReplicaSample| sample.ready + sample.starting + sample.draining;
    series.samples.iter().map(|sample| (sample.at, f64::from(pods(sample)))).collect()
}

/// Minute by minute.
fn attained(series: &Series, world: &World) -> Vec<(f64, f64)> {
    by_minute(series.got.iter().map(|got| (got.at, got.met(world))))
        .into_iter()
        .map(|(at, all, met)| (at, 100.0 * met as f64 / all as f64))
        .collect()
}

fn rates(world: &World) -> Vec<(f64, f64)> {
    by_minute(world.requests().map(|at| (at, true)))
        .into_iter()
        .map(|(at, all, _)| (at, all as f64 / 60.0))
        .collect()
}

/// Minutes with anything in them: when each begins, how many there are, how many of them met.
fn by_minute(all: impl Iterator<Item = (f64, bool)>) -> Vec<(f64, usize, usize)> {
    let mut minutes: Vec<(f64, usize, usize)> = Vec::new();
    for (at, met) in all {
        let begin = (at / 60.0).floor() * 60.0;
        match minutes.last_mut() {
            Some(last) if last.0 >= begin => {
                last.1 += 1;
                last.2 += usize::from(met);
            }
            _ => minutes.push((begin, 1, usize::from(met))),
        }
    }
    minutes
}
