//! The watches: one of EndpointSlices per namespace, one of pools and one of pods per namespace with
//! pools. Never one per model: a thousand models would be a thousand connections.

use super::mirror::{Mirror, Step};
use super::place::{DiscoveryPlace, InferencePoolPlace, ServicePlace};
use super::pools::{self, Chosen};
use super::slices::{self, SERVICE_NAME, Slice};
use super::standing::Noted;
use super::{DiscoveryProblem, DiscoveryStatus, Failing, FoundEngines};
use flyball_engines::Engine;
use futures::stream::{BoxStream, StreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, DynamicObject, ListParams};
use kube::{Client, Config, ResourceExt};
use kube_runtime::WatchStreamExt as _;
use kube_runtime::watcher::{self, Event, watcher};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::Sender;

/// The API server ends a quiet watch after this long and it begins again where it was. So a
/// connection that died without a word is noticed after [`SILENCE`], not after five minutes.
const WATCH_SECONDS: u32 = 60;
const SILENCE: Duration = Duration::from_secs(75);

/// A watch that failed and has said nothing for so long is well again: failing, it would have
/// failed again (pauses grow to 30 s, connecting takes at most 30 s).
const RECOVERED: Duration = Duration::from_secs(90);

/// Up to so many names are told to the API server; a longer list would not fit into an address,
/// and the filter here sees to the rest. 32 names of 63 bytes are 2 KB.
const NAMES: usize = 32;

/// Who looks at one kind of object in one namespace.
#[derive(Debug, Default)]
pub(super) struct Asked {
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
    Pods(String, Step<pools::Member>),
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
    asked: Asked,
    to: Sender<Change>,
    standing: &DiscoveryStatus,
) {
    let Asked { names, models } = asked;
    let api: Api<EndpointSlice> = Api::namespaced(client, &namespace);
    let labels = if names.len() <= NAMES {
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        format!("{SERVICE_NAME} in ({})", names.join(","))
    } else {
        SERVICE_NAME.to_owned()
    };
    let mut stream = watcher(api, config().labels(&labels)).default_backoff().boxed();
    let what = format!("endpointslices of {namespace}");
    let mut pulse = Pulse::new(what, Arc::new(models), standing);
    loop {
        let asked = |slice: &Slice| names.contains(&slice.service);
        let step = pulse.next(&mut stream, |object| slices::slice(object).filter(asked)).await;
        if to.send(Change::Slices(namespace.clone(), step)).await.is_err() {
            return;
        }
    }
}

/// Watches the pools of a namespace and the pods that they choose, for as long as it is polled.
pub(super) async fn pools(
    client: Client,
    namespace: String,
    asked: Asked,
    to: Sender<Change>,
    standing: &DiscoveryStatus,
) {
    let Asked { names, models } = asked;
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
        let asked = |pool: &DynamicObject| {
            names.contains(&pool.name_any()).then(|| pools::pool(pool)).flatten()
        };
        tokio::select! {
            step = pool_pulse.next(&mut pool_stream, asked) => {
                known.take(step.clone());
                let all = known.whole().into_iter().flat_map(BTreeMap::values);
                let wanted = pools::shared_selector(all);
                if wanted != watched {
                    // Other pods are asked for now; until they are listed, the old answer stays. So
                    // this is told before the pool is.
                    if to.send(Change::Pods(namespace.clone(), Step::Stale)).await.is_err() {
                        return;
                    }
                    pod_stream = match &wanted {
                        None => futures::stream::pending().boxed(),
                        Some(labels) => {
                            let api: Api<Pod> = Api::namespaced(client.clone(), &namespace);
                            watcher(api, config().labels(labels)).default_backoff().boxed()
                        }
                    };
                    watched = wanted;
                }
                if to.send(Change::Pools(namespace.clone(), step)).await.is_err() {
                    return;
                }
            }
            step = pod_pulse.next(&mut pod_stream, pools::member) => {
                if to.send(Change::Pods(namespace.clone(), step)).await.is_err() {
                    return;
                }
            }
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
            let wanted = ListParams::default().labels(&format!("{SERVICE_NAME}={name}"));
            let all: Vec<_> = api.list(&wanted).await?.iter().filter_map(slices::slice).collect();
            Ok(slices::found(all.iter(), port, engine))
        }
        DiscoveryPlace::Pool(InferencePoolPlace { namespace, name }) => {
            let api: Api<DynamicObject> =
                Api::namespaced_with(client.clone(), namespace, &pools::resource());
            let pool = api.get_opt(name).await?.as_ref().and_then(pools::pool);
            let Some(pool) = pool else { return Ok(Vec::new()) };
            let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
            let wanted = ListParams::default().labels(&pools::selector(&pool.labels));
            let all: Vec<_> = api.list(&wanted).await?.iter().filter_map(pools::member).collect();
            Ok(pools::found(&pool, all.iter(), engine))
        }
    }
}

