//! Everything that the report needs, computed once.

use super::calibrate::RowQuestion;
use super::holdouts::{Left, Quarantined, Sorted, quarantine};
use super::rows::Load;
use super::rules::Judged;
use super::{baselines, rows, rules};
use crate::score::Score;
use anyhow::Result;
use flyball_perf::coefficients::Coefficients;
use std::collections::{BTreeMap, BTreeSet};

pub(super) struct Scored {
    pub(super) judged: Judged,
    pub(super) sorted: Sorted,
    pub(super) quarantine: Vec<Quarantined>,
    pub(super) quarantined: BTreeSet<String>,
    pub(super) fitted: Coefficients,
    /// A prediction for every latency, in the order of [`Left::ALL`].
    pub(super) left_out: [Vec<f64>; 4],
    /// For the fitted throughputs, each model left out.
    pub(super) saturated_model_out: Vec<f64>,
    /// For every latency.
    pub(super) roofline: Vec<f64>,
    /// What another planner says about rows it was asked about, by id.
    pub(super) peer: BTreeMap<String, Option<f64>>,
}

impl Scored {
    pub(super) fn new() -> Result<Self> {
        let mut judged = rules::judge(&rows::points()?, &rows::shapes()?);
        let sorted = Sorted::of(std::mem::take(&mut judged.rows));
        let first = sorted.left_out(Left::Series, &BTreeSet::new());
        let quarantine = quarantine(&sorted.latency, &first);
        let quarantined: BTreeSet<String> =
            quarantine.iter().map(|one| one.family.clone()).collect();
        Ok(Self {
            fitted: sorted.calibrated(&quarantined),
            left_out: Left::ALL.map(|left| sorted.left_out(left, &quarantined)),
            saturated_model_out: sorted.saturated_without_model(&quarantined),
            roofline: sorted.latency.iter().map(|one| baselines::roofline(&one.row)).collect(),
            peer: rows::peer()?,
            judged,
            sorted,
            quarantine,
            quarantined,
        })
    }

    /// Hold-out predictions of the latencies.
    pub(super) fn predicted(&self, left: Left) -> &[f64] {
        let place = Left::ALL.iter().position(|one| *one == left).unwrap_or(0);
        &self.left_out[place]
    }

    /// Mean seconds to the first token, with the coefficients of all rows in the open.
    pub(super) fn first_token(&self, one: &RowQuestion) -> Option<f64> {
        one.question.first_token(&one.factors(&self.fitted)?)
    }

    /// The same, scored over rows that state it. Workers that only decode have no first token.
    pub(super) fn first_token_score(&self, rows: &[RowQuestion]) -> Score {
        let mut score = Score::default();
        let prompts = |one: &&RowQuestion| !matches!(one.row.load, Load::Pool(_));
        for one in rows.iter().filter(|one| self.clean(one)).filter(prompts) {
            if let Some(measured) = one.row.ttft {
                score.add(self.first_token(one), measured);
            }
        }
        score
    }

    /// Rows of families that are not quarantined.
    pub(super) fn clean(&self, one: &RowQuestion) -> bool {
        !self.quarantined.contains(&one.row.family)
    }

    /// The other planner's answer, if it was asked and did not refuse.
    pub(super) fn peer(&self, one: &RowQuestion) -> Option<f64> {
        self.peer.get(&one.row.id).copied().flatten()
    }

    /// Score of hold-out predictions over some latencies.
    pub(super) fn latency(&self, left: Left, keep: impl Fn(&RowQuestion) -> bool) -> Score {
        score(&self.sorted.latency, self.predicted(left), keep)
    }

    /// Score of the final coefficients over some rows.
    pub(super) fn final_score(
        &self,
        rows: &[RowQuestion],
        keep: impl Fn(&RowQuestion) -> bool,
    ) -> Score {
        let mut score = Score::default();
        for one in rows.iter().filter(|one| keep(one)) {
            score.add(one.answer(&self.fitted), one.row.measured);
        }
        score
    }

    /// The same of the datasheet's roofline.
    pub(super) fn roofline(&self, keep: impl Fn(&RowQuestion) -> bool) -> Score {
        score(&self.sorted.latency, &self.roofline, keep)
    }

    /// The same of the other planner: among the rows it was asked about, a refusal counts.
    pub(super) fn peer_score(
        &self,
        rows: &[RowQuestion],
        keep: impl Fn(&RowQuestion) -> bool,
    ) -> Score {
        let mut score = Score::default();
        for one in rows.iter().filter(|one| keep(one)) {
            if let Some(answer) = self.peer.get(&one.row.id) {
                score.add(*answer, one.row.measured);
            }
        }
        score
    }

    /// Score of the fitted throughputs, each model predicted from the others.
    pub(super) fn saturated_out(&self) -> Score {
        score(&self.sorted.saturated, &self.saturated_model_out, |_| true)
    }

    /// Of the rows that say enough to be asked about, how many are answered.
    pub(super) fn answered_pct(&self) -> f64 {
        let sorted = &self.sorted;
        let answered =
            [&sorted.latency, &sorted.saturated, &sorted.older, &sorted.open, &sorted.sealed]
                .iter()
                .map(|rows| rows.len())
                .sum::<usize>();
        let ours = self.judged.refused.iter().filter(|((scope, _), _)| scope.ours());
        let unanswered: usize = ours.map(|(_, rows)| rows).sum();
        100.0 * answered as f64 / (answered + unanswered) as f64
    }
}

fn score(rows: &[RowQuestion], predicted: &[f64], keep: impl Fn(&RowQuestion) -> bool) -> Score {
    let mut score = Score::default();
    for (one, predicted) in rows.iter().zip(predicted).filter(|(one, _)| keep(one)) {
        score.add(Some(*predicted).filter(|value| value.is_finite()), one.row.measured);
    }
    score
}
