//! Runs the watches and publishes listings.

use super::place::{DiscoveryPlace, Sought};
use super::settle::{ENGINES, settle};
use super::sources::{self, Change, WatchTargets};
use super::world::World;
use super::{DiscoveryProblem, DiscoveryStatus, Failing, FoundEngines, Listing, selector};
use flyball_engines::Engine;
use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{FuturesUnordered, StreamExt as _};
use kube::Client;
use kube::core::Selector;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch as channel};
use tokio::time::{Instant, sleep, sleep_until};

/// Changes within this time become one listing: a rolling update of a large Service is hundreds.
const GATHER: Duration = Duration::from_millis(50);

/// How long to wait before an empty list is asked for again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Empty lists that are asked for at once.
const ASKS: usize = 16;

/// Steps between the watches and the listing. The watches wait when it is full.
const STEPS: usize = 1024;

/// Looks for the engines of these models for as long as it is polled, and publishes every change.
///
/// Static engines are published at once. Drop it and call it again when the models change: it
/// begins with what `out` holds, so engines that stay are never gone in between. Without a client
/// it makes its own if a model needs one.
pub async fn watch(
    models: &[Sought],
    client: Option<Client>,
    out: &channel::Sender<Listing>,
    standing: &DiscoveryStatus,
) -> Result<Infallible, DiscoveryProblem> {
    let mut places = BTreeMap::new();
    let mut noted = Vec::new();
    for model in models {
        match DiscoveryPlace::of(model) {
            Ok(place) => drop(places.insert(model.name.clone(), (place, model.engine))),
            // The others are looked for all the same.
            Err(problem) => noted.push(standing.note(&model.name, misplaced(model, &problem))),
        }
    }
    let mut world = World::new(places);
    let needs_cluster =
        world.places.values().any(|(place, _)| !matches!(place, DiscoveryPlace::Static(_)));
    let mut desk = Desk::new(out, standing);
    drop(desk.publish(&world));
    if !needs_cluster {
        return std::future::pending().await;
    }
    let client = match client {
        Some(client) => client,
        None => sources::connect().await?,
    };
    let (to, mut changes) = mpsc::channel(STEPS);
    let mut watches = start(&client, &world.places, &to, standing);
    let mut asks: FuturesUnordered<BoxFuture<'_, (String, bool)>> = FuturesUnordered::new();
    let mut asking = BTreeSet::new();
    let mut due: Option<Instant> = None;
    loop {
        let now = Instant::now();
        tokio::select! {
            Some(change) = changes.recv() => {
                if world.take(change) {
                    due.get_or_insert(now + GATHER);
                }
            }
            Some((model, empty)) = asks.next() => {
                asking.remove(&model);
                if empty {
                    desk.confirmed.insert(model);
                }
                due.get_or_insert(now);
            }
            () = at(due) => {
                due = None;
                for model in desk.publish(&world) {
                    let Some((place, engine)) = world.places.get(&model).cloned() else { continue };
                    if asking.len() < ASKS && asking.insert(model.clone()) {
                        asks.push(confirm(client.clone(), model, place, engine).boxed());
                    }
                }
            }
            Some(()) = watches.next() => {}
        }
    }
}

fn misplaced(model: &Sought, problem: &DiscoveryProblem) -> Failing {
    tracing::error!(model = model.name, error = %problem, "engine discovery cannot run for this model");
    let models = Arc::new(BTreeSet::from([model.name.clone()]));
    Failing { models, error: problem.to_string(), hint: "fix its service or pool in the settings" }
}

