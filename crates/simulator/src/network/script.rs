//! The script: rules, and whom they hit.

use crate::seconds::Seconds;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// What goes wrong on a network.
///
/// ```toml
/// seed = 7
///
/// [[rules]]
/// direction = "to-client"
/// after_bytes = 4096
/// share = 0.1
/// during = "10s..20s"
/// action = "reset"
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// Random seed.
    #[serde(default)]
    pub seed: u64,
    /// What goes wrong. Rules add up: one connection may be slow and then reset.
    #[serde(default)]
    pub rules: Vec<NetworkRule>,
}

/// One thing that goes wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkRule {
    /// Which way the bytes go. Not asked by `refuse` and `hang`, which hit the whole connection.
    #[serde(default)]
    pub direction: Direction,
    /// Bytes that pass unharmed before.
    #[serde(default)]
    pub after_bytes: u64,
    /// The share of connections that are hit, 0 to 1.
    #[serde(default = "all")]
    pub share: f64,
    /// Connections that begin in this time are hit; all without.
    #[serde(default, with = "span", skip_serializing_if = "Option::is_none")]
    pub during: Option<Range<Seconds>>,
    /// What happens.
    #[serde(flatten)]
    pub action: NetworkAction,
}

/// A way of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Answers.
    #[default]
    ToClient,
    /// Requests.
    ToServer,
}

/// What happens to a connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "kebab-case")]
pub enum NetworkAction {
    /// It is reset as soon as it is there.
    Refuse,
    /// It is accepted and nothing is ever relayed.
    Hang,
    /// Bytes come later.
    Delay {
        /// So much.
        milliseconds: u64,
        /// And up to so much more, drawn anew for every piece.
        #[serde(default)]
        jitter_milliseconds: u64,
    },
    /// Bytes come slowly.
    Rate {
        /// At most so many.
        bytes_per_second: u64,
    },
    /// Nothing more comes for a while, or ever.
    Stall {
        /// How long; for ever without.
        #[serde(default)]
        milliseconds: Option<u64>,
    },
    /// This direction is closed in order; the other goes on.
    HalfClose,
    /// Both directions end with a reset.
    Reset,
    /// Both directions are closed in order, as if all had been said.
    Truncate,
    /// Bytes are changed.
    Flip {
        /// So many, one after the other.
        #[serde(default = "one")]
        bytes: u64,
    },
    /// The next piece comes twice.
    Duplicate,
    /// Every byte is written by itself.
    Split,
}

/// A script that cannot be played.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum BadScript {
    /// Not TOML of this form.
    #[error("cannot read the fault script: {0}")]
    Form(String),
    /// A number out of range.
    #[error("rule {rule} of the fault script: {what}")]
    Rule {
        /// Counted from 1.
        rule: usize,
        /// What is wrong.
        what: String,
    },
}

/// More rules than this are a mistake.
const MOST_RULES: usize = 1_000;

impl Script {
    /// Reads the TOML form.
    pub fn from_toml(text: &str) -> Result<Self, BadScript> {
        let script: Self =
            toml::from_str(text).map_err(|error| BadScript::Form(error.to_string()))?;
        script.check()?;
        Ok(script)
    }

    fn check(&self) -> Result<(), BadScript> {
        if self.rules.len() > MOST_RULES {
            let what = format!("{} rules, more than {MOST_RULES}", self.rules.len());
            return Err(BadScript::Rule { rule: MOST_RULES + 1, what });
        }
        for (index, rule) in self.rules.iter().enumerate() {
            let bad = |what: &str| Err(BadScript::Rule { rule: index + 1, what: what.to_owned() });
            if !(0.0..=1.0).contains(&rule.share) {
                return bad("share is not between 0 and 1");
            }
            if matches!(rule.action, NetworkAction::Rate { bytes_per_second: 0 }) {
                return bad("a rate of 0 never ends; write action = \"stall\"");
            }
        }
        Ok(())
    }
}

const fn all() -> f64 {
    1.0
}

const fn one() -> u64 {
    1
}

/// `"10s..20s"`; `"10s.."` never ends.
mod span {
    use crate::seconds::Seconds;
    use serde::{Deserialize, Deserializer, Serializer, de};
    use std::ops::Range;

    pub(super) fn serialize<S: Serializer>(
        span: &Option<Range<Seconds>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let Some(span) = span else { return serializer.serialize_none() };
        let end = span.end.get();
        let end = if end.is_finite() { format!("{end}s") } else { String::new() };
        serializer.serialize_str(&format!("{}s..{end}", span.start.get()))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Range<Seconds>>, D::Error> {
        let text = String::deserialize(deserializer)?;
        read(&text)
            .map(Some)
            .ok_or_else(|| de::Error::custom(format!("{text:?} is no span such as \"10s..20s\"")))
    }

    fn read(text: &str) -> Option<Range<Seconds>> {
        let (start, end) = text.split_once("..")?;
        let seconds = |text: &str| text.trim().strip_suffix('s')?.trim().parse::<f64>().ok();
        let start = seconds(start)?;
        let end = if end.trim().is_empty() { f64::INFINITY } else { seconds(end)? };
        (start >= 0.0 && end > start).then_some(Seconds(start)..Seconds(end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        seed = 7
        [[rules]]
        direction = "to-client"
        after_bytes = 4096
        share = 0.1
        during = "10s..20s"
        action = "reset"
        [[rules]]
        direction = "to-server"
        action = "delay"
        milliseconds = 5
        jitter_milliseconds = 2
    "#;

    #[test]
    fn the_toml_form_says_what_the_type_says_and_back() {
        let script = Script::from_toml(TEXT).unwrap();
        assert_eq!(script.rules[0].after_bytes, 4096);
        assert_eq!(script.rules[0].action, NetworkAction::Reset);
        assert_eq!(script.rules[0].during, Some(Seconds(10.0)..Seconds(20.0)));
        let again = Script::from_toml(&toml::to_string(&script).unwrap()).unwrap();
        assert_eq!(again, script);
    }

    #[test]
    fn what_cannot_be_played_is_refused_in_words() {
        let bad = |text: &str| Script::from_toml(text).unwrap_err().to_string();
        assert!(bad("[[rules]]\naction = \"explode\"").contains("explode"));
        assert!(bad("[[rules]]\naction = \"reset\"\nshare = 2.0").contains("share"));
        assert!(bad("[[rules]]\naction = \"reset\"\nduring = \"20s..10s\"").contains("20s..10s"));
        assert!(bad("[[rules]]\naction = \"rate\"\nbytes_per_second = 0").contains("stall"));
    }

    #[test]
    fn a_share_hits_that_share_and_always_the_same_connections() {
        let mut script = Script::from_toml(TEXT).unwrap();
        script.rules.truncate(1);
        let hit = |at: f64| {
            (0..10_000u64).filter(|n| !script.fate(*n, Seconds(at)).is_harmless()).collect()
        };
        let (first, again, later): (Vec<_>, Vec<_>, Vec<_>) = (hit(12.0), hit(19.0), hit(20.0));
        assert_eq!(first, again);
        assert!((800..1_200).contains(&first.len()), "{}", first.len());
        assert_eq!(later, Vec::<u64>::new());
    }
}
