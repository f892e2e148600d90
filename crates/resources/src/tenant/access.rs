//! Who belongs to a Tenant.

use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A key, by its hash. An API server that is read, or a copy of this object, lets nobody in.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.notBefore) || !has(self.expires) || timestamp(self.notBefore) < timestamp(self.expires)")
        .message("`notBefore` must be before `expires`")
)]
pub struct TenantKeySpec {
    /// What it is for, as people say it; example: `nightly-job`.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// The part of the key that logs and bills may show: ten letters and digits. No two keys of a cluster have the
    /// same one.
    #[schemars(regex(pattern = r"^[0-9A-Za-z]{10}$"), length(max = 10))]
    pub id: String,
    /// SHA-256 of the whole key, in hexadecimal.
    #[schemars(regex(pattern = r"^[0-9a-f]{64}$"), length(max = 64))]
    pub sha256: String,
    /// From when on it is let in, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), extend("format" = "date-time"))]
    pub not_before: Option<String>,
    /// From when on it is not let in any more, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), extend("format" = "date-time"))]
    pub expires: Option<String>,
    /// Whether it is not let in, whatever the time.
    #[serde(default)]
    pub disabled: bool,
}

/// Who belongs to a Tenant by a token.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.serviceAccounts) == (self.issuer == 'kubernetes')")
        .message("`serviceAccounts` must be set where `issuer` is kubernetes, and only there"),
    validation = Rule::new("has(self.claims) == (self.issuer != 'kubernetes')")
        .message("`claims` must be set where `issuer` is a URL, and only there")
)]
pub struct TenantMember {
    /// Who has signed the token: the URL in its claim `iss`, or `kubernetes` for service accounts of this cluster.
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^(kubernetes|https://\S+)$"))]
    pub issuer: String,
    /// Claims that the token must have, all of them, each with one of the values listed; a claim that is a list must
    /// have one of them in it. Example: `groups: [ml-a]`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "claims")]
    pub claims: BTreeMap<String, Vec<String>>,
    /// Service accounts of this cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub service_accounts: Vec<ServiceAccountRef>,
}

/// A service account of this cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceAccountRef {
    /// Its namespace.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub namespace: String,
    /// Its name, or `*` for every account of the namespace.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^(\*|[a-z0-9]([-.a-z0-9]*[a-z0-9])?)$")
    )]
    pub name: String,
}

/// Claims with bounds at every depth, which attributes of a field do not reach.
fn claims(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "minProperties": 1,
        "maxProperties": 8,
        "additionalProperties": {
            "type": "array",
            "minItems": 1,
            "maxItems": 64,
            "items": { "type": "string", "minLength": 1, "maxLength": 256 },
            "x-kubernetes-list-type": "set"
        },
        "x-kubernetes-validations": [{
            "rule": "self.all(name, size(name) > 0 && size(name) <= 128)",
            "message": "the name of a claim must have 1 to 128 characters"
        }]
    })
}
