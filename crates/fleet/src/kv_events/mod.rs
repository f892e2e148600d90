//! Hears what engines tell about their caches, so that nothing is hoped for that is gone.
//!
//! vLLM publishes over ZeroMQ which blocks it stores and forgets. Its names of blocks are hashes of
//! tokens, and there is no tokenizer here, so they say nothing about any one prompt; but they say
//! how far back the cache reaches (`flyball_routing::Horizon`), and that is enough to stop hoping.
//! Without events all is as without this module.
//!
//! `wire` is the ZeroMQ of a subscriber, `pack` the MessagePack of a batch, `batch` what it says.
//! What was missed is not asked for again: a horizon only gets later. Start at [`follow`].

mod batch;
mod pack;
mod wire;

use crate::fleet::{Fleet, FleetEndpoint};
use batch::Event;
use flyball_routing::{Horizon, ObservedMoment};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use wire::Subscriber;

/// Between two looks for engines that came or went.
const TICK: Duration = Duration::from_secs(1);

/// The pause before an engine is tried again; doubled each time up to [`LONGEST`].
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);

/// To connect and to greet.
const CONNECT: Duration = Duration::from_secs(5);

/// How the listening goes, for the metrics.
#[derive(Debug, Default)]
pub struct EventsStatus {
    streams: AtomicUsize,
    batches: AtomicU64,
    missed: AtomicU64,
}

impl EventsStatus {
    /// Engines whose events are heard now.
    pub fn streams(&self) -> usize {
        self.streams.load(Relaxed)
    }

    /// Batches of events that came.
    pub fn batches(&self) -> u64 {
        self.batches.load(Relaxed)
    }

    /// Batches that did not: gaps in their numbers.
    pub fn missed(&self) -> u64 {
        self.missed.load(Relaxed)
    }
}

/// Listens to the engines of all models that have a port for it, for ever. `began` is when the
/// gateway's clock did.
pub async fn follow(
    fleet: impl Fn() -> Arc<Fleet>,
    ports: impl Fn() -> BTreeMap<String, u16>,
    began: Instant,
    standing: Arc<EventsStatus>,
) {
    let mut listening: BTreeMap<u32, (u16, tokio::task::AbortHandle)> = BTreeMap::new();
    let mut tasks = JoinSet::new();
    loop {
        let targets = targets(&fleet(), &ports());
        listening.retain(|slot, (port, task)| {
            let stays = targets.get(slot).is_some_and(|(_, now)| now == port);
            if !stays {
                task.abort();
            }
            stays
        });
        for (slot, (endpoint, port)) in targets {
            listening.entry(slot).or_insert_with(|| {
                let one = listen(endpoint, port, began, Arc::clone(&standing));
                (port, tasks.spawn(one))
            });
        }
        while tasks.try_join_next().is_some() {}
        tokio::time::sleep(TICK).await;
    }
}

fn targets(
    fleet: &Fleet,
    ports: &BTreeMap<String, u16>,
) -> BTreeMap<u32, (Arc<FleetEndpoint>, u16)> {
    let models = fleet.models().filter_map(|model| Some((model, *ports.get(&*model.name)?)));
    let all = models.flat_map(|(model, port)| model.endpoints.iter().map(move |e| (e, port)));
    all.map(|(endpoint, port)| (endpoint.slot, (Arc::clone(endpoint), port))).collect()
}

/// Listens to one engine until aborted.
async fn listen(
    endpoint: Arc<FleetEndpoint>,
    port: u16,
    began: Instant,
    standing: Arc<EventsStatus>,
) {
    let address = SocketAddr::new(endpoint.address.ip(), port);
    let mut ear = Ear { endpoint, horizon: Horizon::default(), next: None, began, standing };
    let mut pause = FIRST;
    loop {
        let connecting = tokio::time::timeout(CONNECT, Subscriber::connect(address)).await;
        if let Ok(Ok(subscriber)) = connecting {
            pause = FIRST;
            let open_stream = OpenStream::begin(&ear.standing);
            let ended = ear.receive(subscriber).await;
            drop(open_stream);
            let engine = &*ear.endpoint.name;
            tracing::info!(engine, error = ?ended.err(), "KV cache event stream ended; reconnecting");
            // What came meanwhile is not known.
            ear.horizon.missed();
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST);
    }
}

/// What was heard of one engine.
struct Ear {
    endpoint: Arc<FleetEndpoint>,
    horizon: Horizon,
    /// The number that comes next.
    next: Option<u64>,
    began: Instant,
    standing: Arc<EventsStatus>,
}

impl Ear {
    async fn receive(&mut self, mut subscriber: Subscriber) -> io::Result<()> {
        loop {
            let (number, batch) = subscriber.next().await?;
            self.take(number, &batch);
        }
    }

    fn take(&mut self, number: u64, batch: &[u8]) {
        let now = ObservedMoment::of_millis(self.began.elapsed().as_millis() as u64);
        self.standing.batches.fetch_add(1, Relaxed);
        match self.next {
            // It counts from the beginning again: another process, with an empty cache.
            Some(next) if number < next => self.horizon.cleared(now),
            Some(next) if number > next => {
                self.standing.missed.fetch_add(number - next, Relaxed);
                self.horizon.missed();
            }
            _ => {}
        }
        self.next = Some(number + 1);
        for event in batch::events(batch) {
            match event {
                Event::Stored(block) => self.horizon.stored(block, now),
                Event::Removed(block) => self.horizon.removed(block),
                Event::Cleared => self.horizon.cleared(now),
            }
        }
        self.endpoint.has_forgotten(self.horizon.forgot());
    }
}

/// An engine that is heard, counted as long as it is.
struct OpenStream(Arc<EventsStatus>);

impl OpenStream {
    fn begin(standing: &Arc<EventsStatus>) -> Self {
        standing.streams.fetch_add(1, Relaxed);
        Self(Arc::clone(standing))
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::FoundEngines;
    use flyball_engines::Engine;

    fn ear() -> Ear {
        let found = FoundEngines {
            name: "e".into(),
            address: ([127, 0, 0, 1], 1).into(),
            draining: false,
            engine: Engine::Vllm,
            uid: None,
        };
        let endpoint = Arc::new(FleetEndpoint::new(&found));
        let (horizon, standing) = (Horizon::default(), Arc::default());
        Ear { endpoint, horizon, next: None, began: Instant::now(), standing }
    }

    #[test]
    fn gaps_are_counted_and_a_new_beginning_forgets_all() {
        let mut ear = ear();
        let nothing = [0x93, 0, 0x90, 0];
        for number in [5, 6, 9] {
            ear.take(number, &nothing);
        }
        assert_eq!((ear.standing.batches(), ear.standing.missed()), (3, 2));
        assert_eq!(ear.endpoint.forgot(), None);
        ear.take(0, &nothing);
        assert!(ear.endpoint.forgot().is_some());
        assert_eq!(ear.standing.missed(), 2);
    }
}
