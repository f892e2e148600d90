//! A queue of Kueue for accelerators, and objects that belong to the cluster. Those carry the namespace's name, so that two
//! stories do not meet.

use crate::cluster::dynamic;
use crate::story::Story;
use anyhow::{Context, Result};
use kube::api::{DeleteParams, DynamicObject, PostParams};
use serde_json::{Value, json};

/// The version of Kueue's API that stories use.
pub const KUEUE: &str = "kueue.x-k8s.io/v1beta2";

/// Kinds that are in no namespace.
const OF_CLUSTER: [&str; 6] = [
    "AdmissionCheck",
    "ClusterQueue",
    "PersistentVolume",
    "Pool",
    "ResourceFlavor",
    "WorkloadPriorityClass",
];

/// Makes an object, in the story's namespace if its kind is in any.
pub async fn create(story: &Story, api_version: &str, kind: &str, mut object: Value) -> Result<()> {
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    let namespaced = !OF_CLUSTER.contains(&kind);
    let namespace = namespaced.then_some(story.namespace.as_str());
    let api = dynamic(&story.cluster.client, namespace, api_version, kind);
    let object: DynamicObject = serde_json::from_value(object)?;
    api.create(&PostParams::default(), &object).await.with_context(|| format!("create {kind}"))?;
    Ok(())
}

/// A LocalQueue of this name for so many accelerators, with `more` in the spec of its ClusterQueue.
pub async fn add_queue(story: &Story, local: &str, gpus: u32, more: &Value) -> Result<()> {
    let name = &story.namespace;
    create(story, KUEUE, "ResourceFlavor", json!({ "metadata": { "name": name } })).await?;
    let mut spec = json!({
        "namespaceSelector": {},
        "resourceGroups": [{
            "coveredResources": ["nvidia.com/gpu"],
            "flavors": [{
                "name": name,
                "resources": [{ "name": "nvidia.com/gpu", "nominalQuota": gpus }],
            }],
        }],
    });
    for (field, value) in more.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    let queue = json!({ "metadata": { "name": name }, "spec": spec });
    create(story, KUEUE, "ClusterQueue", queue).await?;
    let local = json!({ "metadata": { "name": local }, "spec": { "clusterQueue": name } });
    create(story, KUEUE, "LocalQueue", local).await
}

/// Takes away what such a queue leaves behind when its namespace goes.
pub async fn remove_queue(story: &Story) -> Result<()> {
    remove_of_cluster(story, KUEUE, "ClusterQueue", &story.namespace).await?;
    remove_of_cluster(story, KUEUE, "ResourceFlavor", &story.namespace).await
}

/// Takes an object away that is in no namespace, if it is there.
pub async fn remove_of_cluster(
    story: &Story,
    api_version: &str,
    kind: &str,
    name: &str,
) -> Result<()> {
    let api = dynamic(&story.cluster.client, None, api_version, kind);
    match api.delete(name, &DeleteParams::default()).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(error.into()),
    }
}
