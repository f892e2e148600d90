//! What happened in the last minute, of one model or caller, for the page that people look at.
//!
//! Counts since the start are for Prometheus; a person wants to know what is so now. A ring has a
//! slot for each five seconds of the last minute. Whoever comes first in new seconds empties the
//! slot of a minute ago; what another thread adds in that very moment may be lost, which is a few
//! of thousands and only here.

use super::spread::{BUCKETS, Spread};
use super::{Finished, RequestOutcome};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Seconds of one slot.
const SLOT_S: u64 = 5;

/// Slots that are shown: the one that fills now and the minute before it.
pub(super) const SHOWN: u64 = 13;

/// Slots that rates are read from: the one that fills now and the ten seconds before it.
const RATED: u64 = 3;

/// The last minute. It takes no room until something is counted, and then some 10 KB: 1,000 models
/// and 1,000 callers that are all in use have 20 MB.
#[derive(Debug, Default)]
pub(super) struct Recent(OnceLock<Box<[Slot; SHOWN as usize]>>);

#[derive(Debug, Default)]
struct Slot {
    /// Which five seconds since 1970 it holds; 0 is none.
    number: AtomicU64,
    /// In the order of `Outcome::ALL`.
    requests: [AtomicU32; 5],
    /// Input, cached, output.
    tokens: [AtomicU64; 3],
    first: Spread,
    per_token: Spread,
}

/// What a ring holds of the last minute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Minute {
    pub(super) requests: [u64; 5],
    pub(super) tokens: [u64; 3],
    pub(super) first: [u64; BUCKETS],
    pub(super) per_token: [u64; BUCKETS],
    /// Requests of the last seconds, and how many seconds those are.
    pub(super) rated: (u64, Duration),
}

impl Recent {
    pub(super) fn count(&self, finished: &Finished<'_>, ended: SystemTime) {
        let slots = self.0.get_or_init(Default::default);
        let (number, place) = slot(ended);
        let slot = &slots[place];
        let held = slot.number.load(Relaxed);
        if held != number && slot.number.compare_exchange(held, number, Relaxed, Relaxed).is_ok() {
            slot.clear();
        }
        slot.count(finished);
    }

    /// What is there now; `None` if nothing ever was.
    pub(super) fn minute(&self, now: SystemTime) -> Option<Minute> {
        let slots = self.0.get()?;
        let number = seconds(now) / SLOT_S;
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let into = since.saturating_sub(Duration::from_secs(number * SLOT_S));
        let mut minute = Minute {
            requests: [0; 5],
            tokens: [0; 3],
            first: [0; BUCKETS],
            per_token: [0; BUCKETS],
            rated: (0, into + Duration::from_secs((RATED - 1) * SLOT_S)),
        };
        for slot in slots.iter() {
            // What ended while the page was asked for may be in the next slot.
            let age = number.saturating_sub(slot.number.load(Relaxed));
            if age < SHOWN {
                slot.add_to(&mut minute, age < RATED);
            }
        }
        Some(minute)
    }
}

impl Slot {
    fn count(&self, finished: &Finished<'_>) {
        self.requests[finished.outcome.index()].fetch_add(1, Relaxed);
        let usage = finished.usage;
        for (sum, count) in
            self.tokens.iter().zip([usage.input, usage.cached.unwrap_or(0), usage.output])
        {
            if count > 0 {
                sum.fetch_add(count, Relaxed);
            }
        }
        if finished.status >= 400 || finished.cached || finished.batch {
            return;
        }
        if let Some(first) = finished.first {
            self.first.add(first);
        }
        if let Some(per_token) = finished.per_token() {
            self.per_token.add(per_token);
        }
    }

    fn clear(&self) {
        self.requests.iter().for_each(|count| count.store(0, Relaxed));
        self.tokens.iter().for_each(|count| count.store(0, Relaxed));
        self.first.clear();
        self.per_token.clear();
    }

    fn add_to(&self, minute: &mut Minute, rated: bool) {
        let mut requests = 0;
        for (sum, count) in minute.requests.iter_mut().zip(&self.requests) {
            let count = u64::from(count.load(Relaxed));
            *sum += count;
            requests += count;
        }
        for (sum, count) in minute.tokens.iter_mut().zip(&self.tokens) {
            *sum += count.load(Relaxed);
        }
        self.first.add_to(&mut minute.first);
        self.per_token.add_to(&mut minute.per_token);
        if rated {
            minute.rated.0 += requests;
        }
    }
}

impl Minute {
    /// All requests.
    pub(super) fn all(&self) -> u64 {
        self.requests.iter().sum()
    }

    /// Requests that ended so.
    pub(super) const fn of(&self, outcome: RequestOutcome) -> u64 {
        self.requests[outcome.index()]
    }
}

/// Which five seconds a time is in, and the place of their slot in a ring.
pub(super) fn slot(time: SystemTime) -> (u64, usize) {
    let number = seconds(time) / SLOT_S;
    (number, (number % SHOWN) as usize)
}

/// Whether the slot of these five seconds belongs to the last minute.
pub(super) fn is_shown(number: u64, now: SystemTime) -> bool {
    (seconds(now) / SLOT_S).saturating_sub(number) < SHOWN
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::super::tests::request;
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_000_000 + seconds)
    }

    #[test]
    fn a_minute_is_shown_and_what_is_older_is_not() {
        let recent = Recent::default();
        assert_eq!(recent.minute(at(0)), None);
        for second in 0..200 {
            recent.count(&request(), at(second));
        }
        let minute = recent.minute(at(200)).unwrap();
        // The slot that fills now is empty yet.
        assert_eq!(minute.all(), 60);
        assert_eq!(minute.of(RequestOutcome::Answered), 60);
        assert_eq!(minute.tokens, [60_000, 60 * 768, 60 * 101]);
        assert_eq!(minute.rated, (10, Duration::from_secs(10)));
        assert_eq!(minute.first.iter().sum::<u64>(), 60);
        assert_eq!(minute.per_token.iter().sum::<u64>(), 60);
        assert_eq!(recent.minute(at(230)).unwrap().all(), 30);
        assert_eq!(recent.minute(at(1_000)).unwrap().all(), 0);
    }

    #[test]
    fn errors_have_no_times() {
        let recent = Recent::default();
        recent
            .count(&Finished { status: 503, outcome: RequestOutcome::Failed, ..request() }, at(0));
        let minute = recent.minute(at(1)).unwrap();
        assert_eq!((minute.all(), minute.first.iter().sum::<u64>()), (1, 0));
    }

    #[test]
    fn threads_lose_nothing_within_a_slot() {
        let recent = Recent::default();
        recent.count(&request(), at(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1_000).for_each(|_| recent.count(&request(), at(1))));
            }
        });
        assert_eq!(recent.minute(at(2)).unwrap().all(), 4_001);
    }
}
