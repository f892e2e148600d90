//! What a miss is worth, from money or from the share of misses that is allowed.
//!
//! Where the owner names a share, the worth of a miss is what holds it: it is raised while more
//! miss and lowered while fewer do, so that the share comes out right although no forecast is.

use crate::policy::{Aim, Law, ModelPolicy};
use flyball_core::snapshot::Misses;
use flyball_core::units::Timestamp;

/// What real misses taught.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Feedback {
    seen_at: Option<Timestamp>,
    /// Requests that missed beyond those allowed, of this hour or so.
    excess: f64,
    /// Requests per hour: the mean of what was seen, of an hour and more in the end.
    hourly: f64,
    /// How long was seen, up to an hour.
    seen_s: f64,
    /// Requests per second that one replica's work is.
    requests_per_work: Option<f64>,
    /// What misses taught so far, as a logarithm of what a miss is worth more than was thought first.
    lesson: f64,
    /// Work per second that was last expected to miss.
    expects: f64,
    /// Requests that were expected to miss, and that did, both fading.
    expected: f64,
    missed: f64,
}

/// The worth of a miss at one missed in a hundred, before anything is known: the middle of what
/// fitted the first of the recorded weeks, over three models and six cold starts (1 to 19).
const WORTH_AT_ONE_PERCENT: f64 = 5.0;

/// An hour's allowance of misses left over makes a miss worth a third, and one overdrawn three times as
/// much. The allowance is counted by the hour: by the day, what the first hours save is not spent before
/// the next day, and on Azure's conversations that cost 4 to 20 % more.
const GAIN: f64 = 1.2;
/// How much allowance may be saved up, and overdrawn, in hours. With the gain a miss is worth nine times
/// as much at most: where replicas do not mend misses, more would buy replicas without end.
const SAVED_HOURS: f64 = 1.0;
const OVERDRAWN_HOURS: f64 = 1.8;
/// What is saved or overdrawn beyond that is forgiven, so that the share would end up somewhere else than at
/// what is allowed. So a part of what every hour leaves over or lacks stays: what a miss is worth in the long
/// run. A day of hours that use none of their allowance makes it a tenth.
const LESSON: f64 = 0.1;
const LONGEST_LESSON: f64 = 3.0;
/// Aimed a little below what is allowed, so that a bad last hour does not break it.
const AIM_BELOW: f64 = 0.9;

/// More than so many hours' allowance overdrawn is no accident, and so much more is none at all. Less comes and goes where
/// all of the allowance is used: with three minutes, weeks of steady traffic cost 8 to 15 % more and missed as many.
const OVERDRAWN_FROM: f64 = 0.5;
const OVERDRAWN_OVER: f64 = 1.0;

/// What was expected and what came of it fade to a third over so long.
const FADES_S: f64 = 7_200.0;
/// Before anything is known, misses come as expected: that weighs as much as the allowance of so many hours.
const DOUBT_HOURS: f64 = 0.5;
/// However little comes of what is expected, so much of it may.
const LEAST_TRUE: f64 = 0.2;

/// One hour, in seconds.
const HOUR: f64 = 3_600.0;

impl Feedback {
    /// Learns from the requests since the last look, of which a share is `allowed` to miss; `unreachable` where the
    /// objective is out of reach of any number of replicas.
    pub(crate) fn learn(
        &mut self,
        missed: Option<&Misses>,
        work: f64,
        now: Timestamp,
        allowed: f64,
        unreachable: bool,
    ) {
        let before = self.seen_at.replace(now);
        let (Some(count), Some(before)) = (missed, before) else { return };
        let seconds = now.since(before).map_or(0.0, |time| time.as_seconds());
        if seconds <= 0.0 {
            return;
        }
        let (requests, missed) = (count.requests.get() as f64, count.missed.get() as f64);
        let hour = requests / seconds * HOUR;
        // A first look alone says little: a service that just begins has answered one request, and by the
        // hour that this would make, the misses of ten minutes would weigh as those of days.
        self.seen_s = (self.seen_s + seconds).min(HOUR);
        self.hourly += (seconds / self.seen_s).min(1.0) * (hour - self.hourly);
        if work > 0.05 {
            let rate = requests / seconds / work;
            let known = self.requests_per_work.unwrap_or(rate);
            self.requests_per_work = Some(known + (seconds / HOUR).min(1.0) * (rate - known));
        }
        if unreachable {
            // No replica helps those that miss, and who of them would have missed anyhow is not known.
            let (excess, lesson, expected, missed) = (0.0, 0.0, 0.0, 0.0);
            *self = Self { excess, lesson, expected, missed, ..*self };
            return;
        }
        let fades = (-seconds / FADES_S).exp();
        let expected = self.expects * self.requests_per_work.unwrap_or(0.0) * seconds;
        self.expected = self.expected * fades + expected;
        self.missed = self.missed * fades + missed;
        let beyond = missed - AIM_BELOW * allowed * requests;
        let allowance = self.allowance(allowed);
        let (least, most) = (-SAVED_HOURS * allowance, OVERDRAWN_HOURS * allowance);
        self.excess = (self.excess + beyond).clamp(least, most);
        // One bad minute teaches no more than a bad hour does.
        let lesson = (beyond / allowance).min(OVERDRAWN_HOURS);
        self.lesson = (self.lesson + LESSON * lesson).clamp(-LONGEST_LESSON, LONGEST_LESSON);
    }

