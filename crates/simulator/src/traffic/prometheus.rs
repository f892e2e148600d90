//! stub
use super::load::{LoadError, Loaded};
pub(crate) fn is_answer(_: &str) -> bool {
    false
}
pub(crate) fn read(file: &str, _: &str) -> Result<Loaded, LoadError> {
    Err(LoadError::new(file, "x"))
}
