//! A Delta table without a library for it: files, and a log that says which of them count.
//!
//! The log is JSON files with numbers, each put where none is (`_delta_log/00000000000000000042.json`). A commit adds files
//! of the inbox, and says with `txn` up to which sequence each source is in the table now. Whoever commits reads the log
//! first, so a file that is in it is not added again, whoever added it and whether or not they heard that it worked. Of two
//! that commit at once, one finds the number taken, reads on and looks again.
//!
//! Protocol: reader 1, writer 2; no partitions, no deletion vectors. Every hundred commits the state is written as a
//! checkpoint, so that nobody reads the log from its beginning.
//!
//! Start at [`TableLog`], then [`commit_inbox`]; [`merge`], [`expire`], [`erase`] and [`vacuum`] come later in a file's life.

mod action;
mod add;
mod checkpoint;
mod erase;
mod inbox;
mod log;
mod merge;
mod schema;
mod state;
mod vacuum;

pub use erase::{ERASED, erase, expire};
pub use inbox::{Committed, commit_inbox};
pub use log::TableLog;
pub use merge::{MergeSpan, SEALED_AFTER, merge};
pub use state::TableFile;
pub use vacuum::vacuum;

/// So long a file stays that does not count any more, for readers who began before: Delta's own default.
pub const KEEP_REMOVED: Micros = Micros::from_minutes(7 * 24 * 60);

use crate::LedgerError;
use crate::rows::Rows;
use crate::store::Store;
use flyball_core::units::Micros;
use flyball_resources::usage::LedgerTable;

/// Tries of a commit before somebody else's are let through.
const TRIES: u32 = 20;

/// Reads the rows of all files that count: all of the table. For tests and small tables.
pub async fn read_all(store: &impl Store, log: &TableLog) -> Result<Rows, LedgerError> {
    let mut rows = Rows::new(log.table());
    for file in log.files() {
        rows.add_all(&add::rows_of(store, log.table(), &file.path).await?);
    }
    Ok(rows)
}

/// Where a file of a table is in the store.
pub(crate) fn place(table: &LedgerTable, path: &str) -> String {
    format!("{}/{path}", table.name)
}
