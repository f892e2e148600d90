//! A mirror of one kind of object, kept by watches: of all namespaces, or of some.
//!
//! That a mirror is empty means that there is nothing only once it was listed, and while it may be looked
//! at; see [`Mirror::is_unknown`].

use flyball_resources::{ModelService, Pool, Tenant, TrainingRun};
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{ConfigMap, Container, Node, Pod, PodSpec};
use kube::api::DynamicObject;
use kube::{Api, Client, Error, Resource};
use kube_runtime::reflector::store::Writer;
use kube_runtime::reflector::{self, Store};
use kube_runtime::{WatchStreamExt as _, watcher};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

/// Watches that failed so far, and what the last said.
#[derive(Clone, Debug, Default)]
pub(super) struct Failures {
    count: Arc<AtomicU64>,
    last: Arc<Mutex<Option<String>>>,
}

impl Failures {
    pub(super) fn summary(&self) -> (u64, Option<String>) {
        let last = self.last.lock().map_or(None, |last| last.clone());
        (self.count.load(Ordering::Relaxed), last)
    }

    fn note(&self, error: &watcher::Error) {
        self.count.fetch_add(1, Ordering::Relaxed);
        if let Ok(mut last) = self.last.lock() {
            *last = Some(error.to_string());
        }
    }
}

/// A watch that is denied is tried again within half a minute. Denied for the last time so long ago, it is
/// not any more.
const DENIED: Duration = Duration::from_secs(90);

/// When the API server last said that we may not look.
#[derive(Clone, Debug, Default)]
pub(super) struct Denied(Arc<Mutex<Option<Instant>>>);

impl Denied {
    pub(super) fn note(&self, error: &watcher::Error) {
        let code = match error {
            watcher::Error::InitialListFailed(Error::Api(status))
            | watcher::Error::WatchStartFailed(Error::Api(status))
            | watcher::Error::WatchFailed(Error::Api(status)) => status.code,
            watcher::Error::WatchError(status) => status.code,
            _ => return,
        };
        if let (401 | 403, Ok(mut last)) = (code, self.0.lock()) {
            *last = Some(Instant::now());
        }
    }

    pub(super) fn is_so(&self) -> bool {
        let last = self.0.lock().map_or(None, |last| *last);
        last.is_some_and(|last| last.elapsed() < DENIED)
    }
}

/// One kind of object, from one watch or from one per namespace.
#[derive(Clone)]
pub(super) struct Mirror<K>(Vec<Part<K>>)
where
    K: Resource + Clone + 'static,
    K::DynamicType: Eq + Hash + Clone;

/// What one watch tells.
#[derive(Clone)]
struct Part<K>
where
    K: Resource + Clone + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    /// Of this namespace; of all if absent.
    namespace: Option<String>,
    store: Store<K>,
    denied: Denied,
}

impl<K> Mirror<K>
where
    K: Resource + Lean + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone + Default + Send + Sync,
{
    /// Of the whole cluster, or of one place.
    pub(super) fn of(api: Api<K>, config: watcher::Config, failures: &Failures) -> Self {
        Self(vec![Part::follow(None, api, config, failures)])
    }

    /// Of these namespaces; of all if there are none. Rights in some namespaces only do for that.
    pub(super) fn within(client: &Client, namespaces: &[String], failures: &Failures) -> Self
    where
        K: Resource<Scope = NamespaceResourceScope>,
    {
        let config = watcher::Config::default;
        if namespaces.is_empty() {
            return Self::of(Api::all(client.clone()), config(), failures);
        }
        let each = namespaces.iter().map(|namespace| {
            let api = Api::namespaced(client.clone(), namespace);
            Part::follow(Some(namespace.clone()), api, config(), failures)
        });
        Self(each.collect())
    }

    /// Everything as it is now.
    pub(super) fn state(&self) -> Vec<Arc<K>> {
        self.0.iter().flat_map(|part| part.store.state()).collect()
    }

    /// Whether there is nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|part| part.store.is_empty())
    }

    /// Waits until everything was listed once.
    pub(super) async fn listed(&self) {
        for part in &self.0 {
            listed(&part.store).await;
        }
    }

    /// The same, but for what we may not look at.
    pub(super) async fn listed_or_denied(&self) {
        for part in &self.0 {
            while !part.is_listed() && !part.denied.is_so() {
                let _ = tokio::time::timeout(TICK, part.store.wait_until_ready()).await;
            }
        }
    }

    /// Whether nobody knows what there is in this namespace: it was never listed, or we may not look.
    pub(super) fn is_unknown(&self, namespace: &str) -> bool {
        let there = |part: &&Part<K>| part.namespace.as_ref().is_none_or(|one| one == namespace);
        let mut parts = self.0.iter().filter(there).peekable();
        parts.peek().is_none() || parts.any(|part| !part.is_listed() || part.denied.is_so())
    }
}

