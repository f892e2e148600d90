//! Why a request got no whole answer: the codes of `answer::Problem`, and `client_idle`, each with its count.

use super::recent::{SHOWN, is_shown, slot};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::SystemTime;

/// The codes. The last stands for what is not in this list, so that a code
/// that is forgotten here is still counted.
const CODES: [&str; 30] = [
    "no_such_path",
    "no_such_method",
    "encoded_body",
    "invalid_api_key",
    "rate_limit_exceeded",
    "request_exceeds_limit",
    "insufficient_quota",
    "request_exceeds_budget",
    "model_without_price",
    "quota_unknown",
    "gateway_full",
    "caller_full",
    "body_too_long",
    "invalid_body",
    "body_timeout",
    "body_broken",
    "model_not_found",
    "no_engine",
    "overloaded",
    "queue_full",
    "queue_timeout",
    "no_idle_capacity",
    "wake_timeout",
    "engine_failed",
    "engine_timeout",
    "stream_broken",
    "prompt_kills_engines",
    "client_idle",
    "draining",
    "other",
];

/// Counts by reason, since the start and in the last minute.
#[derive(Debug, Default)]
pub(super) struct Reasons {
    all: [AtomicU64; CODES.len()],
    slots: [Slot; SHOWN as usize],
}

#[derive(Debug, Default)]
struct Slot {
    number: AtomicU64,
    counts: [AtomicU32; CODES.len()],
}

impl Reasons {
    pub(super) fn count(&self, code: &str, when: SystemTime) {
        // A short list, and only requests that go wrong come here.
        let at = CODES.iter().position(|known| *known == code).unwrap_or(CODES.len() - 1);
        self.all[at].fetch_add(1, Relaxed);
        let (number, place) = slot(when);
        let slot = &self.slots[place];
        if slot.number.swap(number, Relaxed) != number {
            slot.counts.iter().for_each(|count| count.store(0, Relaxed));
        }
        slot.counts[at].fetch_add(1, Relaxed);
    }

    /// Those that were counted in the last minute.
    pub(super) fn recent(&self, now: SystemTime) -> Vec<(&'static str, u64)> {
        let mut sums = [0; CODES.len()];
        for slot in self.slots.iter().filter(|slot| is_shown(slot.number.load(Relaxed), now)) {
            for (sum, count) in sums.iter_mut().zip(&slot.counts) {
                *sum += u64::from(count.load(Relaxed));
            }
        }
        CODES.into_iter().zip(sums).filter(|(_, sum)| *sum > 0).collect()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
        CODES.iter().zip(&self.all).map(|(code, count)| (*code, count.load(Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::{Exhausted, Problem};
    use crate::scan::ScanError;

    #[test]
    fn every_code_of_an_answer_has_its_own_count() {
        let problems = [
            Problem::NoSuchPath,
            Problem::NoSuchMethod,
            Problem::Encoded,
            Problem::NoKey,
            Problem::TooFast { retry_after_s: 1 },
            Problem::Full,
            Problem::CallerFull,
            Problem::Body(ScanError::TooLong { limit: 1 }),
            Problem::BodyTimeout,
            Problem::BodyBroken,
            Problem::NoModel { model: String::new() },
            Problem::NoEndpoint,
            Problem::Overloaded { retry_after_s: 1 },
            Problem::QueueFull { retry_after_s: 1 },
            Problem::QueueTimeout,
            Problem::NoIdleCapacity { retry_after_s: 1 },
            Problem::WakeTimeout { retry_after_s: 1 },
            Problem::NoAnswer,
            Problem::TooLate,
            Problem::BrokenStream,
            Problem::KillsEngines,
            Problem::Draining,
        ];
        let exhausted = Exhausted::one_of_each().into_iter();
        let exhausted = exhausted.map(|why| Problem::Exhausted(Box::new(why)));
        for problem in problems.into_iter().chain(exhausted) {
            assert!(CODES.contains(&problem.code()), "{}", problem.code());
        }
        let reasons = Reasons::default();
        let at = |seconds| SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        reasons.count("of another time", at(1_000));
        assert_eq!(reasons.all().last(), Some(("other", 1)));
        assert_eq!(reasons.recent(at(1_059)), [("other", 1)]);
        assert_eq!(reasons.recent(at(1_065)), []);
        reasons.count("overloaded", at(1_065));
        assert_eq!(reasons.recent(at(1_065)), [("overloaded", 1)]);
    }
}
