//! The watches: one of EndpointSlices per namespace, one of pools and one of pods per namespace with
//! pools, and one of pods per namespace with ModelServices. Never one per model: a thousand models would be a
//! thousand connections.

use super::mirror::{Mirror, Step};
use super::place::{DiscoveryPlace, InferencePoolPlace, ServicePlace};
use super::pods::{self, PodMember};
use super::pools::{self, Chosen};
use super::pulse::Pulse;
use super::selector::VALUES;
use super::slices::{self, SERVICE_NAME, Slice};
use super::{DiscoveryProblem, DiscoveryStatus, FoundEngines};
use flyball_engines::Engine;
use futures::stream::{BoxStream, StreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, DynamicObject, ListParams};
use kube::{Client, Config, ResourceExt as _};
use kube_runtime::WatchStreamExt as _;
use kube_runtime::watcher::{self, watcher};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::Sender;

/// The API server ends a quiet watch after this long and it begins again where it was. So a
/// connection that died without a word is noticed after [`SILENCE`], not after five minutes.
const WATCH_SECONDS: u32 = 60;
const SILENCE: Duration = Duration::from_secs(75);

/// Who looks at one kind of object in one namespace.
#[derive(Debug, Default)]
pub(super) struct WatchTargets {
    /// Names of Services or pools.
    pub(super) names: BTreeSet<String>,
    /// The models that they are for.
    pub(super) models: BTreeSet<String>,
}

/// What the watches tell.
#[derive(Debug)]
pub(super) enum Change {
    Slices(String, Step<Slice>),
    Pools(String, Step<Chosen>),
    Pods(String, Step<PodMember>),
    /// Pods of ModelServices.
    Served(String, Step<PodMember>),
}

/// A client for the cluster that this process is in, or that the kubeconfig names.
pub async fn connect() -> Result<Client, DiscoveryProblem> {
    let no = |error: &dyn std::fmt::Display| DiscoveryProblem::NoCluster(error.to_string());
    let mut config = Config::infer().await.map_err(|error| no(&error))?;
    config.read_timeout = Some(SILENCE);
    config.reset_reader_on_write = true;
    // Watches pause between tries themselves; tries inside the client would hide for half a minute
    // that the API server is unwell.
    config.default_retry = false;
    // A credential plugin of a kubeconfig is a foreign program that may take its time.
    let client = tokio::task::spawn_blocking(move || Client::try_from(config)).await;
    client.map_err(|error| no(&error))?.map_err(|error| no(&error))
}

/// Watches the EndpointSlices of a namespace, for as long as it is polled.
pub(super) async fn slices(
    client: Client,
    namespace: String,
    targets: WatchTargets,
    to: Sender<Change>,
    standing: &DiscoveryStatus,
) {
    let WatchTargets { names, models } = targets;
    let api: Api<EndpointSlice> = Api::namespaced(client, &namespace);
    let labels = if names.len() <= VALUES {
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        format!("{SERVICE_NAME} in ({})", names.join(","))
    } else {
        SERVICE_NAME.to_owned()
    };
    let mut stream = watcher(api, config().labels(&labels)).default_backoff().boxed();
    let what = format!("endpointslices of {namespace}");
    let mut pulse = Pulse::new(what, Arc::new(models), standing);
    loop {
        let is_target = |slice: &Slice| names.contains(&slice.service);
        let step = pulse.next(&mut stream, |object| slices::slice(object).filter(is_target)).await;
        if to.send(Change::Slices(namespace.clone(), step)).await.is_err() {
            return;
        }
    }
}

