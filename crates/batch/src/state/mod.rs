//! A batch in the store.
//!
//! `place` has the paths. `record` is one state of a batch, `history` the states in order: each is put under a number that
//! can be taken once, which is the fence between workers. `segment` are results, `files` the files of clients, in parts. `patient` asks
//! the store again.

mod files;
mod history;
mod patient;
mod place;
mod record;
mod segment;

pub(crate) use files::{FileReader, FileWriter, PART_BYTES, erase, file_object, put_file_object};
pub(crate) use history::{StoredRecord, all, newest, put_next};
pub(crate) use patient::PatientStore;
pub(crate) use place::{BatchKey, OPEN, folder, open_batch};
pub(crate) use record::{Ending, OutputIds, Record};
pub(crate) use segment::{Segment, SegmentName, lines as segment_lines, listed as listed_segments};

use flyball_ledger::store::ObjectStoreError;

/// What came between.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StateError {
    /// The store.
    #[error(transparent)]
    Store(#[from] ObjectStoreError),
    /// What is stored cannot be read.
    #[error("{path} cannot be read: {why}")]
    Damaged {
        /// The object.
        path: String,
        /// What is wrong.
        why: String,
    },
}

impl StateError {
    pub(crate) fn damaged(path: &str, why: impl ToString) -> Self {
        Self::Damaged { path: path.to_owned(), why: why.to_string() }
    }
}
