//! Tenants together: by hand, and in random worlds held against the obvious way to work it out.

use super::*;
use crate::tenant::TenantStatus;
use flyball_quota::{Amount, BudgetKey, BudgetStatus, BudgetUnit, Period};
use proptest::prelude::*;
use serde_json::{Value, json};

fn tenant(namespace: &str, name: &str, spec: &Value) -> Tenant {
    serde_json::from_value(json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "Tenant",
        "metadata": { "namespace": namespace, "name": name }, "spec": spec,
    }))
    .unwrap()
}

/// One that may ask for everything, with this put over it.
fn with(name: &str, over: &Value) -> Tenant {
    let mut spec = json!({ "models": ["*"] });
    for (field, value) in over.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    tenant("ml", name, &spec)
}

fn below(name: &str, parent: &str) -> Tenant {
    with(name, &json!({ "parent": parent }))
}

fn key(name: &str, id: u32, hash: u32) -> Value {
    json!({ "name": name, "id": format!("{id:010}"), "sha256": format!("{hash:064x}") })
}

fn id(name: &str) -> TenantId {
    TenantId { namespace: "ml".to_owned(), name: name.to_owned() }
}

fn reasons(one: &ResolvedTenant) -> Vec<Reason> {
    one.problems.first().iter().map(|problem| problem.reason).collect()
}

fn moment(text: &str) -> Timestamp {
    let at: jiff::Timestamp = text.parse().unwrap();
    Timestamp::from_micros(u64::try_from(at.as_microsecond()).unwrap())
}

#[test]
fn a_tenant_may_do_what_all_above_it_allow() {
    let org = with(
        "org",
        &json!({
            "models": ["llama-*", "qwen"],
            "limits": { "requestsPerMinute": 100, "concurrency": 10 },
        }),
    );
    let team = with(
        "team",
        &json!({
            "parent": "org", "models": ["*"], "weight": 3, "priorityCeiling": "High", "cacheGroup": "chat",
            "limits": { "requestsPerMinute": 500, "inputTokensPerMinute": 7 },
            "keys": [key("app", 1, 1)],
        }),
    );
    let all = resolve([&team, &org]);
    let access = all[&id("team")].access.as_ref().unwrap();
    assert_eq!((access.path.as_str(), access.depth, access.weight), ("ml/org/team", 2, 3));
    assert_eq!(access.limits.requests_per_minute, Some(500));
    let lowest = TenantLimits {
        requests_per_minute: Some(100),
        input_tokens_per_minute: Some(7),
        output_tokens_per_minute: None,
        concurrency: Some(10),
    };
    assert_eq!(access.lowest, lowest);
    assert_eq!(access.priority_ceiling, PriorityCeiling::Normal);
    assert_eq!(access.cache_group.as_deref(), Some("ml/chat"));
    let models: Vec<String> = access.models.iter().map(ToString::to_string).collect();
    assert_eq!(models, ["llama-*", "qwen"]);
    assert!(access.allows("llama-3") && access.allows("qwen") && !access.allows("qwen-2"));
    // What a key spends, its team and its organisation spend too.
    let scope = access.scope_of(&access.keys[0]);
    assert_eq!(scope.as_str(), "ml/org/team/key:app");
    assert!(access.path.covers(&scope));
    assert!(all[&id("org")].access.as_ref().unwrap().path.covers(&scope));
    assert_eq!(all[&id("team")].ready().reason, Reason::TenantAccepted);
}

#[test]
fn a_parent_is_of_the_same_namespace() {
    let elsewhere = tenant("other", "org", &json!({ "models": ["*"] }));
    let all = resolve([&elsewhere, &below("team", "org"), &below("user", "team")]);
    assert_eq!(reasons(&all[&id("team")]), [Reason::TenantParentMissing]);
    assert_eq!(reasons(&all[&id("user")]), [Reason::TenantParentRefused]);
    assert!(all[&id("team")].access.is_none() && all[&id("user")].access.is_none());
}

#[test]
fn who_stands_above_itself_lets_nobody_in_and_neither_do_those_below() {
    let all = resolve([
        &below("a", "b"),
        &below("b", "c"),
        &below("c", "a"),
        &below("self", "self"),
        &below("under", "b"),
        &below("deeper", "under"),
    ]);
    for name in ["a", "b", "c", "self"] {
        assert_eq!(reasons(&all[&id(name)]), [Reason::TenantParentCycle], "{name}");
    }
    for name in ["under", "deeper"] {
        assert_eq!(reasons(&all[&id(name)]), [Reason::TenantParentRefused], "{name}");
    }
}