/// Watches the pools of a namespace and the pods that they choose, for as long as it is polled.
pub(super) async fn pools(
    client: Client,
    namespace: String,
    targets: WatchTargets,
    to: Sender<Change>,
    standing: &DiscoveryStatus,
) {
    let WatchTargets { names, models } = targets;
    let models = Arc::new(models);
    let api: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), &namespace, &pools::resource());
    let mut pool_stream = watcher(api, config()).default_backoff().boxed();
    let what = format!("inferencepools of {namespace}");
    let mut pool_pulse = Pulse::new(what, Arc::clone(&models), standing);
    let mut pod_stream: BoxStream<'_, _> = futures::stream::pending().boxed();
    let mut pod_pulse = Pulse::new(format!("pods of {namespace}"), models, standing);
    let mut known = Mirror::default();
    let mut watched: Option<String> = None;
    loop {
        let is_target = |pool: &DynamicObject| {
            names.contains(&pool.name_any()).then(|| pools::pool(pool)).flatten()
        };
        tokio::select! {
            step = pool_pulse.next(&mut pool_stream, is_target) => {
                known.take(step.clone());
                let all = known.whole().into_iter().flat_map(BTreeMap::values);
                let selector = pools::shared_selector(all);
                if selector != watched {
                    // Other pods are asked for now; until they are listed, the old answer stays. So
                    // this is told before the pool is.
                    if to.send(Change::Pods(namespace.clone(), Step::Stale)).await.is_err() {
                        return;
                    }
                    pod_stream = match &selector {
                        None => futures::stream::pending().boxed(),
                        Some(labels) => {
                            let api: Api<Pod> = Api::namespaced(client.clone(), &namespace);
                            watcher(api, config().labels(labels)).default_backoff().boxed()
                        }
                    };
                    watched = selector;
                }
                if to.send(Change::Pools(namespace.clone(), step)).await.is_err() {
                    return;
                }
            }
            step = pod_pulse.next(&mut pod_stream, pods::member) => {
                if to.send(Change::Pods(namespace.clone(), step)).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Watches the pods of a namespace's ModelServices, for as long as it is polled.
pub(super) async fn served(
    client: Client,
    namespace: String,
    (labels, models): (String, BTreeSet<String>),
    to: Sender<Change>,
    standing: &DiscoveryStatus,
) {
    let api: Api<Pod> = Api::namespaced(client, &namespace);
    let mut stream = watcher(api, config().labels(&labels)).default_backoff().boxed();
    // Not the name of the watch for pools: both may fail at once.
    let what = format!("pods of ModelServices in {namespace}");
    let mut pulse = Pulse::new(what, Arc::new(models), standing);
    loop {
        let step = pulse.next(&mut stream, pods::member).await;
        if to.send(Change::Served(namespace.clone(), step)).await.is_err() {
            return;
        }
    }
}

/// Asks the API server itself, not a watch, which engines a model has now.
pub(super) async fn ask(
    client: &Client,
    place: &DiscoveryPlace,
    engine: Engine,
) -> Result<Vec<FoundEngines>, kube::Error> {
    match place {
        DiscoveryPlace::Static(_) => Ok(Vec::new()),
        DiscoveryPlace::Service(ServicePlace { namespace, name, port }) => {
            let api: Api<EndpointSlice> = Api::namespaced(client.clone(), namespace);
            let params = ListParams::default().labels(&format!("{SERVICE_NAME}={name}"));
            let all: Vec<_> = api.list(&params).await?.iter().filter_map(slices::slice).collect();
            Ok(slices::found(all.iter(), port, engine))
        }
        DiscoveryPlace::Pool(InferencePoolPlace { namespace, name }) => {
            let api: Api<DynamicObject> =
                Api::namespaced_with(client.clone(), namespace, &pools::resource());
            let pool = api.get_opt(name).await?.as_ref().and_then(pools::pool);
            let Some(pool) = pool else { return Ok(Vec::new()) };
            let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
            let params = ListParams::default().labels(&pools::labels_text(&pool.labels));
            let all: Vec<_> = api.list(&params).await?.iter().filter_map(pods::member).collect();
            Ok(pools::found(&pool, all.iter(), engine))
        }
        DiscoveryPlace::Pods(place) => {
            let api: Api<Pod> = Api::namespaced(client.clone(), &place.namespace);
            let mut all = Vec::new();
            for variant in &place.variants {
                let params = ListParams::default().labels(&variant.selector.to_string());
                all.extend(api.list(&params).await?.iter().filter_map(pods::member));
            }
            Ok(pods::found(place, all.iter()))
        }
    }
}

pub(super) fn config() -> watcher::Config {
    watcher::Config::default().timeout(WATCH_SECONDS)
}
