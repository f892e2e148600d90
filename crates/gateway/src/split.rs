//! Names that stand for several models, and which of them a request gets.
//!
//! Rules come first, then what keeps a session where it is, then the weights. The sums are in
//! `flyball_routing::split`; here is what of a request goes into them.

use crate::settings::{Arm, Mirror, Split as SplitSettings, SplitRule, Sticky};
use flyball_routing::split::{dealt, is_among, stays};
use http::HeaderMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The largest weight, as in the settings.
const MOST_WEIGHT: u32 = 1_000_000;

/// All splits, by the model name in client requests.
#[derive(Debug, Default)]
pub(crate) struct Splits(BTreeMap<String, Split>);

/// One of them.
#[derive(Debug)]
pub(crate) struct Split {
    pub(crate) name: Arc<str>,
    settings: SplitSettings,
    /// A hash of each arm's model, in the order of the arms.
    keys: Vec<u64>,
    /// The weights in use, in the order of the arms: those of the settings, or the operator's.
    weights: Vec<AtomicU32>,
    /// Requests that were dealt.
    count: Arc<AtomicU64>,
}

/// What a request goes by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asks<'a> {
    /// Who asks; empty if nobody is asked for a key.
    pub(crate) caller: &'a str,
    pub(crate) headers: &'a HeaderMap,
    /// A hash of the body's `user`.
    pub(crate) session: Option<u64>,
}

/// What a request gets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dealt<'a> {
    pub(crate) arm: &'a Arm,
    /// Where a copy goes, if this one is copied.
    pub(crate) copy: Option<&'a Mirror>,
}

impl Splits {
    /// Those of the settings. Splits that stay go on counting where they were.
    pub(crate) fn new(settings: &[SplitSettings], before: Option<&Self>) -> Self {
        let split = |settings: &SplitSettings| {
            let count = before.and_then(|before| before.get(&settings.name));
            let split = Split {
                name: settings.name.as_str().into(),
                keys: settings.arms.iter().map(|arm| xxh3_64(arm.model.as_bytes())).collect(),
                weights: settings.arms.iter().map(|arm| AtomicU32::new(arm.weight)).collect(),
                count: count.map_or_else(Arc::default, |before| Arc::clone(&before.count)),
                settings: settings.clone(),
            };
            (settings.name.clone(), split)
        };
        Self(settings.iter().map(split).collect())
    }

    /// The one of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&Split> {
        self.0.get(name)
    }

    /// From now on arms have these weights, by split and model; splits that are not named have those of
    /// the settings. An arm that is not named has none, and if none is left the settings' stay.
    pub(crate) fn weigh(&self, ordered: &BTreeMap<&str, BTreeMap<&str, u32>>) {
        for (name, split) in &self.0 {
            let of = |arm: &Arm| {
                let arms = ordered.get(name.as_str())?;
                Some(arms.get(arm.model.as_str()).copied().unwrap_or(0).min(MOST_WEIGHT))
            };
            let any =
                split.settings.arms.iter().any(|arm| of(arm).is_some_and(|weight| weight > 0));
            for (arm, weight) in split.settings.arms.iter().zip(&split.weights) {
                let new = of(arm).filter(|_| any).unwrap_or(arm.weight);
                weight.store(new, Ordering::Relaxed);
            }
        }
    }

    /// The names of all.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl Split {
    /// What this request gets; `None` if no arm has a weight.
    pub(crate) fn deal(&self, asks: Asks<'_>) -> Option<Dealt<'_>> {
        let n = self.count.fetch_add(1, Ordering::Relaxed);
        let arms = &self.settings.arms;
        let weights = self.weights.iter().map(|weight| weight.load(Ordering::Relaxed));
        let ruled = || {
            let rule = self.settings.rules.iter().find(|rule| fits(rule, asks))?;
            arms.iter().position(|arm| arm.model == rule.arm)
        };
        let place = ruled().or_else(|| match self.session(asks) {
            Some(session) => stays(self.keys.iter().copied().zip(weights), session),
            None => dealt(weights, n),
        });
        let mirror = self.settings.mirror.as_ref();
        let copy = mirror.filter(|mirror| is_among(mirror.per_thousand, n));
        Some(Dealt { arm: arms.get(place?)?, copy })
    }

    /// What keeps this request where others went; `None` if it does not say what would.
    fn session(&self, asks: Asks<'_>) -> Option<u64> {
        let value = match self.settings.sticky {
            Sticky::None => return None,
            Sticky::Caller if asks.caller.is_empty() => return None,
            Sticky::Caller => 0,
            Sticky::User => asks.session?,
            Sticky::Header => {
                let name = self.settings.sticky_header.as_deref()?;
                xxh3_64(asks.headers.get(name)?.as_bytes())
            }
        };
        let of_caller = xxh3_64_with_seed(asks.caller.as_bytes(), value);
        Some(xxh3_64_with_seed(self.name.as_bytes(), of_caller))
    }
}