fn start<'a>(
    client: &Client,
    places: &BTreeMap<String, (DiscoveryPlace, Engine)>,
    to: &mpsc::Sender<Change>,
    standing: &'a DiscoveryStatus,
) -> FuturesUnordered<BoxFuture<'a, ()>> {
    let mut services: BTreeMap<&str, WatchTargets> = BTreeMap::new();
    let mut pools: BTreeMap<&str, WatchTargets> = BTreeMap::new();
    let mut served: BTreeMap<&str, (Vec<&Selector>, BTreeSet<String>)> = BTreeMap::new();
    for (model, (place, _)) in places {
        let (targets, name) = match place {
            DiscoveryPlace::Static(_) => continue,
            DiscoveryPlace::Pods(p) => {
                let (selectors, models) = served.entry(&p.namespace).or_default();
                selectors.extend(p.variants.iter().map(|variant| &variant.selector));
                models.insert(model.clone());
                continue;
            }
            DiscoveryPlace::Service(s) => (services.entry(&s.namespace).or_default(), &s.name),
            DiscoveryPlace::Pool(p) => (pools.entry(&p.namespace).or_default(), &p.name),
        };
        targets.names.insert(name.clone());
        targets.models.insert(model.clone());
    }
    let watches = FuturesUnordered::new();
    for (namespace, targets) in services {
        let (client, to) = (client.clone(), to.clone());
        watches.push(sources::slices(client, namespace.to_owned(), targets, to, standing).boxed());
    }
    for (namespace, targets) in pools {
        let (client, to) = (client.clone(), to.clone());
        watches.push(sources::pools(client, namespace.to_owned(), targets, to, standing).boxed());
    }
    for (namespace, (selectors, models)) in served {
        if !selectors.is_empty() {
            let targets = (selector::shared(selectors.into_iter()), models);
            let (client, to) = (client.clone(), to.clone());
            watches
                .push(sources::served(client, namespace.to_owned(), targets, to, standing).boxed());
        }
    }
    watches
}

/// Asks the API server whether a model really has no engines any more.
async fn confirm(
    client: Client,
    model: String,
    place: DiscoveryPlace,
    engine: Engine,
) -> (String, bool) {
    match sources::ask(&client, &place, engine).await {
        Ok(found) if found.is_empty() => return (model, true),
        // The watch is behind, or on its way to say so.
        Ok(_) => {}
        Err(error) => tracing::warn!(model, %error, "cannot confirm that the model has no engines"),
    }
    sleep(ASK_AGAIN).await;
    (model, false)
}

/// At this moment; never without one.
pub(super) async fn at(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

struct Desk<'a> {
    out: &'a channel::Sender<Listing>,
    standing: &'a DiscoveryStatus,
    confirmed: BTreeSet<String>,
    /// What was complained about already: a complaint is made once.
    doubted: BTreeSet<String>,
    wrong_ports: BTreeMap<String, String>,
}

impl<'a> Desk<'a> {
    fn new(out: &'a channel::Sender<Listing>, standing: &'a DiscoveryStatus) -> Self {
        let (confirmed, doubted) = (BTreeSet::new(), BTreeSet::new());
        Self { out, standing, confirmed, doubted, wrong_ports: BTreeMap::new() }
    }

    /// Publishes what there is to believe and returns the models whose loss is to be confirmed.
    fn publish(&mut self, world: &World) -> BTreeSet<String> {
        let findings = world.findings();
        // Once it has engines again, its next loss is a new question.
        let is_empty =
            |found: &Option<Vec<FoundEngines>>| found.as_ref().is_some_and(Vec::is_empty);
        self.confirmed.retain(|model| findings.get(model).is_some_and(is_empty));
        let settled = settle(&self.out.borrow(), findings, &self.confirmed);
        if settled.too_many {
            tracing::error!(
                limit = ENGINES,
                "too many engines for one gateway; keeping the previous list"
            );
        }
        self.complain(world, &settled.doubted);
        self.out.send_if_modified(|listing| {
            let changed = *listing != settled.listing;
            *listing = settled.listing;
            changed
        });
        settled.doubted
    }

    fn complain(&mut self, world: &World, doubted: &BTreeSet<String>) {
        for model in doubted.difference(&self.doubted) {
            tracing::warn!(
                model,
                "all engines disappeared from discovery; keeping them until the API server confirms it"
            );
        }
        self.doubted.clone_from(doubted);
        self.standing.doubt(doubted.len());
        let wrong_ports = world.wrong_ports();
        for (model, ports) in &wrong_ports {
            if !self.wrong_ports.contains_key(model) {
                let hint = "name the port, or use the number on which the engine listens";
                tracing::warn!(model, ports, hint, "the Service has no such port");
            }
        }
        self.wrong_ports = wrong_ports;
    }
}
