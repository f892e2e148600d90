//! What is behind the lock: the engine, who is inside, and what was counted.

use super::counts::Counts;
use super::log::{EngineLogRecord, Log, LoggedOutcome};
use super::progress::Progress;
use flyball_simulator::cluster::Changed;
use flyball_simulator::engine::{Event, SimulatedEngine, What};
use flyball_simulator::seconds::Seconds;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// One request that has not ended.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) progress: Arc<Progress>,
    pub(super) record: EngineLogRecord,
    /// Whether it ends by itself before its limit.
    pub(super) stops: bool,
    /// When its last token came out.
    pub(super) last: f64,
    /// Tokens that leave together.
    pub(super) together: u32,
}

#[derive(Debug)]
pub(super) struct Inside {
    pub(super) engine: SimulatedEngine<Changed>,
    pub(super) live: BTreeMap<u64, Live>,
    /// Those in the batch: only they can have got a token.
    running: BTreeSet<u64>,
    pub(super) next_id: u64,
    pub(super) counts: Counts,
    pub(super) log: Log,
    /// Whose connections should be woken. None twice, so no longer than `live` was.
    pub(super) due: Vec<Arc<Progress>>,
    pub(super) stopped: bool,
    events: Vec<Event>,
    /// Tokens that were out when they were last handed out.
    generated: u64,
}

impl Inside {
    pub(super) fn new(engine: SimulatedEngine<Changed>, log: Log) -> Self {
        Self {
            engine,
            live: BTreeMap::new(),
            running: BTreeSet::new(),
            next_id: 1,
            counts: Counts::default(),
            log,
            due: Vec::new(),
            stopped: false,
            events: Vec::new(),
            generated: 0,
        }
    }

    /// Lets everything happen up to `now`, step by step.
    pub(super) fn advance(&mut self, now: f64) {
        while let Some(next) = self.engine.next_event().map(Seconds::get).filter(|at| *at <= now) {
            self.happen(next);
        }
        // Whoever is submitted now must find the clock here.
        self.happen(now);
    }

    fn happen(&mut self, until: f64) {
        let mut events = std::mem::take(&mut self.events);
        self.engine.advance(Seconds(until), &mut |event| events.push(event));
        for event in events.drain(..) {
            self.note(event);
        }
        self.events = events;
        self.hand_out(until);
    }

    /// Notes the tokens of those in the batch.
    fn hand_out(&mut self, now: f64) {
        let generated = self.engine.tally().generated;
        if generated == self.generated {
            return;
        }
        self.generated = generated;
        for id in &self.running {
            let (Some(tokens), Some(live)) = (self.engine.emitted(*id), self.live.get_mut(id))
            else {
                continue;
            };
            let before = live.record.emitted_tokens;
            if tokens > before {
                out(live, tokens, now, &mut self.counts, &mut self.due);
            }
        }
    }

    fn note(&mut self, event: Event) {
        let (id, at) = (event.id, event.at.get());
        let Some(live) = self.live.get_mut(&id) else { return };
        match event.what {
            What::Scheduled { cached } => {
                self.running.insert(id);
                if live.record.scheduled.is_none() {
                    live.record.scheduled = Some(at);
                    live.record.cached_tokens = cached;
                    live.progress.set_cached(cached);
                    self.counts.queued.observe(at - live.record.arrived, 1);
                    self.counts.queried_tokens += u64::from(live.record.prompt_tokens);
                    self.counts.hit_tokens += u64::from(cached);
                }
            }
            What::FirstToken => {
                out(live, 1, at, &mut self.counts, &mut self.due);
            }
            What::Preempted => {
                self.running.remove(&id);
                live.record.preemptions += 1;
                self.counts.preemptions += 1;
            }
            What::Finished => {
                let tokens = live.record.output_tokens;
                if tokens > live.record.emitted_tokens {
                    out(live, tokens, at, &mut self.counts, &mut self.due);
                }
                self.end(id, at, LoggedOutcome::Finished);
            }
            What::Aborted => self.end(id, at, LoggedOutcome::Aborted),
        }
    }

    fn end(&mut self, id: u64, at: f64, outcome: LoggedOutcome) {
        self.running.remove(&id);
        let Some(Live { mut record, stops, .. }) = self.live.remove(&id) else { return };
        record.ended = at;
        record.outcome = outcome;
        record.abort_to_free = record.hung_up.map(|hung_up| (at - hung_up).max(0.0));
        let counts = &mut self.counts;
        match outcome {
            LoggedOutcome::Aborted => counts.aborted += 1,
            LoggedOutcome::Finished if stops => counts.stopped += 1,
            LoggedOutcome::Finished => counts.full += 1,
        }
        if let (LoggedOutcome::Finished, Some(first)) = (outcome, record.first_token) {
            counts.end_to_end.observe(at - record.arrived, 1);
            counts.decode.observe(at - first, 1);
        }
        self.log.push(record);
    }
}

/// So many tokens are out at this time.
fn out(live: &mut Live, tokens: u32, at: f64, counts: &mut Counts, due: &mut Vec<Arc<Progress>>) {
    let record = &mut live.record;
    let before = record.emitted_tokens;
    let more = u64::from(tokens.saturating_sub(before));
    if record.first_token.is_none() {
        record.first_token = Some(at);
        counts.prompt_tokens += u64::from(record.prompt_tokens);
        counts.first_token.observe(at - record.arrived, 1);
        counts.prefill.observe(at - record.scheduled.unwrap_or(record.arrived), 1);
    } else if more > 0 {
        counts.between_tokens.observe((at - live.last) / more as f64, more);
    }
    live.last = at;
    record.emitted_tokens = tokens;
    counts.generated_tokens += more;
    let leaves = before == 0
        || tokens / live.together > before / live.together
        || tokens >= record.output_tokens;
    if live.progress.set_emitted(tokens, leaves) {
        due.push(Arc::clone(&live.progress));
    }
}
