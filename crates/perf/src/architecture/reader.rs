//! Reading the keys of a `config.json`, and what can be wrong with one.

use super::families::Family;
use serde_json::{Map, Value};
use thiserror::Error;

/// One fact that is missing or not understood.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    #[error("it is not JSON: {0}")]
    NotJson(String),
    #[error("it is not a JSON object")]
    NotAnObject,
    #[error("`model_type` is missing")]
    NoFamily,
    #[error("model family `{0}` is not supported by this version")]
    UnknownFamily(String),
    #[error("`{0}` is missing or not a whole number")]
    Missing(String),
    #[error("`{0}` is missing or not a text")]
    MissingText(String),
    #[error("`{key}` is {value}, which does not go with `{with}`")]
    Contradiction { key: String, value: u64, with: String },
    #[error("{0} are not modelled yet")]
    NotModelled(String),
    #[error("weight format `{0}` is not supported")]
    UnknownFormat(String),
}

/// Reads keys and remembers what was wrong, so that all of it is reported at once.
pub(super) struct Reader<'a> {
    pub(super) family: &'static Family,
    pub(super) text: &'a Map<String, Value>,
    pub(super) whole: &'a Map<String, Value>,
    pub(super) problems: Vec<ConfigError>,
}

impl Reader<'_> {
    /// The first of these keys that holds a number.
    pub(super) fn number(&self, keys: &[&str]) -> Option<u32> {
        keys.iter()
            .find_map(|key| self.text.get(*key).and_then(Value::as_u64))
            .and_then(|number| u32::try_from(number).ok())
    }

    /// The same for a key that the family needs; its absence is remembered.
    pub(super) fn needed(&mut self, keys: &[&str]) -> u32 {
        self.number(keys).unwrap_or_else(|| {
            let missing = ConfigError::Missing(keys.join("` or `"));
            if !self.problems.contains(&missing) {
                self.problems.push(missing);
            }
            0
        })
    }
}
