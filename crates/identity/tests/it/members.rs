//! Which tenants a token belongs to.

use super::signer::{CLUSTER, ISS, OTHER_ISS, claims, header, now, token, verifier};
use flyball_identity::{
    IssuerProblem, MAX_CHOICES, MemberRule, MemberRules, Membership, TokenVerifier, TrustedIssuer,
    VerifiedToken,
};
use serde_json::{Value, json};

/// A token of an issuer with some more claims.
fn shown(iss: &str, more: Value) -> VerifiedToken {
    let mut claims = claims();
    claims["iss"] = iss.into();
    for (name, value) in more.as_object().expect("an object") {
        claims[name] = value.clone();
    }
    let token = token(header("EdDSA", "ed"), claims);
    verifier().verify(token.as_bytes(), now()).expect("a token")
}

fn claim(issuer: &str, all: &[(&str, &[&str])]) -> MemberRule {
    let claims = all.iter().map(|(name, values)| {
        ((*name).to_owned(), values.iter().map(|value| (*value).to_owned()).collect())
    });
    MemberRule::Claims { issuer: issuer.to_owned(), claims: claims.collect() }
}

fn account(namespace: &str, name: &str) -> MemberRule {
    MemberRule::ServiceAccount { namespace: namespace.to_owned(), name: name.to_owned() }
}

