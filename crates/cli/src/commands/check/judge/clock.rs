//! This machine's clock against the API server's.
//!
//! The server's `Date` is cut to whole seconds, and it was written at some moment between our
//! sending and our receiving. So the difference is known as an interval, not as a number:
//! `[date - received, date + 1 s - sent]`. Only what the whole interval says is said.

use std::time::Duration;

use super::unknown;
use crate::commands::check::answer::{Outcome, Status};
use crate::commands::check::codes::Code;
use crate::commands::check::facts::{ClockSample, Found};

/// Receipts and signals are compared by time at a resolution of a few seconds.
const WARN_MS: i64 = 5_000;
/// Usage is counted by the minute: a clock that is off by one puts money into the wrong minute.
const FAIL_MS: i64 = 60_000;

pub(super) fn judge(found: &Found<ClockSample>) -> Outcome {
    let code = Code::ClockSkew;
    let sample = match found {
        Found::Known(sample) => sample,
        Found::Absent => {
            return Outcome::new(code, Status::Unknown, "the api server sends no Date header")
                .hint("a proxy between here and the api server may drop it");
        }
        missed => return unknown(code, missed, "read the time of the api server"),
    };
    let (low, high) = ahead(sample);
    // The distance from zero: at least, and at most.
    let least = if low > 0 {
        low
    } else if high < 0 {
        -high
    } else {
        0
    };
    let most = low.abs().max(high.abs());
    let side = if low > 0 { "behind" } else { "ahead of" };
    let off = |status| {
        let detail = format!("this clock is at least {} {side} the api server's", seconds(least));
        Outcome::new(code, status, detail)
            .effect("ages, forecasts and usage by the minute are off by as much")
            .hint("timedatectl status shows whether this machine follows a time server")
    };
    if least > FAIL_MS {
        off(Status::Fail)
    } else if least > WARN_MS {
        off(Status::Warn)
    } else if most <= WARN_MS {
        Outcome::new(code, Status::Ok, format!("within {}", seconds(most)))
    } else {
        let detail =
            format!("the response took too long for an exact value; within {}", seconds(most));
        Outcome::new(code, Status::Unknown, detail).hint("flyball check --only clock tries again")
    }
}

/// By how many milliseconds the server's clock is ahead of ours: at least, and at most.
fn ahead(sample: &ClockSample) -> (i64, i64) {
    let round_trip = i64::try_from(sample.round_trip.as_millis()).unwrap_or(i64::MAX / 4);
    let from_sent = sample.server.as_millisecond() - sample.sent.as_millisecond();
    (from_sent - round_trip, from_sent + 1_000)
}

fn seconds(millis: i64) -> String {
    crate::output::duration(Duration::from_millis(millis.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    fn status(server_ahead_ms: i64, round_trip_ms: u64) -> Status {
        let sent = Timestamp::from_second(1_800_000_000).unwrap();
        let server = Timestamp::from_millisecond(sent.as_millisecond() + server_ahead_ms).unwrap();
        let round_trip = Duration::from_millis(round_trip_ms);
        judge(&Found::Known(ClockSample { server, sent, round_trip })).status
    }

    #[test]
    fn only_a_certain_difference_is_called_one() {
        assert_eq!(status(0, 40), Status::Ok);
        assert_eq!(status(3_000, 40), Status::Ok);
        assert_eq!(status(7_000, 40), Status::Warn);
        assert_eq!(status(-7_000, 40), Status::Warn);
        assert_eq!(status(90_000, 40), Status::Fail);
        assert_eq!(status(-90_000, 40), Status::Fail);
        // Eight seconds of round trip hide a difference of seven.
        assert_eq!(status(7_000, 8_000), Status::Unknown);
    }
}
