//! How fast answers should be, as the operator says, and how many were not.
//!
//! A stream is judged by its first token and by the mean time between tokens. Of an answer that comes
//! whole neither can be seen: it is judged by the time that both objectives together would allow it,
//! and not at all if one of them is not known. Whoever got no answer for lack of room has missed.
//! Copies, kept answers, and requests that were wrong say nothing about engines.

use super::demand::AdmittedDemand;
use crate::finished::{Finished, RequestOutcome};
use crate::surface::Surface;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

/// Reasons that say that there was no room.
const NO_ROOM: [&str; 6] =
    ["gateway_full", "no_engine", "overloaded", "queue_full", "queue_timeout", "wake_timeout"];

/// How fast answers should be. What is absent is not judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Objectives {
    pub(crate) first_token: Option<Duration>,
    pub(crate) between_tokens: Option<Duration>,
}

/// Judges the requests of one model.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    /// In microseconds; 0 if there is none.
    first_token: AtomicU64,
    between_tokens: AtomicU64,
    answered: AtomicU64,
    output_tokens: AtomicU64,
    paced_tokens: AtomicU64,
    paced_micros: AtomicU64,
    judged: AtomicU64,
    missed: AtomicU64,
    missed_first_token: AtomicU64,
    missed_between_tokens: AtomicU64,
}

/// What was missed of a request that was judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Missed {
    first_token: bool,
    between_tokens: bool,
    /// As a whole, or because there was no answer.
    whole: bool,
}

impl Judge {
    /// From now on these are the objectives.
    pub(crate) fn go_by(&self, objectives: Objectives) {
        let micros = |time: Option<Duration>| {
            time.map_or(0, |time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX).max(1))
        };
        self.first_token.store(micros(objectives.first_token), Relaxed);
        self.between_tokens.store(micros(objectives.between_tokens), Relaxed);
    }

    /// A request is over.
    pub(crate) fn finished(&self, finished: &Finished<'_>) {
        // Batch is promised nothing, and nothing is bought for it.
        if finished.batch {
            return;
        }
        if finished.usage.output > 0 && !finished.cached {
            self.output_tokens.fetch_add(finished.usage.output, Relaxed);
            self.answered.fetch_add(1, Relaxed);
            // How long a whole answer took says nothing about its tokens.
            if let Some(each) = finished.per_token().filter(|_| finished.stream) {
                let further = finished.usage.output.saturating_sub(1);
                let micros = each.as_micros().saturating_mul(u128::from(further));
                self.paced_tokens.fetch_add(further, Relaxed);
                self.paced_micros.fetch_add(u64::try_from(micros).unwrap_or(u64::MAX), Relaxed);
            }
        }
        let Some(missed) = judged(finished, self.objectives()) else { return };
        if missed != Missed::default() {
            self.missed.fetch_add(1, Relaxed);
        }
        if missed.first_token {
            self.missed_first_token.fetch_add(1, Relaxed);
        }
        if missed.between_tokens {
            self.missed_between_tokens.fetch_add(1, Relaxed);
        }
        // Last: whoever reads that it was judged also reads what it missed.
        self.judged.fetch_add(1, Release);
    }

    pub(super) fn fill(&self, demand: &mut AdmittedDemand) {
        demand.answered = self.answered.load(Relaxed);
        demand.output_tokens = self.output_tokens.load(Relaxed);
        demand.paced_tokens = self.paced_tokens.load(Relaxed);
        demand.paced_micros = self.paced_micros.load(Relaxed);
        demand.judged = self.judged.load(Acquire);
        demand.missed = self.missed.load(Relaxed);
        demand.missed_first_token = self.missed_first_token.load(Relaxed);
        demand.missed_between_tokens = self.missed_between_tokens.load(Relaxed);
    }

    fn objectives(&self) -> Objectives {
        let time = |micros: &AtomicU64| {
            Some(micros.load(Relaxed)).filter(|micros| *micros > 0).map(Duration::from_micros)
        };
        Objectives {
            first_token: time(&self.first_token),
            between_tokens: time(&self.between_tokens),
        }
    }
}

