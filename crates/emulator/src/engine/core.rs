//! The engine, its thread, and the way in.

use super::counts::Counts;
use super::inside::{Inside, Live};
use super::log::{self, EngineLogRecord, Log, LoggedOutcome};
use super::progress::Progress;
use crate::prompt::Prompt;
use flyball_simulator::cluster::{Changed, Speed};
use flyball_simulator::engine::{Arrival, BlockChange, Pace, SimulatedEngine, TooLong};
use flyball_simulator::seconds::Seconds;
use serde::Serialize;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Requests inside at once, running and waiting. vLLM has no limit; 65,536 is four times what a
/// gateway with 10,000 streams could send to one engine.
const MOST_INSIDE: usize = 65_536;

/// The longest sleep: a step of an engine takes no minute.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// One engine in real time.
#[derive(Debug)]
pub(crate) struct Core {
    inside: Mutex<Inside>,
    /// Wakes the engine's thread.
    changed: Condvar,
    /// Wakes the task that wakes connections.
    due: Notify,
    start: Instant,
    speed_up: f64,
    block_tokens: u32,
    /// Tokens of a stream that leave together.
    together: u32,
}

/// What is asked of the engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work<'a> {
    pub(crate) prompt: &'a Prompt,
    pub(crate) output: u32,
    /// Whether it ends by itself before its limit.
    pub(crate) stops: bool,
    /// Whether its tokens are of interest one by one.
    pub(crate) stream: bool,
    pub(crate) request_id: Option<&'a str>,
}

/// Why a request was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error(transparent)]
    TooLong(#[from] TooLong),
    #[error("{MOST_INSIDE} requests are in flight; hint: retry later")]
    Full,
    #[error("the engine has stopped; hint: send the request to another one")]
    Stopped,
}

/// What can be seen of an engine from outside.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct EmulatedState {
    /// Seconds of its clock.
    pub now: f64,
    /// Requests in the batch.
    pub running: u32,
    /// Requests before it.
    pub waiting: u32,
    /// Blocks that can be had.
    pub free_blocks: u32,
    /// Share of the blocks that running requests hold.
    pub used_share: f64,
    /// Requests that ended with all their tokens.
    pub finished: u64,
    /// Requests whose clients hung up.
    pub aborted: u64,
    /// Requests that lost their blocks.
    pub preemptions: u64,
    /// Prompt tokens queried in the cache.
    pub queried_tokens: u64,
    /// Prompt tokens found there.
    pub hit_tokens: u64,
    /// Tokens generated.
    pub generated_tokens: u64,
}

impl Core {
    /// An idle engine whose clock starts now.
    pub(crate) fn new(speed: &Speed, speed_up: f64, together: u32, log: usize) -> Self {
        let step = Changed { step: speed.step.clone(), factor: 1.0 };
        let engine = SimulatedEngine::new(speed.settings, step, Pace::StepByStep);
        Self {
            block_tokens: engine.scheduler().settings().block_tokens,
            inside: Mutex::new(Inside::new(engine, Log::new(log))),
            changed: Condvar::new(),
            due: Notify::new(),
            start: Instant::now(),
            speed_up,
            together: together.max(1),
        }
    }

    /// From now on it computes so many times as fast as it was built to. A step under way ends when it ends.
    pub(crate) fn change_speed(&self, factor: f64) {
        let mut inside = self.lock();
        let now = self.now();
        inside.advance(now);
        inside.engine.change_step(Seconds(now), |step| step.factor = factor);
        drop(inside);
        self.changed.notify_one();
    }

    /// Tokens in a block of the cache.
    pub(crate) const fn block_tokens(&self) -> u32 {
        self.block_tokens
    }

    /// Seconds of the engine's clock.
    pub(crate) fn now(&self) -> f64 {
        self.start.elapsed().as_secs_f64() * self.speed_up
    }

