//! Keeps what engines have cached for one caller from others.
//!
//! An engine answers faster if it has the beginning of a prompt in its cache, so its speed tells
//! whether somebody sent that beginning before. Engines keep apart the caches of requests with
//! different salts; each caller, or each group of callers that wants to share, gets its own. A salt that a
//! client says is mixed in and never passed on as it is: no caller can name another's.

use crate::settings::Key;
use crate::surface::Surface;
use flyball_engines::Engine;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::sync::Arc;

/// Bytes of a hash that a salt has. 16 are beyond guessing; and all salts are equally long, because
/// SGLang puts what a client says as `extra_key` right behind it, without a mark between the two
/// (`_compute_extra_key` in its `serving_base.py`).
const BYTES: usize = 16;

/// The salt of a caller or of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Salt(Arc<str>);

impl Salt {
    /// Of whoever holds this key.
    pub(crate) fn of(key: &Key) -> Self {
        // A caller that is named like a group is not in it.
        let (kind, name) = match &key.cache_group {
            Some(group) => ("group", group),
            None => ("caller", &key.name),
        };
        Self(hash(&["flyball cache salt", kind, name]))
    }

    /// Of a Tenant, `namespace/name`, or of its group. Neither is that of a key of the settings.
    pub(crate) fn of_tenant(tenant: &str, group: Option<&str>) -> Self {
        let (kind, name) = group.map_or(("tenant", tenant), |group| ("group of tenants", group));
        Self(hash(&["flyball cache salt", kind, name]))
    }

    /// As it is, for who says no salt.
    pub(crate) fn own(&self) -> &str {
        &self.0
    }

    /// What the engine is told, if the client says this salt.
    pub(crate) fn with(&self, clients: Option<&str>) -> Arc<str> {
        match clients {
            None | Some("") => Arc::clone(&self.0),
            Some(clients) => hash(&["flyball cache salt", "of", &self.0, clients]),
        }
    }
}

/// Whether an engine takes a `cache_salt` on this interface.
pub(crate) fn is_taken(engine: Engine, surface: Surface) -> bool {
    engine.facts().salts.contains(&surface.interface())
}

/// Of all parts, each with its length before it, so that no two lists of parts read the same.
fn hash(parts: &[&str]) -> Arc<str> {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let mut hex = String::with_capacity(2 * BYTES);
    for byte in &hash.finalize()[..BYTES] {
        // Into a string, which takes everything.
        let _ = write!(hex, "{byte:02x}");
    }
    hex.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn salt(name: &str, group: Option<&str>) -> Salt {
        let cache_group = group.map(str::to_owned);
        Salt::of(&Key { name: name.to_owned(), cache_group, ..Key::default() })
    }

    #[test]
    fn each_caller_has_its_own_and_a_group_has_one() {
        assert_eq!(salt("a", None), salt("a", None));
        assert_ne!(salt("a", None), salt("b", None));
        assert_eq!(salt("a", Some("g")), salt("b", Some("g")));
        assert_ne!(salt("a", Some("g")), salt("g", None));
    }

    #[test]
    fn tenants_share_with_their_group_and_with_no_key_of_the_settings() {
        let tenant = Salt::of_tenant;
        assert_ne!(tenant("ml/a", None), tenant("ml/b", None));
        assert_eq!(tenant("ml/a", Some("ml/g")), tenant("ml/b", Some("ml/g")));
        assert_ne!(tenant("ml/a", Some("ml/g")), tenant("ml/a", Some("x/g")));
        assert_ne!(tenant("ml/g", None), tenant("ml/a", Some("ml/g")));
        assert_ne!(tenant("ml/a", None), salt("ml/a", None));
        assert_ne!(tenant("ml/a", Some("ml/g")), salt("ml/a", Some("ml/g")));
    }

    #[test]
    fn what_a_client_says_divides_its_own_cache_and_reaches_no_others() {
        let (one, other) = (salt("a", None), salt("b", None));
        assert_eq!(one.with(None).as_ref(), one.own());
        assert_eq!(one.with(Some("")).as_ref(), one.own());
        assert_eq!(one.with(Some("x")), one.with(Some("x")));
        assert_ne!(one.with(Some("x")), one.with(Some("y")));
        assert_ne!(one.with(Some("x")), other.with(Some("x")));
        for from_other in [other.own(), &other.with(Some("x"))] {
            assert_ne!(one.with(Some(from_other)).as_ref(), from_other);
        }
        assert_eq!(one.with(Some(&"long".repeat(100))).len(), one.own().len());
    }
}
