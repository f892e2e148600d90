//! The operator's end of the stream between it and the gateways: what is wanted comes up, what to go by
//! goes down.
//!
//! `Link` is what the rest of the operator sees: `Link::reports` is the last word of each gateway,
//! `Link::publish` replaces what all of them go by, `Link::wakes` are the models that somebody waits
//! for. `book` keeps who said what and when, and is pure; `conversation` is one conversation, `serve` takes
//! connections, `auth` says who may talk, `review` asks the API server about tokens, `tls` reads
//! certificates.
//!
//! It decides nothing, and nobody waits for it: a gateway that hears nothing goes on by what it heard
//! last. Start at `Link`.

mod auth;
pub(crate) mod book;
mod conversation;
mod review;
mod serve;
#[cfg(test)]
mod tests;
mod tls;

pub use auth::{AccessVerdict, Auth, Verify};
pub use book::{GatewayReport, ReportBook};
pub use flyball_resources::stream::{self, Orders};
pub use review::TokenReviews;
pub use serve::LinkError;
pub use tls::Files;

use crate::quota::TenantQuota;
use book::{Book, Refused};
use flyball_resources::stream::{Hello, MAX_BYTES, MAX_ENDPOINTS, MAX_MODELS, PublicName, Up};
use prost::Message as _;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::watch;
use tokio::time::Instant;

/// What gateways said, and what they are told. One for the whole operator, behind an `Arc`.
#[derive(Debug)]
pub struct GatewayLink {
    book: Mutex<Book>,
    orders: watch::Sender<Option<Arc<GivenOrders>>>,
    wakes: watch::Sender<BTreeSet<PublicName>>,
    /// Whom gateways ask for parts of budgets and limits.
    quota: Arc<TenantQuota>,
    program: String,
}

/// Orders, and when they were given.
#[derive(Debug)]
struct GivenOrders {
    orders: Orders,
    at: Instant,
}

/// Orders that no gateway would take. Those before still hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "directives with {models} models, {drains} drain marks and {bytes} bytes are too large for a \
     message ({MAX_MODELS}, {MAX_ENDPOINTS} and {MAX_BYTES}); hint: leave out models without \
     objectives"
)]
pub struct TooLarge {
    /// Models in them.
    pub models: usize,
    /// Drain marks in them.
    pub drains: usize,
    /// Their bytes.
    pub bytes: usize,
}

impl Default for GatewayLink {
    fn default() -> Self {
        Self::new()
    }
}

impl GatewayLink {
    /// One that has heard nothing and has nothing to tell.
    pub fn new() -> Self {
        Self::of_program(env!("CARGO_PKG_VERSION"))
    }

    /// The same, of a program of this version.
    pub fn of_program(version: &str) -> Self {
        Self {
            book: Mutex::default(),
            orders: watch::Sender::new(None),
            wakes: watch::Sender::default(),
            quota: Arc::default(),
            program: version.to_owned(),
        }
    }

    /// Limits and budgets, which gateways ask for here.
    pub fn quota(&self) -> Arc<TenantQuota> {
        Arc::clone(&self.quota)
    }

    /// The last word of each gateway, by name, and who could not say anything. A gateway that was silent
    /// for ten seconds is marked as gone; it is kept until `Link::forget`.
    pub fn reports(&self, now: SystemTime) -> ReportBook {
        self.book().reports(now)
    }

    /// These gateways do not exist any more.
    pub fn forget<'a>(&self, gone: impl Iterator<Item = &'a String>, now: SystemTime) {
        let mut book = self.book();
        gone.for_each(|name| book.forget(name, now));
    }

    /// From now on all gateways go by these orders, those that come later too. Returns their number:
    /// a gateway whose `Report::orders` has reached it goes by them.
    ///
    /// Until this was called, gateways are told nothing and keep what they had.
    pub fn publish(&self, mut orders: Orders) -> Result<u64, TooLarge> {
        orders.program.clone_from(&self.program);
        let (models, drains) = (orders.models.len(), orders.drains.len());
        let bytes = orders.encoded_len();
        if models > MAX_MODELS || drains > MAX_ENDPOINTS || bytes + 64 > MAX_BYTES {
            return Err(TooLarge { models, drains, bytes });
        }
        let mut sequence = 0;
        self.orders.send_if_modified(|given| {
            let before = given.as_ref().map_or(0, |given| given.orders.sequence);
            sequence = before;
            orders.sequence = before;
            // The same again is not worth a message, unless it promises a time anew.
            let promises = orders.models.iter().any(|model| model.wake_eta_ms.is_some());
            if !promises && given.as_ref().is_some_and(|given| given.orders == orders) {
                return false;
            }
            sequence = before + 1;
            orders.sequence = sequence;
            let orders = std::mem::take(&mut orders);
            *given = Some(Arc::new(GivenOrders { orders, at: Instant::now() }));
            true
        });
        Ok(sequence)
    }

    /// The models that somebody waits for and that have no engine. It changes as soon as a gateway says
    /// so, and a name is there once however many gateways say it.
    pub fn wakes(&self) -> watch::Receiver<BTreeSet<PublicName>> {
        self.wakes.subscribe()
    }

    /// A gateway says hello.
    fn open(&self, hello: &Hello) -> Result<u64, Refused> {
        self.book().open(hello, SystemTime::now())
    }

    /// A gateway says something.
    fn receive(&self, gateway: &str, talk: u64, mut up: Up) -> Result<(), Refused> {
        let now = SystemTime::now();
        let quota = up.quota.take();
        let mut book = self.book();
        if book.receive(gateway, talk, up, now)? {
            self.want(book.waited_for(now));
        }
        drop(book);
        // Only who speaks for a gateway asks for it.
        quota.map_or(Ok(()), |quota| self.quota.receive(gateway, &quota))?;
        Ok(())
    }

    /// Lets time pass: whoever is gone waits for nothing.
    fn sweep(&self) {
        let now = SystemTime::now();
        let mut book = self.book();
        book.sweep(now);
        self.want(book.waited_for(now));
    }

    fn want(&self, waited_for: BTreeSet<PublicName>) {
        self.wakes.send_if_modified(|before| {
            let differs = *before != waited_for;
            *before = waited_for;
            differs
        });
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GivenOrders {
    /// As they are to be sent now: promised times are told from the moment of sending.
    fn sent_now(&self) -> Orders {
        let mut orders = self.orders.clone();
        let passed = self.at.elapsed();
        for eta in orders.models.iter_mut().filter_map(|model| model.wake_eta_ms.as_mut()) {
            let left = Duration::from_millis(*eta).saturating_sub(passed);
            *eta = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        }
        orders
    }
}