#[test]
fn four_stand_above_each_other_and_no_more() {
    let all = resolve([
        &with("t1", &json!({})),
        &below("t2", "t1"),
        &below("t3", "t2"),
        &below("t4", "t3"),
        &below("t5", "t4"),
        &below("t6", "t5"),
    ]);
    assert_eq!(all[&id("t4")].access.as_ref().unwrap().path.as_str(), "ml/t1/t2/t3/t4");
    assert_eq!(reasons(&all[&id("t5")]), [Reason::TenantTooDeep]);
    assert_eq!(reasons(&all[&id("t6")]), [Reason::TenantParentRefused]);
}

#[test]
fn a_key_that_two_have_is_refused_for_both_and_others_are_not() {
    let mut revoked = key("old", 2, 3);
    revoked["disabled"] = json!(true);
    let here = with("here", &json!({ "keys": [key("app", 1, 1), key("job", 2, 2), revoked] }));
    let there = tenant("other", "there", &json!({ "models": ["*"], "keys": [key("x", 4, 1)] }));
    let all = resolve([&here, &there]);
    let one = &all[&id("here")];
    assert!(one.access.as_ref().unwrap().keys.is_empty());
    assert_eq!(one.refused_keys, 3);
    assert_eq!(reasons(one), [Reason::TenantKeyDuplicate; 3]);
    let condition = one.ready();
    assert_eq!((condition.so, condition.reason), (Some(false), Reason::TenantKeyDuplicate));
    assert!(
        condition.message.contains("`spec.keys[job].id` is also that of the key old"),
        "{}",
        condition.message
    );
    // Nobody learns what is in another namespace.
    assert!(condition.message.contains("a key in another namespace"), "{}", condition.message);
    let other = TenantId { namespace: "other".to_owned(), name: "there".to_owned() };
    assert_eq!(reasons(&all[&other]), [Reason::TenantKeyDuplicate]);
}

#[test]
fn a_key_is_let_in_from_its_beginning_until_its_end() {
    let mut spec = key("app", 1, 1);
    spec["notBefore"] = json!("2026-11-18T10:00:00Z");
    spec["expires"] = json!("2026-11-18T13:00:00+01:00");
    let all = resolve([&with("t", &json!({ "keys": [spec] }))]);
    let mut key = all[&id("t")].access.as_ref().unwrap().keys[0].clone();
    for (at, state) in [
        ("2026-11-18T09:59:59.999999Z", KeyState::Pending),
        ("2026-11-18T10:00:00Z", KeyState::Valid),
        ("2026-11-18T11:59:59.999999Z", KeyState::Valid),
        ("2026-11-18T12:00:00Z", KeyState::Expired),
    ] {
        assert_eq!(key.state(moment(at)), state, "{at}");
    }
    key.disabled = true;
    assert_eq!(key.state(moment("2026-11-18T11:00:00Z")), KeyState::Disabled);
}

/// The API server would refuse all of these; a file, or a schema of another age, would not.
#[test]
fn what_cannot_be_understood_lets_nobody_in() {
    let budget = |over: Value| {
        let mut budget = json!({ "name": "b", "period": "Month" });
        for (field, value) in over.as_object().into_iter().flatten() {
            budget[field] = value.clone();
        }
        json!({ "budgets": [budget] })
    };
    for (field, over) in [
        ("spec.budgets[b]", budget(json!({ "amount": "many" }))),
        ("spec.budgets[b]", budget(json!({ "amount": "1", "tokens": 1 }))),
        ("spec.budgets[b]", budget(json!({}))),
        ("spec.budgets[b]", budget(json!({ "tokens": -1 }))),
        ("spec.models[0]", json!({ "models": ["a*b"] })),
        ("spec.models[0]", json!({ "models": [""] })),
        ("spec.keys[k].id", json!({ "keys": [{ "name": "k", "id": "short", "sha256": "0" }] })),
        ("spec.members[0]", json!({ "members": [{ "issuer": "https://id.example.com" }] })),
        ("spec.members[0]", json!({ "members": [{ "issuer": "kubernetes" }] })),
        (
            "spec.members[0]",
            json!({ "members": [{ "issuer": "http://id.example.com", "claims": { "sub": ["a"] } }] }),
        ),
        (
            "spec.members[0]",
            json!({ "members": [{ "issuer": "https://id.example.com", "claims": { "sub": [] } }] }),
        ),
    ] {
        let all = resolve([&with("org", &over), &below("team", "org")]);
        let one = &all[&id("org")];
        assert!(one.access.is_none(), "{over}");
        let problem = &one.problems.first()[0];
        assert_eq!(
            (problem.reason, problem.field.as_str()),
            (Reason::SpecRefused, field),
            "{over}"
        );
        // Its limits and budgets cannot be held either.
        assert_eq!(reasons(&all[&id("team")]), [Reason::TenantParentRefused], "{over}");
    }
}

