//! Proves that a cancelled request has let go of its slot.
//!
//! An engine tells how many requests it has; the gateways know how many they have at it. What it has
//! beyond that has no client any more. A request that was sent and is not there yet, or that is
//! finished there and not relayed yet, only makes the engine's figure smaller. So an excess is never
//! a matter of timing, except for three things that are dealt with here:
//!
//! - Cancels take a moment. With many of them some are always under way, and the excess is never
//!   nothing. Of `n` unproven cancels and an excess of `k`, at least `n - k` slots are free; the
//!   oldest are taken as those. A cancel is held against an engine only after [`GRACE`].
//! - Somebody else may use the engine. What it has beyond ours while no cancel is unproven is
//!   others' and is not held against it. Where others are seen at all, nothing is held against the
//!   engine: two gateways without a collector once put half of all engines into quarantine, each for
//!   requests of the other. With a collector, other gateways are no others.
//! - A figure may be old (SGLang renews its own only every 30 s when idle). See [`patience`].
//!
//! [`Case`] is a pure state machine: reports in, verdicts out, time as an argument. It does not know
//! who asks engines. Start there.

use flyball_engines::Engine;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// What an engine may take for a cancel before that is a zombie.
pub const GRACE: Duration = Duration::from_secs(1);

/// A question must be sent this long after a cancel to say anything about it: whoever cancels tells
/// us first and takes the request out of its counts then.
const CANCEL_LEAD: Duration = Duration::from_millis(1);

/// An engine without zombies for so long may have requests again.
pub const RELEASE: Duration = Duration::from_secs(10);

/// How far back to look for what others have at the engine.
const OTHERS: Duration = Duration::from_secs(10);

/// A cancel without any report for so long is given up as unproven: the engine may have no metrics.
const GIVE_UP: Duration = Duration::from_secs(60);

/// Unproven cancels of one engine. An engine has at most some thousand slots.
const CANCELS: usize = 4096;

/// What was seen of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifiedEngine {
    /// When it was asked.
    pub sent: Instant,
    /// When its answer was there.
    pub came: Instant,
    /// Requests that it has.
    pub has: u32,
    /// Requests that gateways have at it: the most of just before and just after.
    pub known: u32,
}

/// What follows from a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CancelVerdict {
    /// For every cancel that is now proven: how long it took.
    pub freed: Vec<Duration>,
    /// Requests in the engine that we cancelled and that should be gone.
    pub zombies: u32,
    /// What changes.
    pub change: Option<VerifyEvent>,
}

/// A change of an engine's standing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyEvent {
    /// It ignores cancels and should get no new requests.
    Quarantined,
    /// It has been without zombies and may have requests again.
    Released,
    /// It ignores cancels but too many others do too; somebody must serve.
    Spared,
}

/// One engine's cancels.
#[derive(Debug)]
pub struct Case {
    patience: Duration,
    /// When they were made, oldest first.
    cancels: VecDeque<Instant>,
    others: Others,
    zombies_since: Option<Instant>,
    clear_since: Option<Instant>,
    zombies: u32,
    quarantined: bool,
    spared: bool,
    last_report: Option<Instant>,
}

impl Case {
    /// One without cancels.
    pub const fn new(engine: Engine) -> Self {
        Self {
            patience: patience(engine),
            cancels: VecDeque::new(),
            others: Others { now: None, before: None },
            zombies_since: None,
            clear_since: None,
            zombies: 0,
            quarantined: false,
            spared: false,
            last_report: None,
        }
    }

    /// Takes note of a cancel. Returns false if there are so many unproven ones that the oldest had
    /// to be given up.
    pub fn cancelled(&mut self, at: Instant) -> bool {
        let full = self.cancels.len() >= CANCELS;
        if full {
            self.cancels.pop_front();
        }
        // Threads may tell of two cancels in another order than they were made.
        let place = self.cancels.partition_point(|other| *other <= at);
        self.cancels.insert(place, at);
        !full
    }

    /// Whether a cancel is unproven: the engine should be asked soon.
    pub fn is_open(&self) -> bool {
        !self.cancels.is_empty()
    }

    /// Whether new requests are kept away.
    pub const fn is_quarantined(&self) -> bool {
        self.quarantined
    }

