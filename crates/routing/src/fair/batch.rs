//! What runs on capacity that nobody else wants: when it has a turn, and which of it makes room.
//!
//! A batch request has a turn only where engines keep the head-room that recent bursts of interactive work needed:
//! [`Bursts`] measures them, [`super::EngineCapacity`] learns what an engine bears, and [`BatchRule`] decides. When interactive work
//! finds no room all the same, [`least_lost`] says what is taken back.

use std::collections::VecDeque;

/// The largest part of what an engine bears that is kept free, as a fraction. What a larger burst lacks is taken back from
/// batch, which then has to be read again.
const MOST_FREE: u32 = 4;

/// The same while nobody knows what the engine bears. Its window grows while it is full but for an eighth, so that head-room
/// never keeps it from being learned.
const MOST_FREE_UNKNOWN: u32 = 16;

/// The least, for a burst that comes after minutes of silence.
const LEAST_FREE: u32 = 64;

/// Requests that wait in an engine for each that runs there, as a fraction, with which batch may still come: those are
/// prompts that the next steps read. It is what the window allows too.
const WAITING_PART: u32 = 16;

/// Share of an engine's cache in thousandths above which it gets no batch: an eighth is head-room there too.
const MOST_CACHE: u32 = 875;

/// How many more interactive requests than a moment before were under way at once, over the last minutes.
#[derive(Clone, Debug, Default)]
pub struct Bursts {
    /// The last is of now.
    spans: VecDeque<Span>,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    began_ms: u64,
    /// The fewest under way in it.
    least: u32,
    /// The largest rise that ended in it.
    rise: u32,
}

/// How long bursts are remembered.
const REMEMBERED_MS: u64 = 300_000;

/// Rises are measured over the time that an engine takes for a request, within these bounds: in less nothing makes room by
/// itself, and beyond half a minute batch has long made room.
const SPAN_MS: [u64; 2] = [1_000, 30_000];

impl Bursts {
    /// So many are under way now; an engine takes about `service_ms` for one.
    pub fn note(&mut self, under_way: u32, now_ms: u64, service_ms: u64) {
        let length = service_ms.clamp(SPAN_MS[0], SPAN_MS[1]);
        let began = self.spans.back().map(|span| span.began_ms);
        if began.is_none_or(|began| now_ms.saturating_sub(began) >= length) {
            // What was under way when the last one ended is where a rise in this one begins, unless that is long ago: then
            // it has stayed as it was told.
            self.spans.push_back(Span { began_ms: now_ms, least: under_way, rise: 0 });
        }
        let last = self.spans.len() - 1;
        let before = last.checked_sub(1).map_or(under_way, |before| self.spans[before].least);
        let span = &mut self.spans[last];
        span.least = span.least.min(under_way);
        span.rise = span.rise.max(under_way - before.min(span.least).min(under_way));
        while self.spans.front().is_some_and(|s| s.began_ms + REMEMBERED_MS < now_ms) {
            self.spans.pop_front();
        }
    }

    /// The largest rise, as of now.
    pub fn largest(&self, now_ms: u64) -> u32 {
        let recent = self.spans.iter().filter(|span| span.began_ms + REMEMBERED_MS >= now_ms);
        recent.map(|span| span.rise).max().unwrap_or(0)
    }
}

/// An engine at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchRoom {
    /// The most requests that it bears at once.
    pub bears: u32,
    /// Whether that was learned, and is not only what it may be given.
    pub is_known: bool,
    /// Requests under way at it, whoever sent them.
    pub inside: u32,
    /// Those that run, as it told last.
    pub running: u32,
    /// Those that wait in it.
    pub waiting: u32,
    /// Share of its cache that is in use, in thousandths; zero if unknown.
    pub kv_used_per_thousand: u32,
    /// Whether it may be given a prompt that somebody else's would have to wait for only shortly.
    pub may_read: bool,
}

/// Whether batch has a turn, as it follows from who waits and what bursts needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchRule {
    /// Requests of other classes that wait.
    pub urgent: usize,
    /// The largest rise of interactive requests of the last minutes.
    pub burst: u32,
    /// Engines among which such a burst spreads.
    pub engines: u32,
}

impl BatchRule {
    /// Requests for which an engine that bears so many keeps room.
    pub fn head_room(&self, bears: u32, is_known: bool) -> u32 {
        let part = self.burst.div_ceil(self.engines.max(1));
        let most = bears / if is_known { MOST_FREE } else { MOST_FREE_UNKNOWN };
        let most = most.max(1);
        part.max(bears / LEAST_FREE).clamp(1, most)
    }

    /// Whether an engine may be given a batch request.
    pub fn allows(&self, engine: &BatchRoom) -> bool {
        self.urgent == 0
            && engine.may_read
            && engine.waiting <= engine.running / WAITING_PART
            && engine.kv_used_per_thousand <= MOST_CACHE
            && engine.inside.saturating_add(self.head_room(engine.bears, engine.is_known))
                < engine.bears
    }
}

/// A batch request that could make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchRun {
    /// A number of its own; later ones are greater.
    pub number: u64,
    /// Work that would have to be done again, in the time of a prompt token.
    pub lost: u64,
}

