//! Asks every engine for its load, in turn and without end.
//!
//! Each engine has its own time, spread over the interval, so that engines are not asked in bursts.
//! At most [`AT_ONCE`] questions are under way. It does not know what the answers are for: an
//! [`Office`] says whom to ask and takes what they say.

use super::page::{self, ReportedLoad};
use crate::wire::{Question, Wire, WireError};
use bytes::Bytes;
use flyball_engines::Engine;
use futures::future::FutureExt as _;
use futures::stream::{FuturesUnordered, StreamExt as _};
use http::Method;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Questions under way at once.
const AT_ONCE: usize = 64;

/// The largest page that is taken. vLLM's has some 100 KB.
const PAGE_BYTES: usize = 1 << 20;

/// The largest list of models that is taken.
const LIST_BYTES: usize = 256 << 10;

/// Of these, how many may go to engines that did not answer last time. Otherwise a rack that is
/// gone would fill all places with questions that wait.
const AT_ONCE_DUBIOUS: usize = 32;

/// An engine that does not answer is asked less often, up to this many intervals apart.
const SLOWEST: u32 = 8;

/// How often engines are asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Between two questions to an engine.
    pub(super) interval: Duration,
    /// The same while cancels are unproven at it.
    pub(super) hurried: Duration,
    /// For one question.
    pub(super) timeout: Duration,
    /// After which a gateway that says nothing is gone.
    pub(super) gone: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            interval: super::INTERVAL,
            hurried: super::HURRIED,
            timeout: Duration::from_secs(1),
            gone: super::GONE,
        }
    }
}

/// An answer, and when.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) address: SocketAddr,
    pub(super) sent: Instant,
    pub(super) came: Instant,
    pub(super) load: Result<ReportedLoad, WireError>,
}

/// Who wants to know.
pub(super) trait Office {
    /// All engines, if they are others than at the last call.
    fn targets(&mut self) -> Option<BTreeMap<SocketAddr, Engine>>;
    /// Engines that are to be asked in a hurry.
    fn hurried(&mut self) -> Vec<SocketAddr>;
    /// A question is about to be sent.
    fn asking(&mut self, address: SocketAddr);
    /// It has an answer.
    fn answered(&mut self, answer: Answer);
    /// Ends when the calls above may say something new.
    async fn changed(&self);
}

/// Asks without end.
pub(super) async fn rounds(office: &mut impl Office, pace: Pace) -> Infallible {
    let mut lines: BTreeMap<SocketAddr, Line> = BTreeMap::new();
    let mut due: BTreeSet<(Instant, SocketAddr)> = BTreeSet::new();
    let mut asking = FuturesUnordered::new();
    let mut dubious = 0;
    loop {
        let now = Instant::now();
        if let Some(targets) = office.targets() {
            lines.retain(|address, line| targets.get(address) == Some(&line.engine));
            for (address, engine) in targets {
                lines.entry(address).or_insert_with(|| Line::new(address, engine, now, pace));
            }
            due = lines.iter().filter_map(|(a, line)| Some((line.due?, *a))).collect();
        }
        for address in office.hurried() {
            let Some(line) = lines.get_mut(&address) else { continue };
            let sooner = line.polled_at.map_or(now, |polled_at| polled_at + pace.hurried);
            // One that does not answer is not helped by a hurry.
            if line.failures == 0 && line.due.is_some_and(|at| at > sooner) {
                due.remove(&(line.due.unwrap_or(now), address));
                line.due = Some(sooner);
                due.insert((sooner, address));
            }
        }
        while asking.len() < AT_ONCE && due.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, address)) = due.pop_first() else { break };
            let Some(line) = lines.get_mut(&address) else { continue };
            if line.failures > 0 && dubious >= AT_ONCE_DUBIOUS {
                line.due = Some(now + pace.interval);
                due.insert((now + pace.interval, address));
                continue;
            }
            dubious += usize::from(line.failures > 0);
            (line.due, line.polled_at) = (None, Some(now));
            let wire = line.wire.take().unwrap_or_else(|| Wire::new(address.to_string()));
            office.asking(address);
            let doubt = line.failures > 0;
            let known = line.context;
            let polled_at = ask(wire, address, line.engine, known, pace.timeout);
            asking.push(polled_at.map(move |it| (it, doubt)));
        }
        let full = asking.len() >= AT_ONCE;
        // A new fleet is noticed after an interval at the latest.
        let soon = now + pace.interval;
        let next = due.first().filter(|_| !full).map_or(soon, |(at, _)| soon.min(*at));
        tokio::select! {
            Some(((wire, answer), doubt)) = asking.next() => {
                dubious -= usize::from(doubt);
                let address = answer.address;
                if let Some(line) = lines.get_mut(&address) {
                    let at = line.back(wire, &answer, pace);
                    due.insert((at, address));
                    office.answered(answer);
                }
            }
            () = tokio::time::sleep_until(next.into()) => {}
            () = office.changed() => {}
        }
    }
}

