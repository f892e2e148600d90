//! The engines, as this gateway knows them: who they are, what they have to do, how they behave.
//!
//! A [`Fleet`] is a table that is replaced as a whole when engines come and go; an [`Endpoint`]
//! lives through such replacements and carries the live counts. Counts are atomics: every thread
//! reads and writes them without waiting. `discover` brings [`Listing`]s, `collect` brings
//! [`Report`]s, `forward` counts what is under way.
//!
//! Start at [`Fleet`].

mod breaker;
mod flight;
mod now;
mod pace;
mod reading;
#[cfg(test)]
mod tests;
mod window;

pub(crate) use flight::Flight;
pub use now::{EngineNow, EngineState, Engines};

use crate::invariants::GatewayInvariant;
use breaker::Breaker;
use flyball_engines::Engine;
use flyball_routing::fair::Reported;
use flyball_routing::{ObservedEndpoints, ObservedMoment, Ring, RoutingPolicy};
use pace::Pace;
use reading::Reading;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;
use window::Learned;

/// All engines by model. Replaced as a whole.
#[derive(Debug, Default)]
pub struct Fleet {
    models: BTreeMap<String, Arc<FleetModel>>,
    gone: Vec<Gone>,
}

/// An engine that discovery does not list any more: its pod is not ready, or leaves. As long as
/// requests are under way at it, they are reported, and who has one holds it.
#[derive(Clone, Debug)]
struct Gone {
    model: Arc<str>,
    endpoint: Weak<FleetEndpoint>,
}

/// A model and its engines.
#[derive(Debug)]
pub struct FleetModel {
    /// The name that clients say.
    pub name: Arc<str>,
    /// Its engines, in the order of their names.
    pub endpoints: Vec<Arc<FleetEndpoint>>,
    /// Who owns which prefix.
    pub(crate) ring: Ring,
    /// Which prompts were seen, and where they went.
    seen: Arc<Mutex<ObservedEndpoints>>,
    /// The mean prompt of late, in tokens.
    usual_prompt: Arc<AtomicU64>,
    /// Requests that had a turn, where engines take turns.
    turns: Arc<AtomicU64>,
    /// How long answers take to begin.
    pub(crate) pace: Arc<Pace>,
}

/// What an engine has to do, as far as this gateway knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) unread_tokens: u64,
    pub(crate) held_tokens: u64,
    /// Zero if unknown.
    pub(crate) kv_used_per_thousand: u32,
}

/// What discovery found: every model with all its engines. A whole, not a difference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// By model.
    pub models: BTreeMap<String, Vec<FoundEngines>>,
}

/// An engine that was found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FoundEngines {
    /// The same on every gateway: `namespace/pod`, or the address where there is no name.
    pub name: String,
    /// Where it answers.
    pub address: SocketAddr,
    /// Its pod's own id: another pod may get the same name and address.
    pub uid: Option<String>,
    /// Whether it is to finish what it has and get nothing new (a pod that is being deleted).
    pub draining: bool,
    /// What it is.
    pub engine: Engine,
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
    /// Requests that all gateways together had under way at it, as far as known: the most of
    /// shortly before and after the report. What runs beyond these has no client any more.
    pub known: Option<u32>,
}

/// The mean prompt before any came: about that of chat traffic in the Azure traces.
const FIRST_PROMPT: u64 = 1_024;

/// Prefixes remembered per model: of the last few thousand prompts of 12,000 tokens. Half a MiB, of
/// which only what is used is real.
const SEEN_PREFIXES: usize = 65_536;

static NEXT_SLOT: AtomicU32 = AtomicU32::new(0);

/// Milliseconds since the gateway began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Millis(pub(crate) u64);

/// A moment that all who need it share: a look at the clock is short, and many are not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Time {
    pub(crate) at: Instant,
    pub(crate) millis: Millis,
}

impl Millis {
    /// The same in the words of routing.
    pub(crate) const fn moment(self) -> ObservedMoment {
        ObservedMoment::of_millis(self.0)
    }
}

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
    pub(crate) slot: u32,
    /// The `host` header for it.
    pub(crate) host: http::HeaderValue,
    pub(crate) breaker: Breaker,
    draining: AtomicBool,
    /// The same, as the operator says: listings do not touch it.
    told_to_drain: AtomicBool,
    quarantined: AtomicBool,
    lost: AtomicBool,
    /// Discovery does not list it.
    gone: AtomicBool,
    in_flight: AtomicU32,
    window: Learned,
    reading: Reading,
    held_tokens: AtomicU64,
    /// Whether it ever told of its load.
    reported: AtomicBool,
    running: AtomicU32,
    waiting: AtomicU32,
    kv_used_per_thousand: AtomicU32,
    /// A [`Moment`], or more than that if nothing is known.
    forgot: AtomicU32,
}