#[test]
fn problems_are_bounded_and_never_show_a_key() {
    let secret = "sk-fly-0123456789_secret";
    let keys: Vec<Value> = (0..64)
        .map(|n| json!({ "name": format!("k{n}"), "id": format!("{n:010}"), "sha256": secret }))
        .collect();
    let all = resolve([&with("t", &json!({ "keys": keys }))]);
    let one = &all[&id("t")];
    assert_eq!((one.problems.first().len(), one.problems.more()), (MAX_PROBLEMS, 48));
    assert_eq!((one.refused_keys, one.key_counts(Timestamp::default()).refused), (64, 64));
    let condition = one.ready().message;
    assert!(condition.ends_with("; and 60 more") && !condition.contains(secret), "{condition}");
    assert!(!format!("{:?}", one.problems).contains(secret));
}

#[test]
fn a_model_that_is_not_allowed_above_is_said_and_the_rest_holds() {
    let org = with("org", &json!({ "models": ["llama-*"] }));
    let team = with("team", &json!({ "parent": "org", "models": ["llama-3", "qwen", "l*"] }));
    let all = resolve([&org, &team]);
    let one = &all[&id("team")];
    assert_eq!(reasons(one), [Reason::TenantModelDenied]);
    assert!(one.problems.first()[0].what.contains("qwen"));
    let models: Vec<String> =
        one.access.as_ref().unwrap().models.iter().map(ToString::to_string).collect();
    assert_eq!(models, ["llama-*"]);
}

#[test]
fn budgets_are_what_the_bank_takes() {
    let budgets = json!([
        { "name": "money", "amount": "250.5", "period": "Month", "alertPercents": [90, 10] },
        { "name": "once", "tokens": 1_000_000, "period": "None", "onExhausted": "FinishRunning" },
    ]);
    let all = resolve([&with("t", &json!({ "budgets": budgets }))]);
    let [money, once] = &all[&id("t")].access.as_ref().unwrap().budgets[..] else { panic!("two") };
    let spec = &money.spec;
    assert_eq!((spec.unit, spec.limit), (BudgetUnit::Money, Amount::from_cents(25_050)));
    assert_eq!((spec.period, &*spec.key.name), (Period::Month, "money"));
    assert_eq!(spec.key.scope.as_str(), "ml/t");
    assert_eq!(money.alert_percents, [10, 90]);
    assert_eq!(money.on_exhausted, WhenExhausted::Refuse);
    assert_eq!((once.spec.unit, once.spec.limit.get()), (BudgetUnit::Tokens, 1_000_000));
    assert_eq!((once.spec.period, &once.alert_percents[..]), (Period::Once, &[50, 80, 100][..]));
    assert_eq!(once.on_exhausted, WhenExhausted::FinishRunning);
}

/// The status at 18 November, with this spent of a hundred dollars a month, and of ten tokens for good.
fn status(cents: u64, tokens: u128) -> TenantStatus {
    let budgets = json!([
        { "name": "month", "amount": "100", "period": "Month" },
        { "name": "good", "tokens": 10, "period": "None" },
    ]);
    let mut keys = [key("a", 1, 1), key("b", 2, 2), key("c", 3, 3)];
    keys[1]["expires"] = json!("2026-11-01T00:00:00Z");
    keys[2]["disabled"] = json!(true);
    let all = resolve([&with("t", &json!({ "budgets": budgets, "keys": keys }))]);
    let one = &all[&id("t")];
    let now: jiff::Timestamp = "2026-11-18T00:00:00Z".parse().unwrap();
    let spent = [Amount::from_cents(cents), Amount::new(tokens)];
    let states = one.access.as_ref().unwrap().budgets.iter().zip(spent).map(|(budget, spent)| {
        let state = BudgetStatus {
            period: budget.spec.period.at(moment("2026-11-18T00:00:00Z")),
            limit: budget.spec.limit,
            spent,
            held: Amount::ZERO,
            written_off: Amount::ZERO,
        };
        (budget.spec.key.clone(), state)
    });
    let states: BTreeMap<BudgetKey, BudgetStatus> = states.collect();
    one.status(None, Some(7), &states, now)
}

