//! Follows ModelServices and publishes what they offer.

use super::merge::OfferedModels;
use super::served::{OfferedModel, served_of};
use crate::discover::mirror::{Mirror, Step};
use crate::discover::pulse::Pulse;
use crate::discover::sources::{self, config};
use crate::discover::standing::MODEL_SERVICES;
use crate::discover::{DiscoveryProblem, DiscoveryStatus};
use crate::settings::KubernetesSettings;
use flyball_resources::ModelService;
use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{FuturesUnordered, StreamExt as _};
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::{Client, ResourceExt as _};
use kube_runtime::WatchStreamExt as _;
use kube_runtime::watcher::watcher;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch as channel};
use tokio::time::{Instant, sleep, sleep_until};

/// Changes within this time are taken in together: with every change all watches of engines begin anew, and
/// `kubectl apply` of a folder is many.
const GATHER: Duration = Duration::from_millis(250);

/// How long to wait before it is asked again whether all are gone.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Steps between the watches and the listing. The watches wait when it is full.
const STEPS: usize = 1024;

/// What the ModelServices offer that are known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OfferedListing {
    /// By `namespace/name`.
    pub offered: OfferedModels,
    /// Whether all that are asked for were listed once.
    pub listed: bool,
}

/// Follows ModelServices for as long as it is polled, and publishes every change of what they offer.
///
/// It begins with what `out` holds, which stays until the API server has told something else. Without a client
/// it makes its own.
pub async fn watch(
    settings: &KubernetesSettings,
    client: Option<Client>,
    out: &channel::Sender<OfferedListing>,
    standing: &DiscoveryStatus,
) -> Result<Infallible, DiscoveryProblem> {
    let client = match client {
        Some(client) => client,
        None => sources::connect().await?,
    };
    let (to, mut steps) = mpsc::channel(STEPS);
    let mut desk = Desk::new(settings, out);
    let watches = desk.places.iter();
    let watches =
        watches.map(|place| follow(client.clone(), place.clone(), to.clone(), standing).boxed());
    let mut watches: FuturesUnordered<BoxFuture<'_, ()>> = watches.collect();
    let mut asks: FuturesUnordered<BoxFuture<'_, (Place, bool)>> = FuturesUnordered::new();
    let mut asking = BTreeSet::new();
    let mut due: Option<Instant> = None;
    loop {
        let now = Instant::now();
        tokio::select! {
            Some((place, step)) = steps.recv() => {
                if desk.mirrors.entry(place).or_default().take(step) {
                    due.get_or_insert(now + GATHER);
                }
            }
            Some((place, empty)) = asks.next() => {
                asking.remove(&place);
                if empty {
                    desk.confirmed.insert(place);
                }
                due.get_or_insert(now);
            }
            () = at(due) => {
                due = None;
                for place in desk.publish() {
                    if asking.insert(place.clone()) {
                        asks.push(confirm(client.clone(), place).boxed());
                    }
                }
            }
            Some(()) = watches.next() => {}
        }
    }
}

/// A namespace, or the empty text for all of them.
type Place = String;

struct Desk<'a> {
    out: &'a channel::Sender<OfferedListing>,
    places: BTreeSet<Place>,
    mirrors: BTreeMap<Place, Mirror<OfferedModel>>,
    /// Places of which the API server itself said that nothing is left.
    confirmed: BTreeSet<Place>,
    /// Places whose loss was complained about already: a complaint is made once.
    doubted: BTreeSet<Place>,
}

impl<'a> Desk<'a> {
    fn new(settings: &KubernetesSettings, out: &'a channel::Sender<OfferedListing>) -> Self {
        let places = match settings.namespaces.as_slice() {
            [] => BTreeSet::from([Place::new()]),
            some => some.iter().cloned().collect(),
        };
        let (confirmed, doubted) = (BTreeSet::new(), BTreeSet::new());
        Self { out, places, mirrors: BTreeMap::new(), confirmed, doubted }
    }

    /// Publishes what there is to believe, and returns the places whose loss of everything is to be confirmed:
    /// an API server that was emptied must not stop models that work.
    fn publish(&mut self) -> BTreeSet<Place> {
        let mut next = self.out.borrow().clone();
        let mut doubted = BTreeSet::new();
        next.listed = true;
        for place in &self.places {
            let Some(told) = self.mirrors.get(place).and_then(Mirror::whole) else {
                next.listed = false;
                continue;
            };
            let had = next.offered.keys().any(|key| is_of(place, key));
            if told.is_empty() && had && !self.confirmed.contains(place) {
                doubted.insert(place.clone());
                continue;
            }
            if !told.is_empty() {
                self.confirmed.remove(place);
            }
            let told =
                told.iter().map(|(key, offer)| (key.clone(), offer.or_last(next.offered.get(key))));
            let told: Vec<_> = told.collect();
            next.offered.retain(|key, _| !is_of(place, key));
            next.offered.extend(told);
        }
        for place in doubted.difference(&self.doubted) {
            tracing::warn!(
                namespace = place,
                "all ModelServices disappeared; keeping them until the API server confirms it"
            );
        }
        self.doubted.clone_from(&doubted);
        self.out.send_if_modified(|now| {
            let changed = *now != next;
            *now = next;
            changed
        });
        doubted
    }
}

/// Whether a ModelService is one of those that are looked for in a place.
fn is_of(place: &str, key: &str) -> bool {
    place.is_empty() || key.split_once('/').is_some_and(|(namespace, _)| namespace == place)
}

/// Objects of any form, read one by one: a single one that this version cannot read keeps no other from being
/// served.
fn api(client: Client, place: &str) -> Api<DynamicObject> {
    let kind = ApiResource::erase::<ModelService>(&());
    match place {
        "" => Api::all_with(client, &kind),
        namespace => Api::namespaced_with(client, namespace, &kind),
    }
}

async fn follow(
    client: Client,
    place: Place,
    to: mpsc::Sender<(Place, Step<OfferedModel>)>,
    standing: &DiscoveryStatus,
) {
    let what = match place.as_str() {
        "" => MODEL_SERVICES.to_owned(),
        namespace => format!("{MODEL_SERVICES} of {namespace}"),
    };
    let mut stream = watcher(api(client, &place), config()).default_backoff().boxed();
    let mut pulse = Pulse::new(what, Arc::default(), standing);
    loop {
        let step = pulse.next_keyed(&mut stream, key, |object| Some(offered(object))).await;
        if to.send((place.clone(), step)).await.is_err() {
            return;
        }
    }
}

fn key(object: &DynamicObject) -> String {
    format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any())
}

fn offered(object: &DynamicObject) -> OfferedModel {
    match object.clone().try_parse::<ModelService>() {
        Ok(model) => served_of(&model),
        Err(error) => OfferedModel::unreadable(&error),
    }
}

/// Asks the API server whether a place really has no ModelService any more.
async fn confirm(client: Client, place: Place) -> (Place, bool) {
    match api(client, &place).list(&ListParams::default().limit(1)).await {
        Ok(found) if found.items.is_empty() => return (place, true),
        // The watch is behind, or on its way to say so.
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "cannot confirm that there is no ModelService"),
    }
    sleep(ASK_AGAIN).await;
    (place, false)
}

async fn at(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}
