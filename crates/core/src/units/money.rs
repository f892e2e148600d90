//! Money, and accelerator time at a price.
//!
//! Amounts are integers of a millionth of the currency's main unit, because bills must add up to
//! the same total in any order. One year of 100,000 GPUs at 10 USD an hour is 8.8e15 millionths,
//! a thousandth of what fits.

use super::counts::count;
use super::{Gpus, Micros};
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

const MICROS_PER_UNIT: u64 = 1_000_000;

/// An ISO 4217 currency code: three capital letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency([u8; 3]);

impl Currency {
    /// United States dollar.
    pub const USD: Self = Self(*b"USD");
    /// Euro.
    pub const EUR: Self = Self(*b"EUR");
}

impl FromStr for Currency {
    type Err = MoneyError;

    fn from_str(code: &str) -> Result<Self, MoneyError> {
        match <[u8; 3]>::try_from(code.as_bytes()) {
            Ok(letters) if letters.iter().all(u8::is_ascii_uppercase) => Ok(Self(letters)),
            _ => Err(MoneyError::UnknownCurrency(code.to_owned())),
        }
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|letter| write!(f, "{}", char::from(*letter)))
    }
}

/// An amount of money, possibly negative (a credit), in one currency.
///
/// Amounts in different currencies are not ordered: comparing them gives `None`, and every
/// `<` or `>` between them is false.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Money {
    micros: i64,
    currency: Currency,
}

/// Why an amount could not be worked out.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MoneyError {
    /// Two amounts have different currencies and no exchange rate is known here.
    #[error("cannot combine {left} with {right}")]
    CurrencyMismatch {
        /// Currency of the first amount.
        left: Currency,
        /// Currency of the second amount.
        right: Currency,
    },
    /// The result does not fit.
    #[error("the amount is too large")]
    Overflow,
    /// A price below zero.
    #[error("a price cannot be negative")]
    NegativePrice,
    /// Not three capital letters.
    #[error("`{0}` is not a currency code of three capital letters")]
    UnknownCurrency(String),
}

impl Money {
    /// Nothing, in US dollars.
    pub const ZERO_USD: Self = Self::zero(Currency::USD);

    /// Nothing, in this currency.
    pub const fn zero(currency: Currency) -> Self {
        Self { micros: 0, currency }
    }

    /// So many millionths of the currency's main unit.
    pub const fn from_micros(micros: i64, currency: Currency) -> Self {
        Self { micros, currency }
    }

    /// The amount in millionths of the currency's main unit.
    pub const fn micros(self) -> i64 {
        self.micros
    }

    /// The currency.
    pub const fn currency(self) -> Currency {
        self.currency
    }

    /// Whether the amount is below zero.
    pub const fn is_negative(self) -> bool {
        self.micros < 0
    }

    /// The sum of two amounts in one currency.
    pub fn checked_add(self, other: Self) -> Result<Self, MoneyError> {
        self.combine(other, i64::checked_add)
    }

    /// The difference of two amounts in one currency.
    pub fn checked_sub(self, other: Self) -> Result<Self, MoneyError> {
        self.combine(other, i64::checked_sub)
    }

    /// So many times the amount.
    pub fn checked_mul(self, times: u32) -> Result<Self, MoneyError> {
        let micros = self.micros.checked_mul(times.into()).ok_or(MoneyError::Overflow)?;
        Ok(Self { micros, ..self })
    }

    /// The sum of all amounts; zero in `currency` when there are none.
    pub fn sum(
        currency: Currency,
        amounts: impl IntoIterator<Item = Self>,
    ) -> Result<Self, MoneyError> {
        amounts.into_iter().try_fold(Self::zero(currency), Self::checked_add)
    }

    fn combine(
        self,
        other: Self,
        operation: impl FnOnce(i64, i64) -> Option<i64>,
    ) -> Result<Self, MoneyError> {
        if self.currency != other.currency {
            let (left, right) = (self.currency, other.currency);
            return Err(MoneyError::CurrencyMismatch { left, right });
        }
        let micros = operation(self.micros, other.micros).ok_or(MoneyError::Overflow)?;
        Ok(Self { micros, ..self })
    }
}

impl PartialOrd for Money {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self.currency == other.currency).then(|| self.micros.cmp(&other.micros))
    }
}

/// At least two decimals, more only when they are not zero: `13.76 USD`, `0.000125 USD`.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.micros.unsigned_abs();
        let sign = if self.is_negative() { "-" } else { "" };
        let decimals = format!("{:06}", size % MICROS_PER_UNIT);
        let (cents, rest) = decimals.split_at(2);
        let rest = rest.trim_end_matches('0');
        write!(f, "{sign}{}.{cents}{rest} {}", size / MICROS_PER_UNIT, self.currency)
    }
}

count! {
    /// Accelerator time: one GPU for one microsecond.
    GpuMicros(u64)
}

impl GpuMicros {
    /// So many accelerators for so long, at most [`GpuMicros::MAX`] (584,000 GPU-years).
    pub const fn of(gpus: Gpus, length: Micros) -> Self {
        Self::new(length.saturating_mul(gpus.get() as u64).get())
    }
}

/// In GPU-hours with one decimal, or GPU-seconds below one hour; truncated.
impl fmt::Display for GpuMicros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hour = Micros::HOUR.get();
        let (unit, name) =
            if self.get() >= hour { (hour, "GPU-hours") } else { (1_000_000, "GPU-seconds") };
        write!(f, "{}.{} {name}", self.get() / unit, self.get() % unit * 10 / unit)
    }
}

/// What one accelerator costs for one hour. Never negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Hash)]
pub struct Price(Money);

impl Price {
    /// This much for one GPU and one hour; refused when negative.
    pub fn per_gpu_hour(amount: Money) -> Result<Self, MoneyError> {
        if amount.is_negative() { Err(MoneyError::NegativePrice) } else { Ok(Self(amount)) }
    }

    /// The amount for one GPU and one hour.
    pub const fn amount(self) -> Money {
        self.0
    }

    /// What so much accelerator time costs, rounded to the nearest millionth, halves up.
    ///
    /// One result is off by at most half a millionth. Add up time first and price it once where
    /// that matters: pricing `n` parts apart is off by at most `n` halves.
    pub fn cost_of(self, time: GpuMicros) -> Result<Money, MoneyError> {
        let hour = i128::from(Micros::HOUR.get());
        // At most 2^63 * 2^64, which fits in i128 with the half hour added.
        let exact = i128::from(self.0.micros) * i128::from(time.get());
        let micros = (exact + hour / 2) / hour;
        let micros = i64::try_from(micros).map_err(|_| MoneyError::Overflow)?;
        Ok(Money { micros, currency: self.0.currency })
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/GPU-h", self.0)
    }
}
