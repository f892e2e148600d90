//! What a miss is worth, from money or from the share of misses that is allowed.
//!
//! Where the owner names a share, the worth of a miss is what holds it: it is raised while more
//! miss and lowered while fewer do, so that the share comes out right although no forecast is.

use crate::policy::Aim;
use crate::seat::Seat;
use flyball_core::snapshot::Misses;
use flyball_core::units::Timestamp;

/// What real misses taught.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Feedback {
    seen_at: Option<Timestamp>,
    /// Requests that missed beyond those allowed.
    excess: f64,
    /// Requests per day: the mean of what was seen, of a day and more in the end.
    daily: f64,
    /// How long was seen.
    seen_s: f64,
    /// Requests per second that one replica's work is.
    requests_per_work: Option<f64>,
}

/// The worth of a miss at one missed in a hundred, before anything is known: the middle of what
/// fitted the first of the recorded weeks, over three models and six cold starts (1 to 19).
const WORTH_AT_ONE_PERCENT: f64 = 5.0;

/// A day's allowance of misses left over makes a miss worth a seventh, and one overdrawn seven times
/// as much: enough to get from the first guess to the worth that fits.
const GAIN: f64 = 2.0;
/// How much allowance may be saved up, and overdrawn, in days. With the gain this spans worths from
/// 0.7 to 180, which is more than the recorded week needed.
const SAVED_DAYS: f64 = 1.0;
const OVERDRAWN_DAYS: f64 = 1.8;
/// Aimed a little below what is allowed, so that a bad last day does not break it.
const AIM_BELOW: f64 = 0.9;

impl Feedback {
    /// Learns from the requests since the last look.
    pub(crate) fn learn(&mut self, missed: Option<&Misses>, work: f64, seat: &Seat<'_>) {
        let before = self.seen_at.replace(seat.now);
        let (Some(count), Some(before)) = (missed, before) else { return };
        let seconds = seat.now.since(before).map_or(0.0, |time| time.get() as f64 / 1e6);
        if seconds <= 0.0 {
            return;
        }
        let (requests, missed) = (count.requests.get() as f64, count.missed.get() as f64);
        let day = requests / seconds * 86_400.0;
        // A first look alone says little: a service that just begins has answered one request, and by the
        // day that this would make, the misses of ten minutes would weigh as those of weeks.
        self.seen_s = (self.seen_s + seconds).min(86_400.0);
        self.daily += (seconds / self.seen_s).min(1.0) * (day - self.daily);
        if work > 0.05 {
            let now = requests / seconds / work;
            let known = self.requests_per_work.unwrap_or(now);
            self.requests_per_work = Some(known + (seconds / 3_600.0).min(1.0) * (now - known));
        }
        let beyond = missed - AIM_BELOW * allowed(seat) * requests;
        let allowance = self.daily_allowance(seat);
        self.excess =
            (self.excess + beyond).clamp(-SAVED_DAYS * allowance, OVERDRAWN_DAYS * allowance);
    }

    /// What was learnt, as numbers.
    pub(crate) fn numbers(&self) -> [f64; 4] {
        [self.excess, self.daily, self.seen_s, self.requests_per_work.unwrap_or(0.0)]
    }

    /// The same back; `None` if it cannot be.
    pub(crate) fn restored(numbers: &[f64; 4]) -> Option<Self> {
        let [excess, daily, seen_s, rate] = *numbers;
        let counts = [excess.abs(), daily, rate].iter().all(|count| (0.0..1e12).contains(count));
        (counts && (0.0..=86_400.0).contains(&seen_s)).then(|| Self {
            seen_at: None,
            excess,
            daily,
            seen_s,
            requests_per_work: (rate > 0.0).then_some(rate),
        })
    }

    /// Requests that may miss in a day.
    fn daily_allowance(&self, seat: &Seat<'_>) -> f64 {
        AIM_BELOW * allowed(seat) * self.daily.max(1.0)
    }

    /// Requests per second that one replica's work is, where requests are counted.
    pub(crate) fn requests_per_work(&self) -> Option<f64> {
        self.requests_per_work
    }

    /// What one replica's work missed is worth, in prices of one replica.
    ///
    /// From money: requests in that work, times their price, over the price of a replica. From a
    /// share: inversely to it, since the chance of a miss at the optimum is about price over
    /// worth, and as much more as too many missed so far.
    pub(crate) fn worth(&self, seat: &Seat<'_>) -> f64 {
        if let Aim::MissCosts(money) = seat.policy.aim {
            let hourly = seat.lanes.get(seat.main).map_or(0.0, |lane| lane.price_of_work());
            let requests = self.requests_per_work.unwrap_or(1.0) * 3_600.0;
            if hourly > 0.0 {
                return (money.micros().max(0) as f64 * requests / hourly).clamp(1.0, 1e6);
            }
        }
        let days = self.excess / self.daily_allowance(seat);
        let days = days.clamp(-SAVED_DAYS, OVERDRAWN_DAYS);
        WORTH_AT_ONE_PERCENT * (0.01 / allowed(seat)) * (GAIN * days).exp()
    }
}

/// The share of requests that may miss. At least one in a million: none at all has no price.
fn allowed(seat: &Seat<'_>) -> f64 {
    let per_million = match seat.policy.aim {
        Aim::MissedPerMillion(missed) => missed,
        Aim::Objectives | Aim::MissCosts(_) => {
            1_000_000_u32.saturating_sub(seat.model.objectives.attainment_per_million)
        }
    };
    f64::from(per_million.clamp(1, 1_000_000)) / 1e6
}