impl Fleet {
    /// The fleet after a listing. Engines that stay keep their counts, and so do those that come back.
    pub fn after(&self, listing: &Listing) -> Self {
        let known: Vec<(Arc<str>, Arc<FleetEndpoint>)> = self.known().collect();
        let mut by_name: BTreeMap<(&str, &str), Vec<&Arc<FleetEndpoint>>> = BTreeMap::new();
        for (model, endpoint) in &known {
            by_name.entry((model, &endpoint.name)).or_default().push(endpoint);
        }
        let models = listing.models.iter().map(|(name, found)| {
            let before = self.models.get(name);
            let kept = |f: &FoundEngines| {
                let old = by_name.get(&(name, &f.name))?.iter().find(|e| e.is(f))?;
                old.listed(f.draining);
                Some(Arc::clone(old))
            };
            let mut endpoints: Vec<_> = found
                .iter()
                .map(|f| kept(f).unwrap_or_else(|| Arc::new(FleetEndpoint::new(f))))
                .collect();
            endpoints.sort_by(|a, b| a.name.cmp(&b.name));
            let ring = Ring::new(endpoints.iter().map(|endpoint| endpoint.key));
            let seen = before.map_or_else(
                || Arc::new(Mutex::new(ObservedEndpoints::new(SEEN_PREFIXES))),
                |before| Arc::clone(&before.seen),
            );
            let usual_prompt = before.map_or_else(
                || Arc::new(AtomicU64::new(FIRST_PROMPT)),
                |before| Arc::clone(&before.usual_prompt),
            );
            let turns = before.map_or_else(Arc::default, |before| Arc::clone(&before.turns));
            let pace = before.map(|before| Arc::clone(&before.pace)).unwrap_or_default();
            let label = name.as_str().into();
            let model =
                FleetModel { name: label, endpoints, ring, seen, usual_prompt, turns, pace };
            (name.clone(), Arc::new(model))
        });
        let mut after = Self { models: models.collect(), gone: Vec::new() };
        after.gone = after.gone_of(&known);
        let told: BTreeSet<u32> = after.known().map(|(_, endpoint)| endpoint.slot).collect();
        let is_told = |old: &FleetEndpoint| old.in_flight() == 0 || told.contains(&old.slot);
        GatewayInvariant::Reported.hold(known.iter().all(|(_, old)| is_told(old)));
        after
    }

    /// Engines that are not listed any more and have requests under way, with their model's name.
    pub fn gone(&self) -> impl Iterator<Item = (&str, Arc<FleetEndpoint>)> {
        let there = |gone: &Gone| gone.endpoint.upgrade().filter(|one| one.in_flight() > 0);
        self.gone.iter().filter_map(move |gone| Some((&*gone.model, there(gone)?)))
    }

    /// All engines that somebody may have a request at, with their model's name.
    fn known(&self) -> impl Iterator<Item = (Arc<str>, Arc<FleetEndpoint>)> {
        let listed = self.models.values().flat_map(|model| {
            model.endpoints.iter().map(|endpoint| (Arc::clone(&model.name), Arc::clone(endpoint)))
        });
        let gone = self.gone.iter();
        listed.chain(gone.filter_map(|g| Some((Arc::clone(&g.model), g.endpoint.upgrade()?))))
    }

    /// Those of the engines known before that are not listed here. Whether a request is under way at
    /// one is not asked: somebody may have chosen it a moment ago.
    fn gone_of(&self, known: &[(Arc<str>, Arc<FleetEndpoint>)]) -> Vec<Gone> {
        let listed: BTreeSet<u32> = self.endpoints().map(|endpoint| endpoint.slot).collect();
        let left = known.iter().filter(|(_, endpoint)| !listed.contains(&endpoint.slot));
        left.map(|(model, endpoint)| {
            endpoint.gone.store(true, Ordering::Relaxed);
            Gone { model: Arc::clone(model), endpoint: Arc::downgrade(endpoint) }
        })
        .collect()
    }

    /// The model of this name.
    pub fn model(&self, name: &str) -> Option<&Arc<FleetModel>> {
        self.models.get(name)
    }

    /// All models, by name.
    pub fn models(&self) -> impl Iterator<Item = &Arc<FleetModel>> {
        self.models.values()
    }

    /// All engines of all models.
    pub fn endpoints(&self) -> impl Iterator<Item = &Arc<FleetEndpoint>> {
        self.models.values().flat_map(|model| &model.endpoints)
    }
}