/// What a request missed; `None` if it cannot be judged.
fn judged(finished: &Finished<'_>, objectives: Objectives) -> Option<Missed> {
    let Objectives { first_token, between_tokens } = objectives;
    let is_silent = finished.mirrored || finished.cached || finished.surface == Surface::Embeddings;
    let can_be = match finished.stream {
        true => first_token.is_some() || between_tokens.is_some(),
        false => first_token.is_some() && between_tokens.is_some(),
    };
    if is_silent || !can_be {
        return None;
    }
    let unanswered = Missed { whole: true, ..Missed::default() };
    let late = |first: Duration| first_token.is_some_and(|most| first > most);
    match finished.outcome {
        RequestOutcome::Refused => {
            finished.reason.is_some_and(|why| NO_ROOM.contains(&why)).then_some(unanswered)
        }
        RequestOutcome::Failed | RequestOutcome::Broken => Some(unanswered),
        RequestOutcome::Answered if finished.status >= 500 => Some(unanswered),
        RequestOutcome::Answered if finished.status >= 400 => None,
        RequestOutcome::Answered if finished.stream => {
            let per_token = finished.per_token();
            let slow = between_tokens.zip(per_token).is_some_and(|(most, each)| each > most);
            let first = finished.first?;
            Some(Missed { first_token: late(first), between_tokens: slow, whole: false })
        }
        RequestOutcome::Answered => {
            let tokens = u32::try_from(finished.usage.output.saturating_sub(1)).ok()?;
            let most = first_token?.saturating_add(between_tokens?.saturating_mul(tokens));
            Some(Missed { whole: finished.took > most, ..Missed::default() })
        }
        // Whoever left before the time was up cannot have been let down yet.
        RequestOutcome::Cancelled if finished.stream => {
            let first_token = late(finished.first.unwrap_or(finished.took));
            first_token.then_some(Missed { first_token, ..Missed::default() })
        }
        RequestOutcome::Cancelled => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sse::Usage;
    use std::time::SystemTime;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// A stream of 101 tokens, the first after 400 ms and each further after 20.
    fn request() -> Finished<'static> {
        Finished {
            request_id: "r",
            traceparent: None,
            caller: "",
            key: None,
            model: Some("m"),
            endpoint: Some("e"),
            surface: Surface::Chat,
            status: 200,
            outcome: RequestOutcome::Answered,
            reason: None,
            stream: true,
            started: SystemTime::UNIX_EPOCH,
            took: MS(2_400),
            read: None,
            first: Some(MS(400)),
            chosen: None,
            queued: Duration::ZERO,
            held: false,
            split: None,
            mirrored: false,
            cached: false,
            hedged: false,
            continued: 0,
            batch: false,
            preempted: 0,
            finish: None,
            retries: 0,
            tries: &[],
            hoped_blocks: None,
            usage: Usage { input: 10, cached: Some(0), output: 101 },
            estimated: false,
            bytes_in: 0,
            bytes_out: 0,
        }
    }

    fn by(first: u64, between: u64) -> Objectives {
        let some = |ms: u64| (ms > 0).then(|| MS(ms));
        Objectives { first_token: some(first), between_tokens: some(between) }
    }

    fn missed(first_token: bool, between_tokens: bool, whole: bool) -> Option<Missed> {
        Some(Missed { first_token, between_tokens, whole })
    }

    #[test]
    fn a_stream_is_judged_by_what_is_known() {
        let stream = request();
        assert_eq!(judged(&stream, by(0, 0)), None);
        assert_eq!(judged(&stream, by(400, 20)), missed(false, false, false));
        assert_eq!(judged(&stream, by(399, 20)), missed(true, false, false));
        assert_eq!(judged(&stream, by(0, 19)), missed(false, true, false));
        assert_eq!(judged(&stream, by(399, 19)), missed(true, true, false));
    }

    #[test]
    fn a_whole_answer_is_judged_as_a_whole() {
        let whole = Finished { stream: false, first: Some(MS(2_400)), ..request() };
        assert_eq!(judged(&whole, by(400, 0)), None, "nobody saw its first token");
        assert_eq!(judged(&whole, by(400, 20)), missed(false, false, false));
        assert_eq!(judged(&whole, by(399, 20)), missed(false, false, true));
    }

    #[test]
    fn no_room_is_a_miss_and_a_wrong_request_is_none() {
        let refused = |reason| Finished {
            outcome: RequestOutcome::Refused,
            reason: Some(reason),
            first: None,
            status: 503,
            ..request()
        };
        for reason in NO_ROOM {
            assert_eq!(judged(&refused(reason), by(400, 20)), missed(false, false, true));
        }
        for reason in ["invalid_api_key", "rate_limit_exceeded", "draining"] {
            assert_eq!(judged(&refused(reason), by(400, 20)), None);
        }
        let failed = Finished { outcome: RequestOutcome::Failed, ..request() };
        assert_eq!(judged(&failed, by(400, 20)), missed(false, false, true));
        for silent in [
            Finished { mirrored: true, ..request() },
            Finished { cached: true, ..request() },
            Finished { surface: Surface::Embeddings, ..request() },
            Finished { status: 404, ..request() },
        ] {
            assert_eq!(judged(&silent, by(1, 1)), None);
        }
    }

    #[test]
    fn who_hangs_up_has_missed_only_what_was_late_by_then() {
        let left = |took, first| Finished {
            outcome: RequestOutcome::Cancelled,
            took: MS(took),
            first,
            ..request()
        };
        assert_eq!(judged(&left(300, None), by(400, 20)), None);
        assert_eq!(judged(&left(500, None), by(400, 20)), missed(true, false, false));
        assert_eq!(judged(&left(500, Some(MS(450))), by(400, 20)), missed(true, false, false));
        assert_eq!(judged(&left(500, Some(MS(350))), by(400, 20)), None);
    }

    #[test]
    fn sums_are_of_all_that_was_judged() {
        let (judge, mut demand) = (Judge::default(), AdmittedDemand::default());
        judge.finished(&request());
        judge.go_by(by(399, 20));
        judge.finished(&request());
        judge.finished(&Finished { first: Some(MS(10)), took: MS(2_010), ..request() });
        judge.finished(&Finished { batch: true, first: Some(MS(90_000)), ..request() });
        judge.go_by(Objectives::default());
        judge.finished(&request());
        judge.fill(&mut demand);
        assert_eq!((demand.judged, demand.missed, demand.missed_first_token), (2, 1, 1));
        assert_eq!((demand.missed_between_tokens, demand.output_tokens), (0, 404));
    }
}
