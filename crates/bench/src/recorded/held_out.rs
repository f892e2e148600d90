//! Other orders of the same requests: shuffled bursts, the first hour and the later ones apart, and steady traffic six
//! times over. Nothing was made or chosen on these.

use super::orders;
use super::play::{Answered, Came, MOST, Player, Question, everybody};
use super::table;
use super::verdict::contenders;
use super::world::{COLD_STARTS, Engines, MODELS};
use super::written;
use anyhow::{Context, Result, bail};
use flyball_simulator::traffic::Trace;
use flyball_simulator::traffic::load::{self, Traffic};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Orders of bursts.
const ORDERS: u64 = 8;

/// One way to serve, over all orders.
pub(super) struct HeldOut {
    name: String,
    first: Side,
    later: Side,
}

/// Means over the orders.
struct Side {
    governor: Came,
    /// The cheapest that kept the limit.
    best: Option<Came>,
    /// Better in both, where nobody kept it or the governor did not.
    better: Option<Came>,
}

/// Plays all of them. `report` is told of each.
pub(super) fn all(player: &Player, folder: &Path, report: &dyn Fn(&str)) -> Result<Vec<HeldOut>> {
    let bursts = trace(&player.traces.join("azure_llm_2023_code.csv.gz"))?;
    let steady = trace(&player.traces.join("azure_llm_2023_conv.csv.gz"))?;
    let shuffled: Result<Vec<PathBuf>> = (1..=ORDERS)
        .map(|seed| written(folder, &format!("bursts-{seed}"), orders::shuffled(&bursts, seed)))
        .collect();
    let (shuffled, sixfold) = (shuffled?, written(folder, "sixfold", orders::shifted(&steady))?);
    let mut all = Vec::new();
    for model in &MODELS {
        let gpu = model.gpus[0];
        let engines = Engines { model: model.model, tensor: model.tensor, gpu };
        for cold_start in COLD_STARTS {
            let name = |what: &str| format!("{what} {} {gpu} @{cold_start}", model.name);
            let hours = ("1h", "01:00");
            let one = played(player, name("bursts"), &shuffled, engines, cold_start, hours)?;
            report(&one.line());
            let halves = ("29m", "00:29");
            let sixfold = std::slice::from_ref(&sixfold);
            let six = played(player, name("sixfold"), sixfold, engines, cold_start, halves)?;
            report(&six.line());
            all.extend([one, six]);
        }
    }
    Ok(all)
}

/// The page's part.
pub(super) fn markdown(all: &[HeldOut]) -> String {
    let mut text = format!(
        "The code hour's bursts in {ORDERS} other orders, each for three hours, and the conversations of an hour six times \
         over, each copy begun ten minutes later. Means over the orders; the first hour (of the conversations: the first \
         half) and what comes later apart. Rivals as above, tuned on the first hour.\n\n\
         | World | First hour: governor | best rival | | Later: governor | best rival | |\n|---|---|---|---|---|---|---|\n"
    );
    for one in all {
        let _ = writeln!(text, "| {} | {} | {} |", one.name, one.first.cells(), one.later.cells());
    }
    text
}

fn played(
    player: &Player,
    name: String,
    files: &[PathBuf],
    engines: Engines,
    cold_start: u32,
    (length, end): (&str, &str),
) -> Result<HeldOut> {
    let ask = |traffic: &PathBuf, more: &[&str]| -> Result<Answered> {
        let policies = &everybody();
        let question = Question {
            traffic,
            engines,
            cold_start,
            most: MOST,
            method: "requests",
            policies,
            more,
        };
        player.ask(&question).with_context(|| name.clone())
    };
    let over = |more: &[&str]| -> Result<Vec<Came>> {
        let each: Result<Vec<Answered>> = files.iter().map(|file| ask(file, more)).collect();
        Ok(means(&each?))
    };
    let (first, later) = (over(&["--to", end])?, over(&["--warm-up", length])?);
    let known = contenders(&first);
    Ok(HeldOut { first: Side::of(&first, &known), later: Side::of(&later, &known), name })
}

fn means(all: &[Answered]) -> Vec<Came> {
    let Some(one) = all.first() else { return Vec::new() };
    let mean = |at: usize, of: fn(&Came) -> f64| {
        all.iter().map(|answered| of(&answered.came[at])).sum::<f64>() / all.len() as f64
    };
    let policies = everybody().len() + 1;
    let came = |(at, one): (usize, &Came)| Came {
        policy: one.policy.clone(),
        gpu_hours: mean(at, |one| one.gpu_hours),
        missed: mean(at, |one| one.missed),
    };
    // Behind the policies are the clairvoyant's corners, of which each has others.
    one.came.iter().take(policies).enumerate().map(came).collect()
}

impl Side {
    fn of(came: &[Came], known: &[&str]) -> Self {
        let none = || Came { policy: String::new(), gpu_hours: 0.0, missed: 1.0 };
        let governor = came.iter().find(|one| one.policy == "governor").cloned();
        let governor = governor.unwrap_or_else(none);
        let rivals = || came.iter().filter(|one| known.contains(&one.policy.as_str()));
        let cheaper = |a: &&Came, b: &&Came| a.gpu_hours.total_cmp(&b.gpu_hours);
        let beats =
            |one: &&Came| one.missed < governor.missed && one.gpu_hours < governor.gpu_hours;
        Self {
            best: rivals().filter(|one| one.keeps()).min_by(cheaper).cloned(),
            better: rivals().filter(beats).min_by(cheaper).cloned(),
            governor,
        }
    }

    fn cells(&self) -> String {
        let (rival, word) = match (&self.best, self.governor.keeps()) {
            (Some(best), true) => {
                let pct = 100.0 * (self.governor.gpu_hours / best.gpu_hours - 1.0);
                (table::named(best), format!("{pct:+.0} %"))
            }
            (Some(best), false) => (table::named(best), "**broken**".to_owned()),
            (None, true) => ("nobody keeps it".to_owned(), "alone".to_owned()),
            (None, false) => match &self.better {
                Some(better) => (table::named(better), "**dominated**".to_owned()),
                None => ("nobody keeps it".to_owned(), "unbeaten".to_owned()),
            },
        };
        format!("{} | {rival} | {word}", table::of(&self.governor))
    }
}

impl HeldOut {
    fn line(&self) -> String {
        format!("{}: {} | later {}", self.name, self.first.cells(), self.later.cells())
    }
}

/// The single requests of a file.
pub(super) fn trace(path: &Path) -> Result<Trace> {
    let loaded = load::open(path).with_context(|| format!("reading {}", path.display()))?;
    match loaded.parts.into_iter().next().map(|part| part.traffic) {
        Some(Traffic::Trace(trace)) => Ok(trace),
        _ => bail!("{} has no single requests", path.display()),
    }
}
