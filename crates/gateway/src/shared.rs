//! What every phase may look at: settings, models, room, the clock, the door, and whoever is told.

use crate::accept::Door;
use crate::admit::{Served, ServedModel};
use crate::finished::Finished;
use crate::identify::{Caller, RefusedKey, UnauthorizedReason, digest, shown_in};
use crate::live::Live;
use crate::quota::GatewayQuota;
use crate::room::Room;
use crate::settings::{GatewaySettingsFile, RequestLimits, Timeouts};
use crate::tenants::TenantTable;
use crate::tokens::{ShownToken, Tokens};
use arc_swap::{ArcSwap, Guard};
use flyball_core::units::Timestamp;
use flyball_fleet::{FleetEndpoint, Flight, Millis, Time};
use http::{HeaderMap, HeaderValue};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Whoever is told what happens. Called by every thread; must not wait.
pub trait Listener: Send + Sync {
    /// A request is over.
    fn finished(&self, finished: &Finished<'_>);

    /// Something was refused that never became a request; the code is one that answers have.
    fn refused(&self, code: &'static str) {
        let _ = code;
    }

    /// A request had no key that is let in.
    fn key_refused(&self, refused: &RefusedKey<'_>) {
        let _ = refused;
    }

    /// A model is wanted that has no engine.
    fn wake(&self, model: &Arc<str>) {
        let _ = model;
    }

    /// A copy for a mirror was not sent, because there was no room.
    fn copy_dropped(&self) {}

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
    fn cancelled(&self, endpoint: &Arc<FleetEndpoint>);
}

/// What every phase may look at. One for all threads.
pub(crate) struct Shared {
    live: ArcSwap<Live>,
    served: ArcSwap<Served>,
    /// The keys of Tenants; none where they are not watched.
    tenants: ArcSwap<TenantTable>,
    /// Tokens of their members.
    pub(crate) tokens: Arc<Tokens>,
    /// Models that are not served any more, as long as somebody may wait for one.
    unserved: Mutex<Vec<Arc<ServedModel>>>,
    pub(crate) room: Arc<Room>,
    pub(crate) door: Arc<Door>,
    pub(crate) listener: Arc<dyn Listener>,
    /// Parts of limits and budgets of Tenants.
    pub(crate) quota: Arc<GatewayQuota>,
    pub(crate) began: Instant,
}

impl Shared {
    /// Of these settings, with nothing to serve yet.
    pub(crate) fn new(settings: &GatewaySettingsFile, listener: Arc<dyn Listener>) -> Self {
        Self {
            live: ArcSwap::from_pointee(Live::new(settings, None)),
            served: ArcSwap::from_pointee(Served::default()),
            tenants: ArcSwap::default(),
            tokens: Arc::new(Tokens::new(&settings.tenants)),
            unserved: Mutex::default(),
            room: Arc::default(),
            door: Arc::new(Door::new(settings.limits, settings.timeouts)),
            listener,
            quota: Arc::default(),
            began: Instant::now(),
        }
    }

    /// Takes in other settings.
    pub(crate) fn follow(&self, live: Arc<Live>) {
        self.door.follow(live.limits, live.timeouts);
        self.live.store(live);
    }

    /// Takes in other keys of Tenants. Requests inside stay, whoever is let in from now on.
    pub(crate) fn admit(&self, tenants: Arc<TenantTable>) {
        self.quota.set_tenants(tenants.accesses());
        self.tenants.store(tenants);
    }

    /// The keys of Tenants.
    pub(crate) fn tenants(&self) -> Guard<Arc<TenantTable>> {
        self.tenants.load()
    }

