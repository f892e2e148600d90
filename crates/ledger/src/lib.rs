//! The ledger: from a request that ends to a row of a table that anybody can read, once.
//!
//! A process writes entries to a [`journal`] on its own disk. Every five minutes the [`ship`] step adds a file of it up and
//! puts the sum into the store, under a name that cannot be written twice, and forgets the file when the table has it. The
//! [`table`] is a Delta table: one committer adds files to its log, with the number up to which it has each source, so that
//! a file counts once however often anybody tries. Later, files are merged and old ones taken away.
//! What a machine takes with it when it dies is written by the [`witness`], from what it last reported.
//!
//! Time is an argument, and disks and stores are traits, so that all of it lives in made-up worlds of `tests`.
//! Start at [`journal`], then [`ship`], then [`table`].

#![deny(missing_docs)]

mod error;
mod files;
pub mod journal;
pub mod rows;
pub mod ship;
pub mod source;
pub mod store;
pub mod table;
pub mod witness;

pub use error::LedgerError;
