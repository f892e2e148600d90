//! Who uses: organisation, team and key as one path.

use super::amount::BudgetUnit;
use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// A path such as `org/team/key`. A budget of a scope covers everything below it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope(Arc<str>);

impl Scope {
    pub fn new(path: &str) -> Self {
        Self(path.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// It and everything above it, from the top.
    pub fn ancestors(&self) -> impl Iterator<Item = &str> {
        let above = self.0.match_indices('/').map(|(end, _)| &self.0[..end]);
        above.chain(std::iter::once(&*self.0))
    }

    /// Whether it is the other, or above it.
    pub fn covers(&self, other: &Self) -> bool {
        other.0.strip_prefix(&*self.0).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl Borrow<str> for Scope {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A budget: whose, and which of theirs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BudgetKey {
    pub scope: Scope,
    pub name: Arc<str>,
}

/// What a gateway has slices of: one number for each caller and unit, however many budgets lie above it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseKey {
    pub scope: Scope,
    pub unit: BudgetUnit,
}

/// A gateway, as its journal names it: the same after a restart that finds the journal, another one after one that does
/// not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GatewayId(Arc<str>);

impl GatewayId {
    pub fn new(id: &str) -> Self {
        Self(id.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_covers_what_is_below_it_and_not_what_is_called_alike() {
        let team = Scope::new("org/team");
        for below in ["org/team", "org/team/key"] {
            assert!(team.covers(&Scope::new(below)), "{below}");
        }
        for other in ["org", "org/teams", "org/teams/key", "org/tea"] {
            assert!(!team.covers(&Scope::new(other)), "{other}");
        }
        let key = Scope::new("org/team/key");
        assert_eq!(key.ancestors().collect::<Vec<_>>(), ["org", "org/team", "org/team/key"]);
    }
}
