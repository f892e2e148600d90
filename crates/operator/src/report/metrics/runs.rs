//! What is shown of training runs.

use super::Shown;
use crate::runs::GangPods;
use flyball_telemetry::metrics::{Metric, Page};
use std::collections::BTreeMap;
use std::fmt;

/// States of a run, so that a series is there before its first run.
const STATES: [&str; 6] = ["complete", "failed", "missing", "progressing", "stalled", "waiting"];

/// The numbers of a run. Absent is unknown.
#[derive(Clone, Debug, PartialEq)]
pub struct ShownRun {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// How it stands, in a word.
    pub state: &'static str,
    /// Its last step.
    pub step: Option<i64>,
    /// Time of steps since the last save.
    pub saved_age_seconds: Option<f64>,
    /// Time that it can still lose.
    pub slack_seconds: Option<f64>,
    /// Share of its time on machines that became steps.
    pub goodput: Option<f64>,
    /// Its pods.
    pub pods: GangPods,
    /// What its machines cost for an hour.
    pub hourly_cost: Option<f64>,
    /// Suggested seconds between saves.
    pub suggested_save_seconds: Option<i64>,
}

impl ShownRun {
    fn place<'a>(&'a self, word: &'a str) -> [&'a str; 3] {
        [&self.namespace, &self.name, word]
    }
}

pub(super) fn write(shown: &Shown, leads: bool, page: &mut Page<'_>) -> fmt::Result {
    let took = shown.runs_took.map(|took| took.map(|time| time.as_secs_f64()));
    let steps = took.map(|took| ["observe", "decide", "write"].into_iter().zip(took));
    let of_step = |(step, seconds)| ([step], seconds);
    page.gauge(Metric::TrainingRound, steps.into_iter().flatten().map(of_step))?;
    let runs = shown.runs.as_slice();
    let mut states: BTreeMap<&str, f64> =
        STATES.iter().filter(|_| leads).map(|state| (*state, 0.0)).collect();
    for run in runs {
        *states.entry(run.state).or_default() += 1.0;
    }
    page.gauge(Metric::TrainingRuns, states.iter().map(|(state, count)| ([*state], *count)))?;
    let mut each = |metric: Metric, value: fn(&ShownRun) -> Option<f64>| {
        let known = runs.iter().filter_map(|run| Some((run, value(run)?)));
        let series = known.map(|(run, value)| ([run.namespace.as_str(), run.name.as_str()], value));
        page.gauge(metric, series)
    };
    each(Metric::TrainingStep, |run| run.step.map(|step| step as f64))?;
    each(Metric::TrainingUnsaved, |run| run.saved_age_seconds)?;
    each(Metric::TrainingSlack, |run| run.slack_seconds)?;
    each(Metric::TrainingGoodput, |run| run.goodput)?;
    each(Metric::TrainingHourlyCost, |run| run.hourly_cost)?;
    each(Metric::TrainingSuggestedSave, |run| {
        run.suggested_save_seconds.map(|every| every as f64)
    })?;
    let states = runs.iter().map(|run| (run.place(run.state), 1.0));
    page.gauge(Metric::TrainingState, states)?;
    let pods = runs.iter().flat_map(|run| {
        let GangPods { wanted, placed, running } = run.pods;
        [("wanted", wanted), ("placed", placed), ("running", running)]
            .map(|(kind, count)| (run.place(kind), f64::from(count)))
    });
    page.gauge(Metric::TrainingPods, pods)
}
