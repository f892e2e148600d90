//! An operator and a gateway on this machine, emulated engines in pods, and one model.

use anyhow::{Context, Result};
use flyball_e2e::http::HttpAnswer;
use flyball_e2e::process::{ServiceProcess, free};
use flyball_e2e::{Story, dynamic, kubectl, until};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Event, Pod, Service as KubeService};
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// 1 while an operator leads.
pub(super) const LEADS: &str = "flyball_operator_leads";

/// Everything that a story about one model needs.
pub(super) struct Rig<'a> {
    story: &'a Story,
    setup: Setup,
    /// Decides.
    pub(super) operator: ServiceProcess,
    /// Takes requests.
    pub(super) gateway: ServiceProcess,
    /// Where.
    pub(super) http: SocketAddr,
    /// Where gateways reach the operator.
    pub(super) link: SocketAddr,
}

/// Installs our schemas.
pub(super) fn crds(story: &Story) -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/flyball-crds/templates");
    let folder = folder.to_str().context("a path that is no text")?;
    kubectl(
        &story.cluster,
        &["apply", "--server-side", "--force-conflicts", "--filename", folder],
        "",
    )
}

/// What a story's model is made of, where it is not the usual.
#[derive(Debug, Default)]
pub(super) struct Setup {
    /// From a pod's start to its readiness.
    pub(super) start_seconds: u32,
    /// The `scaling` of the ModelService.
    pub(super) scaling: Value,
    /// Tokens that an engine is said to write in a second, where fewer should do.
    pub(super) decode: Option<u32>,
    /// Whether the engines are llama-server.
    pub(super) llama: bool,
    /// Where the operator asks for series. It then hears nothing of gateways.
    pub(super) prometheus: Option<SocketAddr>,
    /// Another way of the operator to the cluster.
    pub(super) kubeconfig: Option<PathBuf>,
    /// Further arguments of every engine.
    pub(super) engine_args: Vec<String>,
    /// Namespaces beside the story's own that the operator looks after.
    pub(super) beside: Vec<String>,
    /// The address of this machine at which pods reach the operator, where one of them is a gateway.
    pub(super) reached_at: Option<IpAddr>,
    /// Seconds after which a signal is old, where not the usual.
    pub(super) max_age: Option<u32>,
    /// What the operator says to Kueue, as lines of its settings.
    pub(super) kueue: Option<&'static str>,
    /// The pool of accelerators that each engine takes one of.
    pub(super) pool: Option<String>,
    /// Whether the first replica serves before anybody looks at it: what is decided then is always the
    /// same.
    pub(super) serves: bool,
}

impl<'a> Rig<'a> {
    /// Engines that take `start_seconds` to start, and a ModelService with this `scaling`.
    pub(super) async fn new(story: &'a Story, start_seconds: u32, scaling: &Value) -> Result<Self> {
        let setup = Setup { start_seconds, scaling: scaling.clone(), ..Setup::default() };
        Box::pin(Self::of(story, setup)).await
    }

    /// As this says.
    pub(super) async fn of(story: &'a Story, setup: Setup) -> Result<Self> {
        crds(story)?;
        story.apply(&setup.manifest(story)?)?;
        if setup.serves {
            let rollout = ["--namespace", &story.namespace, "rollout", "status", "--timeout=120s"];
            kubectl(&story.cluster, &[&rollout[..], &["deployment/model"]].concat(), "")?;
        }
        let (operator, link) = operator(story, &setup, None)?;
        operator.ready().await?;
        let (gateway, http) = gateway(story, &setup, link)?;
        gateway.ready().await?;
        Ok(Self { story, setup, operator, gateway, http, link })
    }

    /// Another operator in place of the one that is gone.
    pub(super) async fn replace_operator(&mut self) -> Result<()> {
        self.operator = self.second_operator().await?;
        Ok(())
    }

    /// Another operator beside the first, with the usual way to the cluster. Gateways reach both at the
    /// same address, on which only one can listen.
    pub(super) async fn second_operator(&self) -> Result<ServiceProcess> {
        let usual =
            Setup { kubeconfig: None, prometheus: self.setup.prometheus, ..Setup::default() };
        let (operator, _) = operator(self.story, &usual, Some(self.link))?;
        operator.ready().await?;
        Ok(operator)
    }

