//! Runs a gateway: threads, what they share, and how it ends.

use crate::accept::{self, Worker};
use crate::admit::Room;
use crate::fleet::{Endpoint, Fleet, Flight, Listing, Millis};
use crate::forward::Recovered;
use crate::identify::Keys;
use crate::meter::{Engines, Finished, Recoveries};
use crate::settings::{Limits, Recovery, Settings, Timeouts};
use arc_swap::{ArcSwap, Guard};
use http::HeaderValue;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::watch;

/// Between two looks for idle connections.
const SWEEP: Duration = Duration::from_secs(2);

/// Requests that may be tried again at once, beyond a fifth of those under way: a brown-out must
/// not double its own load.
const FREE_RETRIES: usize = 20;

/// Whoever is told what happens. Called by every thread; must not wait.
pub trait Listener: Send + Sync {
    /// A request is over.
    fn finished(&self, finished: &Finished<'_>);

    /// Something was refused that never became a request; the code is one that answers have.
    fn refused(&self, code: &'static str) {
        let _ = code;
    }

    /// An engine's breaker opened.
    fn breaker_opened(&self) {}

    /// The `traceparent` that an engine gets; the caller's own if `None`.
    fn traceparent(
        &self,
        callers: Option<&str>,
        request_id: &str,
        started: SystemTime,
    ) -> Option<HeaderValue> {
        let _ = (callers, request_id, started);
        None
    }

    /// A request was cut off at an engine, which should now be free of it.
    fn cancelled(&self, endpoint: &Arc<Endpoint>);
}

/// A gateway that runs.
#[derive(Debug)]
pub struct Running {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    address: SocketAddr,
}

/// What is inside a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inside {
    /// Requests.
    pub requests: usize,
    /// Bytes of bodies.
    pub bytes: usize,
    /// Connections of clients.
    pub connections: usize,
}

/// What all threads share.
pub(crate) struct Shared {
    live: ArcSwap<Live>,
    fleet: ArcSwap<Fleet>,
    pub(crate) room: Arc<Room>,
    connections: AtomicUsize,
    retries: AtomicUsize,
    pub(crate) recovered: Recovered,
    pub(crate) listener: Arc<dyn Listener>,
    began: Instant,
    closing: watch::Sender<bool>,
    cut: AtomicBool,
}

/// What may change while it runs.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) limits: Limits,
    pub(crate) timeouts: Timeouts,
    pub(crate) recovery: Recovery,
    pub(crate) keys: Keys,
}

/// An open connection of a client.
pub(crate) struct Open(Arc<Shared>);

/// A try after a failed one, until its answer begins.
pub(crate) struct Retry<'a>(&'a Shared);

/// Starts a gateway with nothing to serve yet; [`Running::list`] tells it where engines are.
pub fn start(settings: &Settings, listener: Arc<dyn Listener>) -> io::Result<Running> {
    let live = Live {
        limits: settings.limits,
        timeouts: settings.timeouts,
        recovery: settings.recovery,
        keys: Keys::new(&settings.keys, None),
    };
    let shared = Arc::new(Shared {
        live: ArcSwap::from_pointee(live),
        fleet: ArcSwap::from_pointee(Fleet::default()),
        room: Arc::default(),
        connections: AtomicUsize::new(0),
        retries: AtomicUsize::new(0),
        recovered: Recovered::default(),
        listener,
        began: Instant::now(),
        closing: watch::Sender::new(false),
        cut: AtomicBool::new(false),
    });
    let tls = settings.tls.as_ref().map(accept::acceptor).transpose()?;
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let count = if settings.threads == 0 { cores } else { settings.threads };
    let mut address = settings.listen;
    let mut threads = Vec::with_capacity(count);
    for number in 0..count {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let entered = runtime.enter();
        let listener = accept::listener(address)?;
        // With port 0 the first one decides for all.
        address = listener.local_addr()?;
        drop(entered);
        let seed = RandomState::new().hash_one(number);
        let worker = Arc::new(Worker::new(Arc::clone(&shared), seed));
        let (tls, shared) = (tls.clone(), Arc::clone(&shared));
        let work = move || {
            runtime.block_on(async move {
                tokio::spawn(sweep(Arc::clone(&worker)));
                accept::accept(worker, listener, tls, shared.closing()).await;
                shared.emptied().await;
            });
        };
        let name = format!("gateway-{number}");
        threads.push(std::thread::Builder::new().name(name).spawn(work)?);
    }
    Ok(Running { shared, threads, address })
}

