//! Batch requests at engines, and how they are told to make room.
//!
//! Who tells is the gate, when somebody else finds no room; who hears is whoever has the connection: before the first byte
//! `forward`, afterwards the relay. What has sent something that no engine could go on with stands, and is never told.

use flyball_fleet::FleetEndpoint;
use flyball_routing::fair::{BatchRun, least_lost};
use futures::task::AtomicWaker;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// Times that one request makes room. Then it stands, so that every batch request ends, whatever others do.
const MOST: u32 = 8;

/// Who was told and is still there after so long is not counted on: its client reads slowly.
const HEEDED: Duration = Duration::from_secs(1);

/// Milliseconds that an engine takes for a token of one answer, about. What a whole answer would lose nobody sees.
const TOKEN_MS: u64 = 20;

/// Time of a token written, in that of a token read.
const WRITTEN: u64 = 7;

/// What a batch request at an engine is up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Doing {
    /// Nothing of its answer was passed on.
    Reads,
    /// Its answer is passed on, and another engine could go on with it.
    Writes,
    /// It stays until it is over.
    Stands,
    /// It was told to make room.
    MakesRoom,
}

/// One stay of a batch request at an engine.
#[derive(Debug)]
pub(super) struct Stay {
    number: u64,
    /// The engine's slot.
    slot: AtomicU32,
    doing: AtomicU8,
    prompt_tokens: u64,
    /// Tokens that were passed on.
    written: AtomicU64,
    began: Instant,
    signalled_at: Mutex<Option<Instant>>,
    waker: AtomicWaker,
}

/// All batch requests of a model that are at engines.
#[derive(Debug, Default)]
pub(super) struct Batches {
    stays: Mutex<BTreeMap<u64, Arc<Stay>>>,
    count: AtomicUsize,
    next: AtomicU64,
}

/// Which of them may make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// Any.
    Any,
    /// Those at this engine.
    At(u32),
}

impl Batches {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// One has come to an engine.
    pub(super) fn come(&self, slot: u32, prompt_tokens: u64, made_room: u32) -> Arc<Stay> {
        let doing = if made_room < MOST { Doing::Reads } else { Doing::Stands };
        let stay = Arc::new(Stay {
            number: self.next.fetch_add(1, Ordering::Relaxed),
            slot: AtomicU32::new(slot),
            doing: AtomicU8::new(doing as u8),
            prompt_tokens,
            written: AtomicU64::new(0),
            began: Instant::now(),
            signalled_at: Mutex::new(None),
            waker: AtomicWaker::new(),
        });
        let mut stays = self.lock();
        stays.insert(stay.number, Arc::clone(&stay));
        self.count.store(stays.len(), Ordering::Relaxed);
        stay
    }

    /// One has left its engine.
    pub(super) fn gone(&self, stay: &Stay) {
        let mut stays = self.lock();
        stays.remove(&stay.number);
        self.count.store(stays.len(), Ordering::Relaxed);
    }

    /// Tells as many to make room as `most` others need, less those that were told and are about to go.
    pub(super) fn make_room(&self, most: usize, whose: Whose, now: Instant) {
        self.signal(most, now, |stay| match whose {
            Whose::Any => true,
            Whose::At(slot) => stay.slot.load(Ordering::Relaxed) == slot,
        });
    }

    /// Tells those whose long prompts this engine still reads, for which all others would have to wait.
    pub(super) fn stop_reading(&self, endpoint: &FleetEndpoint, now: Instant) {
        self.signal(usize::MAX, now, |stay| {
            stay.slot.load(Ordering::Relaxed) == endpoint.slot
                && stay.is(Doing::Reads)
                && endpoint.reads_long(stay.prompt_tokens)
        });
    }