    /// Waits until this operator leads.
    pub(super) async fn leads(&self, operator: &ServiceProcess, limit: Duration) -> Result<()> {
        let done = until("an operator to lead", limit, async || {
            Ok((operator.metric(LEADS).await? > 0.0).then_some(()))
        });
        done.await.with_context(|| format!("its log:\n{}", operator.log()))
    }

    /// Replicas that the workload asks for.
    pub(super) async fn replicas(&self) -> Result<i32> {
        self.replicas_in(&self.story.namespace).await
    }

    /// Replicas that the workload of the same name asks for in a namespace.
    pub(super) async fn replicas_in(&self, namespace: &str) -> Result<i32> {
        let all: Api<Deployment> = Api::namespaced(self.story.cluster.client.clone(), namespace);
        let spec = all.get("model").await?.spec.context("a Deployment without a spec")?;
        Ok(spec.replicas.unwrap_or(1))
    }

    /// Pods that are ready.
    pub(super) async fn ready(&self) -> Result<usize> {
        Ok(self.all().await?.iter().filter(|pod| is_ready(pod)).count())
    }

    /// Pods that gateways were told to send nothing new to.
    pub(super) async fn draining(&self) -> Result<usize> {
        let marked = |pod: &&Pod| {
            let notes = pod.metadata.annotations.as_ref();
            notes.is_some_and(|notes| notes.keys().any(|key| key.contains("flyball.dev/drain")))
        };
        Ok(self.all().await?.iter().filter(marked).count())
    }

    /// How often containers of the pods were started again.
    pub(super) async fn restarts(&self) -> Result<i32> {
        let all = self.all().await?;
        let containers =
            all.iter().filter_map(|pod| pod.status.as_ref()?.container_statuses.as_ref());
        Ok(containers.flatten().map(|container| container.restart_count).sum())
    }

    /// Pods that have an address, with it.
    pub(super) async fn running(&self) -> Result<Vec<(String, SocketAddr)>> {
        let all = self.all().await?.into_iter();
        let found = all.filter_map(|pod| Some((pod.metadata.name?, pod.status?.pod_ip?)));
        found.map(|(name, ip)| Ok((name, (ip.parse::<IpAddr>()?, 8000).into()))).collect()
    }

    /// What the events of the namespace say.
    pub(super) async fn events(&self) -> Result<String> {
        let all: Api<Event> =
            Api::namespaced(self.story.cluster.client.clone(), &self.story.namespace);
        let of_ours = |event: &Event| event.involved_object.kind.as_deref() == Some("ModelService");
        let all = all.list(&ListParams::default()).await?.items;
        Ok(all
            .iter()
            .filter(|event| of_ours(event))
            .filter_map(|event| event.message.clone())
            .collect())
    }

    /// The names of all pods.
    pub(super) async fn names(&self) -> Result<BTreeSet<String>> {
        Ok(self.all().await?.into_iter().filter_map(|pod| pod.metadata.name).collect())
    }

    /// The addresses of all pods.
    pub(super) async fn engines(&self) -> Result<Vec<SocketAddr>> {
        Ok(self.running().await?.into_iter().map(|(_, address)| address).collect())
    }

    /// The condition of this type: whether it is so, why, and in words.
    pub(super) async fn condition(&self, kind: &str) -> Result<Value> {
        let model = self.model().await?;
        let all = model["status"]["conditions"].as_array();
        let one = all.and_then(|all| all.iter().find(|one| one["type"] == kind));
        Ok(one.cloned().unwrap_or_default())
    }

    /// Pins the replicas, or lets Flyball decide again.
    pub(super) async fn pin(&self, replicas: Option<u32>) -> Result<()> {
        self.change(&json!({ "spec": { "replicas": replicas } })).await
    }

