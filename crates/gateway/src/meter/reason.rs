//! Why no engine answered: the codes of `answer::Problem`, each with its count.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The codes of `answer::Problem`. The last stands for what is not in this list, so that a code
/// that is forgotten here is still counted.
const CODES: [&str; 21] = [
    "no_such_path",
    "no_such_method",
    "encoded_body",
    "invalid_api_key",
    "rate_limit_exceeded",
    "gateway_full",
    "body_too_long",
    "invalid_body",
    "body_timeout",
    "body_broken",
    "model_not_found",
    "no_engine",
    "overloaded",
    "queue_full",
    "queue_timeout",
    "wake_timeout",
    "engine_failed",
    "engine_timeout",
    "stream_broken",
    "draining",
    "other",
];

/// Counts by reason.
#[derive(Debug, Default)]
pub(super) struct Reasons([AtomicU64; CODES.len()]);

impl Reasons {
    pub(super) fn count(&self, code: &str) {
        // A short list, and only requests that go wrong come here.
        let at = CODES.iter().position(|known| *known == code).unwrap_or(CODES.len() - 1);
        self.0[at].fetch_add(1, Relaxed);
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
        CODES.iter().zip(&self.0).map(|(code, count)| (*code, count.load(Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Problem;
    use crate::scan::Refused;

    #[test]
    fn every_code_of_an_answer_has_its_own_count() {
        let problems = [
            Problem::NoSuchPath,
            Problem::NoSuchMethod,
            Problem::Encoded,
            Problem::NoKey,
            Problem::TooFast { retry_after_s: 1 },
            Problem::Full,
            Problem::Body(Refused::TooLong { limit: 1 }),
            Problem::BodyTimeout,
            Problem::BodyBroken,
            Problem::NoModel { model: String::new() },
            Problem::NoEndpoint,
            Problem::Overloaded { retry_after_s: 1 },
            Problem::QueueFull { retry_after_s: 1 },
            Problem::QueueTimeout,
            Problem::WakeTimeout { retry_after_s: 1 },
            Problem::NoAnswer,
            Problem::TooLate,
            Problem::BrokenStream,
            Problem::Draining,
        ];
        for problem in problems {
            assert!(CODES.contains(&problem.code()), "{}", problem.code());
        }
        let reasons = Reasons::default();
        reasons.count("of another time");
        assert_eq!(reasons.all().last(), Some(("other", 1)));
    }
}