fn config() -> watcher::Config {
    watcher::Config::default().timeout(WATCH_SECONDS)
}

/// Whether a watch is well. Its troubles are logged when they begin and when they end.
struct Pulse<'a> {
    what: String,
    models: Arc<BTreeSet<String>>,
    standing: &'a DiscoveryStatus,
    /// While it is not.
    unwell: Option<Noted<'a>>,
}

impl<'a> Pulse<'a> {
    fn new(what: String, models: Arc<BTreeSet<String>>, standing: &'a DiscoveryStatus) -> Self {
        Self { what, models, standing, unwell: None }
    }

    /// The next step that the watch tells. Failures are waited out here.
    async fn next<K: ResourceExt, T>(
        &mut self,
        stream: &mut BoxStream<'_, watcher::Result<Event<K>>>,
        reduce: impl Fn(&K) -> Option<T>,
    ) -> Step<T> {
        loop {
            let next = if self.unwell.is_some() {
                match tokio::time::timeout(RECOVERED, stream.next()).await {
                    Ok(next) => next,
                    Err(_) => {
                        self.turn(None);
                        continue;
                    }
                }
            } else {
                stream.next().await
            };
            match next {
                Some(Ok(event)) => {
                    self.turn(None);
                    return step(event, reduce);
                }
                Some(Err(error)) => self.turn(Some(&error)),
                // A watcher has no end. If it had one, the last listing would stay.
                None => std::future::pending().await,
            }
        }
    }

    fn turn(&mut self, trouble: Option<&watcher::Error>) {
        match (trouble, self.unwell.is_some()) {
            (Some(error), false) => {
                let (hint, models) = (hint(error), first_names(&self.models));
                tracing::warn!(watch = self.what, models, %error, hint, "engine discovery failed; keeping the previous list");
                let (models, error) = (Arc::clone(&self.models), error.to_string());
                let failing = Failing { models, error, hint };
                self.unwell = Some(self.standing.note(&self.what, failing));
            }
            (None, true) => {
                tracing::info!(watch = self.what, "engine discovery recovered");
                self.unwell = None;
            }
            _ => {}
        }
    }
}

/// Some of the models that a line of the log is about.
fn first_names(models: &BTreeSet<String>) -> String {
    let mut names: Vec<_> = models.iter().take(8).map(String::as_str).collect();
    if models.len() > names.len() {
        names.push("...");
    }
    names.join(", ")
}

fn step<K: ResourceExt, T>(event: Event<K>, reduce: impl Fn(&K) -> Option<T>) -> Step<T> {
    match event {
        Event::Init => Step::Start,
        Event::InitDone => Step::Done,
        Event::InitApply(object) | Event::Apply(object) => {
            Step::Put(object.name_any(), reduce(&object))
        }
        Event::Delete(object) => Step::Drop(object.name_any()),
    }
}

fn hint(error: &watcher::Error) -> &'static str {
    let code = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status)) => status.code,
        watcher::Error::WatchError(status) => status.code,
        _ => 0,
    };
    match code {
        401 | 403 => "the Role in docs/guides/gateway.md has what is needed",
        404 => {
            "is the kind installed? InferencePool comes with the Gateway API Inference Extension"
        }
        _ => "it is tried again without end",
    }
}
