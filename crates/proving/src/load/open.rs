//! Open loop: requests become due at a rate, whoever has time sends them.

use super::{Client, Shared, Tally};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Requests that are due and not sent. More means that the target does not keep up at all, and the
/// waiting of these says so already.
const MOST_DUE: usize = 100_000;

struct Due {
    queue: Mutex<VecDeque<Instant>>,
    arrived: Notify,
    over: AtomicBool,
}

impl Due {
    fn take(&self) -> Option<Instant> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn give(&self, at: Instant) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.len() < MOST_DUE {
            queue.push_back(at);
        }
        drop(queue);
        self.arrived.notify_one();
    }
}

pub(super) async fn run(shared: &Arc<Shared>, rate: f64) -> io::Result<Vec<Tally>> {
    let due = Arc::new(Due {
        queue: Mutex::default(),
        arrived: Notify::new(),
        over: AtomicBool::new(false),
    });
    let mut tasks = Vec::new();
    for index in 0..shared.plan.connections {
        tasks.push(tokio::spawn(send(Arc::clone(shared), Arc::clone(&due), index)));
    }
    release(shared, &due, rate).await;
    due.over.store(true, Ordering::Release);
    due.arrived.notify_waiters();
    let mut tallies = Vec::new();
    for task in tasks {
        tallies.push(task.await.map_err(io::Error::other)?);
    }
    Ok(tallies)
}

async fn send(shared: Arc<Shared>, due: Arc<Due>, index: usize) -> Tally {
    let mut client = Client::new(&shared.plan, index);
    let mut tally = Tally::default();
    loop {
        // Registered before the queue is looked at, or a wake-up in between would be lost.
        let arrived = due.arrived.notified();
        tokio::pin!(arrived);
        arrived.as_mut().enable();
        if let Some(at) = due.take() {
            shared.ask(&mut client, &mut tally, at).await;
        } else if due.over.load(Ordering::Acquire) {
            return tally;
        } else {
            arrived.await;
        }
    }
}

/// Makes requests due, at exponential distances. The timer wakes once a millisecond; a request
/// counts from that waking, which is no fault of the target.
async fn release(shared: &Shared, due: &Due, rate: f64) {
    let mut chance = Pcg64Mcg::seed_from_u64(shared.plan.seed);
    let mut next = shared.started;
    while next < shared.until {
        tokio::time::sleep_until(next).await;
        let now = Instant::now();
        while next <= now && next < shared.until {
            due.give(now);
            let uniform: f64 = chance.random_range(f64::MIN_POSITIVE..1.0);
            next += Duration::from_secs_f64(-uniform.ln() / rate);
        }
    }
}
