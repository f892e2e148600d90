//! Carries writes out.
//!
//! The number of replicas is written through the `scale` subresource and only if it still is what the
//! decision was made on, with the object's version: two operators that both believe to lead cannot undo
//! each other, one of them is told that the world has moved on. Everything else is server-side apply with
//! our field manager, or a patch of our own annotations.

pub mod kueue;

use crate::build::Write;
use crate::lead::{Fence, Unwritten};
use crate::observe::WorkloadKey;
use crate::validate::beyond;
use flyball_core::ids::ModelId;
use flyball_resources::model_service::TargetKind;
use flyball_resources::{FIELD_MANAGER, labels, rfc3339};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, EvictParams, Patch, PatchParams, Preconditions,
};
use kube::core::{GroupVersionKind, TypeMeta};
use kube::{Client, Error, ResourceExt as _};
use serde_json::{Value, json};
use std::time::Duration;

/// For one write, if the lease lasts so long.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Why a write was not made.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// This operator may not write any more.
    #[error("this operator lost the leader lease")]
    NotLeading,
    /// Something changed since the decision was made. The next one sees it.
    #[error("{what} changed meanwhile: {detail}")]
    Moved {
        /// What.
        what: String,
        /// How.
        detail: String,
    },
    /// It is not allowed.
    #[error("{what}: not allowed: {detail}; hint: install the chart with rbac.act=true")]
    Forbidden {
        /// What was to be written.
        what: String,
        /// What the API server said.
        detail: String,
    },
    /// The API server refused it, and will again.
    #[error("{what}: refused: {detail}")]
    Refused {
        /// What was to be written.
        what: String,
        /// What the API server said.
        detail: String,
    },
    /// INV-15: it would make pods that may do more than others. A mistake of ours, and it is not sent.
    #[error("{what}: not created; its pods would violate the Pod Security Standards: {fields}")]
    BeyondStandard {
        /// What was to be made.
        what: String,
        /// By which fields.
        fields: String,
    },
    /// The API server cannot be reached, or did not answer.
    #[error("{what}: {detail}")]
    Away {
        /// What was to be written.
        what: String,
        /// What happened.
        detail: String,
    },
}

/// What to do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The next decision will be made on what is then there.
    NextTick,
    /// A person must act first.
    Never,
}

impl ApplyError {
    /// What to do about it.
    pub const fn retry(&self) -> Retry {
        match self {
            Self::NotLeading | Self::Moved { .. } | Self::Away { .. } => Retry::NextTick,
            Self::Forbidden { .. } | Self::Refused { .. } | Self::BeyondStandard { .. } => {
                Retry::Never
            }
        }
    }

    /// Its word in metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::NotLeading => "not-leading",
            Self::Moved { .. } => "conflict",
            Self::Forbidden { .. } => "forbidden",
            Self::Refused { .. } | Self::BeyondStandard { .. } => "refused",
            Self::Away { .. } => "unreachable",
        }
    }

    fn of(what: String, error: &Error) -> Self {
        let Error::Api(status) = error else {
            return Self::Away { what, detail: error.to_string() };
        };
        let detail = status.message.clone();
        match status.code {
            409 | 404 => Self::Moved { what, detail },
            403 => Self::Forbidden { what, detail },
            429 | 500.. => Self::Away { what, detail },
            _ => Self::Refused { what, detail },
        }
    }
}

/// What came of the writes of one model.
#[derive(Debug)]
pub struct Applied {
    /// So many were made, from the first on.
    pub made: usize,
    /// Why the next one was not.
    pub failed: Option<ApplyError>,
}

/// Makes the writes of one model, in order. The first that fails ends it: what follows may rest on it.
/// What was made before stays made.
pub async fn apply(client: &Client, fence: &Fence, model: &ModelId, writes: &[Write]) -> Applied {
    for (made, write) in writes.iter().enumerate() {
        if let Err(error) = fenced(client, fence, model, write).await {
            return Applied { made, failed: Some(error) };
        }
    }
    Applied { made: writes.len(), failed: None }
}

/// Makes an object of Flyball's own, or brings it up to date.
pub async fn make_object(client: &Client, fence: &Fence, object: &Value) -> Result<(), ApplyError> {
    let what = format!("{} {}", object["kind"], object["metadata"]["name"]);
    within(fence, make(client, object), || what).await
}