impl Running {
    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes in where engines are.
    pub fn list(&self, listing: &Listing) {
        let before = self.shared.fleet.load();
        self.shared.fleet.store(Arc::new(before.after(listing)));
    }

    /// When its clock began.
    pub fn began(&self) -> Instant {
        self.shared.began
    }

    /// The engines that it knows.
    pub fn fleet(&self) -> Arc<Fleet> {
        self.shared.fleet.load_full()
    }

    /// Takes in other limits, timeouts and keys. Connections keep what they began with.
    pub fn change(&self, settings: &Settings) {
        let before = self.shared.live.load();
        self.shared.live.store(Arc::new(Live {
            limits: settings.limits,
            timeouts: settings.timeouts,
            recovery: settings.recovery,
            keys: Keys::new(&settings.keys, Some(&before.keys)),
        }));
    }

    /// What is inside right now.
    pub fn inside(&self) -> Inside {
        let room = &self.shared.room;
        let connections = self.shared.connections.load(Ordering::Relaxed);
        Inside { requests: room.requests(), bytes: room.bytes(), connections }
    }

    /// What was done about slow and broken answers so far.
    pub fn recoveries(&self) -> Recoveries {
        let recovered = &self.shared.recovered;
        Recoveries {
            hedges: recovered.hedges.load(Ordering::Relaxed),
            hedges_won: recovered.hedges_won.load(Ordering::Relaxed),
            continued: recovered.continued.load(Ordering::Relaxed),
        }
    }

    /// How many engines are in which state.
    pub(crate) fn engines(&self) -> Engines {
        let now = self.shared.now();
        let mut engines = Engines::default();
        for endpoint in self.shared.fleet.load().endpoints() {
            let count = endpoint.count_in(&mut engines, now);
            *count += 1;
        }
        engines
    }

    /// Takes no new connections, lets requests finish for so long, ends the rest with an error that
    /// says so, and returns when all is done, with how many had to be ended.
    pub fn drain(&self, within: Duration) -> usize {
        self.shared.closing.send_replace(true);
        let until = Instant::now() + within;
        while Instant::now() < until && !self.threads.iter().all(JoinHandle::is_finished) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let left = self.shared.room.requests();
        self.shared.cut.store(true, Ordering::Relaxed);
        // Streams look once a second, and hang up with an event.
        let until = Instant::now() + Duration::from_secs(2);
        while Instant::now() < until && !self.threads.iter().all(JoinHandle::is_finished) {
            std::thread::sleep(Duration::from_millis(20));
        }
        left
    }
}

impl Shared {
    pub(crate) fn live(&self) -> Guard<Arc<Live>> {
        self.live.load()
    }

    pub(crate) fn fleet(&self) -> Guard<Arc<Fleet>> {
        self.fleet.load()
    }

    pub(crate) fn now(&self) -> Millis {
        Millis(self.began.elapsed().as_millis() as u64)
    }

    /// Ends a flight whose connection was cut, and says so. It is counted out first: what an engine
    /// runs beyond our count is a zombie.
    pub(crate) fn cancelled(&self, flight: Flight) {
        let endpoint = Arc::clone(flight.endpoint());
        drop(flight);
        self.listener.cancelled(&endpoint);
    }

    /// Tells when no new requests are taken.
    pub(crate) fn closing(&self) -> watch::Receiver<bool> {
        self.closing.subscribe()
    }

    /// Whether the time to finish is over.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }

    /// A failed try may be made again, unless too many are.
    pub(crate) fn retry(&self) -> Option<Retry<'_>> {
        let before = self.retries.fetch_add(1, Ordering::Relaxed);
        let retry = Retry(self);
        (before < FREE_RETRIES + self.room.requests() / 5).then_some(retry)
    }

    /// Counts a connection, unless there are too many.
    pub(crate) fn connection(self: &Arc<Self>) -> Option<Open> {
        let open = Open(Arc::clone(self));
        let before = self.connections.fetch_add(1, Ordering::Relaxed);
        (before < self.live().limits.connections).then_some(open)
    }

    /// Waits until no connection is open.
    async fn emptied(&self) {
        while self.connections.load(Ordering::Relaxed) > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Retry<'_> {
    fn drop(&mut self) {
        self.0.retries.fetch_sub(1, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("room", &self.room).finish_non_exhaustive()
    }
}

async fn sweep(worker: Arc<Worker>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        worker.pool.sweep();
    }
}
