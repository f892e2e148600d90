//! The loop: look, decide, carry out, tell; and what runs beside it.
//!
//! An operator that does not lead looks and decides too, so that it has learnt when it must take over;
//! it writes nothing.

use crate::admin::{self, State};
use crate::apply::{self, ApplyError, Retry};
use crate::build::{self, Write};
use crate::imagine::World;
use crate::lead::{self, Fence};
use crate::link::{self, Auth, Files, Link, TokenReviews};
use crate::observe::demand::Signals;
use crate::observe::prometheus::{self, Prometheus};
use crate::observe::{Facts, Gateways, Learnt, Seen, Watches, look, watch};
use crate::report::{self, Attained, Board, Context, Shown, Teller};
use crate::settings::Settings;
use flyball_core::decision::{Decision, ModelDecision};
use flyball_core::ids::ModelId;
use flyball_core::units::{Micros, Timestamp};
use flyball_resources::model_service::ModelServiceStatus;
use futures::{StreamExt as _, stream};
use kube::Client;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// Models whose writes are made at the same time.
const AT_ONCE: usize = 16;

/// Why an operator cannot run.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// There is no cluster.
    #[error("there is no cluster to look after: {0}; hint: run in a pod, or set KUBECONFIG")]
    NoCluster(String),
    /// An address cannot be listened on, or there is no runtime.
    #[error("{what}: {source}")]
    Start {
        /// What was tried.
        what: &'static str,
        /// What came of it.
        source: io::Error,
    },
    /// Gateways cannot be let in.
    #[error(transparent)]
    Gateways(link::Problem),
    /// Prometheus' address cannot be used.
    #[error(transparent)]
    Prometheus(#[from] prometheus::AskError),
}

/// Runs an operator until SIGTERM or SIGINT.
pub async fn run(settings: Settings, version: &'static str, me: String) -> Result<(), Problem> {
    let client =
        Client::try_default().await.map_err(|error| Problem::NoCluster(error.to_string()))?;
    let start = |what| move |source| Problem::Start { what, source };
    let listener = TcpListener::bind(settings.admin)
        .await
        .map_err(start("the admin address cannot be listened on"))?;
    let board = Arc::new(Board::default());
    let state = Arc::new(State::new(version, Arc::clone(&board)));
    tokio::spawn(admin::serve(listener, Arc::clone(&state)));
    let fence = Fence::default();
    let lease = settings.lease.clone();
    tokio::spawn(lead::lead(client.clone(), lease, me.clone(), fence.clone()));
    let link = Arc::new(Link::new());
    let door = TcpListener::bind(settings.link)
        .await
        .map_err(start("the address for gateways cannot be listened on"))?;
    let serving = Arc::clone(&link).serve(door, auth(&settings, &client), std::future::pending());
    let serving = tokio::spawn(serving);
    let prometheus =
        settings.prometheus.as_ref().map(|one| Prometheus::new(&one.url)).transpose()?;
    let watches = watch(&client, &settings.lease.namespace);
    let mut operator = Operator {
        teller: Teller::new(&client, &me),
        watches,
        prometheus,
        fence,
        board,
        state,
        client,
        learnt: Learnt::default(),
        attained: Attained::default(),
        gateways: Gateways::default(),
        link,
        written: BTreeMap::new(),
        settings,
    };
    let mut end = signal(SignalKind::terminate()).map_err(start("signals cannot be heard"))?;
    let mut interrupt =
        signal(SignalKind::interrupt()).map_err(start("signals cannot be heard"))?;
    tokio::select! {
        () = operator.live() => {}
        Ok(Err(problem)) = serving => return Err(Problem::Gateways(problem)),
        _ = end.recv() => {}
        _ = interrupt.recv() => {}
    }
    let left = lead::leave(operator.client.clone(), &operator.settings.lease, &me);
    // Whoever comes next waits for the lease to lapse if this fails.
    let _ = tokio::time::timeout(Duration::from_secs(2), left).await;
    Ok(())
}

struct Operator {
    settings: Settings,
    client: Client,
    watches: Watches,
    prometheus: Option<Prometheus>,
    fence: Fence,
    board: Arc<Board>,
    state: Arc<State>,
    teller: Teller,
    learnt: Learnt,
    attained: Attained,
    gateways: Gateways,
    link: Arc<Link>,
    /// When each status was last written.
    written: BTreeMap<ModelId, Instant>,
}

