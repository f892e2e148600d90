//! A mirror of one kind of object, kept by watches: of all namespaces, or of some.

use flyball_resources::{ModelService, Pool};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{ConfigMap, Container, Node, Pod, PodSpec};
use kube::api::DynamicObject;
use kube::{Api, Client, Resource};
use kube_runtime::reflector::store::Writer;
use kube_runtime::reflector::{self, Store};
use kube_runtime::{WatchStreamExt as _, watcher};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Watches that failed so far, and what the last said.
#[derive(Clone, Debug, Default)]
pub(super) struct Failures {
    count: Arc<AtomicU64>,
    last: Arc<Mutex<Option<String>>>,
}

impl Failures {
    pub(super) fn told(&self) -> (u64, Option<String>) {
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

/// One kind of object, from one watch or from one per namespace.
#[derive(Clone)]
pub(super) struct Mirror<K>(Vec<Store<K>>)
where
    K: Resource + Clone + 'static,
    K::DynamicType: Eq + Hash + Clone;

impl<K> Mirror<K>
where
    K: Resource + Lean + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone + Default + Send + Sync,
{
    /// Of the whole cluster, or of one place.
    pub(super) fn of(api: Api<K>, config: watcher::Config, failures: &Failures) -> Self {
        Self(vec![follow(Writer::default(), api, config, failures)])
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
            follow(Writer::default(), api, config(), failures)
        });
        Self(each.collect())
    }

    /// Everything as it is now.
    pub(super) fn state(&self) -> Vec<Arc<K>> {
        self.0.iter().flat_map(Store::state).collect()
    }

    /// Whether there is nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(Store::is_empty)
    }

    /// Waits until everything was listed once.
    pub(super) async fn listed(&self) {
        for store in &self.0 {
            let _ = store.wait_until_ready().await;
        }
    }
}

/// Follows what a watch tells. Its stream begins again after an error and never ends.
pub(super) fn follow<K>(
    writer: Writer<K>,
    api: Api<K>,
    config: watcher::Config,
    failures: &Failures,
) -> Store<K>
where
    K: Resource + Lean + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone + Send + Sync,
{
    let store = writer.as_reader();
    let failures = failures.clone();
    let stream = watcher(api, config).default_backoff().modify(Lean::lean);
    let stream =
        reflector::reflector(writer, stream).inspect_err(move |error| failures.note(error));
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