fn tenants(rules: &[(&'static str, MemberRule)], token: &VerifiedToken) -> Vec<&'static str> {
    MemberRules::new(rules.to_vec()).tenants(token).into_iter().copied().collect()
}

#[test]
fn a_claim_is_one_of_the_values_or_a_list_with_one_of_them() {
    let rules = [("a", claim(ISS, &[("groups", &["ml-a", "ml-b"])]))];
    let belongs =
        |groups: Value| !tenants(&rules, &shown(ISS, json!({ "groups": groups }))).is_empty();
    for yes in [json!("ml-a"), json!("ml-b"), json!(["x", "ml-b"]), json!([1, "ml-a"])] {
        assert!(belongs(yes.clone()), "{yes}");
    }
    let no = [
        json!("ml"),
        json!("ml-a ml-b"),
        json!("ML-A"),
        json!(["ml-c"]),
        json!([["ml-a"]]),
        json!([]),
        json!(null),
        json!({ "ml-a": "ml-a" }),
        json!(1),
        json!(true),
        json!("ml-a\u{0}"),
        json!(" ml-a"),
    ];
    for no in no {
        assert!(!belongs(no.clone()), "{no}");
    }
}

#[test]
fn all_claims_of_a_rule_must_fit_and_any_rule_of_a_tenant() {
    let rules = [
        ("a", claim(ISS, &[("groups", &["ml"]), ("env", &["prod"])])),
        ("a", claim(ISS, &[("sub", &["u-9"])])),
    ];
    let belongs = |more: Value| tenants(&rules, &shown(ISS, more)) == ["a"];
    assert!(belongs(json!({ "groups": ["ml"], "env": "prod" })));
    assert!(belongs(json!({ "sub": "u-9" })));
    assert!(!belongs(json!({ "groups": ["ml"] })));
    assert!(!belongs(json!({ "env": "prod" })));
    assert!(!belongs(json!({ "groups": ["ml"], "env": "test" })));
}

#[test]
fn a_claim_of_another_issuer_is_nobodys() {
    let rules = [("a", claim(OTHER_ISS, &[("groups", &["ml"])]))];
    assert!(tenants(&rules, &shown(ISS, json!({ "groups": "ml" }))).is_empty());
}

#[test]
fn a_rule_that_says_nothing_lets_in_nobody() {
    let rules = [("a", claim(ISS, &[])), ("b", claim(ISS, &[("groups", &[])]))];
    assert!(tenants(&rules, &shown(ISS, json!({ "groups": [] }))).is_empty());
    assert!(tenants(&rules, &shown(ISS, json!({}))).is_empty());
}

#[test]
fn service_accounts_are_named_or_all_of_a_namespace() {
    let rules = [("one", account("ml", "nightly")), ("all", account("jobs", "*"))];
    let of = |iss: &str, subject: &str| tenants(&rules, &shown(iss, json!({ "sub": subject })));
    assert_eq!(of(CLUSTER, "system:serviceaccount:ml:nightly"), ["one"]);
    assert_eq!(of(CLUSTER, "system:serviceaccount:jobs:any"), ["all"]);
    let nobody = [
        "system:serviceaccount:ml:daily",
        "system:serviceaccount:other:nightly",
        "system:serviceaccount:jobs:",
        "system:serviceaccount::any",
        "system:serviceaccount:jobs",
        "system:serviceaccount:jobs:a:b",
        "system:serviceaccount:ml:*",
        "system:node:jobs:any",
        "SYSTEM:serviceaccount:jobs:any",
        "x system:serviceaccount:jobs:any",
    ];
    for subject in nobody {
        assert!(of(CLUSTER, subject).is_empty(), "{subject}");
    }
    // Whoever else may write such a subject is no account of this cluster.
    assert!(of(ISS, "system:serviceaccount:ml:nightly").is_empty());
}

#[test]
fn claims_of_the_clusters_own_tokens_make_nobody_a_member() {
    let rules = [("a", claim(CLUSTER, &[("groups", &["ml"])]))];
    for subject in ["system:serviceaccount:ml:x", "somebody"] {
        let token = shown(CLUSTER, json!({ "sub": subject, "groups": "ml" }));
        assert!(tenants(&rules, &token).is_empty(), "{subject}");
    }
}

#[test]
fn of_several_tenants_the_caller_names_one() {
    let rules = MemberRules::new([
        ("a", claim(ISS, &[("groups", &["x"])])),
        ("b", claim(ISS, &[("groups", &["x", "y"])])),
        ("c", claim(ISS, &[("groups", &["z"])])),
    ]);
    let choose = |groups: Value, named: Option<&'static str>| {
        rules.choose(&shown(ISS, json!({ "groups": groups })), named.as_ref())
    };
    assert_eq!(choose(json!("y"), None), Membership::Of("b"));
    assert_eq!(choose(json!("y"), Some("b")), Membership::Of("b"));
    assert_eq!(choose(json!("x"), None), Membership::Several(vec!["a", "b"]));
    assert_eq!(choose(json!("x"), Some("a")), Membership::Of("a"));
    assert_eq!(choose(json!("x"), Some("c")), Membership::NotThere);
    assert_eq!(choose(json!("y"), Some("a")), Membership::NotThere);
    assert_eq!(choose(json!("none"), None), Membership::Nobody);
    // Who belongs nowhere learns nothing about which tenants there are.
    assert_eq!(choose(json!("none"), Some("a")), Membership::Nobody);
    assert_eq!(choose(json!(["x", "y", "x"]), None), Membership::Several(vec!["a", "b"]));
}

#[test]
fn a_choice_is_never_longer_than_somebody_reads() {
    let rules =
        MemberRules::new((0..1_000).map(|tenant| (tenant, claim(ISS, &[("groups", &["x"])]))));
    let token = shown(ISS, json!({ "groups": "x" }));
    assert_eq!(rules.choose(&token, None), Membership::Several((0..MAX_CHOICES).collect()));
    assert_eq!(rules.choose(&token, Some(&999)), Membership::Of(999));
}

#[test]
fn issuers_of_the_settings_that_contradict_each_other_are_refused() {
    let issuer = |iss: &str, audience: &str, kubernetes| TrustedIssuer {
        iss: iss.into(),
        audience: audience.into(),
        kubernetes,
    };
    let problem = |all: Vec<TrustedIssuer>| TokenVerifier::new(all).err();
    let twice = problem(vec![issuer(ISS, "a", false), issuer(ISS, "b", true)]);
    assert_eq!(twice, Some(IssuerProblem::Twice(ISS.into())));
    let clusters = problem(vec![issuer(ISS, "a", true), issuer(CLUSTER, "a", true)]);
    assert_eq!(clusters, Some(IssuerProblem::TwoClusters));
    assert_eq!(problem(vec![issuer(ISS, "", false)]), Some(IssuerProblem::Empty));
    assert_eq!(problem(vec![issuer("", "a", false)]), Some(IssuerProblem::Empty));
    assert_eq!(problem(vec![]), None);
}
