//! One command at a time: `up`, `down` and the build of parts would undo each other's work.

use super::layout::Layout;
use anyhow::{Context, Result, bail};
use std::fs::{File, TryLockError};

/// Set for a child that a lock holder starts itself.
pub(super) const HELD_BY_PARENT: &str = "FLYBALL_CLUSTER_LOCK_HELD";

/// Held until dropped; the system releases it when a process is killed.
pub(super) struct Lock {
    _file: Option<File>,
}

pub(super) fn take(layout: &Layout) -> Result<Lock> {
    if std::env::var_os(HELD_BY_PARENT).is_some() {
        return Ok(Lock { _file: None });
    }
    std::fs::create_dir_all(layout.cache())?;
    let path = layout.cache().join("cluster.lock");
    let file = File::create(&path).with_context(|| format!("{}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(Lock { _file: Some(file) }),
        Err(TryLockError::WouldBlock) => bail!(
            "another `cargo xtask` is at work on the test cluster\n\nhint: wait until it has ended"
        ),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("could not lock {}", path.display()))
        }
    }
}