async fn fenced(
    client: &Client,
    fence: &Fence,
    model: &ModelId,
    write: &Write,
) -> Result<(), ApplyError> {
    let one = one(client, model.namespace().as_str(), write);
    within(fence, one, || describe(write)).await
}

async fn within(
    fence: &Fence,
    write: impl Future<Output = Result<(), ApplyError>>,
    what: impl FnOnce() -> String,
) -> Result<(), ApplyError> {
    fence.within(TIMEOUT, write).await.unwrap_or_else(|unwritten| match unwritten {
        Unwritten::NotLeading => Err(ApplyError::NotLeading),
        Unwritten::Late => {
            let detail = "no answer in time".to_owned();
            Err(ApplyError::Away { what: what(), detail })
        }
    })
}

async fn one(client: &Client, namespace: &str, write: &Write) -> Result<(), ApplyError> {
    match write {
        Write::Mark { pod, since } => {
            annotate(client, namespace, pod, json!({ labels::DRAINING: rfc3339(*since) })).await
        }
        Write::Unmark { pod } => {
            let none = json!({ labels::DRAINING: null, labels::DELETION_COST: null });
            annotate(client, namespace, pod, none).await
        }
        Write::Cost { pod, cost } => {
            annotate(client, namespace, pod, json!({ labels::DELETION_COST: cost.to_string() }))
                .await
        }
        Write::Protect { pod, since } => {
            let marks = json!({
                labels::PROTECTED: rfc3339(*since),
                labels::KARPENTER_KEEPS: "true",
                labels::AUTOSCALER_EVICTS: "false",
            });
            annotate(client, namespace, pod, marks).await
        }
        Write::Unprotect { pod } => {
            let none = json!({
                labels::PROTECTED: null,
                labels::KARPENTER_KEEPS: null,
                labels::AUTOSCALER_EVICTS: null,
            });
            annotate(client, namespace, pod, none).await
        }
        Write::Replace { pod, uid } => evict(client, namespace, pod, uid).await,
        Write::Scale { workload, from, to } => scale(client, workload, *from, *to).await,
        Write::Make { object } => make(client, object).await,
    }
}

async fn annotate(
    client: &Client,
    namespace: &str,
    pod: &str,
    marks: Value,
) -> Result<(), ApplyError> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let patch = Patch::Merge(json!({ "metadata": { "annotations": marks } }));
    let params =
        PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..Default::default() };
    let done = pods.patch_metadata(pod, &params, &patch).await;
    done.map(drop).map_err(|error| ApplyError::of(format!("pod {namespace}/{pod}"), &error))
}

/// Asks for a pod to be evicted, which a budget for disruptions may refuse for now.
async fn evict(client: &Client, namespace: &str, pod: &str, uid: &str) -> Result<(), ApplyError> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
    let delete = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    let params = EvictParams { delete_options: Some(delete), ..EvictParams::default() };
    let done = pods.evict(pod, &params).await;
    done.map(drop).map_err(|error| ApplyError::of(format!("pod {namespace}/{pod}"), &error))
}

async fn scale(client: &Client, key: &WorkloadKey, from: u32, to: u32) -> Result<(), ApplyError> {
    let (namespace, kind, name) = key;
    let what = format!("{kind:?} {namespace}/{name}");
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource(*kind));
    let now = api.get_scale(name).await.map_err(|error| ApplyError::of(what.clone(), &error))?;
    let has = now.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(0);
    if has != i32::try_from(from).unwrap_or(i32::MAX) {
        let detail = format!("it has {has} replicas and not {from}");
        return Err(ApplyError::Moved { what, detail });
    }
    let patch = json!({
        "metadata": { "resourceVersion": now.metadata.resource_version },
        "spec": { "replicas": to },
    });
    let params =
        PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..Default::default() };
    let done = api.patch_scale(name, &params, &Patch::Merge(patch)).await;
    done.map(drop).map_err(|error| ApplyError::of(what, &error))
}

