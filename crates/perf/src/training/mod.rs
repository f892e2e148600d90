//! How fast a run trains, what it holds in memory, and how often to save it.

pub mod checkpoint;
pub mod flops;