#[test]
fn a_status_says_what_is_left_and_for_how_long() {
    let shown = status(8_000, 1);
    assert_eq!((shown.observed_generation, shown.path.as_deref()), (Some(7), Some("ml/t")));
    let keys = shown.keys.unwrap();
    assert_eq!(
        (keys.valid, keys.expired, keys.disabled, keys.pending, keys.refused),
        (1, 1, 1, 0, 0)
    );
    let [month, good] = &shown.budgets[..] else { panic!("two") };
    assert_eq!(
        (month.name.as_str(), month.spent.as_str(), month.left.as_str()),
        ("month", "80.00", "20.00")
    );
    assert_eq!(month.began_at.as_deref(), Some("2026-11-01T00:00:00Z"));
    assert_eq!(month.resets_at.as_deref(), Some("2026-12-01T00:00:00Z"));
    // Four fifths in 17 days, so that the last one lasts a quarter as long.
    assert_eq!(month.empty_at.as_deref(), Some("2026-11-22T06:00:00Z"));
    assert_eq!(month.alert_percent, Some(80));
    assert_eq!((good.spent.as_str(), good.left.as_str(), good.alert_percent), ("1", "9", None));
    assert_eq!((&good.began_at, &good.resets_at, &good.empty_at), (&None, &None, &None));
    let ready = &shown.conditions[0];
    assert_eq!((ready.type_.as_str(), ready.status.as_str()), ("Ready", "True"));
    assert_eq!(ready.observed_generation, Some(7));
}

#[test]
fn what_lasts_is_not_said_to_end_and_what_is_nearest_its_end_is_first() {
    let shown = status(5_000, 9);
    assert_eq!(shown.budgets[0].name, "good");
    assert_eq!((&shown.budgets[1].empty_at, shown.budgets[1].alert_percent), (&None, Some(50)));
    // More than all may be spent by what an engine wrote until it heard that it is over.
    let shown = status(10_001, 0);
    assert_eq!((shown.budgets[0].left.as_str(), &shown.budgets[0].empty_at), ("0.00", &None));
    assert_eq!(
        (shown.budgets[0].spent.as_str(), shown.budgets[0].alert_percent),
        ("100.01", Some(100))
    );
}

const PATTERNS: &[&str] = &["a", "b", "aa", "ab", "ba", "*", "a*", "b*", "aa*", "ab*", "ba*"];
const NAMES: [&str; 10] = ["a", "b", "c", "aa", "ab", "ba", "aab", "abb", "bab", "cab"];

/// Whom following `parents` comes to, the top first; `None` if there is none.
fn walked(parents: &[Option<usize>], from: usize) -> Option<Vec<usize>> {
    let mut path = vec![from];
    while let Some(parent) = parents[path[path.len() - 1]] {
        if parent >= parents.len() || path.len() > parents.len() {
            return None;
        }
        path.push(parent);
    }
    path.reverse();
    Some(path)
}

/// Whether following `parents` comes back.
fn comes_back(parents: &[Option<usize>], from: usize) -> bool {
    let mut at = from;
    for _ in parents {
        match parents[at] {
            Some(parent) if parent < parents.len() => at = parent,
            _ => return false,
        }
        if at == from {
            return true;
        }
    }
    false
}