/// One engine.
#[derive(Debug)]
struct Line {
    engine: Engine,
    /// None while a question is under way.
    wire: Option<Wire>,
    due: Option<Instant>,
    polled_at: Option<Instant>,
    failures: u32,
    round: u64,
    /// Tokens of its context, as it said, if it was asked since it last failed to answer: it may have been started anew.
    context: Option<Option<u32>>,
}

impl Line {
    fn new(address: SocketAddr, engine: Engine, now: Instant, pace: Pace) -> Self {
        let spread = pace.interval.mul_f64(chance(address, 0));
        let due = Some(now + spread);
        Self { engine, wire: None, due, polled_at: None, failures: 0, round: 0, context: None }
    }

    /// Takes the connection back and says when to ask next: an interval after the last time, a
    /// tenth more or less, so that many gateways or engines that started together drift apart.
    fn back(&mut self, wire: Wire, answer: &Answer, pace: Pace) -> Instant {
        self.wire = Some(wire);
        self.round += 1;
        self.context = answer.load.as_ref().ok().map(|load| load.context_tokens);
        self.failures = if answer.load.is_ok() { 0 } else { self.failures.saturating_add(1) };
        // The first few failures are to be certain soon.
        let times = 2_u32.saturating_pow(self.failures.saturating_sub(2).min(5)).min(SLOWEST);
        let pause = pace.interval * times;
        let pause = pause.mul_f64(0.9 + 0.2 * chance(answer.address, self.round));
        let due = (answer.sent + pause).max(answer.came);
        self.due = Some(due);
        due
    }
}

async fn ask(
    mut wire: Wire,
    address: SocketAddr,
    engine: Engine,
    context: Option<Option<u32>>,
    timeout: Duration,
) -> (Wire, Answer) {
    let sent = Instant::now();
    let question = get(engine.facts().metrics, PAGE_BYTES, timeout);
    let load = wire.ask(&question).await.and_then(|body| {
        page::read(engine, &body)
            .ok_or(WireError::Useless("no metrics of running and queued requests"))
    });
    let mut answer = Answer { address, sent, came: Instant::now(), load };
    if let Ok(load) = &mut answer.load {
        load.context_tokens = match context {
            Some(known) => known,
            None => context_of(&mut wire, engine, timeout).await,
        };
    }
    (wire, answer)
}

/// What it says of its context. One that does not say, or asks for a key, is not known.
async fn context_of(wire: &mut Wire, engine: Engine, timeout: Duration) -> Option<u32> {
    let (path, key) = engine.facts().context?;
    let list = wire.ask(&get(path, LIST_BYTES, timeout)).await.ok()?;
    page::context(&list, key)
}

fn get(path: &'static str, limit: usize, timeout: Duration) -> Question {
    Question { method: Method::GET, path: path.into(), body: Bytes::new(), limit, timeout }
}

/// From 0 to 1, by address and round: enough to spread, and the same in every run.
#[expect(clippy::cast_precision_loss, reason = "16 bits fit exactly")]
fn chance(address: SocketAddr, round: u64) -> f64 {
    let hash = xxhash_rust::xxh3::xxh3_64_with_seed(address.to_string().as_bytes(), round);
    (hash & 0xffff) as f64 / 65_536.0
}
