//! What one Tenant says, as far as this version can read it. Pure.

use flyball_fleet::discover::objects::ObjectView;
use flyball_resources::Tenant;
use flyball_resources::resolve::TenantId;
use flyball_resources::tenant::{TenantKeySpec, TenantSpec};
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Keys of one Tenant, as the schema bounds them.
const KEYS: usize = 64;

/// Not a pattern of models: whoever has it is refused, and so is everybody below.
const NO_MODEL: &str = "**";

/// What is known of all Tenants, by `namespace/name`.
pub type TenantReadings = BTreeMap<String, TenantReading>;

/// What one Tenant says. Of an object that cannot be used it is what `resolve` refuses, with the hashes of
/// its keys, so that nobody else is let in by one of them.
#[derive(Clone, Debug, PartialEq)]
pub struct TenantReading {
    pub(super) tenant: Arc<Tenant>,
    pub(super) unusable: Option<Unusable>,
}

/// Why an object cannot be used at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Unusable {
    /// This version cannot read it.
    Unreadable,
    /// It is being deleted, and somebody's finalizer keeps it.
    Deleting,
}

impl TenantReading {
    /// Of a Tenant as it is.
    pub fn of(tenant: &Tenant) -> Self {
        Self::new(&TenantId::of(tenant), tenant.spec.clone(), None)
    }

    /// Nothing but its name and its spec: a change of its status is none of what it may do.
    pub(super) fn new(id: &TenantId, spec: TenantSpec, unusable: Option<Unusable>) -> Self {
        let mut tenant = Tenant::new(&id.name, spec);
        tenant.metadata.namespace = Some(id.namespace.clone());
        Self { tenant: Arc::new(tenant), unusable }
    }

    /// The words of [`Unusable`], without those of the object: somebody may have written a key into it.
    pub(super) fn unusable(&self) -> Option<&'static str> {
        Some(match self.unusable? {
            Unusable::Unreadable => {
                "this version of the gateway cannot read it; upgrade the gateway, or remove what is new"
            }
            Unusable::Deleting => "it is being deleted",
        })
    }
}

impl ObjectView for TenantReading {
    fn read(object: &DynamicObject) -> Self {
        let id =
            TenantId { namespace: object.namespace().unwrap_or_default(), name: object.name_any() };
        if object.metadata.deletion_timestamp.is_some() {
            return Self::new(&id, refused_spec(&object.data["spec"]), Some(Unusable::Deleting));
        }
        match serde_json::from_value::<TenantSpec>(object.data["spec"].clone()) {
            Ok(spec) => Self::new(&id, spec, None),
            Err(_) => {
                let spec = refused_spec(&object.data["spec"]);
                Self::new(&id, spec, Some(Unusable::Unreadable))
            }
        }
    }
}

/// A spec that is refused, with the keys of this one as far as they can be read.
fn refused_spec(spec: &Value) -> TenantSpec {
    let keys = spec["keys"].as_array().into_iter().flatten().take(KEYS);
    TenantSpec {
        parent: spec["parent"].as_str().map(str::to_owned),
        models: vec![NO_MODEL.to_owned()],
        keys: keys.map(key).collect(),
        members: Vec::new(),
        limits: None,
        weight: 1,
        priority_ceiling: flyball_resources::tenant::PriorityCeiling::default(),
        cache_group: None,
        budgets: Vec::new(),
    }
}

/// What identifies a key. What is not text is not there.
fn key(key: &Value) -> TenantKeySpec {
    let text = |field: &str| key[field].as_str().unwrap_or_default().to_owned();
    TenantKeySpec {
        name: text("name"),
        id: text("id"),
        sha256: text("sha256"),
        not_before: None,
        expires: None,
        disabled: true,
    }
}
