//! Works at batches: finds those that nobody works at, sends their lines in order, stores results, ends what is over.
//!
//! It has neither a clock nor a network. A [`Worker::turn`] takes in the lines that ended, does what is due in the store,
//! and says which lines to send. `run` is a batch that it has, `load` takes one over, `conclude` ends one. Any call to the
//! store may fail or be the last one of this process: what was not stored is done again, by this worker or by the next.

mod clean;
mod conclude;
mod drive;
mod load;
mod run;
mod sweep;

pub(crate) use drive::{drive, now};
pub(crate) use sweep::sweep;

use crate::forms::{BatchStatus, NewId, seconds};
use crate::lease::Leases;
use crate::lines::{LineOutcome, LineToSend};
use crate::order::{Candidate, Turns};
use crate::state::{BatchKey, OPEN, Record, StateError, newest, open_batch, put_next};
use crate::step::{NextStep, next_step};
use flyball_core::units::{Micros, Timestamp};
use flyball_ledger::store::Store;
use run::Run;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How often it checks for work, its leases and what callers did.
const ROUND: Micros = Micros::from_seconds(2);

/// Before a batch whose store failed, or whose lines all wait, is tried again.
const AGAIN: Micros = Micros::from_seconds(2);

/// How much one worker takes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkerLimits {
    /// Lines at the gateway at once.
    pub(crate) lines: usize,
    /// Batches at once. The earliest deadlines are taken.
    pub(crate) batches: usize,
}

/// A worker.
pub(crate) struct Worker<S, L> {
    store: Arc<S>,
    leases: L,
    /// Like no other process's, also not that of the same machine before.
    name: String,
    limits: WorkerLimits,
    random: Box<dyn FnMut() -> [u8; 8] + Send>,
    runs: BTreeMap<BatchKey, Run>,
    turns: Turns,
    round_at: Option<Timestamp>,
}

/// A line that ended.
#[derive(Clone, Debug)]
pub(crate) struct EndedLine {
    pub(crate) key: BatchKey,
    pub(crate) index: u32,
    pub(crate) became: LineOutcome,
}

/// What a turn asks for.
#[derive(Debug, Default)]
pub(crate) struct TurnOutcome {
    /// Lines to send.
    pub(crate) send: Vec<LineToSend>,
    /// Batches of which no line is to be at the gateway any more.
    pub(crate) stop: Vec<BatchKey>,
}

impl<S: Store, L: Leases> Worker<S, L> {
    pub(crate) fn new(
        store: Arc<S>,
        leases: L,
        name: &str,
        limits: WorkerLimits,
        random: Box<dyn FnMut() -> [u8; 8] + Send>,
    ) -> Self {
        let (runs, turns) = (BTreeMap::new(), Turns::default());
        Self { store, leases, name: name.to_owned(), limits, random, runs, turns, round_at: None }
    }

    /// One turn. What the store refuses is logged and tried again in a later one.
    pub(crate) async fn turn(&mut self, now: Timestamp, ended: Vec<EndedLine>) -> TurnOutcome {
        let mut outcome = TurnOutcome::default();
        for line in ended {
            if let Some(run) = self.runs.get_mut(&line.key) {
                run.end(&line.key, line.index, line.became, now);
            }
        }
        if self.round_at.is_none_or(|at| now.apart(at) >= ROUND) {
            self.round_at = Some(now);
            if let Err(error) = self.round(now, &mut outcome).await {
                tracing::warn!(%error, "cannot list batches; retrying");
            }
        }
        let keys: Vec<BatchKey> = self.runs.keys().cloned().collect();
        for key in keys {
            if let Err(error) = self.advance(&key, now, &mut outcome).await {
                tracing::warn!(batch = key.id, %error, "cannot go on with a batch; retrying");
                if let Some(run) = self.runs.get_mut(&key) {
                    run.fail(now.saturating_add(AGAIN));
                }
            }
        }
        self.fill(now, &mut outcome).await;
        outcome
    }

    /// Stores what there is and lets others go on at once.
    pub(crate) async fn stop(&mut self) {
        for (key, run) in &mut self.runs {
            let stored = run.flush(&*self.store, key).await.map_err(|error| error.to_string());
            let released = self.leases.release(key).await.map_err(|error| error.to_string());
            if let Err(error) = stored.and(released) {
                tracing::warn!(
                    batch = key.id,
                    error,
                    "cannot hand over a batch; lines may be sent again"
                );
            }
        }
        self.runs.clear();
    }

    /// Lines at the gateway.
    pub(crate) fn in_flight(&self) -> usize {
        self.runs.values().map(Run::in_flight).sum()
    }

    /// Takes what nobody works at, and sees what became of the rest.
    async fn round(&mut self, now: Timestamp, outcome: &mut TurnOutcome) -> Result<(), StateError> {
        let listed = self.store.list(OPEN).await?;
        let open: Vec<_> = listed.iter().filter_map(|object| open_batch(&object.path)).collect();
        // The earliest deadlines come first in the listing.
        let mut held = 0;
        for (_, key) in open {
            if held == self.limits.batches {
                // Something later than all these: whoever has room may have it.
                if self.runs.contains_key(&key) {
                    self.give_up(&key, outcome).await;
                }
                continue;
            }
            match self.visit(&key, now, outcome).await {
                Ok(is_held) => held += usize::from(is_held),
                Err(error) => {
                    held += usize::from(self.runs.contains_key(&key));
                    tracing::warn!(batch = key.id, %error, "cannot see what a batch is; retrying");
                }
            }
        }
        Ok(())
    }

