//! What the commands about keys say.

use std::time::Duration;

use flyball_identity::NewKey;
use flyball_resources::tenant::TenantKeySpec;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::secret::Target;
use crate::moment::since;
use crate::output::document::{Block, Cell, Column, Row, Table, Tone};
use crate::output::{Answer, Detail, Document, Exit, Failure, Printer, age, plural};

/// What became of the keys of a tenant, or would.
// Without `Debug`: it may have a key.
#[derive(Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KeyChange {
    /// The tenant, `namespace/name`.
    tenant: String,
    /// The new key, which is shown this once; absent if it went to a Secret.
    key: Option<String>,
    /// Name of the new key; absent if there is none.
    name: Option<String>,
    /// Public part of the new key.
    id: Option<String>,
    /// End of validity of the new key, RFC 3339; without an end if absent.
    expires: Option<String>,
    /// Secret that has the new key, as `secret/namespace/name`.
    secret: Option<String>,
    /// Name of the key that the new one replaces.
    replaced: Option<String>,
    /// End of validity of that one, RFC 3339.
    replaced_expires: Option<String>,
    /// Names of the keys that are disabled now and were not before.
    disabled: Vec<String>,
    /// Whether this is a dry run.
    dry_run: bool,
    #[serde(skip)]
    now: Timestamp,
}

impl KeyChange {
    pub(super) fn created(
        tenant: &str,
        name: &str,
        key: &NewKey,
        expires: Option<Timestamp>,
        now: Timestamp,
    ) -> Self {
        let id = Some(key.id().to_owned());
        Self { id, dry_run: false, ..Self::planned_creation(tenant, name, expires, now) }
    }

    pub(super) fn planned_creation(
        tenant: &str,
        name: &str,
        expires: Option<Timestamp>,
        now: Timestamp,
    ) -> Self {
        Self {
            tenant: tenant.to_owned(),
            name: Some(name.to_owned()),
            expires: expires.map(|expires| expires.to_string()),
            dry_run: true,
            now,
            ..Self::default()
        }
    }

    pub(super) fn replacing(self, old: &str, end: Timestamp) -> Self {
        let (replaced, end) = (Some(old.to_owned()), Some(end.to_string()));
        Self { replaced, replaced_expires: end, ..self }
    }

    pub(super) fn revoked(tenant: &str, disabled: Vec<String>, now: Timestamp) -> Self {
        Self { dry_run: false, ..Self::planned_revocation(tenant, disabled, now) }
    }

    pub(super) fn planned_revocation(tenant: &str, disabled: Vec<String>, now: Timestamp) -> Self {
        let tenant = tenant.to_owned();
        Self { tenant, disabled, dry_run: true, now, ..Self::default() }
    }

    /// Gives the key to its owner: into the Secret, or to be shown.
    pub(super) async fn hand_over(
        &mut self,
        key: &NewKey,
        secret: Option<&Target>,
        limit: Duration,
    ) -> Result<(), Failure> {
        let Some(secret) = secret else {
            self.key = Some(key.expose().to_owned());
            return Ok(());
        };
        self.secret = Some(secret.shown.clone());
        let name = self.name.clone().unwrap_or_default();
        secret.write(key, limit).await.map_err(|why| {
            let what = format!("the key {name} was created, and nobody has it");
            Failure::new(Exit::Unknown, what)
                .at(secret.shown.clone())
                .because(why)
                .hint(format!("flyball key revoke {} {name}, then create another", self.tenant))
        })
    }

    /// What the owner of a new key should know, on stderr: stdout has the key and nothing else.
    pub(super) fn advise(&self, printer: &Printer) {
        if !printer.quiet {
            self.lines().iter().for_each(|line| printer.note(line));
            if self.key.is_some() {
                printer.note("the key is shown this once: it is stored nowhere");
            }
        }
    }

    /// In sentences, without the key.
    pub(super) fn lines(&self) -> Vec<String> {
        let Some(name) = &self.name else { return self.revocation() };
        let tenant = &self.tenant;
        let verb = if self.dry_run { "would create" } else { "created" };
        let id = self.id.as_ref().map(|id| format!(" ({id})")).unwrap_or_default();
        let until = self.expires.as_deref().map_or_else(
            || "without an end".to_owned(),
            |at| format!("valid until {}", self.when(at)),
        );
        let mut lines = vec![format!("{verb} key {name}{id} of tenant {tenant}, {until}")];
        if let (Some(old), Some(end)) = (&self.replaced, &self.replaced_expires) {
            let verb = if self.dry_run { "would end" } else { "ends" };
            lines.push(format!("key {old} {verb} at {}", self.when(end)));
        }
        if let Some(secret) = &self.secret {
            lines.push(format!("{secret} has it, in the field api-key"));
        }
        lines
    }

