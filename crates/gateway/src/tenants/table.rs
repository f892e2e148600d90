//! The keys and members of all Tenants, each with its caller. Pure.

use super::reading::TenantReadings;
use super::report::TenantReport;
use crate::access::KeyAccess;
use crate::identify::{Caller, RefusedKey, UnauthorizedReason, digest_of};
use crate::room::Share;
use crate::salt::Salt;
use crate::settings::Priority;
use flyball_core::units::Timestamp;
use flyball_identity::{MemberRule, MemberRules, Membership, VerifiedToken};
use flyball_resources::resolve::{
    KeyState, ResolvedTenant, TenantAccess, TenantId, TenantKey, resolve,
};
use flyball_resources::tenant::{PriorityCeiling, TenantKeySpec};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The keys of all Tenants. Replaced as a whole when one changes.
#[derive(Debug, Default)]
pub(crate) struct TenantTable {
    /// All hashes in order, each once: 10^5 of them take 17 steps through 3 MB, and no node of a tree.
    digests: Vec<[u8; 32]>,
    /// What they are of, in the same order.
    keys: Vec<TableKey>,
    /// Tenants that let somebody in.
    tenants: BTreeMap<TenantId, TableTenant>,
    /// Who belongs to them by a token.
    members: MemberRules<TenantId>,
    /// How many tables there were before: what was found in another one does not hold here.
    generation: u64,
}

/// A key with its hash, before all are in order.
type Digested = ([u8; 32], TableKey);

/// What all keys of a Tenant share.
#[derive(Clone, Debug)]
struct TableTenant {
    /// Its path.
    name: Arc<str>,
    /// Without its keys: a new key must not make others of all callers.
    access: Arc<TenantAccess>,
    /// What it holds of the room inside. It goes on counting whatever changes.
    share: Arc<Share>,
    /// Whoever belongs to it by a token; `None` if nobody can.
    member: Option<Arc<Caller>>,
}

/// A key of a Tenant.
#[derive(Debug)]
pub(crate) enum TableKey {
    /// It is accepted while its time is.
    Accepted(TenantKey, Arc<Caller>),
    /// It is not, because of its Tenant or of another key.
    Refused {
        /// `namespace/name`.
        tenant: Arc<str>,
        /// What may be shown of it.
        id: Box<str>,
    },
}

impl TenantTable {
    /// That of all Tenants, and what became of each. Callers that stay are the same as before.
    pub(crate) fn of(readings: &TenantReadings, before: &Self) -> (Self, TenantReport) {
        let (mut table, mut keys) = (Self::default(), Vec::new());
        let mut members = Vec::new();
        let mut report = TenantReport::default();
        for (id, resolved) in resolve(readings.values().map(|reading| &*reading.tenant)) {
            let Some(reading) = readings.get(&id.to_string()) else { continue };
            report.add(&id, &resolved, reading.unusable());
            if resolved.refused_keys > 0 {
                refuse(&mut keys, &id, &reading.tenant.spec.keys, &resolved);
            }
            if let Some(access) = resolved.access {
                members.extend(rules(&id, &access));
                table.accept(&mut keys, id, access, before);
            }
        }
        // A key that is refused somewhere is refused: of two that look alike that one comes first.
        keys.sort_by_key(|(digest, key)| (*digest, key.is_accepted()));
        keys.dedup_by_key(|(digest, _)| *digest);
        (table.digests, table.keys) = keys.into_iter().unzip();
        table.members = MemberRules::new(members);
        table.generation = before.generation + 1;
        (table, report.end())
    }

    /// The key with this hash.
    pub(crate) fn get(&self, digest: &[u8; 32]) -> Option<&TableKey> {
        self.keys.get(self.digests.binary_search(digest).ok()?)
    }

    /// Whoever shows this token. `named` is the Tenant that the request names, if any.
    pub(crate) fn member(
        &self,
        token: &VerifiedToken,
        named: Option<&TenantId>,
    ) -> Result<&Arc<Caller>, UnauthorizedReason> {
        match self.members.choose(token, named) {
            Membership::Of(id) => {
                let member = self.tenants.get(&id).and_then(|tenant| tenant.member.as_ref());
                member.ok_or(UnauthorizedReason::NoMember)
            }
            Membership::Nobody | Membership::NotThere => Err(UnauthorizedReason::NoMember),
            Membership::Several(_) => Err(UnauthorizedReason::SeveralTenants),
        }
    }

    /// Which of all tables it is.
    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    /// What Tenants may do that let somebody in.
    pub(crate) fn accesses(&self) -> impl Iterator<Item = &TenantAccess> {
        self.tenants.values().map(|tenant| &*tenant.access)
    }

    /// The paths of Tenants that let somebody in, as metrics show them.
    pub(crate) fn paths(&self) -> Vec<Arc<str>> {
        self.tenants.values().map(|tenant| Arc::clone(&tenant.name)).collect()
    }