    /// Changes the ModelService.
    pub(super) async fn change(&self, patch: &Value) -> Result<()> {
        self.models(&self.story.namespace)
            .patch("model", &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        Ok(())
    }

    /// Waits until the ModelService is as `is` says. An operator that has just begun waits for gateways
    /// that may still come.
    pub(super) async fn wait_for(&self, what: &str, is: impl Fn(&Value) -> bool) -> Result<Value> {
        let found = until(what, Duration::from_secs(180), async || {
            let model = self.model().await?;
            Ok(is(&model).then_some(model))
        });
        found.await.with_context(|| format!("the operator's log:\n{}", self.operator.log()))
    }

    /// The ModelService as it is now.
    pub(super) async fn model(&self) -> Result<Value> {
        self.model_of(&self.story.namespace, "model").await
    }

    /// The ModelService of this name in a namespace.
    pub(super) async fn model_of(&self, namespace: &str, name: &str) -> Result<Value> {
        Ok(self.models(namespace).get(name).await?.data)
    }

    /// Waits until so many pods are ready and no other is there.
    pub(super) async fn settled(&self, replicas: usize, limit: Duration) -> Result<()> {
        let what = format!("{replicas} pods that serve, and no other");
        let done = until(&what, limit, async || {
            let all = self.all().await?;
            let ready = all.iter().filter(|pod| is_ready(pod)).count();
            Ok((ready == replicas && all.len() == replicas).then_some(()))
        });
        let log = || {
            let (operator, gateway) = (self.operator.log(), self.gateway.log());
            format!("the operator's log:\n{operator}\nthe gateway's:\n{gateway}")
        };
        Box::pin(done).await.with_context(log)
    }

    /// The longest that a pod which serves took from being made to being ready.
    pub(super) async fn slowest_start(&self) -> Result<Duration> {
        let all = self.all().await?;
        let took = all.iter().filter_map(|pod| {
            let made = pod.metadata.creation_timestamp.as_ref()?;
            let conditions = pod.status.as_ref()?.conditions.as_ref()?;
            let ready =
                conditions.iter().find(|one| one.type_ == "Ready" && one.status == "True")?;
            let ready = ready.last_transition_time.as_ref()?;
            u64::try_from(ready.0.as_second() - made.0.as_second()).ok().map(Duration::from_secs)
        });
        took.max().context("no pod is ready")
    }

    /// One streamed answer of about this many tokens, read to its end.
    pub(super) async fn ask(&self, number: usize, tokens: u32) -> Result<()> {
        let body = json!({
            "model": "model", "max_tokens": tokens, "stream": true,
            "messages": [{ "role": "user", "content": format!("Tell {number} a story.") }],
        });
        HttpAnswer::of(self.http, "/v1/chat/completions", Some(&body)).await?.finish().await
    }

    async fn all(&self) -> Result<Vec<Pod>> {
        Ok(self.pods().list(&ListParams::default().labels("app=model")).await?.items)
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.story.cluster.client.clone(), &self.story.namespace)
    }

    fn models(&self, namespace: &str) -> Api<DynamicObject> {
        let version = "flyball.dev/v1alpha1";
        dynamic(&self.story.cluster.client, Some(namespace), version, "ModelService")
    }
}

impl Setup {
    /// Engines, their Service and their ModelService.
    pub(super) fn manifest(&self, story: &Story) -> Result<String> {
        let name = if self.llama { "model-llama.yaml" } else { "model.yaml" };
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cluster/manifests").join(name);
        let usual = "decodeTokensPerSecond: 2000";
        let decode = self.decode.map(|decode| format!("decodeTokensPerSecond: {decode}"));
        let slow = "- --slow-start=SECONDS";
        let more = |text: String, arg: &String| text + "\n            - " + arg;
        let args = self.engine_args.iter().fold(slow.to_owned(), more);
        Ok(std::fs::read_to_string(page)?
            .replace(slow, &args)
            .replace("FLYBALL_IMAGE", &story.cluster.image)
            .replace("LLAMA_IMAGE", &story.cluster.llama)
            .replace("SECONDS", &self.start_seconds.to_string())
            .replace("SCALING", &self.scaling.to_string())
            .replace(usual, decode.as_deref().unwrap_or(usual))
            .replace("gpusPerReplica: 0", &self.gpus())
            .replace("ports:\n            -", &format!("{}ports:\n            -", self.takes())))
    }
}