/// Whether a rule is for this request.
fn fits(rule: &SplitRule, asks: Asks<'_>) -> bool {
    let caller = rule.caller.as_deref().is_none_or(|caller| caller == asks.caller);
    let header = rule.header.as_deref().is_none_or(|name| {
        let mut values = asks.headers.get_all(name).iter();
        match rule.value.as_deref() {
            Some(expected) => values.any(|value| value.as_bytes() == expected.as_bytes()),
            None => values.next().is_some(),
        }
    });
    caller && header
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn arm(model: &str, weight: u32) -> Arm {
        Arm { model: model.to_owned(), weight, known_as: None }
    }

    fn settings(sticky: Sticky) -> SplitSettings {
        SplitSettings {
            name: "m".to_owned(),
            arms: vec![arm("old", 900), arm("new", 100)],
            sticky,
            sticky_header: Some("x-session".to_owned()),
            ..SplitSettings::default()
        }
    }

    fn one(settings: SplitSettings) -> Splits {
        Splits::new(&[settings], None)
    }

    fn model<'a>(
        splits: &'a Splits,
        caller: &str,
        headers: &HeaderMap,
        user: Option<u64>,
    ) -> &'a str {
        let asks = Asks { caller, headers, session: user };
        &splits.get("m").unwrap().deal(asks).unwrap().arm.model
    }

    #[test]
    fn a_reload_goes_on_where_it_was() {
        let splits = one(settings(Sticky::None));
        let none = HeaderMap::new();
        for _ in 0..500 {
            model(&splits, "", &none, None);
        }
        let mut changed = settings(Sticky::None);
        changed.arms[0].weight = 100;
        let splits = Splits::new(&[changed], Some(&splits));
        assert_eq!(splits.get("m").unwrap().count.load(Ordering::Relaxed), 500);
        assert!(splits.get("other").is_none());
    }

    #[test]
    fn the_operators_weights_come_before_those_of_the_settings() {
        let splits = one(settings(Sticky::None));
        let none = HeaderMap::new();
        let new = || (0..1_000).filter(|_| model(&splits, "", &none, None) == "new").count();
        assert!(new().abs_diff(100) < 5);
        let order = |old: u32, new: u32| {
            BTreeMap::from([("m", BTreeMap::from([("old", old), ("new", new), ("gone", 7)]))])
        };
        splits.weigh(&order(500, 500));
        assert!(new().abs_diff(500) < 5);
        splits.weigh(&BTreeMap::from([("m", BTreeMap::from([("new", 1)]))]));
        assert_eq!(new(), 1_000, "an arm that is not named gets nothing");
        for nothing in [order(0, 0), BTreeMap::new()] {
            splits.weigh(&nothing);
            assert!(new().abs_diff(100) < 5, "as in the settings");
        }
    }

    #[test]
    fn what_is_sticky_stays_and_what_says_nothing_is_dealt() {
        let named = |value: &str| {
            HeaderMap::from_iter([(
                http::HeaderName::from_static("x-session"),
                HeaderValue::from_str(value).unwrap(),
            )])
        };
        for sticky in [Sticky::Caller, Sticky::User, Sticky::Header] {
            let splits = one(settings(sticky));
            let arms: Vec<bool> = (0..1_000)
                .map(|n| {
                    let (text, headers) = (n.to_string(), named(&n.to_string()));
                    let first = model(&splits, &text, &headers, Some(n));
                    for _ in 0..3 {
                        assert_eq!(model(&splits, &text, &headers, Some(n)), first);
                    }
                    first == "new"
                })
                .collect();
            let new = arms.iter().filter(|new| **new).count();
            // Four standard deviations of a count of chance.
            assert!(new.abs_diff(100) < 38, "{sticky:?}: {new}");
            let silent = HeaderMap::new();
            let dealt = (0..1_000).filter(|_| model(&splits, "", &silent, None) == "new").count();
            assert!(dealt.abs_diff(100) < 5, "{sticky:?}: {dealt}");
        }
    }

    #[test]
    fn the_first_rule_that_fits_comes_before_weights() {
        let rule = |caller: Option<&str>, header: Option<&str>, value: Option<&str>, arm: &str| {
            SplitRule {
                caller: caller.map(str::to_owned),
                header: header.map(str::to_owned),
                value: value.map(str::to_owned),
                arm: arm.to_owned(),
            }
        };
        let mut settings = settings(Sticky::None);
        settings.arms[1].weight = 0;
        settings.rules = vec![
            rule(Some("tester"), Some("x-old"), None, "old"),
            rule(Some("tester"), None, None, "new"),
            rule(None, Some("x-arm"), Some("new"), "new"),
        ];
        let splits = one(settings);
        let with = |name: &'static str, value: &'static str| {
            HeaderMap::from_iter([(
                http::HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )])
        };
        assert_eq!(model(&splits, "tester", &HeaderMap::new(), None), "new");
        assert_eq!(model(&splits, "tester", &with("x-old", ""), None), "old");
        assert_eq!(model(&splits, "a", &with("x-arm", "new"), None), "new");
        assert_eq!(model(&splits, "a", &with("x-arm", "other"), None), "old");
        assert_eq!(model(&splits, "a", &with("x-old", ""), None), "old");
    }

    #[test]
    fn as_many_are_copied_as_said() {
        let mut settings = settings(Sticky::Caller);
        settings.mirror = Some(Mirror { model: "next".into(), per_thousand: 50, known_as: None });
        let splits = one(settings);
        let headers = HeaderMap::new();
        let split = splits.get("m").unwrap();
        let asks = Asks { caller: "a", headers: &headers, session: None };
        let copied = (0..10_000).filter(|_| split.deal(asks).unwrap().copy.is_some()).count();
        assert!(copied.abs_diff(500) < 5, "{copied}");
    }
}