async fn make(client: &Client, object: &Value) -> Result<(), ApplyError> {
    let text = |place: &Value| place.as_str().unwrap_or_default().to_owned();
    let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
    let what = format!("{kind} {name}");
    // Services have none, and JobSets several.
    let jobs = object["spec"]["replicatedJobs"].as_array().into_iter().flatten();
    let of_jobs = jobs.map(|job| &job["template"]["spec"]["template"]);
    for template in object["spec"].get("template").into_iter().chain(of_jobs) {
        let fields = beyond(template);
        if !fields.is_empty() {
            return Err(ApplyError::BeyondStandard { what, fields: fields.join(", ") });
        }
    }
    let types = TypeMeta { api_version: text(&object["apiVersion"]), kind };
    let gvk = GroupVersionKind::try_from(types)
        .map_err(|error| ApplyError::Refused { what: what.clone(), detail: error.to_string() })?;
    let namespace = text(&object["metadata"]["namespace"]);
    let api: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), &namespace, &ApiResource::from_gvk(&gvk));
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let done = api.patch(&name, &params, &Patch::Apply(object)).await;
    done.map(|made| drop(made.name_any())).map_err(|error| ApplyError::of(what, &error))
}

fn resource(kind: TargetKind) -> ApiResource {
    let gvk = match kind {
        TargetKind::Deployment => GroupVersionKind::gvk("apps", "v1", "Deployment"),
        TargetKind::StatefulSet => GroupVersionKind::gvk("apps", "v1", "StatefulSet"),
        TargetKind::LeaderWorkerSet => {
            GroupVersionKind::gvk("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet")
        }
    };
    ApiResource::from_gvk(&gvk)
}

fn describe(write: &Write) -> String {
    match write {
        Write::Mark { pod, .. }
        | Write::Unmark { pod }
        | Write::Cost { pod, .. }
        | Write::Protect { pod, .. }
        | Write::Unprotect { pod }
        | Write::Replace { pod, .. } => format!("pod {pod}"),
        Write::Scale { workload, .. } => format!("{:?} {}/{}", workload.1, workload.0, workload.2),
        Write::Make { object } => format!("{} {}", object["kind"], object["metadata"]["name"]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use flyball_core::units::Timestamp;
    use http::{Method, Request, Response};
    use http_body_util::Full;
    use hyper::body::Incoming;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use std::convert::Infallible;
    use std::time::Instant;

    /// An API server that takes marks and has lost its Deployments.
    async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        let (status, body) = match *request.method() {
            Method::PATCH => {
                (200, json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}))
            }
            _ => (
                404,
                json!({"kind": "Status", "status": "Failure", "message": "none", "code": 404}),
            ),
        };
        let response = Response::builder().status(status).body(Full::from(body.to_string()));
        Ok(response.unwrap())
    }

    async fn client() -> Client {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service_fn(answer)),
                );
            }
        });
        let mut config = kube::Config::new(format!("http://{address}").parse().unwrap());
        config.default_retry = false;
        Client::try_from(config).unwrap()
    }

    #[tokio::test]
    async fn what_was_written_before_a_failure_counts_and_without_the_lease_nothing_is() {
        let model: ModelId = "team/m".parse().unwrap();
        let workload = ("team".to_owned(), TargetKind::Deployment, "m".to_owned());
        let mark = Write::Mark { pod: "a".to_owned(), since: Timestamp::from_micros(1) };
        let writes = [mark, Write::Scale { workload, from: 2, to: 1 }];
        let (client, fence) = (client().await, Fence::default());
        let applied = apply(&client, &fence, &model, &writes).await;
        assert_eq!(applied.made, 0);
        assert!(matches!(applied.failed, Some(ApplyError::NotLeading)), "{applied:?}");
        fence.lead(Instant::now(), TIMEOUT);
        let applied = apply(&client, &fence, &model, &writes).await;
        assert_eq!(applied.made, 1, "the mark holds: {applied:?}");
        assert!(matches!(applied.failed, Some(ApplyError::Moved { .. })), "{applied:?}");
    }

    #[tokio::test]
    async fn inv_15_a_pod_beyond_the_standard_is_not_sent() {
        let object = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "m", "namespace": "team" },
            "spec": { "template": { "spec": { "hostNetwork": true, "containers": [] } } },
        });
        let (client, fence) = (client().await, Fence::default());
        fence.lead(Instant::now(), TIMEOUT);
        let model: ModelId = "team/m".parse().unwrap();
        let applied = apply(&client, &fence, &model, &[Write::Make { object }]).await;
        let Some(ApplyError::BeyondStandard { fields, .. }) = applied.failed else {
            panic!("{applied:?}")
        };
        assert_eq!(fields, "spec.hostNetwork");
    }
}
