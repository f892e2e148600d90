//! Paths.
//!
//! | Path | What |
//! |---|---|
//! | `open/<deadline>/<tenant>/<batch>` | a batch that is not over: who looks for work lists these, the earliest first |
//! | `batches/<tenant>/<batch>/state/<n>.json` | its states |
//! | `batches/<tenant>/<batch>/segments/<epoch>-<n>-<completed>-<failed>` | results |
//! | `leases/<tenant>/<batch>.json` | who works at it |
//! | `files/<tenant>/<file>.json` | a file |
//! | `parts/<tenant>/<file>/<n>` | what is in it |

use crate::forms::is_id;

/// Where those stand that are not over.
pub(crate) const OPEN: &str = "open/";

/// A batch and whose it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BatchKey {
    /// As a folder.
    pub(crate) tenant: String,
    pub(crate) id: String,
}

/// A tenant's path as one part of a path: no part of it has `_` in it.
pub(crate) fn folder(tenant: &str) -> String {
    tenant.replace('/', "_")
}

impl BatchKey {
    pub(crate) fn open(&self, deadline: u64) -> String {
        format!("{OPEN}{deadline:012}/{}/{}", self.tenant, self.id)
    }

    pub(crate) fn states(&self) -> String {
        format!("batches/{}/{}/state/", self.tenant, self.id)
    }

    pub(crate) fn state(&self, number: u32) -> String {
        format!("{}{number:08}.json", self.states())
    }

    pub(crate) fn segments(&self) -> String {
        format!("batches/{}/{}/segments/", self.tenant, self.id)
    }

    pub(crate) fn lease(&self) -> String {
        format!("leases/{}/{}.json", self.tenant, self.id)
    }
}

/// The deadline and the batch of a path below [`OPEN`].
pub(crate) fn open_batch(path: &str) -> Option<(u64, BatchKey)> {
    let mut parts = path.strip_prefix(OPEN)?.split('/');
    let (deadline, tenant, id) = (parts.next()?, parts.next()?, parts.next()?);
    let key = BatchKey { tenant: tenant.to_owned(), id: id.to_owned() };
    (parts.next().is_none() && is_id(id, "batch_")).then_some((deadline.parse().ok()?, key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_batch_is_found_by_its_path() {
        let id = format!("batch_{:030x}", 5);
        let key = BatchKey { tenant: folder("ml/search"), id };
        assert_eq!(open_batch(&key.open(1_800_000_000)), Some((1_800_000_000, key.clone())));
        assert!(key.open(99) < key.open(100));
        assert_eq!(open_batch("open/1/x/y"), None);
        assert_eq!(open_batch(&format!("{}/z", key.open(1))), None);
    }
}
