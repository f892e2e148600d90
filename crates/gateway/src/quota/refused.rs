//! A refusal in the words of an answer.

use super::{QuotaEstimate, QuotaRefusal};
use crate::answer::{Exhausted, Problem, StatedBudget, StatedLimit};
use flyball_quota::{Amount, BudgetUnit, RateKey, RateKind, TokenUsage};
use flyball_resources::rfc3339;
use flyball_resources::stream::EmptyLease;

impl QuotaRefusal {
    /// What the client is told. If it asks for so many `whole` answers, which cannot be stopped, it may choose what fits.
    pub(crate) fn problem(&self, estimate: &QuotaEstimate, whole: Option<u64>) -> Problem {
        let why = match self {
            Self::Rate { key, limit, retry_after } => {
                Exhausted::Limit { limit: limit_of(key, *limit), retry_after: *retry_after }
            }
            Self::TooLarge { key, limit } => Exhausted::TooLarge(limit_of(key, *limit)),
            Self::Budget(empty) => budget(empty, estimate, whole),
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

fn budget(empty: &EmptyLease, estimate: &QuotaEstimate, whole: Option<u64>) -> Exhausted {
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
    // All answers of a request are equally long at most.
    let each = whole.and_then(|answers| {
        let all = fits(left, of, estimate)?;
        Some((all / answers.max(1), answers))
    });
    match each {
        // Where what is left would not even do for the shortest answer it is as good as nothing.
        Some((fits, answers)) if fits > 0 && fits.saturating_mul(answers) < estimate.output => {
            Exhausted::TooDear { budget, fits: Some(fits) }
        }
        _ => Exhausted::Budget(budget),
    }
}

/// The most output that so much pays for, with its prompt.
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

    fn code(
        refusal: &QuotaRefusal,
        estimate: &QuotaEstimate,
        answers: Option<u64>,
    ) -> &'static str {
        refusal.problem(estimate, answers).code()
    }

    #[test]
    fn an_answer_that_would_fit_if_it_were_shorter_is_told_how_long_it_may_be() {
        let problem = empty(9_000).problem(&whole(400, 4_096), Some(1));
        let Problem::Exhausted(why) = problem else { panic!("{problem:?}") };
        assert!(matches!(*why, Exhausted::TooDear { fits: Some(600), .. }), "{why:?}");
        let problem = empty(9_000).problem(&whole(400, 4 * 4_096), Some(4));
        let Problem::Exhausted(why) = problem else { panic!("{problem:?}") };
        assert!(matches!(*why, Exhausted::TooDear { fits: Some(150), .. }), "{why:?}");
        assert_eq!(code(&empty(9_000), &whole(1_000, 4_096), Some(1)), "insufficient_quota");
        assert_eq!(code(&empty(10_000), &whole(400, 4_096), Some(1)), "insufficient_quota");
        // A stream is paid as it goes: nothing shorter would help it.
        assert_eq!(code(&empty(9_000), &whole(400, 256), None), "insufficient_quota");
    }
}