impl Operator {
    async fn live(&mut self) {
        self.watches.listed().await;
        self.state.is_ready();
        tracing::info!(tick_seconds = self.settings.tick_seconds, "operator looks after models");
        let tick = Duration::from_secs(u64::from(self.settings.tick_seconds));
        let mut ticks = tokio::time::interval(tick);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut wakes = self.link.wakes();
        loop {
            // Whoever waits for a first replica should not wait for a tick besides.
            tokio::select! {
                _ = ticks.tick() => {}
                Ok(()) = wakes.changed() => {}
            }
            self.round().await;
        }
    }

    async fn round(&mut self) {
        let began = Instant::now();
        let facts = self.watches.facts(&self.settings.namespaces);
        let mut signals = self.signals().await;
        let reports = self.link.heard(SystemTime::now());
        let wanted = self.link.wakes().borrow().clone();
        self.gateways.add(&mut signals, &reports, &wanted, &facts);
        let max_age = Micros::from_seconds(u64::from(self.settings.signal_max_age_seconds));
        let time = (now(), max_age);
        let seen = look(&facts, &signals, &mut self.learnt, time);
        let looked = began.elapsed();
        let leads = self.fence.may_write(Instant::now());
        self.state.leads(leads);
        let (decision, broken) = self.state.brain(|brain| {
            if !leads {
                brain.stand_by();
            }
            brain.decide(&seen)
        });
        for violation in &broken {
            tracing::error!(%violation, "a decision broke a rule");
            self.state.metrics().count_violation(violation.invariant);
        }
        self.attained.learn(&seen.snapshot);
        let decided = began.elapsed();
        let mut made = Vec::new();
        if leads {
            made = self.carry_out(&facts, &signals, &seen, &decision).await;
        }
        self.order(&facts, &seen, &decision, &made);
        if leads {
            self.tell(&seen, &decision).await;
        }
        let took =
            [looked, decided - looked, began.elapsed() - decided].map(|part| part.as_secs_f64());
        self.board.change(|shown| {
            shown.leads = leads;
            shown.gateways = reports.iter().filter(|report| !report.gone).count();
            shown.took_seconds = took;
            shown.show(&seen.snapshot, &decision.models);
        });
        let tick = Micros::from_seconds(u64::from(self.settings.tick_seconds));
        let learnt = self.learnt.clone();
        self.state.remember(World { facts, signals, learnt, time, tick });
    }

    async fn signals(&self) -> Signals {
        let mut signals = Signals::default();
        if let Some(prometheus) = &self.prometheus {
            match prometheus.ask().await {
                Ok(engines) => prometheus::add(&mut signals, engines),
                Err(error) => {
                    tracing::warn!(%error, "no series; nothing is given back meanwhile");
                    self.board.change(|shown| Shown::count(&mut shown.errors, "observe"));
                }
            }
        }
        signals
    }

    /// Tells gateways what to go by. Every operator does: a gateway is connected to one of them, and
    /// marks are read from the pods, where the leader wrote them.
    fn order(&self, facts: &Facts, seen: &Seen, decision: &Decision, made: &[(ModelId, Write)]) {
        if let Err(error) = self.link.tell(build::orders(facts, seen, decision, made)) {
            tracing::error!(%error, "gateways were not told");
        }
    }

    /// Makes the writes, and says which were made.
    async fn carry_out(
        &self,
        facts: &Facts,
        signals: &Signals,
        seen: &Seen,
        decision: &Decision,
    ) -> Vec<(ModelId, Write)> {
        let writes = build::build(facts, signals, seen, decision);
        let (client, fence) = (&self.client, &self.fence);
        let tried = stream::iter(writes)
            .map(|(model, writes)| async move {
                let done = apply::apply(client, fence, &model, &writes).await;
                (model, writes, done)
            })
            .buffer_unordered(AT_ONCE)
            .collect::<Vec<_>>()
            .await;
        let mut made = Vec::new();
        for (model, writes, done) in tried {
            self.note(&model, &writes, &done);
            let count = *done.as_ref().unwrap_or(&0);
            made.extend(writes.into_iter().take(count).map(|write| (model.clone(), write)));
        }
        made
    }

