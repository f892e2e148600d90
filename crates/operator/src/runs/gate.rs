//! Whether a run may get machines now. Pure.

use super::{SeenRun, TrackedRun};
use flyball_core::units::Money;
use flyball_resources::decimal;
use flyball_resources::model_service::MoneySpec;
use flyball_resources::training_run::RunMode;
use flyball_training::TrainingChoice;

/// Whether a run may get machines, and why, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunGate {
    /// It may.
    Open(String),
    /// It is held back.
    Shut(String),
}

/// Whether a run may get machines. A run that has some keeps them, whatever this says.
pub fn gate(seen: &SeenRun, tracked: &TrackedRun, frozen: bool) -> RunGate {
    let spec = &seen.run.spec;
    let open = |why: &str| RunGate::Open(why.to_owned());
    if spec.mode == RunMode::Recommend {
        return open("its TrainingRun only recommends");
    }
    if frozen {
        return open("Flyball is frozen");
    }
    if let Some(spent) = budget_spent(seen, tracked) {
        return RunGate::Shut(spent);
    }
    if spec.borrow {
        return match tracked.loan {
            _ if !seen.market.lends => open("its Pool lends nothing and takes nothing back"),
            Some(order) if !order.gpus.is_zero() => open("its accelerators are lent to it"),
            _ => RunGate::Shut("it waits for a loan".to_owned()),
        };
    }
    match &tracked.decided {
        Some((_, decision)) if decision.choice == TrainingChoice::Wait => {
            RunGate::Shut(format!("wait: {}", decision.reason))
        }
        Some((_, decision)) => RunGate::Open(format!("{}: {}", decision.choice, decision.reason)),
        None => open("nothing is decided about it"),
    }
}

/// That its budget is spent, in words.
pub(super) fn budget_spent(seen: &SeenRun, tracked: &TrackedRun) -> Option<String> {
    let budget = in_currency(seen.run.spec.budget.as_ref(), seen)?;
    let spent = tracked.totals.spent_micros;
    let text = |micros| decimal::text(micros, 2);
    (spent >= budget.micros()).then(|| {
        format!(
            "{} of its budget of {} {} is spent",
            text(spent),
            text(budget.micros()),
            budget.currency()
        )
    })
}

/// That what is left to pay is more than the run is worth, in words.
pub(super) fn above_value(seen: &SeenRun, tracked: &TrackedRun) -> Option<String> {
    let value = in_currency(seen.run.spec.value.as_ref(), seen)?;
    let (_, decision) = tracked.decided.as_ref()?;
    let least = decision.candidates.iter().map(|(_, cost)| cost.micros()).min()?;
    let text = |micros| decimal::text(micros, 2);
    (least > value.micros()).then(|| {
        let currency = value.currency();
        format!(
            "finishing it costs {} {currency} more, and it is worth {}",
            text(least),
            text(value.micros())
        )
    })
}

/// An amount that can be held against the prices of its Pool.
fn in_currency(amount: Option<&MoneySpec>, seen: &SeenRun) -> Option<Money> {
    let amount = amount?.of_core("spec").ok()?;
    (amount.currency() == seen.market.currency).then_some(amount)
}
