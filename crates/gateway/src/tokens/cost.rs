//! What it costs to find out who shows a token. Not part of a usual run: it needs an optimised build and a quiet machine.
//! `cargo test --release -p flyball-gateway --lib -- --ignored --nocapture tokens::cost`

use super::sources::{FetchedKeySet, KeySources};
use super::tests::{CLUSTER, cluster};
use super::{ShownToken, Tokens};
use crate::identify::{digest, shown_in};
use crate::settings::TenantsSettings;
use crate::tenants::{TenantReading, TenantTable};
use flyball_core::units::Timestamp;
use flyball_identity::testing::TestKey;
use flyball_resources::Tenant;
use http::HeaderMap;
use serde_json::json;
use std::time::{Duration, Instant};

/// The bar of a token that was seen: SHA-256 over a kilobyte, and a look.
const BUDGET: Duration = Duration::from_micros(5);

const TOKENS: u32 = 10_000;

/// Bytes of a claim that make a token as long as that of a pod's service account.
const FILL: usize = 400;

#[test]
#[ignore = "measures time: needs an optimised build"]
#[expect(clippy::print_stdout, reason = "the figure is what this is for")]
fn who_shows_a_token_that_was_seen_is_found_in_microseconds() {
    let (key, now) = (TestKey::new("k"), Timestamp::from_millis(1_800_000_000_000));
    let mut sources = KeySources::new(&[cluster()]);
    let set = FetchedKeySet { issuer: Some(CLUSTER.to_owned()), body: key.set(&[]).into() };
    sources.take(0, Ok(set), now);
    let issuers = vec![cluster()];
    let tokens =
        Tokens::new(&TenantsSettings { watch: true, issuers, ..TenantsSettings::default() });
    tokens.know(sources.verifier(), true);
    let tenant: Tenant = serde_json::from_value(json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "Tenant",
        "metadata": { "namespace": "ml", "name": "a" },
        "spec": { "models": ["*"], "members": [
            { "issuer": "kubernetes", "serviceAccounts": [{ "namespace": "ml", "name": "*" }] },
        ] },
    }))
    .unwrap();
    let readings = [("ml/a".to_owned(), TenantReading::of(&tenant))].into();
    let (table, _) = TenantTable::of(&readings, &TenantTable::default());
    let shown: Vec<HeaderMap> = (0..TOKENS)
        .map(|number| {
            let sub = format!("system:serviceaccount:ml:a{number}");
            let claims = json!({
                "iss": CLUSTER, "sub": sub, "aud": ["flyball"], "exp": 1_800_003_600,
                "kubernetes.io": "x".repeat(FILL),
            });
            let value = format!("Bearer {}", key.token(&claims)).parse().unwrap();
            HeaderMap::from_iter([(http::header::AUTHORIZATION, value)])
        })
        .collect();
    let bytes = shown[0][http::header::AUTHORIZATION].len();
    let pass = || {
        let began = Instant::now();
        let found = shown.iter().filter(|headers| {
            let shown = shown_in(headers, tokens.is_on()).expect("a token");
            let token = ShownToken::new(shown, digest(shown), headers);
            tokens.takes(shown) && tokens.caller(&token, &table, now).is_ok()
        });
        assert_eq!(found.count(), shown.len());
        began.elapsed() / TOKENS
    };
    let (cold, seen) = (pass(), pass());
    println!("a token of {bytes} bytes: {cold:?} when it is verified, {seen:?} when it was seen");
    assert!(seen < BUDGET, "{seen:?}");
}
