//! What was done about slow and broken answers, and what may still be done about slow ones.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What was done about slow and broken answers, by all threads.
#[derive(Debug, Default)]
pub(crate) struct Recovered {
    pub(crate) budget: Budget,
    /// Requests for which a second engine was asked.
    pub(crate) hedges: AtomicU64,
    /// Of those, whose answer came from the second one.
    pub(crate) hedges_won: AtomicU64,
    /// Times that another engine went on with what one had begun.
    pub(crate) continued: AtomicU64,
}

/// What was done about slow and broken answers, since the gateway began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recoveries {
    /// Requests sent to a second engine before the first began to respond.
    pub hedges: u64,
    /// Of those, whose answer came from the second one.
    pub hedges_won: u64,
    /// Times that another engine went on with what one had begun.
    pub continued: u64,
}

impl Recovered {
    /// So far.
    pub(crate) fn now(&self) -> Recoveries {
        Recoveries {
            hedges: self.hedges.load(Relaxed),
            hedges_won: self.hedges_won.load(Relaxed),
            continued: self.continued.load(Relaxed),
        }
    }
}

/// The most that is saved up: two of the longest prompts, so that a quiet hour does not pay for a
/// storm.
const MOST_TOKENS: u64 = 256 << 10;

/// Prompt tokens that may be sent a second time, by all threads. Begins with nothing, so that at no
/// time more was spent than the share of what was sent.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    /// In thousandths of a token.
    saved: AtomicU64,
}

impl Budget {
    /// A prompt of so many tokens is sent; the share of it is saved.
    pub(crate) fn earn(&self, tokens: u64, per_thousand: u32) {
        let more = tokens.saturating_mul(u64::from(per_thousand));
        let add = |saved: u64| Some(saved.saturating_add(more).min(MOST_TOKENS * 1_000));
        if more > 0 {
            let _ = self.saved.fetch_update(Relaxed, Relaxed, add);
        }
    }

    /// Takes as much as a prompt of so many tokens costs, if it is there.
    pub(crate) fn spend(&self, tokens: u64) -> bool {
        let take = |saved: u64| saved.checked_sub(tokens.saturating_mul(1_000));
        self.saved.fetch_update(Relaxed, Relaxed, take).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn never_more_than_the_share_of_what_was_sent_goes_twice(
            prompts in prop::collection::vec((1_u64..200_000, any::<bool>()), 1..200),
            per_thousand in 0_u32..1_001,
        ) {
            let budget = Budget::default();
            let (mut sent, mut again) = (0, 0);
            for (tokens, slow) in prompts {
                sent += tokens;
                budget.earn(tokens, per_thousand);
                if slow && budget.spend(tokens) {
                    again += tokens;
                }
                prop_assert!(again * 1_000 <= sent * u64::from(per_thousand));
            }
        }
    }

    #[test]
    fn a_quiet_hour_saves_only_so_much() {
        let budget = Budget::default();
        (0..100).for_each(|_| budget.earn(1_000_000, 1_000));
        assert!(budget.spend(MOST_TOKENS));
        assert!(!budget.spend(1));
    }
}