/// How often it is looked whether a watch is denied, or was listed.
const TICK: Duration = Duration::from_millis(100);

/// Waits until a store was listed once. A store wakes only who asked it last: of two tasks that wait for the same one, the
/// other would wait for ever, and an operator once was never ready.
async fn listed<K>(store: &Store<K>)
where
    K: Resource + Clone + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    while tokio::time::timeout(TICK, store.wait_until_ready()).await.is_err() {}
}

impl<K> Part<K>
where
    K: Resource + Lean + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone + Default + Send + Sync,
{
    fn follow(
        namespace: Option<String>,
        api: Api<K>,
        config: watcher::Config,
        failures: &Failures,
    ) -> Self {
        let denied = Denied::default();
        let store = follow(Writer::default(), api, config, (failures, &denied));
        Self { namespace, store, denied }
    }

    fn is_listed(&self) -> bool {
        self.store.wait_until_ready().now_or_never().is_some_and(|listed| listed.is_ok())
    }
}

/// Follows what a watch tells. Its stream begins again after an error and never ends.
pub(super) fn follow<K>(
    writer: Writer<K>,
    api: Api<K>,
    config: watcher::Config,
    (failures, denied): (&Failures, &Denied),
) -> Store<K>
where
    K: Resource + Lean + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone + Send + Sync,
{
    let store = writer.as_reader();
    let (failures, denied) = (failures.clone(), denied.clone());
    let stream = watcher(api, config).default_backoff().modify(Lean::lean);
    let stream = reflector::reflector(writer, stream).inspect_err(move |error| {
        failures.note(error);
        denied.note(error);
    });
    tokio::spawn(async move {
        let mut stream = std::pin::pin!(stream);
        while let Some(_seen) = stream.next().await {}
    });
    store
}

/// Leaves out what nobody reads: 100,000 pods are held in memory.
pub(super) trait Lean: Resource {
    fn lean(&mut self) {
        self.meta_mut().managed_fields = None;
    }
}

impl Lean for ModelService {}
impl Lean for Pool {}
impl Lean for Tenant {}
impl Lean for TrainingRun {}
impl Lean for DynamicObject {}
impl Lean for HorizontalPodAutoscaler {}
impl Lean for ConfigMap {}
impl Lean for Deployment {}
impl Lean for StatefulSet {}

impl Lean for Node {
    fn lean(&mut self) {
        self.metadata.managed_fields = None;
        if let Some(status) = &mut self.status {
            status.images = None;
        }
    }
}

impl Lean for Pod {
    fn lean(&mut self) {
        self.metadata.managed_fields = None;
        let Some(spec) = self.spec.take() else { return };
        let keep = |container: Container| Container {
            name: container.name,
            resources: container.resources,
            ..Container::default()
        };
        self.spec = Some(PodSpec {
            node_name: spec.node_name,
            service_account_name: spec.service_account_name,
            containers: spec.containers.into_iter().map(keep).collect(),
            ..PodSpec::default()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_runtime::watcher::Event;

    #[tokio::test(start_paused = true)]
    async fn all_who_wait_for_a_list_are_woken() {
        let mut writer = Writer::<Pool>::default();
        let store = writer.as_reader();
        let waiting: Vec<_> = (0..3)
            .map(|_| {
                let store = store.clone();
                tokio::spawn(async move { listed(&store).await })
            })
            .collect();
        tokio::time::sleep(TICK / 2).await;
        assert!(waiting.iter().all(|task| !task.is_finished()));
        writer.apply_watcher_event(&Event::Init);
        writer.apply_watcher_event(&Event::InitDone);
        let all = futures::future::join_all(waiting);
        tokio::time::timeout(TICK * 10, all).await.expect("one of them still waits");
    }
}
