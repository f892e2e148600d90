//! One engine, with its live counts.

use super::reading::Reading;
use super::window::Learned;
use super::{Breaker, EngineNow, EngineState, FoundEngines, Millis};
use flyball_engines::Engine;
use flyball_routing::ObservedMoment;
use flyball_routing::fair::{BatchRoom, Reported};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

static NEXT_SLOT: AtomicU32 = AtomicU32::new(0);

/// One engine.
#[derive(Debug)]
pub struct FleetEndpoint {
    /// The same on every gateway.
    pub name: Arc<str>,
    /// A hash of the name, the same on every gateway.
    pub key: u64,
    /// Where it answers.
    pub address: SocketAddr,
    /// Its pod's own id, if it is a pod.
    pub uid: Option<Arc<str>>,
    /// What it is.
    pub engine: Engine,
    /// A number of its own in this process: connections are kept by it.
    pub slot: u32,
    /// The `host` header for it.
    pub host: http::HeaderValue,
    /// Whether it fails.
    pub breaker: Breaker,
    draining: AtomicBool,
    /// The same, as the operator says: listings do not touch it.
    drain_ordered: AtomicBool,
    quarantined: AtomicBool,
    lost: AtomicBool,
    /// Discovery does not list it.
    gone: AtomicBool,
    pub(super) in_flight: AtomicU32,
    window: Learned,
    pub(super) reading: Reading,
    pub(super) held_tokens: AtomicU64,
    /// Whether it ever told of its load.
    reported: AtomicBool,
    running: AtomicU32,
    waiting: AtomicU32,
    /// What others had there when it told.
    foreign: AtomicU32,
    kv_used_per_thousand: AtomicU32,
    /// Tokens of its context; zero if it does not tell.
    context_tokens: AtomicU32,
    /// An [`ObservedMoment`], or more than that if nothing is known.
    forgot: AtomicU32,
}

/// What an engine has to do, as far as this gateway knows.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Prompt tokens that it has not read.
    pub unread_tokens: u64,
    /// Tokens that it holds in memory.
    pub held_tokens: u64,
    /// Share of its KV cache that is in use, in thousandths; zero if unknown.
    pub kv_used_per_thousand: u32,
}

/// What an engine reports about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FleetReport {
    /// Requests that it works on.
    pub running: u32,
    /// Requests that wait in it.
    pub waiting: u32,
    /// Share of its KV cache that is in use, in thousandths; unknown where it does not tell.
    pub kv_used_per_thousand: Option<u32>,
    /// Tokens that a prompt and its answer may have together; unknown where it does not tell.
    pub context_tokens: Option<u32>,
    /// Requests that all gateways together had under way at it, as far as known: the most of
    /// shortly before and after the report. What runs beyond these has no client any more.
    pub known: Option<u32>,
}

impl FleetEndpoint {
    /// One with nothing to do.
    pub fn new(found: &FoundEngines) -> Self {
        Self {
            name: found.name.as_str().into(),
            key: xxhash_rust::xxh3::xxh3_64(found.name.as_bytes()),
            address: found.address,
            uid: found.uid.as_deref().map(Arc::from),
            engine: found.engine,
            slot: NEXT_SLOT.fetch_add(1, Ordering::Relaxed),
            host: http::HeaderValue::from_str(&found.address.to_string())
                .expect("an address is plain ASCII"),
            breaker: Breaker::default(),
            lost: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            draining: AtomicBool::new(found.draining),
            drain_ordered: AtomicBool::new(false),
            quarantined: AtomicBool::new(false),
            in_flight: AtomicU32::new(0),
            window: Learned::default(),
            reading: Reading::default(),
            held_tokens: AtomicU64::new(0),
            reported: AtomicBool::new(false),
            running: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            foreign: AtomicU32::new(0),
            kv_used_per_thousand: AtomicU32::new(u32::MAX),
            context_tokens: AtomicU32::new(0),
            forgot: AtomicU32::new(u32::MAX),
        }
    }

