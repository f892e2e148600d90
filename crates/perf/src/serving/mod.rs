//! How fast a replica serves.

pub mod batch;
pub mod capacity;
pub mod chunk;
pub mod factors;
mod floors;
pub mod fold;
pub mod steady;
pub mod step;
#[cfg(test)]
mod tests;