proptest! {
    #[test]
    fn a_model_is_allowed_if_every_level_allows_it(
        levels in prop::collection::vec(prop::collection::vec(prop::sample::select(PATTERNS), 1..5), 1..=MAX_DEPTH)
    ) {
        let tenants: Vec<Tenant> = levels.iter().enumerate().map(|(index, models)| {
            let mut spec = json!({ "models": models });
            if index > 0 {
                spec["parent"] = json!(format!("t{}", index - 1));
            }
            tenant("ml", &format!("t{index}"), &spec)
        }).collect();
        let all = resolve(&tenants);
        for depth in 0..levels.len() {
            let access = all[&id(&format!("t{depth}"))].access.as_ref().unwrap();
            for name in NAMES {
                let by_level = |models: &Vec<&str>| models.iter().any(|pattern| {
                    pattern.strip_suffix('*').map_or(*pattern == name, |begin| name.starts_with(begin))
                });
                prop_assert_eq!(access.allows(name), levels[..=depth].iter().all(by_level), "{}", name);
            }
            let texts: Vec<String> = access.models.iter().map(ToString::to_string).collect();
            for (one, other) in texts.iter().flat_map(|one| texts.iter().map(move |other| (one, other))) {
                let stands_for = other.strip_suffix('*').is_some_and(|begin| one.starts_with(begin));
                prop_assert!(one == other || !stands_for, "{:?}", texts);
            }
        }
    }

    #[test]
    fn who_is_let_in_stands_on_a_top(
        parents in prop::collection::vec(prop::option::weighted(0.8, 0_usize..9), 1..8)
    ) {
        let name = |index: usize| format!("t{index}");
        let tenants: Vec<Tenant> = parents.iter().enumerate().map(|(index, parent)| match parent {
            Some(parent) => below(&name(index), &name(*parent)),
            None => with(&name(index), &json!({})),
        }).collect();
        let all = resolve(&tenants);
        prop_assert_eq!(all.len(), tenants.len());
        for index in 0..parents.len() {
            let one = &all[&id(&name(index))];
            let path = walked(&parents, index).filter(|path| path.len() <= MAX_DEPTH);
            let path = path.map(|path| {
                path.iter().fold("ml".to_owned(), |path, at| format!("{path}/{}", name(*at)))
            });
            let resolved = one.access.as_ref().map(|access| access.path.to_string());
            prop_assert_eq!(&resolved, &path);
            prop_assert_eq!(reasons(one).is_empty(), path.is_some());
            let circle = reasons(one) == [Reason::TenantParentCycle];
            prop_assert_eq!(circle, comes_back(&parents, index));
        }
    }

    #[test]
    fn a_key_is_let_in_if_no_other_has_its_id_or_its_hash(
        keys in prop::collection::vec((0_usize..4, 0_u32..12, 0_u32..12), 1..10)
    ) {
        let tenants: Vec<Tenant> = (0..4).map(|tenant_index| {
            let own = keys.iter().enumerate().filter(|(_, (owner, _, _))| *owner == tenant_index);
            let own: Vec<Value> =
                own.map(|(at, (_, id, hash))| key(&format!("k{at}"), *id, *hash)).collect();
            let namespace = ["ml", "other"][tenant_index % 2];
            tenant(namespace, &format!("t{tenant_index}"), &json!({ "models": ["*"], "keys": own }))
        }).collect();
        let all = resolve(&tenants);
        let accepted: Vec<&str> = all.values().flat_map(|one| &one.access.as_ref().unwrap().keys)
            .map(|key| key.name.as_str()).collect();
        for (at, (_, id, hash)) in keys.iter().enumerate() {
            let alone = keys.iter().enumerate().all(|(other, (_, other_id, other_hash))| {
                other == at || (other_id != id && other_hash != hash)
            });
            prop_assert_eq!(accepted.contains(&format!("k{at}").as_str()), alone, "{}", at);
        }
        let refused: usize = all.values().map(|one| one.refused_keys).sum();
        prop_assert_eq!(refused + accepted.len(), keys.len());
    }

    #[test]
    fn whatever_is_written_somebody_says_why(spec in any_spec()) {
        let all = resolve([&tenant("ml", "t", &spec)]);
        let one = &all[&id("t")];
        let condition = one.ready();
        prop_assert_eq!(condition.so, Some(one.problems.first().is_empty()));
        prop_assert!(one.problems.first().len() <= MAX_PROBLEMS);
        prop_assert_eq!(one.access.is_none(), reasons(one).contains(&Reason::SpecRefused));
    }
}

/// Specs that keep to the types and to nothing else of the schema.
fn any_spec() -> impl Strategy<Value = Value> {
    let word =
        prop::sample::select(vec!["", "a", "a*b", "*", "2026-11-18T10:00:00Z", "-1", "1.5", "é"]);
    let words = prop::collection::vec(word, 6);
    (words, any::<i64>(), any::<i32>(), 0_usize..3).prop_map(|(words, number, small, count)| {
        let key = json!({ "name": words[0], "id": words[1], "sha256": words[2], "expires": words[3] });
        let budget = json!({ "name": words[4], "amount": words[5], "period": "Day", "alertPercents": [small] });
        json!({
            "models": [words[0]], "weight": small, "limits": { "concurrency": number },
            "keys": vec![key; count], "budgets": vec![budget; count],
        })
    })
}
