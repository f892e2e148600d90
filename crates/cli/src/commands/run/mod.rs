//! `flyball run`: training runs, as the status of each TrainingRun says.

#[cfg(test)]
mod tests;
mod view;

use std::time::Duration;

use clap::Args;
use clap::builder::BoolishValueParser;
use flyball_resources::TrainingRun;
use flyball_resources::training_run::{
    ExpectedEnd, RunCost, RunLosses, RunProgress, TrainingRunDecision,
};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::Instant;

use crate::cluster::{Cluster, connect};
use crate::flags::{ClusterArgs, time};
use crate::output::{Exit, Failure, Printer};
use crate::served::{find_one, full_name, list_all};
use crate::training_run::{RunState, condition_text, fresh};

/// Between two looks.
const EVERY: Duration = Duration::from_secs(1);

/// List training runs, or show one and wait until it ends
///
/// Steps, end, cost and the recommended machines are what the status of each TrainingRun says. What no status says is
/// unknown, and shown as a dash. Times are UTC.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The run: NAME, or NAMESPACE/NAME; all if absent
    #[arg(value_name = "NAME")]
    run: Option<String>,

    /// Print changes to stderr until the run has ended; the exit status says whether with success
    #[arg(long, env = "FLYBALL_RUN_WATCH", hide_env_values = true, requires = "run")]
    #[arg(value_parser = BoolishValueParser::new())]
    watch: bool,

    /// The same, for so long at most
    // Not `--timeout`: that is for one request.
    #[arg(long, value_name = "TIME", env = "FLYBALL_RUN_WAIT", hide_env_values = true)]
    #[arg(value_parser = time, requires = "run")]
    wait: Option<Duration>,

    /// All namespaces, regardless of FLYBALL_NAMESPACE
    #[arg(short = 'A', long, env = "FLYBALL_RUN_ALL_NAMESPACES")]
    #[arg(hide_env_values = true, value_parser = BoolishValueParser::new())]
    all_namespaces: bool,
}

/// Training runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunList {
    /// Time of the query, RFC 3339.
    asked_at: String,
    /// Whether the wait timed out.
    timed_out: bool,
    /// Each run.
    runs: Vec<ListedRun>,
    /// Whether one was asked for, which is shown in full.
    #[serde(skip)]
    one: bool,
    /// Whether its end was waited for.
    #[serde(skip)]
    waited: bool,
}

/// One training run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ListedRun {
    /// The run, `namespace/name`.
    run: String,
    /// How it stands.
    state: RunState,
    /// Why, in a word of the closed list; unknown if absent.
    reason: Option<String>,
    /// In a sentence.
    message: Option<String>,
    /// Act or Recommend.
    mode: String,
    /// When it must have ended, RFC 3339.
    deadline: Option<String>,
    /// How far it is; unknown if absent.
    progress: Option<RunProgress>,
    /// When it will end; unknown if absent.
    expected_end: Option<ExpectedEnd>,
    /// What it costs; unknown if absent.
    cost: Option<RunCost>,
    /// Share of its time on machines that became steps, in percent; unknown if absent.
    goodput_percent: Option<String>,
    /// Work that was thrown away.
    lost: Vec<RunLosses>,
    /// The last decision; unknown if absent.
    decision: Option<TrainingRunDecision>,
    /// Suggested seconds between saves.
    suggested_save_seconds: Option<i64>,
    /// Whether it will be in time, in a sentence; unknown if absent.
    in_time: Option<String>,
    /// Its machines, in a sentence; unknown if absent.
    machines: Option<String>,
}

pub(crate) async fn run(
    args: &RunArgs,
    global: &ClusterArgs,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let cluster = connect(global).await?;
    let Some(name) = &args.run else {
        let namespace = global.namespace.as_deref().filter(|_| !args.all_namespaces);
        let runs: Vec<TrainingRun> = list_all(&cluster, namespace, global.timeout).await?;
        return Ok(printer.answer(&RunList::of(&runs, false, jiff::Timestamp::now())));
    };
    let waits = args.watch || args.wait.is_some();
    let mut run: TrainingRun = find_one(&cluster, global, name).await?;
    let mut timed_out = false;
    if waits {
        (run, timed_out) = until_over(args, &cluster, global, (run, name), printer).await;
    }
    let mut list = RunList::of(&[run], true, jiff::Timestamp::now());
    (list.timed_out, list.waited) = (timed_out, waits);
    Ok(printer.answer(&list))
}

/// Waits until the run has ended, and says what changes. The first look has worked; later ones may fail while time is left.
async fn until_over(
    args: &RunArgs,
    cluster: &Cluster,
    global: &ClusterArgs,
    (mut run, name): (TrainingRun, &str),
    printer: &Printer,
) -> (TrainingRun, bool) {
    let (began, mut shown) = (Instant::now(), String::new());
    loop {
        let now = jiff::Timestamp::now();
        let line = ListedRun::of(&run).line(now);
        if line != shown && !printer.quiet {
            printer.note(&format!("{} UTC  {line}", now.strftime("%H:%M:%S")));
            shown = line;
        }
        if RunState::of(&run).is_over() {
            return (run, false);
        }
        let left = args.wait.map(|wait| wait.saturating_sub(began.elapsed()));
        if left.is_some_and(|left| left.is_zero()) {
            return (run, true);
        }
        tokio::time::sleep(left.map_or(EVERY, |left| left.min(EVERY))).await;
        if let Ok(seen) = find_one(cluster, global, name).await {
            run = seen;
        }
    }
}

impl RunList {
    fn of(runs: &[TrainingRun], one: bool, now: jiff::Timestamp) -> Self {
        let mut runs: Vec<ListedRun> = runs.iter().map(ListedRun::of).collect();
        runs.sort_by(|a, b| a.run.cmp(&b.run));
        Self { asked_at: now.to_string(), timed_out: false, runs, one, waited: false }
    }
}

impl ListedRun {
    fn of(run: &TrainingRun) -> Self {
        // A status about an older spec says nothing about where this one should be; steps and money stay.
        let (status, fresh) = (run.status.as_ref(), fresh(run));
        let ready = fresh.and_then(|one| condition_text(one, "Ready"));
        let machines = fresh.and_then(|one| one.placement.as_ref()).map(|place| {
            let kind = place.purchase.as_deref().unwrap_or("mixed or unknown purchase");
            let zone = place.zone.as_ref().map_or_else(String::new, |zone| format!(" in {zone}"));
            match place.nodes {
                0 => format!("none of {} nodes", place.wanted_nodes),
                nodes => format!("{nodes} of {} nodes, {kind}{zone}", place.wanted_nodes),
            }
        });
        Self {
            run: full_name(run),
            state: RunState::of(run),
            reason: ready.map(|(reason, _)| reason.to_owned()),
            message: ready.map(|(_, message)| message.to_owned()),
            mode: run.spec.mode.name().to_owned(),
            deadline: run.spec.deadline.clone(),
            progress: status.and_then(|one| one.progress.clone()),
            expected_end: fresh.and_then(|one| one.expected_end.clone()),
            cost: status.and_then(|one| one.cost.clone()),
            goodput_percent: status.and_then(|one| one.goodput_percent.clone()),
            lost: status.map_or_else(Vec::new, |one| one.lost.clone()),
            decision: fresh.and_then(|one| one.decision.clone()),
            suggested_save_seconds: fresh.and_then(|one| one.suggested_save_seconds),
            in_time: fresh
                .and_then(|one| condition_text(one, "DeadlineMet"))
                .map(|(_, text)| text.to_owned()),
            machines,
        }
    }
}
