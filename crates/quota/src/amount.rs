//! What is counted: money fine enough for one token, or tokens.

use std::fmt;
use std::ops::{Add, AddAssign};

/// What an amount counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BudgetUnit {
    /// Pico-dollars: at 0.05 dollars for a million tokens, one costs 50,000 of them and 0.05 micro-dollars.
    Money,
    /// Tokens.
    Tokens,
}

/// So many pico-dollars or tokens. No amount is negative, and none overflows: 128 bits hold more dollars than there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(u128);

/// Pico-dollars of a dollar.
const DOLLAR: u128 = 1_000_000_000_000;

impl Amount {
    pub const ZERO: Self = Self(0);
    pub const MAX: Self = Self(u128::MAX);

    pub const fn new(units: u128) -> Self {
        Self(units)
    }

    pub const fn from_cents(cents: u64) -> Self {
        Self(cents as u128 * (DOLLAR / 100))
    }

    pub const fn get(self) -> u128 {
        self.0
    }

    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// What is left of it without the other; nothing if that is more.
    #[must_use]
    pub const fn less(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    #[must_use]
    pub const fn times(self, count: u64) -> Self {
        Self(self.0.saturating_mul(count as u128))
    }

    #[must_use]
    pub const fn over(self, parts: u64) -> Self {
        Self(self.0 / if parts == 0 { 1 } else { parts as u128 })
    }
}

impl Add for Amount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl std::iter::Sum for Amount {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::ZERO, Add::add)
    }
}

/// As dollars, in cents; an amount of tokens is written by who knows that it is one.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.0 / DOLLAR, self.0 % DOLLAR / (DOLLAR / 100))
    }
}

/// What tokens of a model cost, each in pico-dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenPrices {
    pub input: u64,
    /// Of input that an engine had in its cache.
    pub cached_input: u64,
    pub output: u64,
}

/// Tokens of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenUsage {
    /// All tokens of the prompt.
    pub input: u64,
    /// Those of them that an engine had in its cache.
    pub cached_input: u64,
    pub output: u64,
}

impl TokenUsage {
    /// What it comes to.
    pub fn amount(&self, unit: BudgetUnit, prices: &TokenPrices) -> Amount {
        match unit {
            BudgetUnit::Tokens => Amount::new(u128::from(self.input) + u128::from(self.output)),
            BudgetUnit::Money => {
                let cached = self.cached_input.min(self.input);
                let of = |price: u64, tokens: u64| Amount::new(u128::from(price)).times(tokens);
                of(prices.input, self.input - cached)
                    + of(prices.cached_input, cached)
                    + of(prices.output, self.output)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_of_the_cheapest_model_is_not_free() {
        // 0.05 dollars for a million tokens of input, a tenth of that if cached.
        let prices = TokenPrices { input: 50_000, cached_input: 5_000, output: 400_000 };
        let usage = TokenUsage { input: 1_000, cached_input: 600, output: 10 };
        let amount = usage.amount(BudgetUnit::Money, &prices);
        assert_eq!(amount, Amount::new(400 * 50_000 + 600 * 5_000 + 10 * 400_000));
        assert_eq!(usage.amount(BudgetUnit::Tokens, &prices), Amount::new(1_010));
        assert_eq!(Amount::from_cents(123_456).to_string(), "1234.56");
    }

    #[test]
    fn an_engine_that_reports_more_cached_tokens_than_there_are_is_not_paid_for_it() {
        let prices = TokenPrices { input: 10, cached_input: 1, output: 0 };
        let usage = TokenUsage { input: 5, cached_input: 9, output: 0 };
        assert_eq!(usage.amount(BudgetUnit::Money, &prices), Amount::new(5));
    }
}
