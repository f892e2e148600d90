//! Money fine enough for one token.

use flyball_core::units::{Micros, Money, Timestamp};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Neg, Sub};
use thiserror::Error;

/// Pico-dollars of a dollar.
const DOLLAR: i128 = 1_000_000_000_000;
/// Pico-dollars of a millionth of a dollar, in which prices are written.
const MICRO: i128 = 1_000_000;
/// The most that is read from a file: a hundred billion of these still fit into a sum.
const LARGEST: i128 = 1_000_000_000_000_000 * DOLLAR;
const DECIMALS: usize = 12;

/// So many millionths of a millionth of a US dollar; negative for what is given back.
///
/// A million tokens for five cents are 50,000 of them for one token, so that every token has a whole price. 128 bits hold
/// more dollars than there are: sums do not overflow, and would stop at the end instead of turning negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PicoDollars(i128);

/// A text is not an amount.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` is not an amount: write digits with a decimal point and at most 12 decimals, below 10^15"
)]
pub struct AmountError(String);

impl PicoDollars {
    pub const ZERO: Self = Self(0);

    pub const fn new(picos: i128) -> Self {
        Self(picos)
    }

    pub const fn get(self) -> i128 {
        self.0
    }

    pub const fn from_dollars(dollars: i64) -> Self {
        Self(dollars as i128 * DOLLAR)
    }

    pub const fn from_money(money: Money) -> Self {
        Self(money.micros() as i128 * MICRO)
    }

    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// In dollars, for charts and ratios; sums are never made of these.
    pub const fn as_dollars(self) -> f64 {
        self.0 as f64 / DOLLAR as f64
    }

    #[must_use]
    pub const fn times(self, count: i128) -> Self {
        Self(self.0.saturating_mul(count))
    }

    /// What has run up at so much an hour, counted from the beginning of time.
    ///
    /// What a span costs is the difference of two of these, so that a month costs the same however it is cut.
    const fn accrued(self, until: Timestamp) -> Self {
        let hour = Micros::HOUR.get() as i128;
        let (whole, rest) = (until.as_micros() as i128 / hour, until.as_micros() as i128 % hour);
        Self(
            self.0
                .saturating_mul(whole)
                .saturating_add(self.0.saturating_mul(rest).div_euclid(hour)),
        )
    }

    /// What a span costs at so much an hour. Spans that touch add up to the whole without an error.
    pub fn for_span(self, from: Timestamp, to: Timestamp) -> Self {
        if to <= from { Self::ZERO } else { self.accrued(to) - self.accrued(from) }
    }

    /// Reads an amount exactly, also in the form `35.2E-7` that FOCUS allows. What is finer than a pico-dollar is
    /// rounded to the nearest, halves away from zero: bills have floats with 17 digits.
    pub fn read(text: &str) -> Result<Self, AmountError> {
        read(text).ok_or_else(|| AmountError(text.chars().take(64).collect()))
    }
}

fn read(text: &str) -> Option<PicoDollars> {
    let (negative, size) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (number, exponent) = match size.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<i32>().ok()?),
        None => (size, 0),
    };
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let right = !whole.is_empty() && is_digits(whole) && is_digits(decimals);
    // Longer numbers and exponents than these are no money, and would cost time to read.
    if !right || text.len() > 80 || !(-40..=40).contains(&exponent) {
        return None;
    }
    // The point moves: everything left of `point` is whole pico-dollars.
    let digits = format!("{whole}{decimals}");
    let point = whole.len() as i32 + exponent + DECIMALS as i32;
    let mut picos: i128 = 0;
    for place in 0..point.max(0) as usize {
        let digit = digits.as_bytes().get(place).map_or(0, |byte| i128::from(byte - b'0'));
        picos = picos.checked_mul(10)?.checked_add(digit)?;
    }
    let next = usize::try_from(point).ok().and_then(|place| digits.as_bytes().get(place));
    picos += i128::from(next.is_some_and(|byte| *byte >= b'5'));
    (picos <= LARGEST).then_some(PicoDollars(if negative { -picos } else { picos }))
}

impl Add for PicoDollars {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for PicoDollars {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Neg for PicoDollars {
    type Output = Self;

    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}

impl AddAssign for PicoDollars {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for PicoDollars {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::ZERO, Add::add)
    }
}

/// The exact amount in dollars, without zeros at the end: `0.00000005`, `-12.5`. With a precision, that many decimals,
/// rounded halves away from zero: `{:.2}` for people.
impl fmt::Display for PicoDollars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut size = self.0.unsigned_abs();
        let shown = f.precision().unwrap_or(DECIMALS).min(DECIMALS);
        let unit = 10u128.pow((DECIMALS - shown) as u32);
        size = size.saturating_add(unit / 2) / unit * unit;
        let sign = if self.0 < 0 && size > 0 { "-" } else { "" };
        let (whole, rest) = (size / DOLLAR as u128, size % DOLLAR as u128);
        let decimals = format!("{rest:012}");
        let decimals = match f.precision() {
            Some(_) => &decimals[..shown],
            None => decimals.trim_end_matches('0'),
        };
        let point = if decimals.is_empty() { "" } else { "." };
        f.pad_integral(true, "", &format!("{sign}{whole}{point}{decimals}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn amounts_are_read_exactly_and_nonsense_is_refused() {
        let picos = |text| PicoDollars::read(text).map(PicoDollars::get).ok();
        assert_eq!(picos("2.10"), Some(2_100_000_000_000));
        assert_eq!(picos("-0.000000000001"), Some(-1));
        assert_eq!(picos("0.0000000000005"), Some(1));
        assert_eq!(picos("0.0000000000004999"), Some(0));
        assert_eq!(picos("35.2E-7"), Some(3_520_000));
        assert_eq!(picos("1e3"), Some(1_000 * DOLLAR));
        assert_eq!(picos("5."), Some(5 * DOLLAR));
        assert_eq!(picos("0.1E-30"), Some(0));
        let wrong = [
            "", "-", ".5", "+1", "1,5", "$2", "1 1/2", "1e", "0x1", "NaN", "inf", "1e99", "1e16",
            "--1",
        ];
        for text in wrong {
            assert_eq!(picos(text), None, "{text}");
        }
        assert_eq!(picos(&"9".repeat(60)), None);
    }

    #[test]
    fn amounts_are_shown_exactly_or_for_people() {
        assert_eq!(PicoDollars::new(50_000).to_string(), "0.00000005");
        assert_eq!(PicoDollars::new(-12_500_000_000_000).to_string(), "-12.5");
        assert_eq!(format!("{:.2}", PicoDollars::new(1_995_000_000_000)), "2.00");
        assert_eq!(format!("{:.2}", PicoDollars::new(-1)), "0.00");
        assert_eq!(format!("{:>8.2}", PicoDollars::from_dollars(7)), "    7.00");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(picos in -LARGEST..LARGEST) {
            let amount = PicoDollars::new(picos);
            prop_assert_eq!(PicoDollars::read(&amount.to_string()), Ok(amount));
        }

        #[test]
        fn a_span_costs_the_same_however_it_is_cut(
            hourly in 0..1_000 * DOLLAR,
            mut cuts in proptest::collection::vec(0..u64::MAX / 2, 2..20),
        ) {
            cuts.sort_unstable();
            let at = |index: usize| Timestamp::from_micros(cuts[index]);
            let hourly = PicoDollars::new(hourly);
            let parts: PicoDollars = (1..cuts.len()).map(|end| hourly.for_span(at(end - 1), at(end))).sum();
            prop_assert_eq!(parts, hourly.for_span(at(0), at(cuts.len() - 1)));
        }
    }
}
