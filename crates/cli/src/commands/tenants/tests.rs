use serde_json::{Value, json};

use super::*;
use crate::output::{answer_json, answer_table, conforms};

fn tenant(name: &str, status: Value) -> Tenant {
    let whole = json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "Tenant",
        "metadata": { "name": name, "namespace": "ml", "generation": 2 },
        "spec": {
            "models": ["llama-*", "qwen3-8b", "a", "b", "c", "d"],
            "keys": [{ "name": "app", "id": "aaaaaaaaaa", "sha256": "" }],
            "budgets": [
                { "name": "month", "amount": "250", "period": "Month" },
                { "name": "day", "tokens": 1_000_000, "period": "Day" },
            ],
        },
        "status": status,
    });
    serde_json::from_value(whole).unwrap()
}

fn status(generation: i64, ready: &str) -> Value {
    json!({
        "observedGeneration": generation, "path": "ml/org/search",
        "keys": { "valid": 1, "pending": 0, "expired": 0, "disabled": 0, "refused": 0 },
        "budgets": [{ "name": "month", "spent": "12.40", "left": "237.60" }],
        "conditions": [{
            "type": "Ready", "status": ready, "reason": "TenantAccepted", "message": "said so",
            "lastTransitionTime": "2026-11-15T14:02:10Z",
        }],
    })
}

#[test]
fn what_no_status_says_is_unknown_and_no_zero() {
    let all = [
        tenant("fine", status(2, "True")),
        tenant("refused", status(2, "False")),
        tenant("odd", status(2, "Unknown")),
        tenant("stale", status(1, "True")),
        tenant("new", Value::Null),
    ];
    let list = TenantList::of(&all);
    conforms("tenants", &answer_json(&list));
    insta::assert_snapshot!(answer_table(&list, Detail::Full));
    insta::assert_snapshot!(answer_table(&list, Detail::Problems));
    let of = |name: &str| list.tenants.iter().find(|one| one.tenant.ends_with(name)).unwrap();
    assert_eq!((of("new").valid_keys, of("new").keys), (None, 1));
    // Money that is spent is spent, whatever was edited since.
    let stale = of("stale");
    assert_eq!((stale.valid_keys, stale.ready, stale.path.as_deref()), (None, None, None));
    assert_eq!(stale.budgets[0].spent.as_deref(), Some("12.40"));
    assert_eq!(stale.budgets[1].spent, None);
}

#[test]
fn no_tenant_is_said_in_words() {
    assert_eq!(
        answer_table(&TenantList::of(&[]), Detail::Full),
        "0 tenants: 0 ready, 0 not ready, 0 unknown\n"
    );
}
