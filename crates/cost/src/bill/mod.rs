//! What the cloud has billed, beside what we saw.
//!
//! [`import`] reads a FOCUS file of 1.0 to 1.4, [`reconcile`](fn@reconcile) holds it against the time of nodes. Nothing here
//! asks a cloud for its bill.

mod import;
mod names;
mod reconcile;
#[cfg(test)]
mod tests;

pub use import::{BillFile, BillLine, BillProblem, FocusVersion, import};
pub use names::resource_name;
pub use reconcile::{BillGrain, Difference, DifferenceKind, Reconciliation, SeenNode, reconcile};
