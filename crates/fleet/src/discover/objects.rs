//! Follows objects of one kind, and publishes what they say.

use super::mirror::{Mirror, Step};
use super::pulse::Pulse;
use super::sources::{self, config};
use super::watch::at;
use super::{DiscoveryProblem, DiscoveryStatus};
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
use tokio::time::{Instant, sleep};

/// Changes within this time are taken in together: with every change all watches of engines may begin anew, and
/// `kubectl apply` of a folder is many.
const GATHER: Duration = Duration::from_millis(250);

/// How long to wait before it is asked again whether all are gone.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Steps between the watches and the listing. The watches wait when it is full.
const STEPS: usize = 1024;

/// What is kept of an object.
pub trait ObjectView: Clone + PartialEq + Send + Sync + 'static {
    /// What this object says. They are read one by one, so that one that cannot be read keeps no other from being
    /// listed.
    fn read(object: &DynamicObject) -> Self;

    /// What is published of it, where this was published last.
    fn after(&self, _last: Option<&Self>) -> Self {
        self.clone()
    }
}

/// Which objects are followed.
#[derive(Clone, Debug)]
pub struct ObjectWatch<'a> {
    /// Their kind.
    pub kind: ApiResource,
    /// Where they are looked for; everywhere if there is none.
    pub namespaces: &'a [String],
}

/// What the objects say that are known.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectListing<T> {
    /// By `namespace/name`.
    pub objects: BTreeMap<String, T>,
    /// Whether all that are asked for were listed once.
    pub listed: bool,
}

impl<T> Default for ObjectListing<T> {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), listed: false }
    }
}

/// Follows objects for as long as it is polled, and publishes every change of what they say.
///
/// It begins with what `out` holds, which stays until the API server has told something else. Without a client
/// it makes its own.
pub async fn watch<T: ObjectView>(
    target: &ObjectWatch<'_>,
    client: Option<Client>,
    out: &channel::Sender<ObjectListing<T>>,
    standing: &DiscoveryStatus,
) -> Result<Infallible, DiscoveryProblem> {
    let client = match client {
        Some(client) => client,
        None => sources::connect().await?,
    };
    let (to, mut steps) = mpsc::channel::<(Place, Step<T>)>(STEPS);
    let mut desk = Desk::new(target, out);
    let one = |place: &Place| {
        let api = api(client.clone(), place, &target.kind);
        follow(api, place.clone(), target, to.clone(), standing).boxed()
    };
    let mut watches: FuturesUnordered<BoxFuture<'_, ()>> = desk.places.iter().map(one).collect();
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
                        let api = api(client.clone(), &place, &target.kind);
                        asks.push(confirm(api, place).boxed());
                    }
                }
            }
            Some(()) = watches.next() => {}
        }
    }
}

/// `namespace/name` of an object.
fn key(object: &DynamicObject) -> String {
    format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any())
}

/// A namespace, or the empty text for all of them.
type Place = String;

struct Desk<'a, T> {
    kind: &'a str,
    out: &'a channel::Sender<ObjectListing<T>>,
    places: BTreeSet<Place>,
    mirrors: BTreeMap<Place, Mirror<T>>,
    /// Places of which the API server itself said that nothing is left.
    confirmed: BTreeSet<Place>,
    /// Places whose loss was complained about already: a complaint is made once.
    doubted: BTreeSet<Place>,
}

impl<'a, T: ObjectView> Desk<'a, T> {
    fn new(target: &'a ObjectWatch<'_>, out: &'a channel::Sender<ObjectListing<T>>) -> Self {
        let places = match target.namespaces {
            [] => BTreeSet::from([Place::new()]),
            some => some.iter().cloned().collect(),
        };
        let (confirmed, doubted) = (BTreeSet::new(), BTreeSet::new());
        let (kind, mirrors) = (&target.kind.kind, BTreeMap::new());
        Self { kind, out, places, mirrors, confirmed, doubted }
    }

    /// Publishes what there is to believe, and returns the places whose loss of everything is to be confirmed:
    /// an API server that was emptied must not stop what works.
    fn publish(&mut self) -> BTreeSet<Place> {
        let mut next = self.out.borrow().clone();
        let mut doubted = BTreeSet::new();
        next.listed = true;
        for place in &self.places {
            let Some(listed) = self.mirrors.get(place).and_then(Mirror::whole) else {
                next.listed = false;
                continue;
            };
            let had = next.objects.keys().any(|key| is_of(place, key));
            if listed.is_empty() && had && !self.confirmed.contains(place) {
                doubted.insert(place.clone());
                continue;
            }
            if !listed.is_empty() {
                self.confirmed.remove(place);
            }
            let after = |(key, object): (&String, &T)| {
                let object = object.after(next.objects.get(key));
                (key.clone(), object)
            };
            let listed: Vec<_> = listed.iter().map(after).collect();
            next.objects.retain(|key, _| !is_of(place, key));
            next.objects.extend(listed);
        }
        for place in doubted.difference(&self.doubted) {
            tracing::warn!(
                kind = self.kind,
                namespace = place,
                "all objects of this kind disappeared; keeping them until the API server confirms it"
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

/// Whether an object is one of those that are looked for in a place.
fn is_of(place: &str, key: &str) -> bool {
    place.is_empty() || key.split_once('/').is_some_and(|(namespace, _)| namespace == place)
}

/// Objects of any form: what they say is read later, one by one.
fn api(client: Client, place: &str, kind: &ApiResource) -> Api<DynamicObject> {
    match place {
        "" => Api::all_with(client, kind),
        namespace => Api::namespaced_with(client, namespace, kind),
    }
}

async fn follow<T: ObjectView>(
    api: Api<DynamicObject>,
    place: Place,
    target: &ObjectWatch<'_>,
    to: mpsc::Sender<(Place, Step<T>)>,
    standing: &DiscoveryStatus,
) {
    let what = match place.as_str() {
        "" => target.kind.plural.clone(),
        namespace => format!("{} of {namespace}", target.kind.plural),
    };
    let mut stream = watcher(api, config()).default_backoff().boxed();
    let mut pulse = Pulse::new(what, Arc::default(), standing);
    loop {
        let step = pulse.next_keyed(&mut stream, key, |object| Some(T::read(object))).await;
        if to.send((place.clone(), step)).await.is_err() {
            return;
        }
    }
}

/// Asks the API server whether a place really has no object any more.
async fn confirm(api: Api<DynamicObject>, place: Place) -> (Place, bool) {
    match api.list(&ListParams::default().limit(1)).await {
        Ok(found) if found.items.is_empty() => return (place, true),
        // The watch is behind, or on its way to say so.
        Ok(_) => {}
        Err(error) => {
            tracing::warn!(%error, "cannot confirm that all objects of a kind are gone");
        }
    }
    sleep(ASK_AGAIN).await;
    (place, false)
}
