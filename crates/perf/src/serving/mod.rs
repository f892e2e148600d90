//! How fast a replica serves.

pub mod batch;
pub mod steady;
