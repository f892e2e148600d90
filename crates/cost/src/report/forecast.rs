//! Where a month will end, if its days go on as the last four weeks did.

use crate::civil::{BillingMonth, date_text};
use crate::money::PicoDollars;
use crate::row::CostRow;
use flyball_core::interval::{Interval, Origin};
use flyball_core::units::{GpuMicros, Timestamp};
use std::collections::BTreeMap;

/// Days from which is extrapolated: four of each weekday.
const DAYS: u64 = 28;
/// With less than a week, weekends are not known.
const FEWEST_DAYS: u64 = 7;
const DAY_MICROS: u64 = 86_400_000_000;
/// Nine of ten sums of independent days lie within so many standard deviations.
const DEVIATIONS: f64 = 1.645;

/// A month at its end.
#[derive(Clone, Debug, PartialEq)]
pub struct MonthForecast {
    pub month: BillingMonth,
    pub so_far: PicoDollars,
    /// Nine of ten months end in here, if days go on as they did; unknown with less than a week behind.
    pub at_end: Option<Interval<PicoDollars>>,
    /// GPU time of the days behind it that has no price, and is in none of these numbers.
    pub unpriced: GpuMicros,
    /// Whole days that it rests on.
    pub days: u64,
}

/// Extrapolates from rows up to `now`: each day to come costs the mean of its weekday, and the width is that of the days
/// around their weekday's mean.
pub fn forecast<'a>(rows: impl IntoIterator<Item = &'a CostRow>, now: Timestamp) -> MonthForecast {
    let month = BillingMonth::of(now);
    let today = now.as_micros() / DAY_MICROS;
    let mut days: BTreeMap<u64, PicoDollars> = BTreeMap::new();
    let (mut so_far, mut unpriced) = (PicoDollars::ZERO, GpuMicros::ZERO);
    for row in rows.into_iter().filter(|row| row.start < now) {
        let (day, paid) = (row.start.as_micros() / DAY_MICROS, row.spent.paid());
        let money = paid.money + row.host;
        if row.start >= month.start() {
            so_far += money;
        }
        if row.start >= month.start() || day + DAYS >= today {
            unpriced = unpriced.saturating_add(paid.unpriced);
        }
        if day < today && day + DAYS >= today {
            *days.entry(day).or_default() += money;
        }
    }
    // From the first day with a row on, a day without one cost nothing.
    let first = days.keys().next().copied().unwrap_or(today);
    let past: Vec<(u64, f64)> = (first..today)
        .map(|day| (day, days.get(&day).copied().unwrap_or_default().as_dollars()))
        .collect();
    let at_end = (past.len() as u64 >= FEWEST_DAYS)
        .then(|| extrapolate(&past, so_far, now, month))
        .flatten();
    MonthForecast { month, so_far, at_end, unpriced, days: past.len() as u64 }
}

fn extrapolate(
    past: &[(u64, f64)],
    so_far: PicoDollars,
    now: Timestamp,
    month: BillingMonth,
) -> Option<Interval<PicoDollars>> {
    let mean_of = |day: u64| {
        let same = past.iter().filter(|(one, _)| one % 7 == day % 7).map(|(_, money)| *money);
        let (sum, count) = same.fold((0.0, 0.0), |(sum, count), money| (sum + money, count + 1.0));
        sum / f64::max(count, 1.0)
    };
    let squares: f64 = past.iter().map(|(day, money)| (money - mean_of(*day)).powi(2)).sum();
    // A week alone has no spread around its weekdays: then around the mean of all days.
    let free = past.len() as f64 - 7.0;
    let overall = past.iter().map(|(_, money)| money).sum::<f64>() / past.len() as f64;
    let spread = past.iter().map(|(_, money)| (money - overall).powi(2)).sum::<f64>()
        / (past.len() as f64 - 1.0);
    let variance = if free >= 7.0 { squares / free } else { spread };
    let left_of_today = 1.0 - (now.as_micros() % DAY_MICROS) as f64 / DAY_MICROS as f64;
    let today = now.as_micros() / DAY_MICROS;
    let end = month.end().as_micros() / DAY_MICROS;
    let to_come = mean_of(today) * left_of_today + (today + 1..end).map(mean_of).sum::<f64>();
    let count = left_of_today + (end - today - 1) as f64;
    // The days to come, and the mean that was taken of the days behind.
    let width = DEVIATIONS * (variance * (count + count * count / past.len() as f64)).sqrt();
    let amount = |dollars: f64| so_far + PicoDollars::new((dollars.max(0.0) * 1e12) as i128);
    Interval::new(
        amount(to_come - width),
        amount(to_come),
        amount(to_come + width),
        Origin::Forecast,
    )
    .ok()
}

impl MonthForecast {
    /// A sentence for people.
    pub fn text(&self) -> String {
        let month = &date_text(self.month.start())[..7];
        let unknown = match self.unpriced.is_zero() {
            true => String::new(),
            false => format!(
                "; {} GPU-hours without a price are in none of these",
                super::shown::hours(self.unpriced)
            ),
        };
        match &self.at_end {
            Some(end) => format!(
                "{month}: {:.2} USD so far, {:.2} at its end ({:.2} to {:.2}, if days go on as the last {} did){unknown}\n",
                self.so_far,
                end.point(),
                end.low(),
                end.high(),
                self.days
            ),
            None => format!(
                "{month}: {:.2} USD so far; its end is unknown: {} whole days are behind, and {FEWEST_DAYS} are needed{unknown}\n",
                self.so_far, self.days
            ),
        }
    }
}
