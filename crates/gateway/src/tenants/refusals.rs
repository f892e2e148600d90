//! Which keys were refused since somebody last asked, for the audit log. Bounded: anybody can send a key.

use crate::identify::{RefusedKey, UnauthorizedReason};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Keys that are counted apart until the next look. Of more, only the reason is counted.
const KEYS: usize = 256;

/// Which keys were refused.
#[derive(Debug, Default)]
pub(crate) struct RefusedKeys(Mutex<BTreeMap<Counted, u64>>);

/// What is counted apart. Its key is never a key, but what may be shown of one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Counted {
    why: UnauthorizedReason,
    tenant: String,
    id: String,
    token: String,
}

impl RefusedKeys {
    /// This one was refused.
    pub(crate) fn count(&self, refused: &RefusedKey<'_>) {
        let RefusedKey { why, tenant, id, token } = *refused;
        let [tenant, id, token] = [tenant, id, token].map(str::to_owned);
        let one = Counted { why, tenant, id, token };
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let one = if counts.len() < KEYS || counts.contains_key(&one) {
            one
        } else {
            Counted { why, tenant: String::new(), id: String::new(), token: String::new() }
        };
        *counts.entry(one).or_default() += 1;
    }

    /// What was refused since the last call: what, and why and how often.
    pub(crate) fn take(&self) -> Vec<(String, String)> {
        let counts = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let line = |(one, count): (Counted, u64)| {
            let what = match (one.id.as_str(), one.token.as_str()) {
                ("", "") if one.why.is_of_tokens() => "a token".to_owned(),
                ("", "") => "a key of no known id".to_owned(),
                ("", token) => format!("a token of {token}"),
                (id, _) => format!("key {id} of {}", one.tenant),
            };
            (what, format!("refused: {}; requests: {count}", one.why.name()))
        };
        counts.into_iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_counted_apart_and_however_many_are_sent_there_is_a_bound() {
        let refusals = RefusedKeys::default();
        let expired = RefusedKey {
            why: UnauthorizedReason::Expired,
            tenant: "ml/a",
            id: "k3J9xQ2mZa",
            token: "",
        };
        refusals.count(&expired);
        refusals.count(&expired);
        refusals.count(&RefusedKey::of_nobody(UnauthorizedReason::Unknown));
        refusals.count(&RefusedKey::of_nobody(UnauthorizedReason::TokenInvalid));
        let token = "service account ml/a";
        refusals
            .count(&RefusedKey { token, ..RefusedKey::of_nobody(UnauthorizedReason::NoMember) });
        let refused = refusals.take();
        let refused: Vec<(&str, &str)> =
            refused.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(
            refused,
            [
                ("a key of no known id", "refused: unknown; requests: 1"),
                ("key k3J9xQ2mZa of ml/a", "refused: expired; requests: 2"),
                ("a token", "refused: token_invalid; requests: 1"),
                ("a token of service account ml/a", "refused: no_member; requests: 1"),
            ]
        );
        for n in 0..10 * KEYS {
            refusals.count(&RefusedKey { id: &format!("{n:010}"), ..expired });
        }
        let refused = refusals.take();
        assert_eq!(refused.len(), KEYS + 1);
        assert_eq!(refused[0].1, format!("refused: expired; requests: {}", 9 * KEYS));
        assert!(refusals.take().is_empty());
    }
}
