//! Counts each request once, however it ended: metrics, a line in the access log, a span.
//!
//! `forward` hands over one [`Finished`] per request that was accepted. Nothing here can fail a
//! request or wait: what does not fit into a queue is dropped and counted.
//!
//! Counting costs less than two microseconds with everything on, because a whole request should
//! cost less than 40: names are resolved to counts when settings come, counts are atomics, lines
//! are put together by hand, and no text is allocated unless a request is sampled.
//!
//! Start at [`Meter`], which is told of each [`Finished`] request. `series` has the counts by model
//! and caller, `page` shows them, `recent` has the last minute and `glance` shows it, `log` writes
//! lines, `span` makes spans.

mod glance;
mod histogram;
mod log;
mod now;
mod page;
mod reason;
mod recent;
mod series;
mod span;
mod spread;

#[cfg(test)]
mod cost;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod traced;

pub use crate::admit::ModelNow;
pub use crate::finished::{Finished, RequestOutcome, Try};
pub use crate::forward::{Recoveries, Suspected};
pub use flyball_fleet::{EngineNow, EngineState, Engines};
pub use now::{KvEvents, MeterNow, ModelNameCounts, TenantsNow};
pub use series::{ARMS, CALLERS, MODELS};

use crate::identify::UnauthorizedReason;
use crate::settings::GatewaySettingsFile;
use crate::settings::reload::Reload;
use arc_swap::ArcSwap;
use flyball_telemetry::traces::{TraceError, Traces};
use histogram::Histogram;
use http::HeaderValue;
use log::AccessLog;
use reason::Reasons;
use series::Names;
use span::Ids;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

/// Counts requests. One for all threads, behind an `Arc`.
pub struct Meter {
    names: ArcSwap<Names>,
    /// The callers that are not in the settings.
    tenants: ArcSwap<Vec<Arc<str>>>,
    totals: Totals,
    now: OnceLock<Box<dyn Fn() -> MeterNow + Send + Sync>>,
    reload: ArcSwap<Reload>,
    log: Option<AccessLog>,
    log_on: AtomicBool,
    traces: Option<Traces>,
    sampled_per_thousand: AtomicU32,
    /// Goes into the ids of spans, so that nobody outside can guess them.
    secret: u64,
}

