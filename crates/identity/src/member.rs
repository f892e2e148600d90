//! Which tenants a token belongs to.

use crate::token::VerifiedToken;
use std::collections::{BTreeMap, BTreeSet};

/// Tenants that are shown to a caller who must choose among them; more are not worth reading.
pub const MAX_CHOICES: usize = 16;

/// Whoever fits belongs to a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberRule {
    /// Has a token of this issuer in which each claim is one of the values, or a list with one of them.
    Claims {
        /// Its `iss`.
        issuer: String,
        /// By the names of claims.
        claims: BTreeMap<String, Vec<String>>,
    },
    /// Is this service account of the cluster.
    ServiceAccount {
        /// Its namespace.
        namespace: String,
        /// Its name; `*` is every account of the namespace.
        name: String,
    },
}

/// All rules of all tenants.
#[derive(Clone, Debug)]
pub struct MemberRules<T> {
    rules: Vec<(T, BTreeMap<String, Vec<String>>)>,
    /// Issuer, name and value of the first claim of a rule: a token is held against those only whose first claim it has.
    claims: BTreeMap<String, BTreeMap<String, BTreeMap<String, Vec<usize>>>>,
    /// Namespace and name.
    accounts: BTreeMap<String, BTreeMap<String, Vec<T>>>,
}

/// Whose a token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Membership<T> {
    /// This tenant's.
    Of(T),
    /// Nobody's.
    Nobody,
    /// Of several tenants: the caller must name one. At most [`MAX_CHOICES`] of them.
    Several(Vec<T>),
    /// The caller has named a tenant that it does not belong to.
    NotThere,
}

impl<T> Default for MemberRules<T> {
    fn default() -> Self {
        Self { rules: Vec::new(), claims: BTreeMap::new(), accounts: BTreeMap::new() }
    }
}

impl<T: Clone + Ord> MemberRules<T> {
    /// The rules of all tenants.
    pub fn new(all: impl IntoIterator<Item = (T, MemberRule)>) -> Self {
        let mut rules = Self::default();
        for (tenant, rule) in all {
            match rule {
                MemberRule::ServiceAccount { namespace, name } => {
                    let names = rules.accounts.entry(namespace).or_default();
                    names.entry(name).or_default().push(tenant);
                }
                MemberRule::Claims { issuer, claims } => rules.add(tenant, issuer, claims),
            }
        }
        rules
    }

    fn add(&mut self, tenant: T, issuer: String, claims: BTreeMap<String, Vec<String>>) {
        // A rule without claims would let in everybody whom the issuer knows; it lets in nobody.
        let Some((first, values)) = claims.first_key_value() else { return };
        let index = self.rules.len();
        let by_value = self.claims.entry(issuer).or_default().entry(first.clone()).or_default();
        for value in values {
            by_value.entry(value.clone()).or_default().push(index);
        }
        self.rules.push((tenant, claims));
    }

    /// The tenants that a token belongs to, in order.
    pub fn tenants(&self, token: &VerifiedToken) -> BTreeSet<&T> {
        match token.service_account() {
            Some((namespace, name)) => self.of_account(namespace, name),
            // What else this cluster signs is for its own purposes.
            None if token.kubernetes => BTreeSet::new(),
            None => self.of_claims(token),
        }
    }

    /// The one tenant that a caller asks as. `named` is the one that it has named, if any.
    pub fn choose(&self, token: &VerifiedToken, named: Option<&T>) -> Membership<T> {
        let tenants = self.tenants(token);
        match (named, tenants.len()) {
            (_, 0) => Membership::Nobody,
            (Some(named), _) if tenants.contains(named) => Membership::Of(named.clone()),
            (Some(_), _) => Membership::NotThere,
            (None, 1) => {
                tenants.first().map_or(Membership::Nobody, |one| Membership::Of((*one).clone()))
            }
            (None, _) => {
                Membership::Several(tenants.into_iter().take(MAX_CHOICES).cloned().collect())
            }
        }
    }

    fn of_account(&self, namespace: &str, name: &str) -> BTreeSet<&T> {
        let Some(names) = self.accounts.get(namespace) else { return BTreeSet::new() };
        [name, "*"].into_iter().filter_map(|name| names.get(name)).flatten().collect()
    }

    fn of_claims(&self, token: &VerifiedToken) -> BTreeSet<&T> {
        let Some(by_claim) = self.claims.get(&token.issuer) else { return BTreeSet::new() };
        let near = by_claim.iter().flat_map(|(claim, by_value)| {
            token.values(claim).filter_map(|value| by_value.get(value)).flatten()
        });
        let fits = |claims: &BTreeMap<String, Vec<String>>| {
            claims.iter().all(|(claim, values)| values.iter().any(|value| token.has(claim, value)))
        };
        near.map(|index| &self.rules[*index])
            .filter(|(_, claims)| fits(claims))
            .map(|(tenant, _)| tenant)
            .collect()
    }
}
