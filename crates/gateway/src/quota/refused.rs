//! A refusal in the words of an answer.

use super::{QuotaEstimate, QuotaRefusal};
use crate::answer::{Exhausted, Problem, StatedBudget, StatedLimit};
use flyball_quota::{Amount, BudgetUnit, RateKey, RateKind, TokenUsage};
use flyball_resources::rfc3339;
use flyball_resources::stream::EmptyLease;

impl QuotaRefusal {
    /// What the client is told, whose answer cannot be stopped if it is whole: what fits is then for it to choose.
    pub(crate) fn problem(&self, estimate: &QuotaEstimate, is_whole: bool) -> Problem {
        let why = match self {
            Self::Rate { key, limit, retry_after } => {
                Exhausted::Limit { limit: limit_of(key, *limit), retry_after: *retry_after }
            }
            Self::TooLarge { key, limit } => Exhausted::TooLarge(limit_of(key, *limit)),
            Self::Budget(empty) => budget(empty, estimate, is_whole),
            Self::NoPrice => Exhausted::NoPrice,
            Self::Unknown { retry_after } => Exhausted::Unknown { retry_after: *retry_after },
        };
        Problem::Exhausted(Box::new(why))
    }
}

/// What a limit counts, in words.
pub(super) const fn words(kind: RateKind) -> &'static str {
    match kind {
        RateKind::Requests => "requests per minute",
        RateKind::InputTokens => "prompt tokens per minute",
        RateKind::OutputTokens => "output tokens per minute",
        RateKind::Concurrency => "requests in flight",
    }
}

/// An amount of a budget, in words.
pub(super) fn amount(amount: Amount, unit: BudgetUnit) -> String {
    match unit {
        BudgetUnit::Money => amount.to_string(),
        BudgetUnit::Tokens => amount.get().to_string(),
    }
}

/// What a budget counts, in a word.
pub(super) const fn unit(unit: BudgetUnit) -> &'static str {
    match unit {
        BudgetUnit::Money => "USD",
        BudgetUnit::Tokens => "tokens",
    }
}

fn limit_of(key: &RateKey, limit: u64) -> StatedLimit {
    StatedLimit { tenant: key.scope.to_string(), what: words(key.kind), limit }
}

fn budget(empty: &EmptyLease, estimate: &QuotaEstimate, is_whole: bool) -> Exhausted {
    let of = empty.lease.unit;
    let budget = StatedBudget {
        tenant: empty.budget.scope.to_string(),
        name: empty.budget.name.to_string(),
        unit: unit(of),
        limit: amount(empty.limit, of),
        spent: amount(empty.spent, of),
        resets_at: empty.resets_at.map(rfc3339),
    };
    let left = empty.limit.less(empty.spent);
    let fits = fits(left, of, estimate);
    // Where what is left would not even do for the shortest answer it is as good as nothing.
    let has_choice = is_whole && fits.is_some_and(|fits| fits > 0 && fits < estimate.output);
    if has_choice { Exhausted::TooDear { budget, fits } } else { Exhausted::Budget(budget) }
}

/// The largest answer that so much pays for, with its prompt.
fn fits(left: Amount, unit: BudgetUnit, estimate: &QuotaEstimate) -> Option<u64> {
    let prices = estimate.prices.unwrap_or_default();
    let of = |usage: TokenUsage| usage.amount(unit, &prices);
    let input = estimate.input_at_most.max(estimate.input);
    let rest = left.less(of(TokenUsage { input, ..TokenUsage::default() }));
    let each = of(TokenUsage { output: 1, ..TokenUsage::default() });
    u64::try_from(rest.get().checked_div(each.get())?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flyball_core::units::Timestamp;
    use flyball_quota::{BudgetKey, LeaseKey, Scope, TokenPrices};

    fn empty(spent: u128) -> QuotaRefusal {
        let scope = Scope::new("ml/a");
        QuotaRefusal::Budget(Box::new(EmptyLease {
            lease: LeaseKey { scope: scope.clone(), unit: BudgetUnit::Tokens },
            number: 1,
            budget: BudgetKey { scope, name: "month".into() },
            limit: Amount::new(10_000),
            spent: Amount::new(spent),
            resets_at: Some(Timestamp::from_millis(1_796_083_200_000)),
        }))
    }

    const fn whole(input: u64, output: u64) -> QuotaEstimate {
        QuotaEstimate {
            input,
            input_at_most: input,
            output,
            can_stop: false,
            prices: Some(TokenPrices { input: 1, cached_input: 1, output: 1 }),
        }
    }

    fn code(refusal: &QuotaRefusal, estimate: &QuotaEstimate, is_whole: bool) -> &'static str {
        refusal.problem(estimate, is_whole).code()
    }

    #[test]
    fn an_answer_that_would_fit_if_it_were_shorter_is_told_how_long_it_may_be() {
        let problem = empty(9_000).problem(&whole(400, 4_096), true);
        let Problem::Exhausted(why) = problem else { panic!("{problem:?}") };
        assert!(matches!(*why, Exhausted::TooDear { fits: Some(600), .. }), "{why:?}");
        assert_eq!(code(&empty(9_000), &whole(1_000, 4_096), true), "insufficient_quota");
        assert_eq!(code(&empty(10_000), &whole(400, 4_096), true), "insufficient_quota");
        // A stream is paid as it goes: nothing shorter would help it.
        assert_eq!(code(&empty(9_000), &whole(400, 256), false), "insufficient_quota");
    }
}
