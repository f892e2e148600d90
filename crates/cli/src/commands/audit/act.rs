//! What was done, as it is answered.

use schemars::JsonSchema;
use serde::Serialize;

/// An act.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AuditAct {
    /// When it was answered, or written down, RFC 3339.
    pub(super) time: String,
    /// Which log it stands in.
    pub(super) source: Source,
    /// The user of the API server; `gateway` if a gateway did it by itself.
    pub(super) who: String,
    /// Whom the user impersonated.
    pub(super) acting_as: Option<String>,
    /// created, changed or deleted; of a gateway the word that its log has.
    pub(super) act: String,
    /// On what, as `tenant/namespace/name`; of a gateway, in the words of its log.
    pub(super) object: String,
    /// What became other than it was, as far as it is known.
    pub(super) changes: Vec<AuditChange>,
    /// Whether `changes` is all that changed. If not, they are fields that were written, and the log does not say what was
    /// there before; absent where it cannot be asked.
    pub(super) all_changes: Option<bool>,
    /// Changes of this object just before, which no line tells of.
    pub(super) missing_before: Option<i64>,
    /// accepted, refused or failed with the status, dry run, or unknown; of a gateway, in the words of its log.
    pub(super) outcome: String,
    /// HTTP status of the API server's answer.
    pub(super) code: Option<i64>,
    /// Whether nothing was to be stored.
    pub(super) dry_run: bool,
    /// The tenant that it is about, `namespace/name`, if that is known.
    pub(super) tenant: Option<String>,
}

/// Where an act was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Source {
    ApiServer,
    Gateway,
}

/// Something that became other than it was.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AuditChange {
    pub(super) what: ChangeKind,
    /// Name of the key.
    pub(super) key: Option<String>,
    /// Public part of the key.
    pub(super) id: Option<String>,
    /// Name of the key that it replaces.
    pub(super) replaces: Option<String>,
    /// The time that was set, RFC 3339: the end of validity, of `replaces` if there is one; absent if it was taken away.
    pub(super) until: Option<String>,
    /// Name of the field of `spec`, or of the annotation.
    pub(super) field: Option<String>,
}

/// What kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum ChangeKind {
    KeyCreated,
    /// A new key, and in the same write an end, or an earlier one, for another.
    KeyRotated,
    /// It is disabled.
    KeyRevoked,
    /// It is no longer disabled.
    KeyEnabled,
    KeyRemoved,
    /// Another key has its name: the id or the hash is another one.
    KeyReplaced,
    KeyExpiryChanged,
    /// Another part of it, such as the begin of its validity.
    KeyChanged,
    /// A field of `spec`.
    Field,
    /// An annotation of Flyball's.
    Annotation,
}

impl AuditChange {
    pub(super) fn field(what: ChangeKind, name: String) -> Self {
        let (key, id, replaces, until) = (None, None, None, None);
        Self { what, key, id, replaces, until, field: Some(name) }
    }

    /// In words.
    pub(super) fn words(&self) -> String {
        let key = self.key.as_deref().unwrap_or("?");
        let id = self.id.as_ref().map(|id| format!(" ({id})")).unwrap_or_default();
        let until = self.until.as_deref();
        let field = self.field.as_deref().unwrap_or_default();
        match self.what {
            ChangeKind::KeyCreated => format!("key created {key}{id}"),
            ChangeKind::KeyRotated => {
                let old = self.replaces.as_deref().unwrap_or("?");
                let end = until.map(|at| format!(", {old} ends {at}")).unwrap_or_default();
                format!("key rotated {old} -> {key}{id}{end}")
            }
            ChangeKind::KeyRevoked => format!("key revoked {key}{id}"),
            ChangeKind::KeyEnabled => format!("key enabled again {key}{id}"),
            ChangeKind::KeyRemoved => format!("key removed {key}{id}"),
            ChangeKind::KeyReplaced => format!("key {key} is another one{id}"),
            ChangeKind::KeyExpiryChanged => {
                format!("key {key}{id} ends {}", until.unwrap_or("never"))
            }
            ChangeKind::KeyChanged => format!("key changed {key}{id}"),
            ChangeKind::Field => format!("spec.{field}"),
            ChangeKind::Annotation => format!("annotation {field}"),
        }
    }
}