    fn revocation(&self) -> Vec<String> {
        let tenant = &self.tenant;
        if self.disabled.is_empty() {
            return vec![format!("no key of tenant {tenant} changes: they are disabled already")];
        }
        let count = plural(self.disabled.len(), "key");
        let verb = if self.dry_run { "would disable" } else { "disabled" };
        vec![format!("{verb} {count} of tenant {tenant}: {}", self.disabled.join(", "))]
    }

    /// `2027-02-16T20:00:00Z (90 d)`.
    fn when(&self, at: &str) -> String {
        let left = at.parse().ok().and_then(|at| since(self.now, at));
        format!("{at}{}", left.map(|left| format!(" ({})", age(left))).unwrap_or_default())
    }
}

impl Answer for KeyChange {
    const KIND: &'static str = "KeyChange";

    fn view(&self, _: Detail) -> Document {
        let mut document = Document::new();
        if let Some(key) = &self.key {
            document.push(Block::Line(key.clone()));
            return document;
        }
        // The sentences about a key that was made are on stderr already.
        if self.name.is_none() || self.dry_run {
            self.lines().into_iter().for_each(|line| document.push(Block::Line(line)));
        } else {
            document.push(Block::Line(self.secret.clone().unwrap_or_default()));
        }
        if self.dry_run {
            document.push(Block::Line("nothing was changed: --dry-run".to_owned()));
        }
        document
    }
}

/// The keys of a tenant.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KeyList {
    /// The tenant, `namespace/name`.
    tenant: String,
    keys: Vec<ListedKey>,
    #[serde(skip)]
    now: Timestamp,
}

/// One key.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ListedKey {
    /// Its name.
    name: String,
    /// Its public part.
    id: String,
    /// What its own fields say: valid, pending, expired, disabled, or unreadable.
    state: &'static str,
    /// Start of validity, RFC 3339; from the beginning if absent.
    not_before: Option<String>,
    /// End of validity, RFC 3339; without an end if absent.
    expires: Option<String>,
}

impl KeyList {
    pub(super) fn of(tenant: &str, keys: &[TenantKeySpec], now: Timestamp) -> Self {
        let keys = keys.iter().map(|key| ListedKey::of(key, now)).collect();
        Self { tenant: tenant.to_owned(), keys, now }
    }
}

impl ListedKey {
    fn of(key: &TenantKeySpec, now: Timestamp) -> Self {
        Self {
            name: key.name.clone(),
            id: key.id.clone(),
            state: state(key, now),
            not_before: key.not_before.clone(),
            expires: key.expires.clone(),
        }
    }

    fn row(&self, now: Timestamp) -> Row {
        let tone = match self.state {
            "valid" => Tone::Good,
            "pending" | "expired" => Tone::Caution,
            _ => Tone::Bad,
        };
        let at = |moment: &Option<String>| moment.clone().unwrap_or_default();
        let left = self.expires.as_deref().and_then(|at| since(now, at.parse().ok()?));
        let left = left.filter(|left| !left.is_zero()).map(age).unwrap_or_default();
        let cells = [
            self.name.clone().into(),
            self.id.clone().into(),
            Cell::toned(self.state, tone),
            at(&self.not_before).into(),
            at(&self.expires).into(),
            left.into(),
        ];
        Row::new(cells)
    }
}

impl Answer for KeyList {
    const KIND: &'static str = "KeyList";

    fn view(&self, detail: Detail) -> Document {
        let columns = ["NAME", "ID", "STATE", "NOT-BEFORE", "EXPIRES", "LEFT"].map(Column::left);
        let is_shown = |key: &&ListedKey| detail == Detail::Full || key.state != "valid";
        let rows: Vec<Row> =
            self.keys.iter().filter(is_shown).map(|key| key.row(self.now)).collect();
        let valid = self.keys.iter().filter(|key| key.state == "valid").count();
        let verdict =
            format!("{} of tenant {}, {valid} valid", plural(self.keys.len(), "key"), self.tenant);
        let mut document = Document::new();
        if !rows.is_empty() {
            document.push(Block::Table(Table { rows, ..Table::new(columns.into()) }));
            document.push(Block::Gap);
        }
        document.push(Block::Line(verdict));
        document
    }
}

/// What the fields of a key say of this moment. Gateways may refuse it for more: a key with the same id, or a parent
/// that is refused.
fn state(key: &TenantKeySpec, now: Timestamp) -> &'static str {
    let moment = |text: &Option<String>| text.as_deref().map(str::parse::<Timestamp>).transpose();
    match (moment(&key.not_before), moment(&key.expires)) {
        _ if key.disabled => "disabled",
        (Err(_), _) | (_, Err(_)) => "unreadable",
        (_, Ok(Some(expires))) if expires <= now => "expired",
        (Ok(Some(begin)), _) if now < begin => "pending",
        _ => "valid",
    }
}
