use super::*;
use proptest::prelude::*;

#[test]
fn names_that_kubernetes_refuses_are_refused() {
    let long = "a".repeat(64);
    for wrong in ["", "-a", "a-", "A", "a_b", "a b", "a.b", "ä", "a/b", long.as_str()] {
        assert!(Namespace::new(wrong).is_err(), "{wrong}");
    }
    for wrong in ["", ".", "a..b", "a.-b", "a.", "A.b"] {
        assert!(PoolId::new(wrong).is_err(), "{wrong}");
    }
    assert!(PoolId::new("a.".repeat(126).trim_end_matches('.')).is_ok());
    assert!(PoolId::new(&"a".repeat(254)).is_err());
}

#[test]
fn an_error_says_what_is_allowed() {
    let error = Namespace::new("Team A").unwrap_err().to_string();
    assert_eq!(
        error,
        "`Team A` is not a name: use lower-case letters, digits and `-`, start and end with a \
         letter or digit, at most 63 characters"
    );
    let error = "qwen".parse::<ModelId>().unwrap_err().to_string();
    assert_eq!(error, "`qwen` is not of the form `namespace/name`");
}

#[test]
fn variants_sort_next_to_their_model() {
    let mut ids: Vec<VariantId> = ["b/m/x", "a/n/x", "a/m/z", "a/m/a"]
        .into_iter()
        .map(|text| text.parse().unwrap())
        .collect();
    ids.sort();
    let shown: Vec<_> = ids.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["a/m/a", "a/m/z", "a/n/x", "b/m/x"]);
}

#[test]
fn a_decision_has_one_text() {
    for wrong in ["", "5", "-5", "5-", "+5-1", "05-1", "5-1-1", "5-65536"] {
        assert!(wrong.parse::<DecisionId>().is_err(), "{wrong}");
    }
}

const LABEL: &str = "[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?";

proptest! {
    #[test]
    fn names_survive_their_text(namespace in LABEL, model in LABEL, domain in LABEL, variant in LABEL) {
        let text = format!("{namespace}/{model}.{domain}/{variant}");
        let id: VariantId = text.parse().unwrap();
        prop_assert_eq!(id.to_string(), text);
        prop_assert_eq!(id.model().namespace().as_str(), namespace);
        prop_assert_eq!(id.model().to_string().parse::<ModelId>(), Ok(id.model().clone()));
        prop_assert_eq!(id.name().as_str(), variant);
    }

    #[test]
    fn any_text_is_a_name_that_survives_or_an_error(text in "\\PC{0,20}|[a-z0-9./-]{0,20}") {
        if let Ok(id) = text.parse::<ModelId>() {
            prop_assert_eq!(id.to_string(), text.clone());
        }
        if let Ok(id) = text.parse::<PoolId>() {
            prop_assert_eq!(id.to_string(), text);
        }
    }

    #[test]
    fn decisions_survive_their_text_and_sort_by_time(a: (u64, u16), b: (u64, u16)) {
        let [first, second] =
            [a, b].map(|(at, shard)| DecisionId::new(Timestamp::from_micros(at), shard));
        prop_assert_eq!(first.to_string().parse(), Ok(first));
        if first.at() < second.at() {
            prop_assert!(first < second);
        }
    }
}