    fn signal(&self, most: usize, now: Instant, may: impl Fn(&Stay) -> bool) {
        if self.count() == 0 || most == 0 {
            return;
        }
        let stays = self.lock();
        let about_to_go = stays.values().filter(|stay| may(stay) && stay.heeds(now)).count();
        let runs = stays.values().filter(|stay| stay.can_make_room() && may(stay));
        let runs = runs.map(|stay| BatchRun { number: stay.number, lost: stay.lost(now) });
        for number in least_lost(runs, most.saturating_sub(about_to_go)) {
            if let Some(stay) = stays.get(&number) {
                stay.signal(now);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Stay>>> {
        self.stays.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stay {
    /// It was sent to another engine instead.
    pub(super) fn move_to(&self, slot: u32) {
        self.slot.store(slot, Ordering::Relaxed);
    }

    /// Its answer is passed on from now on, and could be gone on with.
    pub(super) fn writes(&self) {
        self.change(Doing::Reads, Doing::Writes);
    }

    /// So many tokens were passed on.
    pub(super) fn wrote(&self, tokens: u64) {
        self.written.store(tokens, Ordering::Relaxed);
    }

    /// It stays until it is over, whatever it was told.
    pub(super) fn stands(&self) {
        self.doing.store(Doing::Stands as u8, Ordering::Release);
    }

    /// Waits until it is told to make room.
    pub(super) fn poll_make_room(&self, context: &Context<'_>) -> Poll<()> {
        if self.is(Doing::MakesRoom) {
            return Poll::Ready(());
        }
        self.waker.register(context.waker());
        // It may have been told in between.
        if self.is(Doing::MakesRoom) { Poll::Ready(()) } else { Poll::Pending }
    }

    fn signal(&self, now: Instant) {
        if self.change(Doing::Reads, Doing::MakesRoom)
            || self.change(Doing::Writes, Doing::MakesRoom)
        {
            *self.signalled_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
            self.waker.wake();
        }
    }

    /// Whether it was told and is about to go.
    fn heeds(&self, now: Instant) -> bool {
        let signalled = *self.signalled_at.lock().unwrap_or_else(PoisonError::into_inner);
        self.is(Doing::MakesRoom)
            && signalled.is_none_or(|signalled| now.saturating_duration_since(signalled) < HEEDED)
    }

    fn can_make_room(&self) -> bool {
        self.is(Doing::Reads) || self.is(Doing::Writes)
    }

    /// Work that would have to be done again: what was written is read then, with the prompt. Of an answer that comes whole
    /// nobody sees how much was written.
    fn lost(&self, now: Instant) -> u64 {
        let stayed = now.saturating_duration_since(self.began).as_millis() as u64;
        let unseen = if self.is(Doing::Reads) { stayed / TOKEN_MS * WRITTEN } else { 0 };
        self.prompt_tokens + self.written.load(Ordering::Relaxed) + unseen
    }

    fn is(&self, doing: Doing) -> bool {
        self.doing.load(Ordering::Acquire) == doing as u8
    }

    fn change(&self, from: Doing, to: Doing) -> bool {
        let (from, to) = (from as u8, to as u8);
        self.doing.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signalled(stay: &Stay) -> bool {
        stay.poll_make_room(&Context::from_waker(futures::task::noop_waker_ref())).is_ready()
    }

    #[test]
    fn as_many_make_room_as_need_it_and_those_that_lose_least() {
        let (batches, now) = (Batches::default(), Instant::now());
        let stays = [900, 100, 500].map(|tokens| batches.come(7, tokens, 0));
        stays.iter().for_each(|stay| stay.writes());
        stays[1].wrote(600);
        batches.make_room(1, Whose::At(8), now);
        assert_eq!(stays.each_ref().map(|stay| signalled(stay)), [false; 3], "at another engine");
        // Asked for twice, it is done once: who was told is about to go.
        batches.make_room(1, Whose::Any, now);
        batches.make_room(1, Whose::At(7), now);
        assert_eq!(stays.each_ref().map(|stay| signalled(stay)), [false, false, true]);
        batches.make_room(2, Whose::Any, now);
        assert_eq!(stays.each_ref().map(|stay| signalled(stay)), [false, true, true]);
        // Whoever does not go is not waited for.
        batches.make_room(1, Whose::Any, now + HEEDED);
        assert!(signalled(&stays[0]));
        stays.iter().for_each(|stay| batches.gone(stay));
        assert_eq!(batches.count(), 0);
    }

    #[test]
    fn what_cannot_be_continued_or_made_room_too_often_is_never_told() {
        let (batches, now) = (Batches::default(), Instant::now());
        let stands = batches.come(1, 10, 0);
        stands.stands();
        stands.writes();
        let often = batches.come(1, 10, MOST);
        batches.make_room(9, Whose::Any, now);
        assert!(!signalled(&stands) && !signalled(&often));
        // Told a moment before it could not be continued any more, it stays, and somebody else may go.
        let late = batches.come(1, 10, 0);
        batches.make_room(1, Whose::Any, now);
        late.stands();
        let other = batches.come(1, 10, 0);
        batches.make_room(1, Whose::Any, now);
        assert!(!signalled(&late) && signalled(&other));
    }
}
