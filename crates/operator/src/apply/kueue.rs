//! Writes to Kueue's objects: that a Workload may hold machines, what is added to its priority, and answers to its checks.

use super::{ApplyError, FIELD_MANAGER, within};
use crate::lead::Fence;
use crate::runs::check::CONTROLLER;
use crate::runs::kueue::BOOST;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

/// Lets Kueue admit a Workload, or take its machines back.
pub async fn activate(
    client: &Client,
    fence: &Fence,
    place: (&str, &str),
    resource: &ApiResource,
    active: bool,
) -> Result<(), ApplyError> {
    merge(client, fence, place, resource, json!({ "spec": { "active": active } })).await
}

/// Says how much is added to the priority of a Workload.
pub async fn rank(
    client: &Client,
    fence: &Fence,
    place: (&str, &str),
    resource: &ApiResource,
    boost: u32,
) -> Result<(), ApplyError> {
    let mark = (boost > 0).then(|| boost.to_string());
    let patch = json!({ "metadata": { "annotations": { BOOST: mark } } });
    merge(client, fence, place, resource, patch).await
}

async fn merge(
    client: &Client,
    fence: &Fence,
    (namespace, name): (&str, &str),
    resource: &ApiResource,
    patch: Value,
) -> Result<(), ApplyError> {
    let what = format!("Workload {namespace}/{name}");
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, resource);
    let params =
        PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..Default::default() };
    let patch = Patch::Merge(patch);
    let write = async {
        let done = api.patch(name, &params, &patch).await;
        done.map(drop).map_err(|error| ApplyError::of(what.clone(), &error))
    };
    within(fence, write, || what.clone()).await
}

/// Writes a part of a status that is Flyball's own: an answer to a check of a Workload, or that somebody answers. Under the name
/// of the controller, as Kueue's own controllers do, so that each owns its answers only.
pub async fn answer(
    client: &Client,
    fence: &Fence,
    (namespace, name): (Option<&str>, &str),
    resource: &ApiResource,
    status: &Value,
) -> Result<(), ApplyError> {
    let what = format!("{} {name}", resource.kind);
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
        None => Api::all_with(client.clone(), resource),
    };
    let params = PatchParams::apply(CONTROLLER).force();
    let write = async {
        let done = api.patch_status(name, &params, &Patch::Apply(status)).await;
        done.map(drop).map_err(|error| ApplyError::of(what.clone(), &error))
    };
    within(fence, write, || what.clone()).await
}
