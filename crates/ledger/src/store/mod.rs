//! Where tables are: a folder in object storage, or on a disk.
//!
//! Little is asked of it: that a name can be taken once ([`Store::put_new`]), and that what was put is listed and read from
//! then on. S3, GCS, Azure and file systems promise both. An answer may be lost on the way, and then nobody knows whether
//! the call was done: everything that calls this may be called again.

mod folder;

pub use folder::FolderStore;

use bytes::Bytes;
use flyball_core::units::Timestamp;
use std::future::Future;

/// Objects by their paths, which have `/` between their parts and none in front.
pub trait Store: Send + Sync {
    /// Puts an object where none is.
    fn put_new(
        &self,
        path: &str,
        bytes: Bytes,
    ) -> impl Future<Output = Result<PutOutcome, ObjectStoreError>> + Send;

    /// Puts an object, whatever was there.
    fn put(
        &self,
        path: &str,
        bytes: Bytes,
    ) -> impl Future<Output = Result<(), ObjectStoreError>> + Send;

    /// The object, if there is one.
    fn get(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<Option<Bytes>, ObjectStoreError>> + Send;

    /// All objects whose paths begin so, in the order of their paths.
    fn list(
        &self,
        prefix: &str,
    ) -> impl Future<Output = Result<Vec<StoredObject>, ObjectStoreError>> + Send;

    /// Takes an object away. One that is not there is no error.
    fn delete(&self, path: &str) -> impl Future<Output = Result<(), ObjectStoreError>> + Send;
}

/// What became of an object that was put where none should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutOutcome {
    /// It is there now.
    Created,
    /// There was one: of somebody else, or of an earlier call whose answer was lost.
    Exists,
}

/// An object as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredObject {
    /// Its path.
    pub path: String,
    /// Its bytes.
    pub size: u64,
    /// When it was put.
    pub modified: Timestamp,
}

/// Why a store did not do what it was asked, or did not say that it did.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectStoreError {
    /// Nobody knows whether it was done. Trying again may help.
    #[error("{path}: no answer: {why}")]
    NoAnswer {
        /// The object.
        path: String,
        /// What happened.
        why: String,
    },
    /// It was refused: no right, no bucket, no room. Somebody has to do something.
    #[error("{path}: refused: {why}")]
    Refused {
        /// The object.
        path: String,
        /// What the store says.
        why: String,
    },
}

impl ObjectStoreError {
    /// Whether the same call may succeed later without anybody's help.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::NoAnswer { .. })
    }
}
