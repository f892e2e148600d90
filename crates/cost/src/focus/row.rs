//! A row of FOCUS as text, which is how it is checked, ours and others' alike.

use super::columns::{FocusColumn, OwnColumn};
use std::collections::BTreeMap;

/// The cells of one row. What is null is absent; there are no empty texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FocusRow {
    cells: BTreeMap<FocusColumn, String>,
    own: BTreeMap<OwnColumn, String>,
}

impl FocusRow {
    pub fn get(&self, column: FocusColumn) -> Option<&str> {
        self.cells.get(&column).map(String::as_str)
    }

    pub fn own(&self, column: OwnColumn) -> Option<&str> {
        self.own.get(&column).map(String::as_str)
    }

    /// Sets a cell; an empty text is null.
    pub fn set(&mut self, column: FocusColumn, value: impl Into<String>) {
        let value = value.into();
        match value.is_empty() {
            true => self.cells.remove(&column),
            false => self.cells.insert(column, value),
        };
    }

    pub fn set_own(&mut self, column: OwnColumn, value: impl Into<String>) {
        let value = value.into();
        match value.is_empty() {
            true => self.own.remove(&column),
            false => self.own.insert(column, value),
        };
    }
}
