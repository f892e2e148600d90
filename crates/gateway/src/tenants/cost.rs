//! What it costs to find out who asks. Not part of a usual run: it needs an optimised build and a quiet machine.
//! `cargo xtask bench tenants --parts cost` starts it and reads what it says.

use super::{TenantReading, TenantReadings, TenantTable};
use crate::identify::{digest, shown_in};
use flyball_core::units::Timestamp;
use flyball_resources::Tenant;
use http::HeaderMap;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::time::{Duration, Instant};

/// What a request may cost is about 35 us; who asks may be this much of that, with 10^5 keys.
const BUDGET: Duration = Duration::from_micros(1);

const TENANTS: u32 = 1_563;
const KEYS: u32 = 64;

#[test]
#[ignore = "measures time: needs an optimised build"]
#[expect(clippy::print_stdout, reason = "the figure is what this is for")]
fn who_asks_is_found_among_a_hundred_thousand_keys_in_a_microsecond() {
    let readings: TenantReadings = (0..TENANTS).map(tenant).collect();
    let began = Instant::now();
    let (table, report) = TenantTable::of(&readings, &TenantTable::default());
    println!("{} keys: table made in {:?}", report.keys, began.elapsed());
    // Each key once, far from the one before: what a processor has at hand is of no use.
    let count = TENANTS * KEYS;
    let headers: Vec<HeaderMap> =
        (0..count).map(|n| header(&secret(n.wrapping_mul(7_919) % count))).collect();
    let now = Timestamp::from_millis(1_794_000_000_000);
    let began = Instant::now();
    let found = headers.iter().filter(|headers| {
        let key = shown_in(headers, true).and_then(|shown| table.get(&digest(shown)));
        key.is_some_and(|key| key.caller(now).is_ok())
    });
    assert_eq!(found.count(), headers.len());
    let each = began.elapsed() / count;
    println!("who asks among 100,032 keys, us: {:.3}", each.as_secs_f64() * 1e6);
    assert!(each < BUDGET, "{each:?}");
}

fn tenant(tenant: u32) -> (String, TenantReading) {
    let key = |n: u32| {
        let number = KEYS * tenant + n;
        let sha256: String =
            Sha256::digest(secret(number)).iter().map(|byte| format!("{byte:02x}")).collect();
        json!({ "name": format!("k{n}"), "id": format!("{number:010}"), "sha256": sha256 })
    };
    let object = json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "Tenant",
        "metadata": { "namespace": "ml", "name": format!("t{tenant}") },
        "spec": { "models": ["*"], "keys": (0..KEYS).map(key).collect::<Vec<Value>>() },
    });
    let read: Tenant = serde_json::from_value(object).unwrap();
    (format!("ml/t{tenant}"), TenantReading::of(&read))
}

/// As long as a key that is made by `flyball key create`.
fn secret(number: u32) -> String {
    format!("sk-fly-{number:010}_{number:043}_000000")
}

fn header(secret: &str) -> HeaderMap {
    let value = format!("Bearer {secret}").parse().unwrap();
    HeaderMap::from_iter([(http::header::AUTHORIZATION, value)])
}
