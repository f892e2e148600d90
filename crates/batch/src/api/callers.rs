//! Who asks.
//!
//! Callers show a key of their own, of which the settings have the hash. It is read here and sent nowhere: lines are sent
//! with a key that the settings have for that caller. So nothing that a client sends says who it is, there is no secret in
//! the store, and what a batch uses is counted at the gateway as its caller's.

use super::answer::ApiError;
use crate::state::folder;
use flyball_identity::{KeyHash, KeyTable};
use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode};

/// Whose batches they are where everybody may ask.
const EVERYBODY: &str = "default";

/// A tenant, as it is named and as its folder is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallingTenant {
    pub(crate) path: String,
    pub(crate) folder: String,
}

/// Everybody who may ask.
#[derive(Clone, Debug)]
pub(crate) struct Callers {
    keys: KeyTable<String>,
    is_open: bool,
}

impl Callers {
    /// Tenants by the hashes of their keys. If it is open, whoever shows no key is one tenant.
    pub(crate) fn new(keys: Vec<(KeyHash, String)>, is_open: bool) -> Self {
        Self { keys: KeyTable::new(keys), is_open }
    }

    pub(super) fn tenant(&self, headers: &HeaderMap) -> Result<CallingTenant, ApiError> {
        let refused = |message: &str| {
            Err(ApiError::new(StatusCode::UNAUTHORIZED, "invalid_api_key", message))
        };
        let mut shown = headers.get_all(AUTHORIZATION).iter();
        let key = shown.next().and_then(|value| bearer(value.as_bytes()));
        let path = match key {
            _ if shown.next().is_some() => return refused("There are several keys."),
            Some(key) => self.keys.find(&KeyHash::of(key)).cloned(),
            None => None,
        };
        match path {
            Some(path) => Ok(Self::named(path)),
            None if self.is_open => Ok(Self::named(EVERYBODY.to_owned())),
            None => refused("This needs a key: Authorization: Bearer KEY."),
        }
    }

    fn named(path: String) -> CallingTenant {
        CallingTenant { folder: folder(&path), path }
    }
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, key) = value.split_at_checked("bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| key.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn with(values: &[&'static str]) -> HeaderMap {
        values.iter().map(|value| (AUTHORIZATION, HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn a_key_names_its_tenant_and_nothing_else_does() {
        let keys = vec![(KeyHash::of(b"k1"), "ml/search".to_owned())];
        let closed = Callers::new(keys.clone(), false);
        let found = closed.tenant(&with(&["bearer k1"])).unwrap();
        assert_eq!((found.path.as_str(), found.folder.as_str()), ("ml/search", "ml_search"));
        for wrong in [&[][..], &["Bearer k2"], &["Bearer "], &["k1"], &["Bearer k1", "Bearer k1"]] {
            assert_eq!(closed.tenant(&with(wrong)).unwrap_err().status.as_u16(), 401, "{wrong:?}");
        }
        let open = Callers::new(keys, true);
        assert_eq!(open.tenant(&with(&[])).unwrap().path, EVERYBODY);
        assert_eq!(open.tenant(&with(&["Bearer anything"])).unwrap().path, EVERYBODY);
        assert_eq!(open.tenant(&with(&["Bearer k1"])).unwrap().path, "ml/search");
    }
}
