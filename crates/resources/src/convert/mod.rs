//! From what is stored to `core`'s values, and from decisions to what is stored.
//!
//! The API server holds what comes to the schema, so that little can be wrong here; what still can is
//! a [`ConversionProblem`] that names the field. `specs` reads specs, `members` who
//! belongs to a Tenant, `prices` what tokens cost, `receipt` writes statuses.

mod members;
mod prices;
mod receipt;
mod specs;

pub use receipt::rfc3339;

/// A field that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {what}")]
pub struct ConversionProblem {
    /// Its path; example: `spec.variants[h100].pool`.
    pub field: String,
    /// What is wrong, and what it must be.
    pub what: String,
}

impl ConversionProblem {
    fn of(field: impl Into<String>, what: impl Into<String>) -> Self {
        Self { field: field.into(), what: what.into() }
    }
}
