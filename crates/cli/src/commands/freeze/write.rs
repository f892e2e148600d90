//! Writes a freeze or its end to the cluster.

use std::time::Duration;

use flyball_resources::{ModelService, labels};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use super::answer::{Brake, Target};
use crate::cluster::{Cluster, innermost};
use crate::output::{Exit, Failure, duration};

/// Who writes, as the API server's field managers name it.
const MANAGER: &str = "flyball-cli";

/// In the ConfigMap: why.
const BECAUSE: &str = "because";

/// What the ConfigMap that freezes everything says, if it is there.
pub(super) async fn switch(
    cluster: &Cluster,
    namespace: &str,
    limit: Duration,
) -> Result<Option<String>, Failure> {
    let maps = maps(&cluster.client, namespace);
    let found = within(limit, maps.get_opt(labels::FREEZE_ALL)).await;
    let found = found.map_err(|why| {
        Failure::new(Exit::Unknown, "cannot determine whether everything is frozen")
            .at(format!("configmap/{namespace}/{}", labels::FREEZE_ALL))
            .because(why)
    })?;
    Ok(found.map(|map| {
        let because = map.data.as_ref().and_then(|data| data.get(BECAUSE)).cloned();
        format!("with everything: {}", because.unwrap_or_else(|| "no reason given".to_owned()))
    }))
}

pub(super) async fn write(
    cluster: &Cluster,
    target: &Target,
    brake: &Brake,
    limit: Duration,
) -> Result<(), Failure> {
    let client = &cluster.client;
    let done = match target {
        Target::Model(model) => annotate(client, model, brake, limit).await,
        Target::All { namespace, .. } => set_switch(client, namespace, brake, limit).await,
    };
    done.map_err(|why| {
        Failure::new(Exit::Unknown, "nothing was changed, as far as is known")
            .at(brake.object.clone())
            .because(why)
            .hint("it takes the right to patch it: kubectl auth can-i patch modelservices")
    })
}

async fn annotate(
    client: &Client,
    model: &ModelService,
    brake: &Brake,
    limit: Duration,
) -> Result<(), String> {
    let namespace = model.namespace().unwrap_or_default();
    let api: Api<ModelService> = Api::namespaced(client.clone(), &namespace);
    let marks = annotations(brake);
    let patch = Patch::Merge(json!({ "metadata": { "annotations": marks } }));
    within(limit, api.patch(&model.name_any(), &manager(), &patch)).await.map(drop)
}

/// The annotations of a freeze; of its end, that they go.
pub(super) fn annotations(brake: &Brake) -> Value {
    json!({
        labels::FROZEN_UNTIL: brake.until,
        labels::FROZEN_BECAUSE: brake.because,
    })
}

async fn set_switch(
    client: &Client,
    namespace: &str,
    brake: &Brake,
    limit: Duration,
) -> Result<(), String> {
    let maps = maps(client, namespace);
    if !brake.freeze {
        let gone = within(limit, maps.delete(labels::FREEZE_ALL, &DeleteParams::default())).await;
        return gone.map(drop);
    }
    let map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": labels::FREEZE_ALL },
        "data": { BECAUSE: brake.because },
    });
    let params = PatchParams::apply(MANAGER).force();
    within(limit, maps.patch(labels::FREEZE_ALL, &params, &Patch::Apply(map))).await.map(drop)
}

fn maps(client: &Client, namespace: &str) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), namespace)
}

fn manager() -> PatchParams {
    PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() }
}

async fn within<T>(
    limit: Duration,
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, String> {
    match tokio::time::timeout(limit, request).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(kube::Error::Api(status))) => Err(status.message.clone()),
        Ok(Err(error)) => Err(innermost(&error)),
        Err(_) => Err(format!("no answer within {}", duration(limit))),
    }
}
