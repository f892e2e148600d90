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
    /// Display name of the key; example: `nightly-job`.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// Public part of the key, shown in logs and bills: ten letters and digits, unique in the cluster.
    #[schemars(regex(pattern = r"^[0-9A-Za-z]{10}$"), length(max = 10))]
    pub id: String,
    /// SHA-256 of the whole key, in hexadecimal.
    #[schemars(regex(pattern = r"^[0-9a-f]{64}$"), length(max = 64))]
    pub sha256: String,
    /// Start of validity, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), extend("format" = "date-time"))]
    pub not_before: Option<String>,
    /// End of validity, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), extend("format" = "date-time"))]
    pub expires: Option<String>,
    /// Whether the key is disabled, regardless of time.
    #[serde(default)]
    pub disabled: bool,
}

/// Who belongs to a Tenant by a token.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.serviceAccounts) == (self.issuer == 'kubernetes')")
        .message("`serviceAccounts` must be set if `issuer` is kubernetes, and only then"),
    validation = Rule::new("has(self.claims) == (self.issuer != 'kubernetes')")
        .message("`claims` must be set if `issuer` is a URL, and only then")
)]
pub struct TenantMember {
    /// Issuer of the token: the URL in its claim `iss`, or `kubernetes` for service accounts of this cluster.
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^(kubernetes|https://\S+)$"))]
    pub issuer: String,
    /// Claims that the token must have, each with one of the listed values; a claim that is a list must contain one
    /// of them. Example: `groups: [ml-a]`.
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