    /// Whether this worker has the batch now.
    async fn visit(
        &mut self,
        key: &BatchKey,
        now: Timestamp,
        outcome: &mut TurnOutcome,
    ) -> Result<bool, StateError> {
        if !self.leases.hold(key, now).await? {
            self.drop_run(key, outcome);
            return Ok(false);
        }
        let Some(stored) = newest(&*self.store, key).await? else {
            // It was never begun, or is over and half cleaned away.
            return self.forget_open(key, now).await.map(|()| false);
        };
        let is_ours = stored.record.owner.as_deref() == Some(self.name.as_str());
        match self.runs.get_mut(key) {
            Some(run) if is_ours && run.epoch() == stored.record.epoch => run.follow(stored),
            // Somebody else was at it meanwhile, or it is new here.
            _ => {
                self.drop_run(key, outcome);
                let id = |random| NewId { at: now, random };
                let ids = (id((self.random)()).file(), id((self.random)()).file());
                if let Some(run) = load::claim(&*self.store, key, stored, &self.name, ids).await? {
                    self.runs.insert(key.clone(), run);
                }
            }
        }
        Ok(self.runs.contains_key(key))
    }

    fn drop_run(&mut self, key: &BatchKey, outcome: &mut TurnOutcome) {
        if self.runs.remove(key).is_some() {
            outcome.stop.push(key.clone());
        }
    }

    async fn give_up(&mut self, key: &BatchKey, outcome: &mut TurnOutcome) {
        if let Some(run) = self.runs.get_mut(key) {
            // What is lost here is sent again.
            let _ = run.flush(&*self.store, key).await;
            let _ = self.leases.release(key).await;
        }
        self.drop_run(key, outcome);
    }

    /// Does what is next for one batch.
    async fn advance(
        &mut self,
        key: &BatchKey,
        now: Timestamp,
        outcome: &mut TurnOutcome,
    ) -> Result<(), StateError> {
        let store = Arc::clone(&self.store);
        loop {
            let Some(run) = self.runs.get_mut(key).filter(|run| run.is_due(now)) else {
                return Ok(());
            };
            if run.must_claim() {
                // Nobody knows what the store did. The next round takes it anew, under a new number.
                self.drop_run(key, outcome);
                return Ok(());
            }
            run.flush_due(&*store, key, now).await?;
            let step = next_step(&run.view(), seconds(now));
            match step {
                NextStep::Run if run.is_loaded() => return Ok(()),
                NextStep::Run => run.load(&*store, key).await?,
                NextStep::Validate => {
                    let next = load::validate(&*store, key, run, now).await?;
                    self.commit(key, next, outcome).await?;
                }
                NextStep::Close(ending) => {
                    if run.stop_lines() {
                        outcome.stop.push(key.clone());
                    }
                    run.flush(&*store, key).await?;
                    let mut next = run.record().clone();
                    next.ending = Some(ending);
                    next.batch.enter(BatchStatus::Finalizing, seconds(now));
                    self.commit(key, next, outcome).await?;
                }
                NextStep::Conclude(ending) => {
                    if run.stop_lines() {
                        outcome.stop.push(key.clone());
                    }
                    run.flush(&*store, key).await?;
                    match conclude::conclude(&*store, key, run, ending, now).await? {
                        Some(next) => self.commit(key, next, outcome).await?,
                        // Lines are missing that can still be sent.
                        None => run.unload(),
                    }
                }
                NextStep::Clean => {
                    clean::clean(&*store, key, run.record()).await?;
                    self.leases.release(key).await?;
                    self.drop_run(key, outcome);
                    return Ok(());
                }
            }
        }
    }

    /// Makes this the state of a batch, unless somebody else was faster.
    async fn commit(
        &mut self,
        key: &BatchKey,
        next: Record,
        outcome: &mut TurnOutcome,
    ) -> Result<(), StateError> {
        let Some(run) = self.runs.get_mut(key) else { return Ok(()) };
        let number = run.number();
        run.expect_claim();
        match put_next(&*self.store, key, Some(number), next).await? {
            Some(stored) => run.follow(stored),
            None => {
                // A caller cancelled it, somebody took it over, or an answer was lost: once more.
                self.drop_run(key, outcome);
                self.round_at = None;
            }
        }
        Ok(())
    }

    /// Lines to send, as many as there is room for.
    async fn fill(&mut self, now: Timestamp, outcome: &mut TurnOutcome) {
        let mut room = self.limits.lines.saturating_sub(self.in_flight());
        while room > 0 {
            let ready: Vec<(&BatchKey, &Run)> =
                self.runs.iter().filter(|(_, run)| run.has_lines(now)).collect();
            let candidates: Vec<Candidate<'_>> = ready
                .iter()
                .map(|(key, run)| Candidate {
                    tenant: &key.tenant,
                    id: &key.id,
                    deadline: run.record().deadline(),
                })
                .collect();
            let Some(chosen) = self.turns.choose(&candidates) else { return };
            let key = ready[chosen].0.clone();
            let Some(run) = self.runs.get_mut(&key) else { return };
            match run.send_next(&*self.store, &key).await {
                Ok(Some(line)) => {
                    self.turns.take(&key.tenant);
                    outcome.send.push(line);
                    room -= 1;
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(batch = key.id, %error, "cannot read a line; retrying");
                    run.wait_until(now.saturating_add(AGAIN));
                }
            }
        }
    }
}

#[cfg(test)]
impl<S, L> Worker<S, L> {
    pub(crate) fn holds(&self) -> usize {
        self.runs.len()
    }
}