    /// Takes a request. It is given up when the ticket is dropped.
    pub(crate) fn submit(self: &Arc<Self>, work: &Work<'_>) -> Result<Ticket, Refused> {
        let mut inside = self.lock();
        if inside.stopped {
            return Err(Refused::Stopped);
        }
        if inside.live.len() >= MOST_INSIDE {
            return Err(Refused::Full);
        }
        let now = self.now();
        inside.advance(now);
        let id = inside.next_id;
        let arrival = Arrival {
            at: Seconds(now),
            prompt: work.prompt.tokens,
            output: work.output,
            names: &work.prompt.names,
            name_tokens: self.block_tokens,
        };
        let idle = inside.engine.next_event().is_none();
        inside.engine.submit(id, &arrival)?;
        inside.next_id += 1;
        let progress = Arc::new(Progress::new(if work.stream { 1 } else { work.output }));
        let record = EngineLogRecord {
            id,
            request_id: work.request_id.map(log::name),
            prompt_tokens: work.prompt.tokens,
            output_tokens: work.output,
            emitted_tokens: 0,
            cached_tokens: 0,
            preemptions: 0,
            arrived: now,
            scheduled: None,
            first_token: None,
            ended: now,
            hung_up: None,
            abort_to_free: None,
            outcome: LoggedOutcome::Aborted,
        };
        let live = Live {
            progress: Arc::clone(&progress),
            record,
            stops: work.stops,
            last: now,
            together: self.together,
        };
        inside.live.insert(id, live);
        drop(inside);
        // A step under way ends when it ends; only a thread without a time to wake needs a call.
        if idle {
            self.changed.notify_one();
        }
        Ok(Ticket { core: Arc::clone(self), id, progress, keep: false })
    }

    /// What can be seen now.
    pub(crate) fn state(&self) -> EmulatedState {
        let mut inside = self.lock();
        let now = self.now();
        inside.advance(now);
        let load = inside.engine.load(Seconds(now));
        let counts = &inside.counts;
        EmulatedState {
            now,
            running: load.running,
            waiting: load.waiting,
            free_blocks: load.free_blocks,
            used_share: load.used_share,
            finished: counts.stopped + counts.full,
            aborted: counts.aborted,
            preemptions: counts.preemptions,
            queried_tokens: counts.queried_tokens,
            hit_tokens: counts.hit_tokens,
            generated_tokens: counts.generated_tokens,
        }
    }

    /// Blocks that were stored and forgotten since the last call; from the first call on.
    pub(crate) fn changes(&self) -> Vec<BlockChange> {
        let mut inside = self.lock();
        inside.advance(self.now());
        inside.engine.changes()
    }

    /// A copy of the sums.
    pub(crate) fn counts(&self) -> Counts {
        self.lock().counts.clone()
    }

    /// The last requests that ended, oldest first.
    pub(crate) fn log(&self, most: usize) -> Vec<EngineLogRecord> {
        self.lock().log.last(most)
    }

    /// The engine's thread: sleeps until the next event and lets it happen, until stopped.
    pub(crate) fn drive(&self) {
        let mut inside = self.lock();
        while !inside.stopped {
            inside.advance(self.now());
            if !inside.due.is_empty() {
                self.due.notify_one();
            }
            inside = match inside.engine.next_event() {
                None => self.changed.wait(inside).unwrap_or_else(PoisonError::into_inner),
                Some(next) => {
                    let real = (next.get() - self.now()) / self.speed_up;
                    let real = Duration::try_from_secs_f64(real).unwrap_or_default();
                    let sleep = real.min(LONGEST_SLEEP);
                    let waited = self.changed.wait_timeout(inside, sleep);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// The task that wakes connections whose requests have moved.
    pub(crate) async fn wake(&self) {
        let mut due = Vec::new();
        loop {
            self.due.notified().await;
            std::mem::swap(&mut self.lock().due, &mut due);
            for progress in due.drain(..) {
                progress.wake();
            }
        }
    }

    /// Ends everything at once: the thread, and every request inside.
    pub(crate) fn stop(&self) {
        let mut inside = self.lock();
        inside.stopped = true;
        for live in std::mem::take(&mut inside.live).into_values() {
            live.progress.set_lost();
        }
        drop(inside);
        self.changed.notify_all();
    }

    fn abort(&self, id: u64) {
        let mut inside = self.lock();
        // Most tickets are dropped after their last token.
        if !inside.live.contains_key(&id) {
            return;
        }
        let now = self.now();
        inside.advance(now);
        let Some(live) = inside.live.get_mut(&id) else { return };
        live.record.hung_up = Some(now);
        inside.engine.abort(id, Seconds(now));
    }

    fn hang_up(&self, id: u64) {
        let now = self.now();
        if let Some(live) = self.lock().live.get_mut(&id) {
            live.record.hung_up = Some(now);
        }
    }

    /// A thread that panicked has left nothing half done that matters here.
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request inside the engine. Dropping it is what a client that hangs up does.
#[derive(Debug)]
pub(crate) struct Ticket {
    core: Arc<Core>,
    id: u64,
    progress: Arc<Progress>,
    keep: bool,
}

impl Ticket {
    pub(crate) const fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// The engine shall not hear of a client that hangs up.
    pub(crate) const fn keep(&mut self) {
        self.keep = true;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // One that has ended is not inside any more, and nothing happens.
        if self.keep { self.core.hang_up(self.id) } else { self.core.abort(self.id) }
    }
}