    fn accept(
        &mut self,
        into: &mut Vec<Digested>,
        id: TenantId,
        mut access: TenantAccess,
        before: &Self,
    ) {
        let keys = std::mem::take(&mut access.keys);
        let old = before.tenants.get(&id);
        let tenant = match old.filter(|old| *old.access == access) {
            Some(same) => same.clone(),
            None => TableTenant::new(&id, access, old),
        };
        for key in keys {
            let digest = key.sha256;
            let caller = match before.get(&digest) {
                Some(TableKey::Accepted(old, caller)) if tenant.has(old, caller, &key) => {
                    Arc::clone(caller)
                }
                _ => Arc::new(tenant.caller(&id, Some(&key))),
            };
            into.push((digest, TableKey::Accepted(key, caller)));
        }
        self.tenants.insert(id, tenant);
    }
}

impl TableTenant {
    fn new(id: &TenantId, access: TenantAccess, old: Option<&Self>) -> Self {
        let mut tenant = Self {
            name: access.path.as_str().into(),
            access: Arc::new(access),
            share: old.map_or_else(Arc::default, |old| Arc::clone(&old.share)),
            member: None,
        };
        if !tenant.access.members.is_empty() {
            tenant.member = Some(Arc::new(tenant.caller(id, None)));
        }
        tenant
    }

    /// Whoever holds this key, or shows a token.
    fn caller(&self, id: &TenantId, key: Option<&TenantKey>) -> Caller {
        let (access, tenant) = (&self.access, id.to_string());
        let ceiling = priority(access.priority_ceiling);
        Caller {
            name: Arc::clone(&self.name),
            // Of the Tenant: its part is its own, with however many keys it asks. No name in the settings reads so.
            number: xxhash_rust::xxh3::xxh3_64(format!("tenant\0{tenant}").as_bytes()),
            weight: access.weight,
            priority: ceiling.max(Priority::Normal),
            ceiling,
            rate: None,
            share: Some(Arc::clone(&self.share)),
            salt: Some(Salt::of_tenant(&tenant, access.cache_group.as_deref())),
            key: key.map(|key| key.id.as_str().into()),
            access: Some(KeyAccess {
                tenant: id.clone(),
                scope: key.map_or_else(|| access.path.clone(), |key| access.scope_of(key)),
                access: Arc::clone(access),
            }),
        }
    }

    /// Whether what was its caller by one key is so by the other.
    fn has(&self, old: &TenantKey, caller: &Caller, new: &TenantKey) -> bool {
        let of = caller.access.as_ref().map(|own| &own.access);
        of.is_some_and(|access| Arc::ptr_eq(access, &self.access))
            && (&old.name, &old.id) == (&new.name, &new.id)
    }
}

impl TableKey {
    /// Who holds it at this moment, or why nobody is let in by it.
    pub(crate) fn caller(&self, now: Timestamp) -> Result<&Arc<Caller>, RefusedKey<'_>> {
        let Self::Accepted(key, caller) = self else {
            return Err(self.refused(UnauthorizedReason::Refused));
        };
        match key.state(now) {
            KeyState::Valid => Ok(caller),
            KeyState::Pending => Err(self.refused(UnauthorizedReason::Pending)),
            KeyState::Expired => Err(self.refused(UnauthorizedReason::Expired)),
            KeyState::Disabled => Err(self.refused(UnauthorizedReason::Disabled)),
        }
    }

    /// As it is told of.
    pub(crate) fn refused(&self, why: UnauthorizedReason) -> RefusedKey<'_> {
        match self {
            Self::Accepted(key, caller) => {
                RefusedKey { why, tenant: &caller.name, id: &key.id, token: "" }
            }
            Self::Refused { tenant, id } => RefusedKey { why, tenant, id, token: "" },
        }
    }

    const fn is_accepted(&self) -> bool {
        matches!(self, Self::Accepted(..))
    }
}

/// Who belongs to a Tenant by a token.
fn rules(id: &TenantId, access: &TenantAccess) -> Vec<(TenantId, MemberRule)> {
    let rules = access.members.iter().flat_map(|member| member.rules());
    rules.map(|rule| (id.clone(), rule)).collect()
}

/// Notes the keys that are not accepted, so that somebody can find out why.
fn refuse(
    into: &mut Vec<Digested>,
    id: &TenantId,
    specs: &[TenantKeySpec],
    resolved: &ResolvedTenant,
) {
    let tenant: Arc<str> = id.to_string().into();
    let accepted = resolved.access.iter().flat_map(|access| &access.keys);
    let accepted: Vec<&str> = accepted.map(|key| key.name.as_str()).collect();
    for spec in specs.iter().filter(|spec| !accepted.contains(&spec.name.as_str())) {
        let Some(digest) = digest_of(&spec.sha256) else { continue };
        // What is no id may be a key that somebody wrote there.
        let is_id = spec.id.len() == 10 && spec.id.bytes().all(|b| b.is_ascii_alphanumeric());
        let id = if is_id { spec.id.as_str().into() } else { Box::default() };
        into.push((digest, TableKey::Refused { tenant: Arc::clone(&tenant), id }));
    }
}

/// The queue knows no work that takes only what nobody else wants, yet: it is the last of three.
const fn priority(ceiling: PriorityCeiling) -> Priority {
    match ceiling {
        PriorityCeiling::High => Priority::High,
        PriorityCeiling::Normal => Priority::Normal,
        PriorityCeiling::Low | PriorityCeiling::Batch => Priority::Low,
    }
}
