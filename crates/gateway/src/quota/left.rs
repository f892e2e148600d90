//! What is left of a Tenant's limits, as its clients are told.

use flyball_core::units::Micros;
use flyball_quota::RateKind;

/// What is left of one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLeft {
    /// The limit: per minute, or at a time.
    pub limit: u64,
    /// What may be used at once at this gateway. More may be with others, and comes when it is asked for.
    pub remaining: u64,
    /// Until everything is there again.
    pub reset: Micros,
}

/// What is left of all limits that apply: of each kind the one of which the smallest part is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaLeft {
    /// Requests per minute.
    pub requests: Option<RateLeft>,
    /// Prompt tokens per minute.
    pub input_tokens: Option<RateLeft>,
    /// Output tokens per minute.
    pub output_tokens: Option<RateLeft>,
    /// Requests in flight.
    pub concurrency: Option<RateLeft>,
}

impl QuotaLeft {
    /// Takes in one limit.
    pub(super) fn note(&mut self, kind: RateKind, left: RateLeft) {
        let of = match kind {
            RateKind::Requests => &mut self.requests,
            RateKind::InputTokens => &mut self.input_tokens,
            RateKind::OutputTokens => &mut self.output_tokens,
            RateKind::Concurrency => &mut self.concurrency,
        };
        if of.is_none_or(|known| left.is_tighter(&known)) {
            *of = Some(left);
        }
    }

    /// The tighter one of the two limits of tokens, for interfaces that have one word for both.
    pub fn tokens(&self) -> Option<RateLeft> {
        let both = self.input_tokens.into_iter().chain(self.output_tokens);
        both.reduce(|one, other| if other.is_tighter(&one) { other } else { one })
    }
}

impl RateLeft {
    fn is_tighter(&self, other: &Self) -> bool {
        let part = |a: u64, b: u64| u128::from(a) * u128::from(b);
        part(self.remaining, other.limit) < part(other.remaining, self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn left(limit: u64, remaining: u64) -> RateLeft {
        RateLeft { limit, remaining, reset: Micros::ZERO }
    }

    #[test]
    fn of_each_kind_the_limit_is_shown_of_which_the_smallest_part_is_left() {
        let mut all = QuotaLeft::default();
        assert_eq!((all.requests, all.tokens()), (None, None));
        all.note(RateKind::Requests, left(100, 90));
        all.note(RateKind::Requests, left(1_000, 100));
        all.note(RateKind::Requests, left(10, 5));
        assert_eq!(all.requests, Some(left(1_000, 100)));
        all.note(RateKind::InputTokens, left(1_000, 500));
        all.note(RateKind::OutputTokens, left(100, 49));
        assert_eq!(all.tokens(), Some(left(100, 49)));
    }
}
