//! What came of a scenario against what was expected.

use super::Scenario;
use super::form::{Form, RangeForm};
use crate::cluster::{ClusterRun, ReplicaHistory, Setup};
use crate::seconds::Seconds;
use std::fmt;

/// One expectation and its result.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What was measured, such as `missed_percent`.
    pub what: String,
    /// Its value.
    pub value: f64,
    /// The least and most that were expected.
    pub range: (Option<f64>, Option<f64>),
    /// Where the expectation comes from.
    pub origin: String,
}

/// Everything that was measured of a scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScenarioVerdict {
    /// One per expectation.
    pub findings: Vec<Finding>,
    /// Rules that were broken.
    pub broken: Vec<String>,
}

impl Finding {
    /// Whether the value lies in its range.
    pub fn holds(&self) -> bool {
        let (min, max) = self.range;
        min.is_none_or(|min| self.value >= min) && max.is_none_or(|max| self.value <= max)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.holds() { "ok  " } else { "MISS" };
        write!(f, "{sign} {} {:.3}", self.what, self.value)?;
        match self.range {
            (Some(min), Some(max)) => write!(f, " (expected {min} to {max})"),
            (Some(min), None) => write!(f, " (expected at least {min})"),
            (None, Some(max)) => write!(f, " (expected at most {max})"),
            (None, None) => Ok(()),
        }
    }
}

impl ScenarioVerdict {
    /// Whether everything is as expected and no rule was broken.
    pub fn holds(&self) -> bool {
        self.broken.is_empty() && self.findings.iter().all(Finding::holds)
    }
}

impl Scenario {
    /// Compares what came of it with what was expected.
    pub fn judge(&self, setup: &Setup, run: &ClusterRun) -> ScenarioVerdict {
        let form = &self.form;
        let mut findings = ranges(form, setup, run);
        for recovery in &form.expect.recovery_seconds {
            let fault = form.faults.iter().find(|f| Some(&f.name) == recovery.after.as_ref());
            let from = fault.map_or(recovery.after_seconds.unwrap_or(0.0), |f| f.at_seconds);
            let each = run.histories.iter().zip(&setup.models).map(|(history, model)| {
                let share = 1.0 - f64::from(model.objectives.attainment_per_million) / 1e6;
                history.recovery(Seconds(from), share).get()
            });
            findings.push(Finding {
                what: format!("recovery_seconds after {}", recovery.name()),
                value: each.fold(0.0, f64::max),
                range: (None, Some(recovery.max)),
                origin: recovery.origin.clone(),
            });
        }
        for never in &form.expect.never_down_during {
            let fault = form.faults.iter().find(|fault| fault.name == never.fault);
            let Some(fault) = fault else { continue };
            let from = fault.at_seconds + never.seen_after_seconds;
            let ends = fault.kind.ends(Seconds(fault.at_seconds)).get();
            let to = fault.for_seconds.map_or(ends, |long| fault.at_seconds + long);
            let downs = run.histories.iter().flat_map(|history| &history.downs);
            let downs = downs.filter(|at| (from..to).contains(&at.get())).count();
            findings.push(Finding {
                what: format!("downs during {}", never.fault),
                value: downs as f64,
                range: (None, Some(0.0)),
                origin: never.origin.clone(),
            });
        }
        ScenarioVerdict { findings, broken: run.broken.iter().map(ToString::to_string).collect() }
    }
}

impl super::form::RecoveryForm {
    fn name(&self) -> String {
        let at = self.after_seconds.unwrap_or(0.0);
        self.after.clone().unwrap_or_else(|| format!("{at} s"))
    }
}

fn ranges(form: &Form, setup: &Setup, run: &ClusterRun) -> Vec<Finding> {
    let expect = &form.expect;
    let models = &run.outcome.models;
    let sum = |of: fn(&crate::score::ModelOutcome) -> f64| models.iter().map(of).sum::<f64>();
    let episode: f64 = run
        .histories
        .iter()
        .zip(&setup.models)
        .map(|(history, model)| {
            let last = model.trace.requests.last().map_or(Seconds::ZERO, |request| request.at);
            let episode = (setup.scored_from, last, setup.length);
            episode_replicas(history, model.bounds.min.get(), episode)
        })
        .sum();
    let all: [(&str, &Option<RangeForm>, f64); 6] = [
        ("missed_percent", &expect.missed_percent, run.outcome.missed_share() * 100.0),
        ("killed", &expect.killed, sum(|model| model.killed)),
        ("gpu_hours", &expect.gpu_hours, run.outcome.gpu_seconds / 3_600.0),
        ("replica_hours", &expect.replica_hours, sum(|model| model.replica_seconds) / 3_600.0),
        ("episode_replicas", &expect.episode_replicas, episode),
        ("reversals", &expect.reversals, sum(|model| f64::from(model.reversals))),
    ];
    let found = all.into_iter().filter_map(|(what, range, value)| {
        let range = range.as_ref()?;
        let ends = (range.min, range.max);
        Some(Finding { what: what.to_owned(), value, range: ends, origin: range.origin.clone() })
    });
    found.collect()
}

/// Mean replicas from the first moment that is scored until, after the last request, no more are there than the
/// fewest allowed: how llm-d's guide counts an episode.
pub(super) fn episode_replicas(
    history: &ReplicaHistory,
    floor: u32,
    (first, last, length): (Seconds, Seconds, Seconds),
) -> f64 {
    let back = history.standings.iter().find(|standing| {
        standing.at >= last && standing.pending + standing.starting + standing.ready <= floor
    });
    let already = {
        let then = history.at(last);
        then.pending + then.starting + then.ready <= floor
    };
    let end = if already { last } else { back.map_or(length, |standing| standing.at) };
    history.mean_replicas(first, end)
}