    /// Takes in what the engine reports.
    pub fn report(&self, report: &FleetReport) {
        self.running.store(report.running, Ordering::Relaxed);
        self.waiting.store(report.waiting, Ordering::Relaxed);
        let all = report.running.saturating_add(report.waiting);
        self.foreign.store(all.saturating_sub(self.in_flight()), Ordering::Relaxed);
        let kv = report.kv_used_per_thousand.unwrap_or(u32::MAX);
        self.kv_used_per_thousand.store(kv, Ordering::Relaxed);
        self.context_tokens.store(report.context_tokens.unwrap_or(0), Ordering::Relaxed);
        self.reported.store(true, Ordering::Relaxed);
        let reported = Reported {
            own: self.in_flight(),
            running: report.running,
            waiting: report.waiting,
            kv_used_per_thousand: report.kv_used_per_thousand.unwrap_or(0),
        };
        self.window.reported(&reported, Instant::now());
    }

    /// Requests of this gateway that it may have at once.
    pub fn window(&self) -> u32 {
        self.window.limit()
    }

    /// Prompt tokens of this gateway's requests that it has not read.
    pub fn unread_tokens(&self) -> u64 {
        self.reading.tokens(Instant::now())
    }

    /// Whether it may be given another request.
    pub fn has_room(&self, now: Instant) -> bool {
        self.is_open() && self.in_flight() < self.window() && self.reading.has_room(now)
    }

    /// Whether it is not far beyond its window.
    pub fn has_some_room(&self) -> bool {
        let window = self.window();
        self.in_flight() < window + window / 4 + 1
    }

    /// What decides whether it may be given a batch request.
    pub fn batch_room(&self, now: Instant) -> BatchRoom {
        let foreign = self.foreign.load(Ordering::Relaxed);
        BatchRoom {
            bears: if self.is_open() { self.window.bears() } else { 0 },
            is_known: self.window.is_known(),
            inside: self.in_flight().saturating_add(foreign),
            running: self.running.load(Ordering::Relaxed),
            waiting: self.waiting.load(Ordering::Relaxed),
            kv_used_per_thousand: self.kv_used_per_thousand().unwrap_or(0),
            may_read: self.reading.has_room_for_batch(now),
        }
    }

    /// A batch request was sent to it.
    pub fn filled_by_batch(&self) {
        self.window.filled();
    }

    /// Somebody came with so many tokens to read who is not batch: for a moment it gets no batch to read.
    pub fn keeps_from_batch(&self, tokens: u64) {
        self.reading.come(tokens, Instant::now());
    }

    /// Requests under way at it beyond those that it bears.
    pub fn beyond(&self) -> u32 {
        let inside = self.in_flight().saturating_add(self.foreign.load(Ordering::Relaxed));
        inside.saturating_sub(self.window.bears())
    }

    /// Whether a prompt of so many tokens keeps it from all others for longer than they should wait for a batch request.
    pub fn reads_long(&self, tokens: u64) -> bool {
        self.reading.is_long(tokens)
    }

    /// Lets the window of an engine grow that never tells anything.
    pub fn trust(&self) {
        self.window.unreported(self.in_flight(), Instant::now());
    }

    /// What it tells about its cache: what was not used since then is gone.
    pub fn has_forgotten(&self, forgot: Option<ObservedMoment>) {
        let forgot = forgot.map_or(u32::MAX, |moment| u32::from(moment.0));
        self.forgot.store(forgot, Ordering::Relaxed);
    }

    /// What was not used since then is gone from its cache; `None` if it does not tell.
    pub fn forgot(&self) -> Option<ObservedMoment> {
        u16::try_from(self.forgot.load(Ordering::Relaxed)).ok().map(ObservedMoment)
    }

    /// Requests that this gateway has under way at it.
    pub fn in_flight(&self) -> u32 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Share of its cache that it reports as used; `None` if it does not tell.
    pub fn kv_used_per_thousand(&self) -> Option<u32> {
        Some(self.kv_used_per_thousand.load(Ordering::Relaxed)).filter(|used| *used != u32::MAX)
    }

    /// Tokens that a prompt and its answer may have together there; `None` if it does not tell.
    pub fn context_tokens(&self) -> Option<u64> {
        Some(u64::from(self.context_tokens.load(Ordering::Relaxed))).filter(|tokens| *tokens > 0)
    }

