//! What is behind a gate's lock: who waits, who has had how much, how fast it goes.

use super::pace::Pace;
use super::prompt::Uncached;
use super::wake::Wake;
use crate::answer::Problem;
use flyball_fleet::FleetEndpoint;
use flyball_routing::fair::{
    BatchRule, Bursts, FairQueue, QueuedRequest, Shares, in_shard, shard_edge,
};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// After so long, what callers had is worth half: a flood is known as one within seconds, and
/// forgotten within half a minute.
const FADE: Duration = Duration::from_secs(5);

/// Engines that are looked at for room. Of more, so many in a row from a place that moves on.
const MAX_SCANNED: usize = 256;

/// One that waits.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) sender: oneshot::Sender<TurnVerdict>,
    pub(super) since: Instant,
    pub(super) until: Instant,
    /// Whether it came when there was no engine.
    pub(super) held: bool,
    /// Whether it waits for capacity that nobody else wants.
    pub(super) batch: bool,
    pub(super) prompt_tokens: u64,
}

/// What one that waits is told.
#[derive(Debug)]
pub(super) enum TurnVerdict {
    /// It is its turn. It has been counted as granted.
    Go(Shard),
    /// It has waited in vain.
    Never(Problem),
}

/// The engines that a caller keeps to: all, or its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shard {
    All,
    Own {
        caller: u64,
        edge: u64,
    },
    /// Those that keep head-room for others: of a batch request.
    Idle(BatchRule),
}

impl Shard {
    pub(crate) fn has(self, endpoint: &FleetEndpoint) -> bool {
        match self {
            Self::All | Self::Idle(_) => true,
            Self::Own { caller, edge } => in_shard(caller, endpoint.key, edge),
        }
    }
}

#[derive(Debug)]
pub(super) struct Line {
    pub(super) queue: FairQueue<Waiter>,
    pub(super) shares: Shares,
    pub(super) pace: Pace,
    pub(super) wake: Wake,
    /// Prompt tokens that came and had to be read.
    pub(super) uncached: Uncached,
    /// How many more than a moment before came at once, batch aside.
    pub(super) bursts: Bursts,
    pub(super) began: Instant,
    faded: Instant,
    scan_from: usize,
}

impl Line {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            queue: FairQueue::new(),
            shares: Shares::default(),
            pace: Pace::default(),
            wake: Wake::default(),
            uncached: Uncached::new(),
            bursts: Bursts::default(),
            began: now,
            faded: now,
            scan_from: 0,
        }
    }

    /// Forgets what is long ago.
    pub(super) fn fade(&mut self, now: Instant) {
        // Not more often than it can matter after a long rest.
        for _ in 0..8 {
            if now.saturating_duration_since(self.faded) < FADE {
                return;
            }
            self.faded += FADE;
            self.shares.fade();
            self.queue.forgive();
        }
        self.faded = now;
    }

    /// The engines that a caller keeps to now.
    pub(super) fn shard(&mut self, caller: u64, endpoints: &[Arc<FleetEndpoint>]) -> Shard {
        let waits = self.queue.has(caller);
        shard_of(&mut self.shares, caller, waits, endpoints)
    }

    /// Engines with room, up to so many.
    pub(super) fn rooms(
        &mut self,
        endpoints: &[Arc<FleetEndpoint>],
        shard: Shard,
        most: usize,
        now: Instant,
    ) -> usize {
        let from = self.scan_from % endpoints.len().max(1);
        if endpoints.len() > MAX_SCANNED {
            self.scan_from = from + MAX_SCANNED;
        }
        let round = endpoints[from..].iter().chain(&endpoints[..from]).take(MAX_SCANNED);
        let has_room = |endpoint: &&Arc<FleetEndpoint>| match shard {
            Shard::Idle(rule) => rule.allows(&endpoint.batch_room(now)),
            Shard::All | Shard::Own { .. } => shard.has(endpoint) && endpoint.has_room(now),
        };
        round.filter(has_room).take(most).count()
    }

    /// The next that can go, given that so many of the engines with room are spoken for.
    pub(super) fn next(
        &mut self,
        endpoints: &[Arc<FleetEndpoint>],
        granted: usize,
        now: Instant,
    ) -> Option<(QueuedRequest, Waiter, Shard)> {
        if self.queue.urgent() == 0 {
            return self.next_batch(endpoints, granted, now);
        }
        if self.rooms(endpoints, Shard::All, granted + 1, now) <= granted {
            return None;
        }
        let Self { queue, shares, .. } = self;
        let can_go = |caller: u64, _: &Waiter| match shard_of(shares, caller, true, endpoints) {
            Shard::All | Shard::Idle(_) => true,
            own @ Shard::Own { .. } => {
                endpoints.iter().take(MAX_SCANNED).any(|e| own.has(e) && e.has_room(now))
            }
        };
        let (request, waiter) = queue.next(can_go)?;
        let shard = shard_of(shares, request.caller, true, endpoints);
        Some((request, waiter, shard))
    }
}

fn shard_of(
    shares: &mut Shares,
    caller: u64,
    waits: bool,
    endpoints: &[Arc<FleetEndpoint>],
) -> Shard {
    let Some(share) = shares.exceeded(caller, waits).filter(|_| endpoints.len() > 1) else {
        return Shard::All;
    };
    let edge = shard_edge(caller, share, endpoints.iter().map(|endpoint| endpoint.key));
    Shard::Own { caller, edge }
}
