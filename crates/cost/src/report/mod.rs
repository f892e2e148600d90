//! Answers about cost: by team, model, run, key, pool and day; why, compared with another time, and where a month will end.
//!
//! [`ask`] groups rows and adds up. Totals are of all groups, whatever page is shown: they are made before pages are cut.
//! [`table`], [`csv`](fn@csv) and [`json`](fn@json) show the same [`CostReport`]; none of them adds anything up. [`why`],
//! [`compare`] and [`forecast`] are values of their own with a text each. What has no price is unknown, and each sum says for
//! how many GPU-hours.

mod ask;
mod compare;
mod forecast;
mod shown;
#[cfg(test)]
mod tests;
mod why;

pub use ask::{CostDimension, CostGroup, CostQuestion, CostReport, CostSums, ask};
pub use compare::{CostChange, CostComparison, compare};
pub use forecast::{MonthForecast, forecast};
pub use shown::{csv, json, table};
pub use why::{CostReason, CostReasons, why};