impl Setup {
    fn gpus(&self) -> String {
        let pool = |pool: &String| format!("gpusPerReplica: 1\n      pool: {pool}");
        self.pool.as_ref().map_or_else(|| "gpusPerReplica: 0".to_owned(), pool)
    }

    fn takes(&self) -> &'static str {
        let takes = "resources: { limits: { nvidia.com/gpu: 1 } }\n          ";
        self.pool.as_ref().map_or("", |_| takes)
    }
}

/// The cluster's own Prometheus.
pub(super) async fn prometheus(story: &Story) -> Result<SocketAddr> {
    let services: Api<KubeService> = Api::namespaced(story.cluster.client.clone(), "monitoring");
    let address = services.get("prometheus").await?.spec.and_then(|spec| spec.cluster_ip);
    let address: IpAddr = address.context("a Service without an address")?.parse()?;
    Ok((address, 9090).into())
}

/// An operator, and where gateways reach it.
pub(super) fn operator(
    story: &Story,
    setup: &Setup,
    link: Option<SocketAddr>,
) -> Result<(ServiceProcess, SocketAddr)> {
    let admin = free()?;
    let first = link.is_none();
    let mut link = link.map_or_else(free, Ok)?;
    if let Some(ip) = setup.reached_at {
        link.set_ip(ip);
    }
    let namespace = &story.namespace;
    let beside = setup.beside.iter().map(|name| format!(", \"{name}\"")).collect::<String>();
    // Scraped every five seconds, so that twice that is old.
    let max_age = setup.max_age.or(setup.prometheus.map(|_| 12));
    let max_age = max_age.map(|seconds| format!("signal_max_age_seconds = {seconds}\n"));
    let prometheus =
        setup.prometheus.map(|address| format!("[prometheus]\nurl = \"http://{address}\"\n"));
    // A test cluster's pods are ours, and the story is not about who they are.
    let open = setup.reached_at.is_some();
    let kueue = setup.kueue.map(|lines| format!("[kueue]\n{lines}\n"));
    let more = max_age.into_iter().chain(prometheus).chain(kueue).collect::<String>();
    // The gateway starts with the first operator, and comes back to a second one within 15 s. Rates are known
    // after four, so that people always see both that nobody told and that somebody may still come.
    let come_within = if first { 10 } else { 20 };
    let settings = format!(
        "admin = \"{admin}\"\nlink = \"{link}\"\nnamespaces = [\"{namespace}\"{beside}]\ntick_seconds = 1\n\
         {more}\n[gateways]\nopen = {open}\ncome_within_seconds = {come_within}\n\n[lease]\nnamespace = \"{namespace}\"\nseconds = 5\n"
    );
    let kubeconfig = setup.kubeconfig.as_deref().unwrap_or(&story.cluster.kubeconfig);
    Ok((ServiceProcess::start_on(kubeconfig, story, "operator", &settings, admin)?, link))
}

fn gateway(story: &Story, setup: &Setup, link: SocketAddr) -> Result<(ServiceProcess, SocketAddr)> {
    let (http, admin) = (free()?, free()?);
    let namespace = &story.namespace;
    let operator = format!("[operator]\naddress = \"http://{link}\"\n\n");
    let operator = if setup.prometheus.is_some() { "" } else { &operator };
    let engine = if setup.llama { "llama-cpp" } else { "vllm" };
    let settings = format!(
        "listen = \"{http}\"\nadmin = \"{admin}\"\nthreads = 1\n\n[telemetry]\naccess_log = false\n\n\
         {operator}[[models]]\nname = \"model\"\nservice = \"{namespace}/model:8000\"\n\
         engine = \"{engine}\"\nhold_ms = 240000\nqueue_ms = 120000\n"
    );
    Ok((ServiceProcess::start(story, "gateway", &settings, admin)?, http))
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|one| one.type_ == "Ready" && one.status == "True"))
}
