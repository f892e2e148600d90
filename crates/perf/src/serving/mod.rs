//! How fast a replica serves.

pub mod batch;
mod floors;
pub mod steady;
pub mod step;
#[cfg(test)]
mod tests;
