//! What would change the answer.

use flyball_perf::search::train::{TrainChange, TrainChoice, TrainPlan, TrainQuestion};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::range::{short, tidy};

/// The first choice under other conditions.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TrainChangeView {
    what: &'static str,
    /// The first choice then, such as `512 x h100-sxm-80gb TP8 DP64 MB1 ZeRO-1`, of the
    /// accelerators among the choices; absent if none works.
    then: Option<String>,
    days: Option<f64>,
    usd: Option<f64>,
    /// Whether the accelerator or layout differs, not only the number of copies.
    changes_the_choice: bool,
}

pub(super) fn views(
    question: &TrainQuestion<'_>,
    plan: &TrainPlan,
    changes: &[TrainChange],
) -> Vec<TrainChangeView> {
    let Some(now) = plan.ranked.first() else { return Vec::new() };
    let named = |choice: &TrainChoice| {
        let id = &question.parts[choice.part].accelerator.id;
        format!("{} x {id} {}", choice.gpus.get(), choice.layout)
    };
    let view = |change: &TrainChange| TrainChangeView {
        what: change.what,
        then: change.first.as_ref().map(named),
        days: change.first.as_ref().map(|choice| tidy(choice.seconds.point / 86_400.0)),
        usd: change.first.as_ref().and_then(|choice| choice.usd).map(|usd| tidy(usd.point)),
        changes_the_choice: change.differs_from(now),
    };
    changes.iter().map(view).collect()
}

/// Changes that lead to another choice, then those that change only its time and money.
pub(super) fn sentences(changes: &[TrainChangeView]) -> Vec<String> {
    let words = |other: bool| {
        let of = changes.iter().filter(|change| change.changes_the_choice == other);
        of.map(|change| change.words(other)).collect::<Vec<_>>()
    };
    [("Another choice with", words(true)), ("The same layout with", words(false))]
        .into_iter()
        .filter(|(_, words)| !words.is_empty())
        .map(|(begin, words)| format!("{begin} {}.", words.join("; ")))
        .collect()
}

impl TrainChangeView {
    fn words(&self, with_layout: bool) -> String {
        let (Some(then), Some(days)) = (&self.then, self.days) else {
            return format!("{}: nothing would do", self.what);
        };
        // The number of GPUs may be another one even where the layout is the same.
        let gpus = then.split(' ').next().unwrap_or_default();
        let layout = if with_layout { format!("{then}, ") } else { format!("{gpus} GPUs, ") };
        let usd = self.usd.map_or(String::new(), |usd| match usd {
            usd if usd < 1e4 => format!(", ${usd:.0}"),
            usd => format!(", ${:.0}k", usd / 1e3),
        });
        format!("{}: {layout}{} days{usd}", self.what, short(days))
    }
}
