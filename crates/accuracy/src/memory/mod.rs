//! Memory against published peaks and capacities.
//!
//! Nothing is fitted. `rows` turns a row of memory_points.csv into a prediction, `models` a name and
//! a precision into a shape, `fits` asks of what ran and what failed whether it fits, and `report`
//! says what came of it.

mod fits;
#[cfg(test)]
mod golden;
mod models;
mod report;
mod rows;

pub(super) use report::{Texts, section};