/// Why a meter cannot start.
#[derive(Debug, thiserror::Error)]
pub enum MeterError {
    /// The access log has no thread.
    #[error("cannot start the thread that writes the access log: {0}")]
    Log(#[from] std::io::Error),
    /// Spans cannot be sent.
    #[error("telemetry.otlp: {0}")]
    Traces(#[from] TraceError),
}

/// Counts that have no model and no caller.
#[derive(Debug)]
struct Totals {
    refused: Reasons,
    /// By affinity, by load.
    choices: [AtomicU64; 2],
    chosen: Histogram,
    estimated: AtomicU64,
    copies_dropped: AtomicU64,
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
    freed: Histogram,
    cancels_ignored: AtomicU64,
    breakers_opened: AtomicU64,
    /// Of models, of callers.
    capped: [AtomicU64; 2],
    /// By the places of [`UnauthorizedReason::ALL`].
    keys_refused: [AtomicU64; UnauthorizedReason::ALL.len()],
}

impl Meter {
    /// One that counts, and writes neither lines nor spans.
    pub fn quiet(settings: &GatewaySettingsFile) -> Self {
        let totals = Totals {
            refused: Reasons::default(),
            choices: Default::default(),
            chosen: Histogram::new(&histogram::CHOSEN),
            estimated: AtomicU64::new(0),
            copies_dropped: AtomicU64::new(0),
            received_bytes: AtomicU64::new(0),
            sent_bytes: AtomicU64::new(0),
            freed: Histogram::new(&histogram::FREED),
            cancels_ignored: AtomicU64::new(0),
            breakers_opened: AtomicU64::new(0),
            capped: Default::default(),
            keys_refused: Default::default(),
        };
        Self {
            names: ArcSwap::from_pointee(Names::of(settings, &[], &Names::default())),
            tenants: ArcSwap::default(),
            totals,
            now: OnceLock::new(),
            reload: ArcSwap::from_pointee(Reload::good(SystemTime::now())),
            log: None,
            log_on: AtomicBool::new(settings.telemetry.access_log),
            traces: None,
            sampled_per_thousand: AtomicU32::new(settings.telemetry.sampled_per_thousand),
            secret: RandomState::new().hash_one(0),
        }
    }

    /// One that also writes lines to `out` and spans to the receiver of the settings, if they name
    /// one. Dropping it does what [`Self::close`] does.
    pub fn start(
        settings: &GatewaySettingsFile,
        version: &'static str,
        out: impl Write + Send + 'static,
    ) -> Result<Self, MeterError> {
        let mut meter = Self::quiet(settings);
        meter.log = Some(AccessLog::start(out)?);
        if let Some(address) = &settings.telemetry.otlp {
            meter.traces = Some(Traces::start(address, "flyball-gateway", version)?);
        }
        Ok(meter)
    }

    /// Writes the lines and sends the spans that are left. To be called when the last request is
    /// over, because whoever still looks at the meter keeps it from being dropped.
    pub fn close(&self) {
        self.log.iter().for_each(AccessLog::close);
        self.traces.iter().for_each(Traces::close);
    }

    /// Follows changed settings. The receiver of spans stays as it was.
    pub fn follow(&self, settings: &GatewaySettingsFile) {
        self.names.rcu(|before| Names::of(settings, &self.tenants.load(), before));
        self.log_on.store(settings.telemetry.access_log, Relaxed);
        self.sampled_per_thousand.store(settings.telemetry.sampled_per_thousand, Relaxed);
    }

    /// Follows Tenants that let somebody in, by their paths.
    pub fn tenants(&self, paths: &[Arc<str>]) {
        self.tenants.store(Arc::new(paths.to_vec()));
        self.names.rcu(|before| before.with_tenants(paths));
    }

    /// A request had no key that is let in. The refusal itself is counted as a request's end.
    pub fn key_refused(&self, why: UnauthorizedReason) {
        let place = UnauthorizedReason::ALL.iter().position(|one| *one == why).unwrap_or_default();
        self.totals.keys_refused[place].fetch_add(1, Relaxed);
    }

    /// Says where to look for what is under way. Only the first call matters.
    pub fn observe_with(&self, now: impl Fn() -> MeterNow + Send + Sync + 'static) {
        // A second one would be a second data plane, which there is not.
        let _ = self.now.set(Box::new(now));
    }

    /// A request is over. Its reason, if any, is counted; do not call [`Self::refused`] too.
    pub fn finished(&self, finished: &Finished<'_>) {
        let ended = finished.ended();
        let names = self.names.load();
        let (model, own) = names.model(finished.model);
        if let Some(model) = model {
            model.count(finished, ended);
        }
        self.count_capped(0, own);
        // A copy is nobody's request: its caller neither asked for it nor gets its answer.
        if !finished.mirrored {
            let (caller, own) = names.caller(finished.caller);
            if let Some(caller) = caller {
                caller.count(finished, ended);
            }
            self.count_capped(1, own);
            if let Some(arm) = names.arm(finished.split, finished.model) {
                arm.fetch_add(1, Relaxed);
            }
            self.count(finished, ended);
        }
        drop(names);
        let ids = self.traces.is_some().then(|| self.ids(finished)).filter(|i| i.server.sampled);
        if let Some(log) = self.log.as_ref().filter(|_| self.log_on.load(Relaxed)) {
            log.line(finished, ids.map(|ids| ids.server.trace_id));
        }
        if let (Some(traces), Some(ids)) = (&self.traces, ids) {
            span::spans(finished, &ids).into_iter().for_each(|span| traces.send(span));
        }
    }

    /// Something was refused that never became a request: a path that is not ours, a head that
    /// cannot be read. The code is one of those that answers have.
    pub fn refused(&self, code: &'static str) {
        self.totals.refused.count(code, SystemTime::now());
    }

    /// A cancelled request's slot was seen free this long after the hang-up.
    pub fn freed(&self, took: Duration) {
        self.totals.freed.add_time(took);
    }

    /// An engine kept a cancelled request.
    pub fn cancel_ignored(&self) {
        self.totals.cancels_ignored.fetch_add(1, Relaxed);
    }

    /// A copy for a mirror was not sent.
    pub fn copy_dropped(&self) {
        self.totals.copies_dropped.fetch_add(1, Relaxed);
    }

    /// A breaker opened.
    pub fn breaker_opened(&self) {
        self.totals.breakers_opened.fetch_add(1, Relaxed);
    }

    /// What became of the last change of the settings.
    pub fn reload(&self) -> Arc<Reload> {
        self.reload.load_full()
    }

    /// The settings file had changed, and this came of it.
    pub fn reloaded(&self, reload: Reload) {
        self.reload.store(Arc::new(reload));
    }

    /// The `traceparent` for the engine. `None` where the caller's own, if any, is to be passed on
    /// as it is: without a receiver we are no part of a trace, and a caller that does not want to
    /// see its trace does not want to see us in it.
    pub fn traceparent(
        &self,
        callers: Option<&str>,
        request_id: &str,
        started: SystemTime,
    ) -> Option<HeaderValue> {
        self.traces.as_ref()?;
        let per_thousand = self.sampled_per_thousand.load(Relaxed);
        let ids = Ids::of(callers, request_id, started, self.secret, per_thousand);
        if ids.parent.is_some() && !ids.client.sampled {
            return None;
        }
        HeaderValue::try_from(ids.client.header()).ok()
    }

    fn count(&self, finished: &Finished<'_>, ended: SystemTime) {
        let totals = &self.totals;
        if let Some(code) = finished.reason {
            totals.refused.count(code, ended);
        }
        if let Some(chosen) = finished.chosen {
            // Waiting is counted by itself.
            totals.chosen.add_time(chosen.saturating_sub(finished.queued));
            totals.choices[usize::from(finished.hoped_blocks.is_none())].fetch_add(1, Relaxed);
        }
        if finished.estimated {
            totals.estimated.fetch_add(1, Relaxed);
        }
        totals.received_bytes.fetch_add(finished.bytes_in, Relaxed);
        totals.sent_bytes.fetch_add(finished.bytes_out, Relaxed);
    }

    fn count_capped(&self, label: usize, own: bool) {
        if !own {
            self.totals.capped[label].fetch_add(1, Relaxed);
        }
    }

    fn ids(&self, finished: &Finished<'_>) -> Ids {
        let per_thousand = self.sampled_per_thousand.load(Relaxed);
        let Finished { traceparent, request_id, started, .. } = *finished;
        Ids::of(traceparent, request_id, started, self.secret, per_thousand)
    }

    fn log_dropped(&self) -> u64 {
        self.log.as_ref().map_or(0, AccessLog::dropped)
    }

    fn spans_dropped(&self) -> u64 {
        self.traces.as_ref().map_or(0, Traces::dropped)
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the secret.
        f.debug_struct("Meter").field("totals", &self.totals).finish_non_exhaustive()
    }
}