/// Those of them that make room for so many, so that the least work is lost; of equal ones the latest.
pub fn least_lost(runs: impl IntoIterator<Item = BatchRun>, most: usize) -> Vec<u64> {
    let mut runs: Vec<BatchRun> = runs.into_iter().collect();
    runs.sort_unstable_by_key(|run| (run.lost, std::cmp::Reverse(run.number)));
    runs.truncate(most);
    runs.into_iter().map(|run| run.number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const IDLE: BatchRoom = BatchRoom {
        bears: 64,
        is_known: true,
        inside: 0,
        running: 0,
        waiting: 0,
        kv_used_per_thousand: 0,
        may_read: true,
    };

    fn rule(burst: u32) -> BatchRule {
        BatchRule { urgent: 0, burst, engines: 1 }
    }

    #[test]
    fn batch_has_a_turn_only_where_nobody_else_wants_anything() {
        assert!(rule(0).allows(&IDLE));
        assert!(!BatchRule { urgent: 1, ..rule(0) }.allows(&IDLE), "somebody else waits");
        for busy in [
            BatchRoom { waiting: 1, ..IDLE },
            BatchRoom { kv_used_per_thousand: 900, ..IDLE },
            BatchRoom { may_read: false, ..IDLE },
            BatchRoom { inside: 63, ..IDLE },
            BatchRoom { inside: u32::MAX, ..IDLE },
        ] {
            assert!(!rule(0).allows(&busy), "{busy:?}");
        }
        // A prompt or two for the next step, of which a batch of 64 ends one soon.
        assert!(rule(0).allows(&BatchRoom { waiting: 1, running: 50, inside: 51, ..IDLE }));
    }

    #[test]
    fn head_room_is_what_bursts_needed_within_bounds() {
        let rule = |burst, engines| BatchRule { urgent: 0, burst, engines };
        let of = |burst, engines, bears| rule(burst, engines).head_room(bears, true);
        assert_eq!(of(0, 1, 256), 4, "for a burst after silence");
        assert_eq!(of(10, 1, 256), 10);
        assert_eq!(of(10, 4, 256), 4, "spread over four");
        assert_eq!(of(500, 1, 256), 64, "the rest is taken back from batch");
        assert_eq!(rule(500, 1).head_room(256, false), 16, "what it bears is still to be learned");
        assert_eq!(of(500, 0, 4), 1);
        assert_eq!(of(0, 1, 0), 1);
    }

    #[test]
    fn a_burst_is_a_rise_within_the_time_of_a_request_and_is_forgotten() {
        let mut bursts = Bursts::default();
        // Up by 100 in ten minutes: at no time by more than a few.
        (0..100_u32).for_each(|at| bursts.note(at, u64::from(at) * 6_000, 6_000));
        assert!(bursts.largest(600_000) <= 2, "{}", bursts.largest(600_000));
        bursts.note(10, 600_000, 6_000);
        (10..=40).for_each(|at| bursts.note(at, 601_000, 6_000));
        assert_eq!(bursts.largest(601_000), 30);
        bursts.note(0, 700_000, 6_000);
        assert_eq!(bursts.largest(700_000), 30);
        assert_eq!(bursts.largest(1_000_000), 0);
    }

    #[test]
    fn what_loses_least_makes_room_and_of_equal_ones_the_latest() {
        let run = |number, lost| BatchRun { number, lost };
        let runs = [run(1, 500), run(2, 100), run(3, 100), run(4, 900)];
        assert_eq!(least_lost(runs, 2), [3, 2]);
        assert_eq!(least_lost(runs, 0), [0; 0]);
        assert_eq!(least_lost(runs, 9).len(), 4);
    }

    proptest! {
        /// However much batch is given turns, the head-room of that moment stays free.
        #[test]
        fn head_room_is_never_given_away(
            burst in 0..2_000_u32, engines in 0..64_u32, bears in 0..2_000_u32, inside in 0..2_000_u32,
            is_known: bool,
        ) {
            let rule = BatchRule { urgent: 0, burst, engines };
            let mut engine = BatchRoom { bears, is_known, inside, ..IDLE };
            while rule.allows(&engine) {
                engine.inside += 1;
            }
            let free = rule.head_room(bears, is_known);
            prop_assert!(engine.inside == inside || engine.inside + free == bears);
            let part = if is_known { MOST_FREE } else { MOST_FREE_UNKNOWN };
            prop_assert!(free <= (bears / part).max(1));
        }

        /// Whatever is under way, a rise is never more than was under way, and counts nothing twice.
        #[test]
        fn a_rise_is_never_more_than_was_there(
            steps in prop::collection::vec((0..300_u32, 0..60_000_u64), 1..100), service in 0..60_000_u64,
        ) {
            let (mut bursts, mut now) = (Bursts::default(), 0);
            for (under_way, later) in &steps {
                now += later;
                bursts.note(*under_way, now, service);
            }
            let most = steps.iter().map(|step| step.0).max().unwrap_or(0);
            prop_assert!(bursts.largest(now) <= most);
            prop_assert!(bursts.spans.len() as u64 <= REMEMBERED_MS / SPAN_MS[0] + 2);
        }
    }
}
