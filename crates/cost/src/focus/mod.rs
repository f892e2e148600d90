//! FOCUS 1.4, the open standard for bills: our rows as such, and a check of any file.
//!
//! [`columns`] and `rules.rs` are the standard as tables (Cost and Usage, read in the specification of 1.2 and in the list
//! of columns of 1.4). [`export`] makes rows, [`validate`](fn@validate) holds a file against the tables. Not here: the
//! datasets Billing Period, Invoice Detail and Contract Commitment, which are not written yet.

mod columns;
mod export;
mod format;
mod row;
mod rules;
#[cfg(test)]
mod tests;
mod validate;

pub use columns::{CellFormat, ColumnFacts, FeatureLevel, FocusColumn, OwnColumn};
pub use export::{
    ALLOCATION_METHOD, ChargebackPolicy, FocusExport, FocusIssuer, ListPrices, corrections, export,
};
pub use row::FocusRow;
pub use validate::{FocusFileError, FocusFindings, FocusViolation, csv_text, validate};
