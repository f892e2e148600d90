//! The load generator: asks, waits, counts.
//!
//! Closed loop: each of C connections asks again as soon as it was answered. Open loop: requests
//! come at a rate whether or not earlier ones were answered, and a latency counts from the moment a
//! request was due, so that a server that stalls cannot hide it by slowing the load.
//!
//! Start at [`run`]; `client` is one connection, `bodies` what it says.

mod bodies;
mod client;
mod histogram;
mod named;
mod open;
mod plan;

pub use bodies::{Bodies, Message};
pub use client::{Client, ClientOutcome};
pub use histogram::{Histogram, Summary};
pub use plan::{Habit, LoadPlan};

use crate::history::{End, HistoryRecord, Writer};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;
use tokio::time::Instant;

/// What a run found.
#[derive(Debug, Serialize)]
pub struct LoadReport {
    /// Requests that were answered whole.
    pub answered: u64,
    /// Requests that ended otherwise, by how.
    pub otherwise: BTreeMap<&'static str, u64>,
    /// Events of streams.
    pub events: u64,
    /// Bytes of answers.
    pub bytes: u64,
    /// From the first request to the last answer.
    pub seconds: f64,
    /// Most requests that were open at once.
    pub most_open: u64,
    /// From due (open loop) or sent (closed loop) to the last byte.
    pub latency: Summary,
    /// To the first byte of the answer.
    pub first_byte: Summary,
    /// Time between two pieces of a stream.
    pub between: Summary,
}

/// What all connections share.
pub(crate) struct Shared {
    plan: LoadPlan,
    bodies: Bodies,
    number: AtomicU64,
    open: AtomicU64,
    most_open: AtomicU64,
    started: Instant,
    started_unix: f64,
    until: Instant,
    history: Option<Writer>,
}

/// Runs to the end of the plan and says what was found.
pub async fn run(plan: LoadPlan) -> io::Result<LoadReport> {
    let history = plan.history.as_deref().map(Writer::create).transpose()?;
    let started = Instant::now();
    let shared = Arc::new(Shared {
        bodies: Bodies::new(&plan),
        // Runs after one another with different seeds send different requests.
        number: AtomicU64::new(plan.seed << 32),
        open: AtomicU64::new(0),
        most_open: AtomicU64::new(0),
        started,
        started_unix: SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0.0, |since| since.as_secs_f64()),
        until: started + plan.length(),
        history,
        plan,
    });
    let tallies = match shared.plan.rate {
        Some(rate) => open::run(&shared, rate).await?,
        None => closed(&shared).await?,
    };
    let mut all = Tally::default();
    tallies.iter().for_each(|tally| all.add(tally));
    Ok(LoadReport {
        answered: all.answered,
        otherwise: all.otherwise,
        events: all.events,
        bytes: all.bytes,
        seconds: started.elapsed().as_secs_f64(),
        most_open: shared.most_open.load(Ordering::Relaxed),
        latency: all.latency.summary(),
        first_byte: all.first_byte.summary(),
        between: all.between.summary(),
    })
}

async fn closed(shared: &Arc<Shared>) -> io::Result<Vec<Tally>> {
    let mut tasks = Vec::new();
    for index in 0..shared.plan.connections {
        let shared = Arc::clone(shared);
        tasks.push(tokio::spawn(async move {
            let mut client = Client::new(&shared.plan, index);
            let mut tally = Tally::default();
            // A rush of thousands of first connections would measure the backlog.
            tokio::time::sleep_until(shared.started + shared.plan.ramp_of(index)).await;
            while Instant::now() < shared.until {
                shared.ask(&mut client, &mut tally, Instant::now()).await;
            }
            tally
        }));
    }
    let mut tallies = Vec::new();
    for task in tasks {
        tallies.push(task.await.map_err(io::Error::other)?);
    }
    Ok(tallies)
}

impl Shared {
    /// One request from when it was due to its end.
    async fn ask(&self, client: &mut Client, tally: &mut Tally, due: Instant) {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let message = self.bodies.message(number);
        let habit = self.plan.habit(number);
        let open = self.open.fetch_add(1, Ordering::Relaxed) + 1;
        self.most_open.fetch_max(open, Ordering::Relaxed);
        let outcome = client.ask(&message, habit, &mut tally.between).await;
        self.open.fetch_sub(1, Ordering::Relaxed);
        let ended = Instant::now();
        let since = |at: Instant| at.saturating_duration_since(self.started).as_secs_f64();
        if let Some(history) = &self.history {
            history.write(&HistoryRecord {
                number,
                habit: habit.name().to_owned(),
                due: since(due),
                first_byte: outcome.first_byte.map(since),
                first_event: outcome.first_event.map(since),
                ended: since(ended),
                ended_unix: self.started_unix + since(ended),
                end: outcome.end,
                status: outcome.status,
                events: outcome.events,
                tries: outcome.tries,
                note: outcome.note.clone(),
            });
        }
        let warm = since(due) >= self.plan.warm_up_seconds;
        tally.count(due, ended, &outcome, warm);
        if outcome.end == End::Refused || outcome.end == End::Unanswered {
            // A target that is gone is not asked a million times a second.
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }
}

/// What one connection counted.
#[derive(Default)]
pub(crate) struct Tally {
    answered: u64,
    otherwise: BTreeMap<&'static str, u64>,
    events: u64,
    bytes: u64,
    latency: Histogram,
    first_byte: Histogram,
    between: Histogram,
}

impl Tally {
    fn count(&mut self, due: Instant, ended: Instant, outcome: &ClientOutcome, warm: bool) {
        let nanos = |at: Instant| {
            u64::try_from(at.saturating_duration_since(due).as_nanos()).unwrap_or(u64::MAX)
        };
        self.events += outcome.events;
        self.bytes += outcome.bytes;
        if outcome.end == End::Whole {
            self.answered += 1;
            if warm {
                self.latency.record(nanos(ended));
                outcome.first_byte.into_iter().for_each(|at| self.first_byte.record(nanos(at)));
            }
        } else {
            *self.otherwise.entry(outcome.end.name()).or_default() += 1;
        }
    }

    fn add(&mut self, other: &Self) {
        self.answered += other.answered;
        for (name, count) in &other.otherwise {
            *self.otherwise.entry(name).or_default() += count;
        }
        self.events += other.events;
        self.bytes += other.bytes;
        self.latency.add(&other.latency);
        self.first_byte.add(&other.first_byte);
        self.between.add(&other.between);
    }
}
