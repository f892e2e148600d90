//! What can go wrong, and whether trying again helps.

use crate::store::ObjectStoreError;
use std::io;

/// Why a step of the ledger did not get to its end. Every step may be tried again: none does anything twice.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The store did not do it.
    #[error(transparent)]
    Store(#[from] ObjectStoreError),
    /// The disk did not do it.
    #[error("journal: {0}")]
    Disk(#[from] io::Error),
    /// A file of the table is not what it should be, and trying again will not help.
    #[error("{path}: {why}")]
    Broken {
        /// Its place in the table's folder.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// The table asks for more than this program knows: somebody else has changed it.
    #[error("the table's log asks for {0}, which this program does not know")]
    Newer(String),
    /// Others committed all the time.
    #[error("{0} others committed in between; the next try goes on from there")]
    Busy(u32),
}

impl LedgerError {
    /// A file that is not what it should be.
    pub(crate) fn broken(path: &str, why: impl ToString) -> Self {
        Self::Broken { path: path.to_owned(), why: why.to_string() }
    }

    /// Whether the same call may succeed later without anybody's help.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Store(error) => error.may_pass(),
            Self::Disk(_) | Self::Busy(_) => true,
            Self::Broken { .. } | Self::Newer(_) => false,
        }
    }
}