impl FleetModel {
    /// The memory of prompts. Held for about a microsecond.
    pub(crate) fn seen(&self) -> MutexGuard<'_, ObservedEndpoints> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A prompt with these prefixes was last used by an engine at this time.
    pub(crate) fn used(&self, prefixes: &[u64], endpoint: &FleetEndpoint, now: Millis) {
        self.seen().sent_at(prefixes, endpoint.key, now.moment());
    }

    /// A prompt of so many tokens came. Returns the mean of late, to which each adds a 64th.
    pub(crate) fn prompt(&self, tokens: u64) -> u64 {
        let before = self.usual_prompt.load(Ordering::Relaxed);
        // Two threads may both write: one of two prompts is then not counted.
        let after = (before * 63 + tokens.min(1 << 32)).div_ceil(64);
        self.usual_prompt.store(after, Ordering::Relaxed);
        after
    }

    /// Leading blocks of a prompt that an engine hopefully has cached. Where engines are not chosen by
    /// what they have cached, none is hoped to have any of it.
    pub(crate) fn known_blocks(&self, prefixes: &[u64], policy: RoutingPolicy) -> u32 {
        let forgot = |place: usize| self.endpoints[place].forgot();
        match policy {
            RoutingPolicy::Prefix => self.seen().known_at(prefixes, &self.ring, forgot),
            RoutingPolicy::LeastLoad | RoutingPolicy::RoundRobin => 0,
        }
    }

    /// The next turn.
    pub(crate) fn turn(&self) -> u64 {
        self.turns.fetch_add(1, Ordering::Relaxed)
    }
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
            told_to_drain: AtomicBool::new(false),
            quarantined: AtomicBool::new(false),
            in_flight: AtomicU32::new(0),
            window: Learned::default(),
            reading: Reading::default(),
            held_tokens: AtomicU64::new(0),
            reported: AtomicBool::new(false),
            running: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            kv_used_per_thousand: AtomicU32::new(u32::MAX),
            forgot: AtomicU32::new(u32::MAX),
        }
    }

    /// Takes in what the engine reports.
    pub fn report(&self, report: &FleetReport) {
        self.running.store(report.running, Ordering::Relaxed);
        self.waiting.store(report.waiting, Ordering::Relaxed);
        let kv = report.kv_used_per_thousand.unwrap_or(u32::MAX);
        self.kv_used_per_thousand.store(kv, Ordering::Relaxed);
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
    pub(crate) fn has_room(&self, now: Instant) -> bool {
        self.is_open() && self.in_flight() < self.window() && self.reading.has_room(now)
    }

    /// Whether it is not far beyond its window.
    pub(crate) fn has_some_room(&self) -> bool {
        let window = self.window();
        self.in_flight() < window + window / 4 + 1
    }

    /// Lets the window of an engine grow that never tells anything.
    pub(crate) fn trust(&self) {
        self.window.unreported(self.in_flight(), Instant::now());
    }

    /// What it tells about its cache: what was not used since then is gone.
    pub(crate) fn has_forgotten(&self, forgot: Option<ObservedMoment>) {
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
    pub(crate) fn kv_used_per_thousand(&self) -> Option<u32> {
        Some(self.kv_used_per_thousand.load(Ordering::Relaxed)).filter(|used| *used != u32::MAX)
    }

    /// Tokens that it holds in memory for requests of this gateway, as reckoned here.
    pub(crate) fn held_tokens(&self) -> u64 {
        self.held_tokens.load(Ordering::Relaxed)
    }

    /// Keeps new requests away, or lets them come again: because the operator says so.
    pub(crate) fn drain(&self, on: bool) {
        self.told_to_drain.store(on, Ordering::Relaxed);
    }

    /// Whether the operator keeps new requests away.
    pub(crate) fn is_told_to_drain(&self) -> bool {
        self.told_to_drain.load(Ordering::Relaxed)
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
    pub(crate) fn load(&self, usual_prompt: u64, now: Instant) -> Load {
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
    pub(crate) fn state(&self, now: Millis) -> EngineState {
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
    pub(crate) fn glance(&self, now: Millis) -> EngineNow {
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
    pub(crate) fn is_leaving(&self) -> bool {
        self.is_draining() || self.is_gone()
    }

    /// Whether discovery does not list it.
    fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    /// Discovery lists it. If it was gone, what was thought of it is forgotten: whoever found out is
    /// not asked about it any more. Its counts stay.
    fn listed(&self, draining: bool) {
        self.draining.store(draining, Ordering::Relaxed);
        if self.gone.swap(false, Ordering::Relaxed) {
            self.lose(false);
            self.quarantine(false);
        }
    }

    fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed) || self.is_told_to_drain()
    }

    fn is(&self, found: &FoundEngines) -> bool {
        *self.name == *found.name
            && self.address == found.address
            && self.uid.as_deref() == found.uid.as_deref()
            && self.engine == found.engine
    }
}
