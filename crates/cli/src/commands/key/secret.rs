//! A key in a Secret, for an application to read.

use std::collections::BTreeMap;
use std::time::Duration;

use flyball_core::ids::ModelId;
use flyball_identity::NewKey;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ObjectMeta, Patch, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;

use super::write::{MANAGER, manager, within};
use crate::output::{Exit, Failure};

/// Under which a Secret has the key.
const FIELD: &str = "api-key";
/// By which a Secret says whose key it has: one of another purpose is not written over.
const TENANT: &str = "flyball.dev/tenant";

/// Where a Secret is; in the namespace of the Tenant unless another is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    namespace: Option<String>,
    name: String,
}

/// A Secret that may be written, and how it was found.
pub(super) struct Target {
    api: Api<Secret>,
    name: String,
    /// As people name it.
    pub(super) shown: String,
    /// The tenant that its key is of.
    tenant: String,
    /// The version of the one that is there.
    version: Option<String>,
}

/// `app-key` or `shop/app-key`.
pub(super) fn place(text: &str) -> Result<Place, String> {
    let (namespace, name) = match text.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, text),
    };
    match ModelId::new(namespace.unwrap_or("any"), name) {
        Ok(_) => Ok(Place { namespace: namespace.map(str::to_owned), name: name.to_owned() }),
        Err(_) => Err("a Secret is named as NAME or NAMESPACE/NAME".to_owned()),
    }
}

impl Target {
    /// Looks whether the Secret may be written, before anything is. One that is there is taken only to put another key
    /// of the same tenant into it.
    pub(super) async fn find(
        client: &Client,
        place: &Place,
        tenant: (&str, &str),
        replaces: bool,
        limit: Duration,
    ) -> Result<Self, Failure> {
        let namespace = place.namespace.as_deref().unwrap_or(tenant.0);
        let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
        let shown = format!("secret/{namespace}/{}", place.name);
        let found = within(limit, api.get_opt(&place.name)).await.map_err(|refused| {
            Failure::new(Exit::Unknown, "nothing was changed: the Secret cannot be read")
                .at(shown.clone())
                .because(refused.why)
                .hint("it takes the rights to get, create and patch secrets in its namespace")
        })?;
        let tenant = format!("{}/{}", tenant.0, tenant.1);
        let ours = |secret: &Secret| secret.annotations().get(TENANT) == Some(&tenant);
        if let Some(secret) = found.as_ref().filter(|secret| !replaces || !ours(secret)) {
            let why = match ours(secret) {
                true => "it has a key of this tenant".to_owned(),
                false => format!("its annotation {TENANT} does not say {tenant}"),
            };
            return Err(Failure::new(Exit::Usage, "the Secret exists already")
                .at(shown)
                .because(why)
                .hint("name another one, delete it, or flyball key rotate --to-secret"));
        }
        let version = found.and_then(|secret| secret.resource_version());
        Ok(Self { api, name: place.name.clone(), shown, tenant, version })
    }

    /// Writes the key. The Tenant has its hash by now.
    pub(super) async fn write(&self, key: &NewKey, limit: Duration) -> Result<(), String> {
        let written = match &self.version {
            Some(version) => {
                let patch = Patch::Merge(json!({
                    "metadata": { "resourceVersion": version },
                    "stringData": { FIELD: key.expose() },
                }));
                within(limit, self.api.patch(&self.name, &manager(), &patch)).await
            }
            None => {
                let params =
                    PostParams { field_manager: Some(MANAGER.into()), ..Default::default() };
                within(limit, self.api.create(&params, &self.secret(key))).await
            }
        };
        written.map(drop).map_err(|refused| refused.why)
    }

    fn secret(&self, key: &NewKey) -> Secret {
        let metadata = ObjectMeta {
            name: Some(self.name.clone()),
            annotations: Some(BTreeMap::from([(TENANT.to_owned(), self.tenant.clone())])),
            ..ObjectMeta::default()
        };
        let data = BTreeMap::from([(FIELD.to_owned(), key.expose().to_owned())]);
        Secret { metadata, string_data: Some(data), ..Secret::default() }
    }
}
