//! Training steps against published ones.
//!
//! `row` reads a row and `rows` turns it into a question, with `rules` and `shapes` for what it leaves out; `unknowns`
//! finds the coefficients, `folds` leaves suites and parts out, `planned` asks for plans instead of layouts, and `report` and `misses` say what
//! came of it.

mod folds;
#[cfg(test)]
mod golden;
mod misses;
mod planned;
mod report;
mod row;
mod rows;
mod rules;
pub(super) mod shapes;
mod unknowns;

pub(super) use report::section;