    /// Tokens that it holds in memory for requests of this gateway, as reckoned here.
    pub fn held_tokens(&self) -> u64 {
        self.held_tokens.load(Ordering::Relaxed)
    }

    /// Keeps new requests away, or lets them come again: because the operator says so.
    pub fn drain(&self, on: bool) {
        self.drain_ordered.store(on, Ordering::Relaxed);
    }

    /// Whether the operator keeps new requests away.
    pub fn is_ordered_to_drain(&self) -> bool {
        self.drain_ordered.load(Ordering::Relaxed)
    }

    /// Keeps new requests away, or lets them come again: for engines that ignore hang-ups.
    pub fn quarantine(&self, on: bool) {
        self.quarantined.store(on, Ordering::Relaxed);
    }

    /// Says that the engine does not answer at all any more, or does again. Requests that wait
    /// for it try another.
    pub fn lose(&self, lost: bool) {
        self.lost.store(lost, Ordering::Relaxed);
    }

    /// Whether it does not answer at all.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Whether new requests may come.
    pub fn is_open(&self) -> bool {
        !self.is_draining()
            && !self.quarantined.load(Ordering::Relaxed)
            && !self.is_lost()
            && !self.is_gone()
    }

    /// What routing goes by. Of what others sent, only counts are known: each is taken
    /// to be a usual prompt.
    pub fn load(&self, usual_prompt: u64, now: Instant) -> Load {
        let own = self.in_flight();
        let (running, waiting) =
            (self.running.load(Ordering::Relaxed), self.waiting.load(Ordering::Relaxed));
        let foreign = u64::from((running + waiting).saturating_sub(own));
        let foreign_waiting = foreign.min(u64::from(waiting));
        Load {
            unread_tokens: self.reading.tokens(now) + foreign_waiting * usual_prompt,
            held_tokens: self.held_tokens.load(Ordering::Relaxed) + foreign * usual_prompt,
            kv_used_per_thousand: self.kv_used_per_thousand().unwrap_or(0),
        }
    }

    /// Whether it may get requests.
    pub fn state(&self, now: Millis) -> EngineState {
        if self.is_gone() {
            EngineState::Gone
        } else if self.is_lost() || !self.breaker.allows(now) {
            EngineState::Broken
        } else if self.quarantined.load(Ordering::Relaxed) {
            EngineState::Quarantined
        } else if self.is_draining() {
            EngineState::Draining
        } else {
            EngineState::Open
        }
    }

    /// What is known of it.
    pub fn glance(&self, now: Millis) -> EngineNow {
        let reported = |count: &AtomicU32| {
            self.reported.load(Ordering::Relaxed).then(|| count.load(Ordering::Relaxed))
        };
        EngineNow {
            name: Arc::clone(&self.name),
            address: self.address,
            uid: self.uid.clone(),
            state: self.state(now),
            in_flight: self.in_flight(),
            running: reported(&self.running),
            waiting: reported(&self.waiting),
            kv_used_per_thousand: reported(&self.kv_used_per_thousand).filter(|kv| *kv != u32::MAX),
        }
    }

    /// Whether it is on its way out: told to finish, or not listed.
    pub fn is_leaving(&self) -> bool {
        self.is_draining() || self.is_gone()
    }

    /// Discovery does not list it any more.
    pub(super) fn leave(&self) {
        self.gone.store(true, Ordering::Relaxed);
    }

    /// Whether discovery does not list it.
    pub(super) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    /// Discovery lists it. If it was gone, what was thought of it is forgotten: whoever found out is
    /// not asked about it any more. Its counts stay.
    pub(super) fn listed(&self, draining: bool) {
        self.draining.store(draining, Ordering::Relaxed);
        if self.gone.swap(false, Ordering::Relaxed) {
            self.lose(false);
            self.quarantine(false);
        }
    }

    fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed) || self.is_ordered_to_drain()
    }

    /// Whether it is the one that was found.
    pub(super) fn is(&self, found: &FoundEngines) -> bool {
        *self.name == *found.name
            && self.address == found.address
            && self.uid.as_deref() == found.uid.as_deref()
            && self.engine == found.engine
    }
}
