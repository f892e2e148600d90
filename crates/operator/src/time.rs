//! Moments as `core` counts them, from the clocks of others and back.

use flyball_core::units::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use std::time::{SystemTime, UNIX_EPOCH};

/// From the machine's clock.
pub(crate) fn of_system(at: SystemTime) -> Timestamp {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

/// From a date of the API. Before 1970 is 1970.
pub(crate) fn of_date(at: jiff::Timestamp) -> Timestamp {
    Timestamp::from_micros(u64::try_from(at.as_microsecond()).unwrap_or(0))
}

/// From a time of an object of the API.
pub(crate) fn moment(time: &Time) -> Timestamp {
    of_date(time.0)
}

/// As a date of the API.
pub(crate) fn date(at: Timestamp) -> jiff::Timestamp {
    let micros = i64::try_from(at.as_micros()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::MAX)
}
