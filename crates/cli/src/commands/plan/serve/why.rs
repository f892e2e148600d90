//! Why one choice lost against another, in one sentence.

use flyball_perf::evidence::Evidence;
use flyball_perf::search::serve::{ServeChoice, ServeObjective, ServeQuestion};

use crate::output::plural;

/// What the first choice has over this one.
pub(super) fn lost(
    question: &ServeQuestion<'_>,
    first: &ServeChoice,
    other: &ServeChoice,
) -> String {
    let (Some(a), Some(b)) = (first.order, other.order) else { return "no price".to_owned() };
    let (paid, dearer) = (a.usd_per_hour(), b.usd_per_hour());
    let percent = (dearer / paid - 1.0) * 100.0;
    match question.objective {
        ServeObjective::Fastest { .. } => {
            let slower = (other.ttft_p95.point / first.ttft_p95.point - 1.0) * 100.0;
            format!("{slower:.0} % slower to the first token")
        }
        ServeObjective::FewestGpus => "more GPUs".to_owned(),
        ServeObjective::TokensPerDollar => "fewer tokens per dollar".to_owned(),
        ServeObjective::Cheapest if percent < 0.0 && other.evidence == Evidence::DatasheetOnly => {
            format!("{:.0} % cheaper on paper, but not measured", -percent)
        }
        ServeObjective::Cheapest if percent < 2.5 => {
            "same price, fewer and larger replicas or slower".to_owned()
        }
        ServeObjective::Cheapest => {
            let cause = if b.billed.get() > b.gpus.get() {
                format!("{} GPUs are paid for {}", b.billed.get(), b.gpus.get())
            } else {
                format!(
                    "{} against {}, each {}",
                    plural(b.gpus.get() as usize, "GPU"),
                    a.gpus.get(),
                    compared(paid / f64::from(a.billed.get()), dearer / f64::from(b.billed.get()))
                )
            };
            format!("{percent:.0} % more expensive: {cause}")
        }
    }
}

fn compared(a: f64, b: f64) -> String {
    let percent = (b / a - 1.0) * 100.0;
    match percent {
        p if p > 1.0 => format!("{p:.0} % more expensive"),
        p if p < -1.0 => format!("{:.0} % cheaper", -p),
        _ => "at the same price".to_owned(),
    }
}