    /// Requests in the engine that were cancelled and should be gone, at the last report.
    pub const fn zombies(&self) -> u32 {
        self.zombies
    }

    /// Takes in a report. `may_quarantine` is asked only when it comes to that.
    pub fn report(
        &mut self,
        seen: &VerifiedEngine,
        may_quarantine: impl FnOnce() -> bool,
    ) -> CancelVerdict {
        self.last_report = Some(seen.came);
        let excess = seen.has.saturating_sub(seen.known);
        if self.cancels.is_empty() && !self.quarantined {
            self.others.note(excess, seen.came);
        }
        let (others_least, others_most) = self.others.range();
        let before = self.cancels.partition_point(|at| *at + CANCEL_LEAD < seen.sent);
        let remaining = before.min(excess.saturating_sub(others_least) as usize);
        let freed = self.cancels.drain(..before - remaining).map(|at| seen.came - at).collect();
        // The newest of those that were kept have it, beyond what others had at most.
        let ours = remaining.min(excess.saturating_sub(others_most) as usize);
        let oldest = remaining - ours;
        let old = |at: &&Instant| seen.sent.duration_since(**at) >= GRACE;
        let doubtful = others_most > 0;
        let zombies =
            self.cancels.range(oldest..remaining).filter(|at| !doubtful && old(at)).count();
        self.zombies = u32::try_from(zombies).unwrap_or(u32::MAX);
        let change = if zombies > 0 {
            let since = self.cancels.get(oldest).copied().unwrap_or(seen.sent);
            self.haunted(since, seen.came, may_quarantine)
        } else {
            self.clear(seen.came)
        };
        CancelVerdict { freed, zombies: self.zombies, change }
    }

    /// Gives up cancels of an engine that does not report, and says how many.
    pub fn give_up(&mut self, now: Instant) -> usize {
        let is_recent = self.last_report.is_some_and(|at| now.duration_since(at) < GIVE_UP);
        if is_recent {
            return 0;
        }
        let old = self.cancels.partition_point(|at| now.duration_since(*at) >= GIVE_UP);
        self.cancels.drain(..old).count()
    }

    fn haunted(
        &mut self,
        since: Instant,
        now: Instant,
        may_quarantine: impl FnOnce() -> bool,
    ) -> Option<VerifyEvent> {
        self.clear_since = None;
        let since = *self.zombies_since.get_or_insert(since);
        if self.quarantined || now.duration_since(since) < self.patience {
            return None;
        }
        if may_quarantine() {
            self.quarantined = true;
            self.spared = false;
            return Some(VerifyEvent::Quarantined);
        }
        (!std::mem::replace(&mut self.spared, true)).then_some(VerifyEvent::Spared)
    }

    fn clear(&mut self, now: Instant) -> Option<VerifyEvent> {
        self.zombies_since = None;
        self.spared = false;
        if !self.quarantined {
            return None;
        }
        let since = *self.clear_since.get_or_insert(now);
        if now.duration_since(since) < RELEASE {
            return None;
        }
        self.quarantined = false;
        self.clear_since = None;
        Some(VerifyEvent::Released)
    }
}

/// How long zombies may last before the engine gets nothing new.
pub const fn patience(engine: Engine) -> Duration {
    Duration::from_secs(engine.facts().cancel_seconds as u64)
}

/// What others had at the engine, least and most, over the last one or two spans of [`OTHERS`].
/// The least is what surely is not ours: a free slot is proven against it. The most is the benefit
/// of the doubt: zombies are counted against it.
#[derive(Debug)]
struct Others {
    now: Option<Span>,
    before: Option<Span>,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    since: Instant,
    least: u32,
    most: u32,
}

impl Others {
    fn note(&mut self, excess: u32, at: Instant) {
        match &mut self.now {
            Some(span) if at.duration_since(span.since) < OTHERS => {
                span.least = span.least.min(excess);
                span.most = span.most.max(excess);
            }
            _ => {
                let span = Span { since: at, least: excess, most: excess };
                let old = self.now.replace(span);
                self.before = old.filter(|old| at.duration_since(old.since) < 2 * OTHERS);
            }
        }
    }

    fn range(&self) -> (u32, u32) {
        let spans = || self.now.iter().chain(&self.before);
        let least = spans().map(|span| span.least).min().unwrap_or(0);
        (least, spans().map(|span| span.most).max().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests;