    /// Takes down the work per second that is expected to miss with the replicas that serve.
    pub(crate) fn expect(&mut self, work: f64) {
        self.expects = if work.is_finite() { work.max(0.0) } else { 0.0 };
    }

    /// Of requests that are expected to miss, the part that does, as far as it is believed.
    fn comes_true(&self, allowed: f64) -> f64 {
        self.missed_of_expected(allowed).clamp(LEAST_TRUE, 1.0)
    }

    /// Requests that missed over those that were expected to, lately.
    pub(crate) fn missed_of_expected(&self, allowed: f64) -> f64 {
        let doubt = DOUBT_HOURS * self.allowance(allowed);
        (self.missed + doubt) / (self.expected + doubt)
    }

    /// What was learnt, as numbers.
    pub(crate) fn numbers(&self) -> [f64; NUMBERS] {
        let rate = self.requests_per_work.unwrap_or(0.0);
        let at = self.seen_at.map_or(0.0, |at| at.as_micros() as f64);
        let Self { excess, hourly, seen_s, lesson, expects, expected, missed, .. } = *self;
        [excess, hourly, seen_s, rate, lesson, at, expects, expected, missed]
    }

    /// The same back; `None` if it cannot be.
    pub(crate) fn restored(numbers: &[f64; NUMBERS]) -> Option<Self> {
        let [excess, hourly, seen_s, rate, lesson, at, expects, expected, missed] = *numbers;
        let counts = [excess.abs(), hourly, rate, expects, expected, missed];
        let counts = counts.iter().all(|count| (0.0..1e12).contains(count));
        let possible = counts && (0.0..=HOUR).contains(&seen_s) && lesson.abs() <= LONGEST_LESSON;
        let possible = possible && (0.0..9e15).contains(&at);
        possible.then(|| Self {
            seen_at: (at > 0.0).then(|| Timestamp::from_micros(at as u64)),
            excess,
            hourly,
            seen_s,
            requests_per_work: (rate > 0.0).then_some(rate),
            lesson,
            expects,
            expected,
            missed,
        })
    }

    /// Requests that may miss in an hour.
    fn allowance(&self, allowed: f64) -> f64 {
        AIM_BELOW * allowed * self.hourly.max(1.0)
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
    pub(crate) fn worth(&self, allowed: f64, policy: &ModelPolicy, price_of_work: f64) -> f64 {
        if let Aim::MissCosts(money) = policy.aim {
            let requests = self.requests_per_work.unwrap_or(1.0) * HOUR;
            if price_of_work > 0.0 {
                return (money.micros().max(0) as f64 * requests / price_of_work).clamp(1.0, 1e6);
            }
        }
        let hours = self.excess / self.allowance(allowed);
        let hours = hours.clamp(-SAVED_HOURS, OVERDRAWN_HOURS);
        let care = match policy.law {
            Law::Forecast { care } => care,
            Law::Stated(_) => 1.0,
        };
        let worth = care * WORTH_AT_ONE_PERCENT * (0.01 / allowed);
        worth * self.comes_true(allowed) * (GAIN * hours + self.lesson).exp()
    }
}

impl Feedback {
    /// From 0 to 1, where much more than what is allowed missed in the last hour.
    pub(crate) fn overdrawn(&self, allowed: f64) -> f64 {
        let hours = self.excess / self.allowance(allowed);
        ((hours - OVERDRAWN_FROM) / OVERDRAWN_OVER).clamp(0.0, 1.0)
    }

    /// The share of requests that is aimed at.
    pub(crate) fn aim(allowed: f64) -> f64 {
        AIM_BELOW * allowed
    }
}

/// How many numbers it is.
pub(crate) const NUMBERS: usize = 9;
