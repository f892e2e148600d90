//! Label selectors: read from text, and joined for one watch. Pure.

use kube::core::{Expression, Selector};
use std::collections::{BTreeMap, BTreeSet};

/// Up to so many values are told to the API server; a longer list would not fit into an address, and
/// whoever reads the answer sees to the rest. 32 values of 63 bytes are 2 KB.
pub(super) const VALUES: usize = 32;

/// A selector as `kubectl get --selector` takes it. `None` if it cannot be read or would choose everything.
pub fn read(text: &str) -> Option<Selector> {
    let selector: Selector = parts(text).map(expression).collect::<Option<_>>()?;
    (!selector.selects_all()).then_some(selector)
}

/// What all of these have in common. Empty if nothing: then everything is asked for.
pub(super) fn shared<'a>(selectors: impl Iterator<Item = &'a Selector>) -> String {
    let mut shared: Option<BTreeMap<String, BTreeSet<String>>> = None;
    for selector in selectors {
        let own = values_of(selector);
        shared = Some(match shared {
            None => own,
            Some(mut before) => {
                before.retain(|key, _| own.contains_key(key));
                for (key, values) in &mut before {
                    values.extend(own[key].iter().cloned());
                }
                before
            }
        });
    }
    let written = |(key, values): (String, BTreeSet<String>)| match values.len() {
        1 => values
            .into_iter()
            .next()
            .map_or(Expression::Exists(key.clone()), |value| Expression::Equal(key, value)),
        2..=VALUES => Expression::In(key, values),
        _ => Expression::Exists(key),
    };
    shared.unwrap_or_default().into_iter().map(written).collect::<Selector>().to_string()
}

/// The values that a selector allows, of the labels that it asks for.
fn values_of(selector: &Selector) -> BTreeMap<String, BTreeSet<String>> {
    let mut all = BTreeMap::new();
    for expression in selector.clone() {
        match expression {
            Expression::Equal(key, value) => drop(all.insert(key, BTreeSet::from([value]))),
            Expression::In(key, values) => drop(all.insert(key, values)),
            // These are looked at when pods are chosen.
            Expression::NotIn(..)
            | Expression::NotEqual(..)
            | Expression::Exists(_)
            | Expression::DoesNotExist(_) => {}
        }
    }
    all
}

/// What stands between commas that are not inside a list of values.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_u32;
    let cuts = move |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    };
    text.split(cuts).map(str::trim).filter(|part| !part.is_empty())
}

fn expression(part: &str) -> Option<Expression> {
    if let Some(key) = part.strip_prefix('!') {
        return Some(Expression::DoesNotExist(key_of(key)?));
    }
    if let Some((key, value)) = part.split_once("!=") {
        return Some(Expression::NotEqual(key_of(key)?, value_of(value)?));
    }
    if let Some((key, value)) = part.split_once('=') {
        let value = value.strip_prefix('=').unwrap_or(value);
        return Some(Expression::Equal(key_of(key)?, value_of(value)?));
    }
    let Some((key, rest)) = part.split_once(' ') else {
        return Some(Expression::Exists(key_of(part)?));
    };
    let (key, rest) = (key_of(key)?, rest.trim_start());
    let listed = |list: &str| -> Option<BTreeSet<String>> {
        let list = list.trim().strip_prefix('(')?.strip_suffix(')')?;
        list.split(',').map(value_of).collect()
    };
    match rest.strip_prefix("notin") {
        Some(list) => Some(Expression::NotIn(key, listed(list)?)),
        None => Some(Expression::In(key, listed(rest.strip_prefix("in")?)?)),
    }
}

/// A label's name, with a domain before it or not. It goes into an address, so nothing else may pass.
fn key_of(text: &str) -> Option<String> {
    let text = text.trim();
    let good = (1..=317).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./".contains(&b));
    good.then(|| text.to_owned())
}

fn value_of(text: &str) -> Option<String> {
    let text = text.trim();
    let good =
        text.len() <= 63 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    good.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::SelectorExt as _;
    use proptest::prelude::*;

    fn chooses(text: &str, labels: &[(&str, &str)]) -> bool {
        let labels = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        read(text).unwrap().matches(&labels)
    }

    #[test]
    fn selectors_are_read_as_kubernetes_writes_them() {
        let labels = [("app", "a"), ("tier", "gpu")];
        for fits in [
            "app=a",
            "app==a,tier=gpu",
            "app in (a,b),tier",
            "tier notin (cpu, x),!other",
            "app = a, tier != cpu",
        ] {
            assert!(chooses(fits, &labels), "{fits}");
        }
        for not in ["app=b", "app in (b)", "app notin (a)", "!app", "other", "tier!=gpu"] {
            assert!(!chooses(not, &labels), "{not}");
        }
        for wrong in ["", " , ", "app in a", "app like (a)", "a=b&c=d", "app in (a", "=", "a=\"b\""]
        {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    fn joined(texts: &[&str]) -> String {
        let all: Vec<_> = texts.iter().map(|text| read(text).unwrap()).collect();
        shared(all.iter())
    }

    #[test]
    fn one_watch_asks_for_what_all_have_in_common() {
        assert_eq!(joined(&["app=a,role=engine"]), "app=a,role=engine");
        assert_eq!(joined(&["app=a,role=engine", "app=b,role=engine"]), "app in (a,b),role=engine");
        assert_eq!(joined(&["app=a", "app in (b,c),x"]), "app in (a,b,c)");
        assert_eq!(joined(&["app=a", "name=a"]), "", "nothing");
        assert_eq!(joined(&["!app"]), "");
        let many: Vec<String> = (0..=VALUES).map(|n| format!("app=v{n}")).collect();
        assert_eq!(joined(&many.iter().map(String::as_str).collect::<Vec<_>>()), "app");
        assert_eq!(shared([].into_iter()), "");
    }

    proptest! {
        /// Who is chosen by one of them is in what is asked for.
        #[test]
        fn nobody_is_lost_by_asking_once(
            selectors in prop::collection::vec("[ab](=[xy]| in \\([xy](,z)?\\)|)(,c=[xy])?", 1..5),
            labels in prop::collection::btree_map("[abc]", "[xyz]", 0..4),
        ) {
            let all: Vec<_> = selectors.iter().map(|text| read(text).unwrap()).collect();
            let shared_one = shared(all.iter());
            let shared_one = read(&shared_one);
            if all.iter().any(|one| one.matches(&labels)) {
                prop_assert!(shared_one.is_none_or(|shared_one| shared_one.matches(&labels)));
            }
        }

        #[test]
        fn what_is_written_is_read_again(text in "[a-z]{1,3}(=[a-z]{0,3}|!=[a-z]{1,3}| in \\([a-z](,[a-z])*\\)| notin \\([a-z]\\)|)") {
            let selector = read(&text).unwrap();
            prop_assert_eq!(read(&selector.to_string()), Some(selector));
        }

        #[test]
        fn no_text_ends_the_process(text in "[a-z=!(), ]{0,20}") {
            let _ = read(&text);
        }
    }
}
