//! What a line of a log is: an event of the API server, an act of a gateway, or something else.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::write::{self, Write};

/// The version of events that is read.
const VERSION: &str = "audit.k8s.io/v1";

/// What a line tells.
#[derive(Debug)]
pub(super) enum Line {
    /// A write of something that is ours.
    Write(Box<Write>),
    /// An act of a gateway.
    Gateway(GatewayAct),
    /// An event of the API server about something else, or that another event of the same request tells better.
    OtherEvent,
    /// No line of an audit log.
    Foreign,
    /// One that should have told something, and why it does not.
    Broken(String),
}

/// An act as a gateway writes it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GatewayAct {
    pub(super) time: Timestamp,
    pub(super) act: String,
    pub(super) what: String,
    pub(super) outcome: String,
}

/// What tells the forms apart. Of other forms nothing is kept.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shape {
    kind: Option<Value>,
    api_version: Option<Value>,
    time: Option<Value>,
    act: Option<Value>,
    what: Option<Value>,
    outcome: Option<Value>,
}

/// Reads a line.
pub(super) fn read(line: &[u8]) -> Line {
    let line = line.trim_ascii();
    if line.first() != Some(&b'{') {
        return Line::Foreign;
    }
    let Ok(shape) = serde_json::from_slice::<Shape>(line) else {
        return Line::Broken("it is no whole JSON".to_owned());
    };
    let text = |value: &Option<Value>| value.as_ref()?.as_str().map(str::to_owned);
    if text(&shape.kind).as_deref() == Some("Event") {
        return match text(&shape.api_version).as_deref() {
            Some(VERSION) => match write::read(line) {
                Ok(Some(write)) => Line::Write(Box::new(write)),
                Ok(None) => Line::OtherEvent,
                Err(why) => Line::Broken(format!("it is an event that {why}")),
            },
            Some(other) if other.starts_with("audit.k8s.io/") => {
                Line::Broken(format!("it is an event of another version than {VERSION}"))
            }
            _ => Line::Foreign,
        };
    }
    let texts = (text(&shape.time), text(&shape.act), text(&shape.what), text(&shape.outcome));
    let (Some(time), Some(act), Some(what), Some(outcome)) = texts else { return Line::Foreign };
    match time.parse() {
        Ok(time) => Line::Gateway(GatewayAct { time, act, what, outcome }),
        Err(_) => Line::Broken("its time is none".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_told_apart_and_what_is_broken_is_said() {
        let gateway =
            br#"{"time":"2026-11-06T21:20:00.1Z","act":"wake","what":"m","outcome":"told"}"#;
        assert!(matches!(read(gateway), Line::Gateway(_)));
        for foreign in [
            "",
            "2026-11-06 INFO flyball: tenants loaded",
            "[1, 2]",
            "{}",
            r#"{"timestamp":"x","level":"INFO","fields":{}}"#,
            r#"{"time":1,"act":"wake","what":"m","outcome":"told"}"#,
            r#"{"kind":"Event","apiVersion":"v1"}"#,
        ] {
            assert!(matches!(read(foreign.as_bytes()), Line::Foreign), "{foreign}");
        }
        for broken in [
            r#"{"time":"2026-11-06T2"#,
            r#"{"time":"soon","act":"wake","what":"m","outcome":"told"}"#,
            r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1beta1"}"#,
            r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","verb":7}"#,
            "{\"kind\": \"\u{0}\"}",
        ] {
            assert!(matches!(read(broken.as_bytes()), Line::Broken(_)), "{broken}");
        }
        assert!(matches!(read(&[b'{', 0xff, b'}']), Line::Broken(_)));
        let deep = format!("{{\"kind\":{}", "[".repeat(100_000));
        assert!(matches!(read(deep.as_bytes()), Line::Broken(_)));
    }
}
