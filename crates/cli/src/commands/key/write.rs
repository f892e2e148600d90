//! Brings a change of keys into a Tenant.

use std::time::Duration;

use flyball_resources::Tenant;
use kube::ResourceExt as _;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use crate::cluster::{Cluster, innermost};
use crate::output::{Exit, Failure, duration};
use crate::served::full_name;

/// Who writes, as the API server's field managers name it.
pub(super) const MANAGER: &str = "flyball-cli";

/// How often a change is made anew because somebody else was faster. An operator that writes the status of the same
/// object counts too.
const TRIES: usize = 10;

/// The answer to a write of what somebody else has written meanwhile.
const CONFLICT: u16 = 409;

/// Changes the keys of a Tenant.
///
/// The whole list is written, under the version that it was read with: if anybody has written in between, the API server
/// refuses, and the change is made again to what stands there now. Fields that this release does not know stay, and
/// so does who manages them: only what differs is taken over.
pub(super) async fn change<T>(
    cluster: &Cluster,
    tenant: &Tenant,
    limit: Duration,
    mut edit: impl FnMut(&mut Vec<Value>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let resource = ApiResource::erase::<Tenant>(&());
    let namespace = tenant.namespace().unwrap_or_default();
    let api: Api<DynamicObject> =
        Api::namespaced_with(cluster.client.clone(), &namespace, &resource);
    let name = tenant.name_any();
    let failed = |why: String| {
        Failure::new(Exit::Unknown, "nothing was changed, as far as is known")
            .at(format!("tenant/{}", full_name(tenant)))
            .because(why)
            .hint("it takes the right to patch it: kubectl auth can-i patch tenants.flyball.dev")
    };
    for _ in 0..TRIES {
        let read = within(limit, api.get(&name)).await.map_err(|refused| failed(refused.why))?;
        let before = read.data["spec"]["keys"].as_array().cloned().unwrap_or_default();
        let mut keys = before.clone();
        let outcome = edit(&mut keys)?;
        if keys == before {
            return Ok(outcome);
        }
        let patch = Patch::Merge(json!({
            "metadata": { "resourceVersion": read.resource_version() },
            "spec": { "keys": keys },
        }));
        match within(limit, api.patch(&name, &manager(), &patch)).await {
            Ok(_) => return Ok(outcome),
            Err(refused) if refused.code == Some(CONFLICT) => {}
            Err(refused) => return Err(failed(refused.why)),
        }
    }
    Err(failed(format!("somebody else has changed it {TRIES} times meanwhile")))
}

pub(super) fn manager() -> PatchParams {
    PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() }
}

/// Why a request did not work.
pub(super) struct Refused {
    /// The status of an answer.
    pub(super) code: Option<u16>,
    pub(super) why: String,
}

pub(super) async fn within<T>(
    limit: Duration,
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, Refused> {
    match tokio::time::timeout(limit, request).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(kube::Error::Api(status))) => {
            Err(Refused { code: Some(status.code), why: status.message.clone() })
        }
        Ok(Err(error)) => Err(Refused { code: None, why: innermost(&error) }),
        Err(_) => Err(Refused { code: None, why: format!("no answer within {}", duration(limit)) }),
    }
}