    /// Who sends these headers at this moment; `None` if nobody is let in by them. Why is for us to know.
    pub(crate) fn identify(&self, headers: &HeaderMap, now: SystemTime) -> Option<Arc<Caller>> {
        let (live, tenants) = (self.live(), self.tenants());
        if live.keys.is_open() {
            return Some(Arc::clone(live.keys.anyone()));
        }
        let (nobody, now) = (RefusedKey::of_nobody, timestamp(now));
        let Some(shown) = shown_in(headers, self.tokens.is_on()) else {
            self.listener.key_refused(&nobody(UnauthorizedReason::Missing));
            return None;
        };
        let digest = digest(shown);
        let found = match (live.keys.get(&digest), tenants.get(&digest)) {
            (None, None) if self.tokens.takes(shown) => {
                let token = ShownToken::new(shown, digest, headers);
                let found = self.tokens.caller(&token, &tenants, now);
                return found
                    .map_err(|refused| self.listener.key_refused(&refused.refused_key()))
                    .ok();
            }
            (None, None) => Err(nobody(UnauthorizedReason::Unknown)),
            (Some(caller), None) => Ok(caller),
            (None, Some(key)) => key.caller(now),
            // Whoever revokes it at one of the two places would not know of the other.
            (Some(_), Some(key)) => Err(key.refused(UnauthorizedReason::Refused)),
        };
        found.map(Arc::clone).map_err(|refused| self.listener.key_refused(&refused)).ok()
    }

    /// Takes in other engines.
    pub(crate) fn serve(&self, served: Arc<Served>) {
        let before = self.served.swap(Arc::clone(&served));
        let gone = before.models().filter(|model| served.model(model.name()).is_none());
        self.unserved().extend(gone.cloned());
    }

    /// Tells those who wait for a model that is not served any more: nobody else looks after its queue. What
    /// is under way at engines finishes.
    pub(crate) fn refuse_unserved(&self) {
        let is_held = |model: &Arc<ServedModel>| {
            Arc::strong_count(model) > 1 || Arc::strong_count(&model.gate) > 1
        };
        self.unserved().retain(|model| {
            model.gate.pulse(None, true);
            is_held(model)
        });
    }

    fn unserved(&self) -> MutexGuard<'_, Vec<Arc<ServedModel>>> {
        self.unserved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What may change, for a look. Not to be kept while something is awaited: a thread has room for
    /// eight such looks, and every further one goes a slower way.
    pub(crate) fn live(&self) -> Guard<Arc<Live>> {
        self.live.load()
    }

    /// The limits and timeouts of now, to be kept.
    pub(crate) fn bounds(&self) -> (RequestLimits, Timeouts) {
        let live = self.live();
        (live.limits, live.timeouts)
    }

    /// All models with engines and queues, for a look as short.
    pub(crate) fn served(&self) -> Guard<Arc<Served>> {
        self.served.load()
    }

    pub(crate) fn now(&self) -> Millis {
        self.millis(Instant::now())
    }

    pub(crate) fn millis(&self, at: Instant) -> Millis {
        Millis(at.saturating_duration_since(self.began).as_millis() as u64)
    }

    /// Both of now.
    pub(crate) fn time(&self) -> Time {
        let at = Instant::now();
        Time { at, millis: self.millis(at) }
    }

    /// Ends a flight whose connection was cut, and says so. It is counted out first: what an engine
    /// runs beyond our count is a zombie.
    pub(crate) fn cancelled(&self, flight: Flight) {
        let endpoint = Arc::clone(flight.endpoint());
        drop(flight);
        self.listener.cancelled(&endpoint);
    }

    /// A request is over; whether it was fast enough is for its model's objectives to say.
    pub(crate) fn judge(&self, finished: &Finished<'_>) {
        let served = self.served();
        if let Some(model) = finished.model.and_then(|name| served.model(name)) {
            model.gate.judge.finished(finished);
        }
    }

    /// Whether the time to finish is over.
    pub(crate) fn is_cut(&self) -> bool {
        self.door.is_cut()
    }
}

/// A time before 1970 is 1970: of a clock that is so wrong no key's time has begun.
pub(crate) fn timestamp(now: SystemTime) -> Timestamp {
    let micros = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    Timestamp::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("room", &self.room).finish_non_exhaustive()
    }
}
