//! JSON in which a member stands once.
//!
//! Of a member that stands twice, one reader takes the first and another the last: whoever checks and whoever uses would
//! see different tokens.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;

/// What an object has, by name.
pub(crate) type Members = BTreeMap<String, Json>;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Json>),
    Object(Members),
}

/// What is wrong with a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonProblem {
    /// It is not JSON, or not an object.
    NotAnObject,
    /// A member stands twice.
    Twice,
}

/// By this an error of a visitor is known again; serde has no other way to hand one on.
const TWICE: &str = "a member stands twice";

impl Json {
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) const fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub(crate) fn list(&self) -> Option<&[Self]> {
        match self {
            Self::List(list) => Some(list),
            _ => None,
        }
    }
}

/// Reads one object and nothing behind it. How deep it may be is serde_json's own limit.
pub(crate) fn object(text: &[u8]) -> Result<Members, JsonProblem> {
    match serde_json::from_slice(text) {
        Ok(Json::Object(members)) => Ok(members),
        Err(error) if error.to_string().starts_with(TWICE) => Err(JsonProblem::Twice),
        _ => Err(JsonProblem::NotAnObject),
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Number(value as f64))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Json, E> {
        Ok(Json::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = seq.next_element()? {
            list.push(value);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut members = Members::new();
        while let Some((name, value)) = map.next_entry::<String, Json>()? {
            if members.insert(name, value).is_some() {
                return Err(A::Error::custom(TWICE));
            }
        }
        Ok(Json::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_stands_once_at_every_depth() {
        let twice = [r#"{"a":1,"a":1}"#, r#"{"x":{"a":1,"a":2}}"#, r#"{"x":[{"a":1,"\u0061":2}]}"#];
        for text in twice {
            assert_eq!(object(text.as_bytes()), Err(JsonProblem::Twice), "{text}");
        }
        let members = object(br#"{"a":{"a":1},"b":[true,null,-2,1.5,"t"]}"#).unwrap();
        assert_eq!(members["b"].list().unwrap().len(), 5);
    }

    #[test]
    fn anything_but_one_object_is_refused() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
        let long = "9".repeat(400);
        for text in
            ["", "1", "[]", "{}{}", "{", "{'a':1}", "\u{feff}{}", &deep, &long, "{\"a\":1e999}"]
        {
            assert_eq!(object(text.as_bytes()), Err(JsonProblem::NotAnObject), "{text}");
        }
        assert_eq!(object(b"{\"a\":\"\xff\"}"), Err(JsonProblem::NotAnObject));
    }
}
