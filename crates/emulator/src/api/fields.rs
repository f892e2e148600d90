//! What stands in the fields of a body: texts and numbers.

use super::errors::Problem;
use crate::prompt::Reader;
use serde_json::Value;

/// The text in messages, parts of messages, lists of either, and lists of token numbers.
pub(super) fn push(value: &Value, reader: &mut Reader) {
    match value {
        Value::String(text) => reader.push(text.as_bytes()),
        Value::Array(items) => items.iter().for_each(|item| push(item, reader)),
        Value::Object(fields) => {
            for name in ["content", "text"] {
                if let Some(inner) = fields.get(name) {
                    push(inner, reader);
                }
            }
        }
        // A token number stands for one token, and that is four bytes.
        Value::Number(token) => {
            reader.push(&(token.as_u64().unwrap_or(0) as u32).to_le_bytes());
        }
        Value::Null | Value::Bool(_) => {}
    }
}

pub(super) fn number(value: &Value, name: &'static str) -> Result<Option<u32>, Problem> {
    match value.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(given) => match given.as_u64().and_then(|number| u32::try_from(number).ok()) {
            Some(number) => Ok(Some(number)),
            None => {
                Err(Problem::field(name, format!("{name} must be a whole number, not {given}")))
            }
        },
    }
}
