//! How fast a run trains, what one step of it is made of, and how often to save it.
//!
//! The modules are the steps in order: `layout` and `run` say what is trained and how it is spread,
//! `hardware` what the accelerators reach, `shape` what the model multiplies. `compute` and
//! `communication` give the parts of a step, and `step` puts them together.

pub mod calibrated;
pub mod checkpoint;
pub mod coefficients;
mod communication;
mod compute;
pub mod flops;
pub mod hardware;
pub mod layout;
pub mod run;
pub(crate) mod shape;
pub mod step;
#[cfg(test)]
mod tests;

pub use coefficients::TrainingCoefficients;
pub use hardware::TrainingHardware;
pub use layout::{Recompute, Sharding, TrainingLayout};
pub use run::{Framework, Recipe, Selective, TrainingSetup};
pub use step::{TrainingModel, TrainingStepParts};