    fn note(&self, model: &ModelId, writes: &[Write], done: &Result<usize, ApplyError>) {
        let count = *done.as_ref().unwrap_or(&0);
        self.board.change(|shown| {
            for write in &writes[..count] {
                Shown::count(&mut shown.writes, kind(write));
            }
        });
        let Err(error) = done else {
            tracing::info!(%model, writes = count, "carried out");
            return;
        };
        self.board.change(|shown| Shown::count(&mut shown.errors, error.name()));
        match error.retry() {
            Retry::NextTick => {
                tracing::warn!(%model, %error, "not carried out; the next look tries again")
            }
            Retry::Never => tracing::error!(%model, %error, "not carried out"),
        }
    }

    async fn tell(&mut self, seen: &Seen, decision: &Decision) {
        self.written.retain(|id, _| seen.models.contains_key(id));
        self.state.history(|history| history.keep(|id| seen.models.contains_key(id)));
        let by_id: BTreeMap<&ModelId, &ModelDecision> =
            decision.models.iter().map(|decided| (&decided.model, decided)).collect();
        let mut news = Vec::new();
        for (id, model) in &seen.models {
            let decided = by_id.get(id).copied();
            let status = self.status(id, seen, decision, decided);
            let mode = format!("{:?}", model.service.spec.scaling.mode);
            let entry = self.state.history(|history| history.note(id, &mode, &status)).flatten();
            if entry.is_some() {
                let reason = decided.map_or("unknown", |decided| decided.reason.name());
                self.board.change(|shown| Shown::count(&mut shown.decisions, reason));
            }
            let since = self.written.get(id).map(Instant::elapsed);
            let write = report::is_worth_writing(model.service.status.as_ref(), &status, since);
            if write || entry.is_some() {
                news.push((id, &model.service, write.then_some(status), entry));
            }
        }
        let teller = &self.teller;
        let told = stream::iter(news)
            .map(|(id, service, status, entry)| async move {
                if let Some(entry) = &entry {
                    teller.event(service, entry).await;
                }
                let Some(status) = status else { return (id, None) };
                (id, Some(teller.status(service, &status).await))
            })
            .buffer_unordered(AT_ONCE)
            .collect::<Vec<_>>()
            .await;
        for (id, written) in told {
            match written {
                None => {}
                Some(Ok(())) => {
                    self.written.insert(id.clone(), Instant::now());
                    self.board.change(|shown| Shown::count(&mut shown.writes, "status"));
                }
                Some(Err(error)) => {
                    tracing::warn!(%error, "nothing was told");
                    self.board.change(|shown| Shown::count(&mut shown.errors, "report"));
                }
            }
        }
    }

    fn status(
        &self,
        id: &ModelId,
        seen: &Seen,
        decision: &Decision,
        decided: Option<&ModelDecision>,
    ) -> ModelServiceStatus {
        let model = seen.snapshot.models.get(id);
        let counts = model.and_then(|model| model.misses.fresh());
        let context = Context {
            snapshot: &seen.snapshot,
            decision,
            seen: &seen.models[id],
            model,
            decided,
            attained_per_million: self.attained.per_million(id, counts),
            starts: &self.learnt.starts,
        };
        report::status(id, &context)
    }
}

/// How gateways prove who they are.
fn auth(settings: &Settings, client: &Client) -> Auth {
    let gateways = &settings.gateways;
    let files = gateways.certificate.clone().zip(gateways.key.clone());
    let accounts = gateways.accounts.iter();
    let accounts = accounts.map(|one| format!("system:serviceaccount:{}", one.replace('/', ":")));
    let verify = TokenReviews::new(client.clone(), accounts);
    Auth {
        tls: files.map(|(certificate, key)| Files { certificate, key, ca: gateways.ca.clone() }),
        verify: (!gateways.accounts.is_empty()).then(|| Arc::new(verify) as _),
        open: gateways.open,
    }
}

const fn kind(write: &Write) -> &'static str {
    match write {
        Write::Mark { .. } => "drain",
        Write::Unmark { .. } => "undrain",
        Write::Cost { .. } => "cost",
        Write::Scale { .. } => "scale",
        Write::Make { .. } => "object",
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}
