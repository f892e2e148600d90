//! What an engine bears at once, as it is learned from its reports.

use super::window::Reported;

/// An engine may be full only if it has been given what may be but for this part.
const FILLED: u32 = 8;

/// What an engine bears that never reports: as many as the smallest engines have slots.
const UNREPORTED: u32 = 4;

/// Reports after which what was learned of a full engine is forgotten, so that it is tried again: ten minutes. To try costs
/// a second or two in which a burst finds the engine full.
const FORGET: u32 = 1_200;

/// Reports at which requests waited while as much ran as ever did, and not more, after which that is all that fits. A prompt
/// waits for a step or two in an engine with slots to spare too; but then more runs soon, if batch takes every turn that it
/// gets.
const PINNED: u32 = 3;

/// How many requests an engine bears at once, as learned from the moments at which it was full.
///
/// Batch alone never makes a queue in an engine: it sends a prompt when the one before was read. In a full engine that one
/// waits until a place is free, and interactive requests behind it, each as long as an answer takes by the number of places.
/// So what is full must be known although hardly anybody waits there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineCapacity {
    /// What ran when the engine was full.
    full_at: Option<u32>,
    /// The most that ran.
    peak: u32,
    /// Reports since then at which requests waited while as much ran again.
    pinned: u32,
    /// Those that waited at the last two reports.
    waited: [u32; 2],
    /// Reports since it was full.
    since: u32,
}

impl EngineCapacity {
    /// After a report to a gateway that may have `window` requests there, and has sent batch requests since the last one if
    /// it is `filling` the engine.
    #[must_use]
    pub fn after(self, seen: &Reported, window: u32, filling: bool) -> Self {
        let waited = [self.waited[1], seen.waiting];
        let lasting = seen.waiting.min(self.waited[0]).min(self.waited[1]);
        // Prompts wait for a step or two also in an engine with slots to spare. That it has none is plausible only if it has
        // been given about as much as may be.
        let is_filled = seen.own >= window - window / FILLED
            || self.full_at.is_some_and(|full| seen.running >= full);
        let since = self.since.saturating_add(1);
        let peak = self.peak.max(seen.running);
        let is_pinned =
            filling && seen.waiting > 0 && seen.running > 0 && seen.running == self.peak;
        let pinned = if peak > self.peak { 0 } else { self.pinned + u32::from(is_pinned) };
        if lasting > 0 && is_filled && seen.running > 0 {
            return Self { full_at: Some(seen.running), peak, pinned, waited, since: 0 };
        }
        if is_pinned && pinned >= PINNED {
            return Self { full_at: Some(peak), peak, pinned: PINNED, waited, since: 0 };
        }
        if since >= FORGET {
            return Self { full_at: None, peak: seen.running, pinned: 0, waited, since: 0 };
        }
        // More runs than was known to fit.
        let full_at = self.full_at.map(|full| full.max(seen.running));
        Self { full_at, peak, pinned, waited, since }
    }

    /// Whether it is known what fits.
    pub const fn is_known(self) -> bool {
        self.full_at.is_some()
    }

    /// The most requests at once; `window` is what the gateway may have there.
    pub fn bears(self, window: u32) -> u32 {
        self.full_at.map_or(window, |full| full.min(window))
    }

    /// The same of an engine that never reports.
    pub const fn unreported() -> u32 {
        UNREPORTED
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fair::{AdmissionWindow, BatchRoom, BatchRule};

    fn seen(own: u32, running: u32, waiting: u32) -> Reported {
        Reported { own, running, waiting, kv_used_per_thousand: 0 }
    }

    #[test]
    fn an_engine_bears_what_ran_when_requests_waited_there_for_long() {
        let new = EngineCapacity::default();
        assert_eq!(new.bears(64), 64);
        // Prompts that wait for a step, at an engine that was not given much.
        let few = (0..9).fold(new, |known, _| known.after(&seen(20, 18, 2), 64, false));
        assert!(few.bears(64) == 64 && !few.is_known());
        let burst = [3, 0, 5, 0].into_iter();
        let burst =
            burst.fold(new, |known, waiting| known.after(&seen(64, 50, waiting), 64, false));
        assert_eq!(burst.bears(64), 64, "not for long");
        let full = (0..3).fold(new, |known, _| known.after(&seen(60, 48, 12), 64, false));
        assert!(full.bears(64) == 48 && full.is_known());
        let more = full.after(&seen(55, 55, 0), 64, false);
        assert_eq!(more.bears(64), 55, "more ran than was known to fit");
        let quiet = (0..FORGET).fold(more, |known, _| known.after(&seen(40, 40, 0), 64, false));
        assert!(quiet.bears(64) == 64 && !quiet.is_known(), "tried again");
    }

    #[test]
    fn it_bears_no_more_than_runs_while_batch_waits_there_again_and_again() {
        let after = |known: EngineCapacity, reports: &[(u32, u32)], filling| {
            let of = |known: EngineCapacity, (running, waiting): &(u32, u32)| {
                known.after(&seen(running + waiting, *running, *waiting), 81, filling)
            };
            reports.iter().fold(known, of)
        };
        let new = EngineCapacity::default();
        let pinned = [(64, 0), (64, 1), (63, 0), (64, 1), (61, 1), (64, 2)];
        assert_eq!(after(new, &pinned, true).bears(81), 64);
        assert_eq!(after(new, &pinned[..5], true).bears(81), 81, "twice may be chance");
        assert_eq!(after(new, &pinned, false).bears(81), 81, "nobody fills it");
        assert_eq!(after(new, &[(0, 1); 9], true).bears(81), 81, "it does not run yet");
        let grows: Vec<(u32, u32)> = (1..60).map(|running| (running, 1)).collect();
        assert_eq!(after(new, &grows, true).bears(81), 81, "more runs each time");
        let again = after(after(new, &pinned, true), &[(70, 0)], true);
        assert_eq!(again.bears(81), 70, "more ran than was known to fit");
    }

    /// An engine with 64 places that answers a twentieth of what runs between two reports, and a gateway that gives it batch
    /// by the rule, a prompt whenever the one before is read.
    #[test]
    fn batch_alone_fills_an_engine_up_to_its_head_room_and_not_beyond() {
        const PLACES: u32 = 64;
        let rule = BatchRule { urgent: 0, burst: 20, engines: 1 };
        let (mut capacity, mut window) = (EngineCapacity::default(), AdmissionWindow::NEW);
        let (mut inside, mut report, mut beyond) = (0_u32, seen(0, 0, 0), Vec::new());
        for round in 0..200 {
            inside -= inside.min(PLACES) / 20;
            for _ in 0..8 {
                let room = BatchRoom {
                    bears: capacity.bears(window.limit()),
                    is_known: capacity.is_known(),
                    inside,
                    running: report.running,
                    waiting: report.waiting,
                    // One that waits for a place is not read.
                    may_read: inside <= PLACES,
                    kv_used_per_thousand: 0,
                };
                inside += u32::from(rule.allows(&room));
            }
            report = seen(inside, inside.min(PLACES), inside.saturating_sub(PLACES));
            capacity = capacity.after(&report, window.limit(), true);
            window = window.after(&report);
            if inside >= PLACES {
                beyond.push(round);
            }
        }
        assert_eq!(capacity.bears(window.limit()), PLACES);
        assert!(beyond.len() <= 8 && beyond.last() < Some(&60), "full at {beyond:?}");
        assert!((40..PLACES - 15).contains(&inside), "{inside} of {PLACES} in use");
    }
}
