//! Policies side by side: what is drawn of them, on a terminal and on a page, whoever played them.

use super::answer::{HullView, ModelView, PolicyView, TimelineView};
use super::clock::Clock;
use super::{spark, words};
use crate::output::document::{Column, Overflow, Row, Table};

/// Capacity is drawn up to so many times the largest demand.
const WILD: f64 = 2.5;

/// What is drawn.
pub(in crate::commands) struct Board<'a> {
    pub(in crate::commands) models: &'a [ModelView],
    /// The clairvoyant first, if there is one.
    pub(in crate::commands) policies: Vec<&'a PolicyView>,
    /// The least that any policy could have paid; empty if nobody asked the clairvoyant.
    pub(in crate::commands) hull: &'a [HullView],
    pub(in crate::commands) clock: Clock,
    pub(in crate::commands) span_seconds: f64,
    /// Share of requests that may miss.
    pub(in crate::commands) allowed_missed: f64,
}

impl<'a> Board<'a> {
    /// Demand, then what each policy held, on one scale; then where it missed.
    pub(in crate::commands) fn sparks(&self) -> Table {
        let columns = ["GPUS", "OVER TIME", "MOST"].map(Column::left);
        let mut table = Table::new(columns.into());
        table.titled = false;
        table.overflow = Overflow::Hide;
        let demand = self
            .policies
            .first()
            .map(|policy| self.together(policy, |timeline| &timeline.demand))
            .unwrap_or_default();
        let held: Vec<(&PolicyView, Vec<Option<f64>>)> = self
            .policies
            .iter()
            .copied()
            .map(|policy| (policy, self.together(policy, |timeline| &timeline.ready)))
            .collect();
        let peak = |series: &[Option<f64>]| series.iter().flatten().copied().fold(0.0, f64::max);
        // A policy that ran wild must not flatten the others; its number says how far it went.
        let most = held.iter().map(|(_, series)| peak(series)).fold(peak(&demand), f64::max);
        let most = most.min(WILD * peak(&demand));
        let mut add = |name: &str, series: &[Option<f64>], most: f64, unit: &str| {
            let peak = peak(series);
            let rounded = (peak * 10.0).round() / 10.0;
            let peak = match rounded {
                0.0 if peak > 0.0 => format!("most < 0.1{unit}"),
                _ => format!("most {}{unit}", words::count(rounded)),
            };
            table.rows.push(Row::new([name.to_owned(), spark::line(series, most), peak]));
        };
        add("demand", &demand, most, " GPUs");
        for (policy, series) in &held {
            add(&policy.name, series, most, " GPUs");
        }
        for policy in self.policies.iter().filter(|policy| !policy.clairvoyant) {
            let missed = self.shares(policy);
            let most = missed.iter().flatten().copied().fold(0.0, f64::max);
            if most == 0.0 {
                continue;
            }
            add(&format!("{} missed", policy.name), &missed, most, " %");
        }
        let (left, middle, right) = self.axis();
        let blanks = spark::COLUMNS.saturating_sub(left.len() + middle.len() + right.len());
        let axis = format!(
            "{left}{}{middle}{}{right}",
            " ".repeat(blanks / 2),
            " ".repeat(blanks - blanks / 2)
        );
        table
            .rows
            .push(Row { muted: true, ..Row::new(["time".to_owned(), axis, "UTC".to_owned()]) });
        table
    }

    fn axis(&self) -> (String, String, String) {
        let first = self.policies.iter().flat_map(|policy| &policy.models).next();
        let begins = first.map_or(0.0, |model| model.timeline.begins_seconds);
        let label = |share: f64| self.clock.label(begins + share * self.span_seconds);
        (label(0.0), label(0.5), label(1.0))
    }

    /// A column over all models, in GPUs.
    pub(in crate::commands) fn together(
        &self,
        policy: &PolicyView,
        of: fn(&TimelineView) -> &Vec<Option<f64>>,
    ) -> Vec<Option<f64>> {
        let mut sum: Vec<Option<f64>> = Vec::new();
        for (came, model) in policy.models.iter().zip(self.models) {
            let gpus = f64::from(model.gpus_per_replica);
            for (index, value) in of(&came.timeline).iter().enumerate() {
                if sum.len() <= index {
                    sum.push(None);
                }
                let own = value.map(|value| value * gpus);
                sum[index] = match (sum[index], own) {
                    (Some(a), Some(b)) => Some(a + b),
                    (a, b) => a.or(b),
                };
            }
        }
        sum
    }

    /// Per cent of requests missed, over all models.
    fn shares(&self, policy: &PolicyView) -> Vec<Option<f64>> {
        let mut sums: Vec<(f64, f64)> = Vec::new();
        for came in &policy.models {
            let both = came.timeline.missed.iter().zip(&came.timeline.requests);
            for (index, (missed, requests)) in both.enumerate() {
                if sums.len() <= index {
                    sums.push((0.0, 0.0));
                }
                sums[index].0 += missed.unwrap_or(0.0);
                sums[index].1 += requests.unwrap_or(0.0);
            }
        }
        let share = |(missed, requests): (f64, f64)| {
            (requests > 0.0).then(|| (missed / requests).min(1.0) * 100.0)
        };
        sums.into_iter().map(share).collect()
    }

    /// The cheapest that misses no more than is allowed.
    pub(in crate::commands) fn best(&self) -> Option<&'a PolicyView> {
        let able = self
            .policies
            .iter()
            .copied()
            .filter(|policy| !policy.clairvoyant && policy.missed.mean <= self.allowed_missed);
        able.min_by(|a, b| a.gpu_hours.mean.total_cmp(&b.gpu_hours.mean))
    }

    /// The class that gives a policy its colour. The clairvoyant has ink of its own, because it is not a choice.
    pub(in crate::commands) fn colour(&self, policy: &PolicyView) -> String {
        if policy.clairvoyant {
            return "seer".to_owned();
        }
        let choices = self.policies.iter().filter(|other| !other.clairvoyant);
        let place = choices.take_while(|other| other.name != policy.name).count();
        format!("c{}", place % 6)
    }
}
