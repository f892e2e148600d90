use flyball_resources::ModelService;
use serde_json::{Value, json};

use super::answer::Waiting;
use super::*;
use crate::output::{Answer as _, Charset, Detail, answer_json, answer_table, conforms};
use crate::text::width;

const NOW: &str = "2026-11-15T14:05:30Z";

#[test]
fn a_prefix_says_that_a_tenant_or_a_run_is_meant() {
    assert_eq!(tenant_or_run("tenant/ml/search"), [Some("ml/search"), None]);
    assert_eq!(tenant_or_run("run/ml/ft"), [None, Some("ml/ft")]);
    assert_eq!(tenant_or_run("ml/search"), [None, None]);
}

fn now() -> jiff::Timestamp {
    NOW.parse().unwrap()
}

fn span(low: i64, point: i64, high: i64, origin: &str) -> Value {
    json!({"low": low, "point": point, "high": high, "origin": origin})
}

fn receipt() -> Value {
    json!({
        "id": "1794769207359128-0", "at": "2026-11-15T14:02:10Z", "reason": "Forecast",
        "bound": "LookAhead", "message": "It needs 3.9 replicas now; 4 replicas are ready.",
        "candidates": [
            {"bound": "NeedNow", "replicas": 4}, {"bound": "LookAhead", "replicas": 6},
            {"bound": "Calendar", "replicas": 2},
        ],
        "signals": [
            {"signal": "Prefill", "freshness": "Fresh"}, {"signal": "Decode", "freshness": "Fresh"},
            {"signal": "Resident", "freshness": "Fresh"}, {"signal": "Backlog", "freshness": "Fresh"},
        ],
        "hpaWouldWant": 4,
        "law": {
            "name": "forecast@0.3", "since": "2026-11-15T12:00:00Z", "replayedHours": "48.0",
            "tried": [
                {"name": "forecast", "replicaHours": "211.40", "missedPercent": "0.12"},
                {"name": "forecast@0.3", "replicaHours": "198.02", "missedPercent": "0.61"},
                {"name": "hpa-rate@70%", "replicaHours": "240.75", "missedPercent": "0.00"},
            ],
        },
        "expectedHourlyMisses": span(120, 390, 800, "Forecast"),
    })
}

fn status() -> Value {
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": "2026-11-15T14:02:10Z",
        })
    };
    json!({
        "observedGeneration": 1, "replicas": 6, "readyReplicas": 4, "recommendedReplicas": 6,
        "attainmentPercent": "98.7", "hourlyCost": "27.52", "recommendedHourlyCost": "41.28",
        "currency": "USD",
        "forecast": {
            "needNow": "3.90", "lookAhead": "5.10", "quantilePercent": "95.0", "horizonSeconds": 420,
        },
        "variants": [{
            "name": "main", "recommended": 6, "since": "2026-11-15T14:02:10Z", "pending": 2,
            "starting": 0, "ready": 4, "draining": 0, "startsMeasured": 12,
            "prefillTokensPerSecond": span(16_913, 18_792, 20_671, "Modelled"),
            "decodeTokensPerSecond": span(5_074, 5_638, 6_202, "Modelled"),
            "coldStartSeconds": span(180, 240, 400, "Measured"),
        }],
        "decision": receipt(),
        "conditions": [
            condition("Ready", "True", "Forecast", "4 replicas are ready"),
            condition("CapacityAvailable", "False", "CapacityUnavailable",
                "More replicas are needed, and no pool has free accelerators."),
            condition("Reconciling", "True", "Forecast", "4 of 6 replicas are ready"),
        ],
    })
}

fn model(spec: Value, status: Option<Value>) -> ModelService {
    let mut whole = json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "ModelService",
        "metadata": {"name": "qwen3-32b", "namespace": "team-a", "generation": 1},
        "spec": {
            "scaling": spec,
            "variants": [{"targetRef": {"kind": "Deployment", "name": "qwen3-32b"}}],
        },
    });
    if let Some(status) = status {
        whole["status"] = status;
    }
    serde_json::from_value(whole).unwrap()
}

fn growing() -> Why {
    let model = model(json!({"mode": "Act", "min": 2, "max": 8}), Some(status()));
    let pod = |pod: &str, since: &str| Waiting {
        pod: pod.to_owned(),
        state: "Pending".to_owned(),
        since: since.to_owned(),
        why: Some("0/6 nodes are available: 6 Insufficient nvidia.com/gpu".to_owned()),
    };
    let mut why = Why::of(&model, now());
    why.waiting =
        vec![pod("qwen-1", "2026-11-15T14:02:12Z"), pod("qwen-2", "2026-11-15T14:02:14Z")];
    why
}

fn entry(at: &str, from: Option<i32>, to: i32) -> Entry {
    let mut receipt = receipt();
    receipt["at"] = at.into();
    let entry = json!({
        "model": "team-a/qwen3-32b", "from": from, "to": to, "ready": 4, "mode": "Act",
        "receipt": receipt,
    });
    serde_json::from_value(entry).unwrap()
}

fn shown(why: &Why) -> String {
    conforms("why", &answer_json(why));
    let text = answer_table(why, Detail::Full);
    assert!(text.lines().all(|line| width(line) <= 100), "{text}");
    text
}

#[test]
fn a_model_that_waits_for_capacity() {
    insta::assert_snapshot!("growing", shown(&growing()));
    insta::assert_snapshot!("growing_json", answer_json(&growing()));
    insta::assert_snapshot!("growing_markdown", growing().view(Detail::Full).markdown());
    let ascii =
        growing().view(Detail::Full).terminal(Charset::Ascii, crate::text::WIDTH).into_string();
    assert!(ascii.is_ascii(), "{ascii}");
    let flat = Why { flat: true, ..growing() };
    insta::assert_snapshot!("growing_flat", answer_table(&flat, Detail::Full));
}

#[test]
fn what_waits_may_be_unknown() {
    let unknown = "pods is forbidden: User \"jane\" cannot list resource \"pods\"".to_owned();
    let why = Why { waiting: Vec::new(), waiting_unknown: Some(unknown), ..growing() };
    insta::assert_snapshot!(shown(&why));
}

#[test]
fn nothing_known_is_shown_as_unknown() {
    let never = model(json!({}), None);
    insta::assert_snapshot!("never_seen", shown(&Why::of(&never, now())));
    let mut bare = status();
    for known in ["forecast", "hourlyCost", "recommendedHourlyCost", "attainmentPercent"] {
        bare.as_object_mut().unwrap().remove(known);
    }
    for known in ["prefillTokensPerSecond", "decodeTokensPerSecond", "coldStartSeconds"] {
        bare["variants"][0].as_object_mut().unwrap().remove(known);
    }
    let decision = bare["decision"].as_object_mut().unwrap();
    decision.insert("reason".to_owned(), "SignalsMissing".into());
    decision.insert("bound".to_owned(), "Staleness".into());
    decision["signals"][0]["freshness"] = "Missing".into();
    decision["signals"][3]["freshness"] = "Stale".into();
    for known in ["candidates", "hpaWouldWant", "expectedHourlyMisses"] {
        decision.remove(known);
    }
    bare["conditions"] = json!([]);
    let why = Why::of(&model(json!({}), Some(bare)), now());
    let text = shown(&why);
    assert!(text.contains("mode") && text.contains("not applied"), "{text}");
    insta::assert_snapshot!("signals_missing", text);
}

#[test]
fn a_capacity_that_nobody_knows_is_not_taken_for_a_signal_in_doubt() {
    let winner = |reason: &str| {
        let mut held = status();
        held["decision"]["reason"] = reason.into();
        held["decision"]["bound"] = "Staleness".into();
        let text = shown(&Why::of(&model(json!({}), Some(held)), now()));
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let unknown = winner("CapacityUnknown");
    assert!(unknown.contains("winner Staleness the capacity of a replica is unknown"), "{unknown}");
    let stale = winner("SignalsStale");
    assert!(stale.contains("winner Staleness a stale or missing signal"), "{stale}");
}

#[test]
fn what_a_person_must_correct_stands_where_it_belongs() {
    let condition = |kind: &str, status: &str, reason: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": "set this and that",
            "lastTransitionTime": "2026-11-15T14:02:10Z",
        })
    };
    let mut cuts = status();
    cuts["readyReplicas"] = 6.into();
    cuts["conditions"] = json!([condition("DrainsSafely", "False", "DrainTooShort")]);
    let text = shown(&Why::of(&model(json!({"mode": "Act"}), Some(cuts)), now()));
    assert!(text.contains("├─ ready 6     as many as desired\n"), "{text}");
    assert!(text.contains("├─ drains      DrainTooShort"), "{text}");
    let refused = json!({ "conditions": [condition("Stalled", "True", "SpecRefused")] });
    let text = shown(&Why::of(&model(json!({}), Some(refused)), now()));
    assert!(text.contains("Stalled   SpecRefused  set this and that"), "{text}");
    assert!(
        text.contains("decision  none         nothing changes until that is corrected"),
        "{text}"
    );
}

#[test]
fn a_replica_that_failed_is_named() {
    let message = "pod qwen-3 on node gpu-7 does not start: CrashLoopBackOff, 9 restarts";
    let mut failed = status();
    failed["variants"][0]["failing"] = 1.into();
    failed["conditions"] = json!([{
        "type": "ReplicasHealthy", "status": "False", "reason": "ReplicaFailed", "message": message,
        "lastTransitionTime": "2026-11-15T14:02:10Z",
    }]);
    let mut why = Why::of(&model(json!({"mode": "Act"}), Some(failed)), now());
    let words = |why: &Why| shown(why).split_whitespace().collect::<Vec<_>>().join(" ");
    let text = words(&why);
    assert!(text.contains("ReplicasHealthy ReplicaFailed pod qwen-3 on node gpu-7"), "{text}");
    why.waiting_unknown = Some("forbidden".to_owned());
    assert!(words(&why).contains("0 draining, 1 failing"), "{}", words(&why));
}

#[test]
fn what_people_set_is_named() {
    let mut model = model(json!({"mode": "Act", "sleep": "WhenIdle"}), Some(status()));
    model.spec.replicas = Some(6);
    model.metadata.annotations = Some(
        [
            ("flyball.dev/frozen-until", "2026-11-15T16:00:00Z"),
            ("flyball.dev/frozen-because", "black friday"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into(),
    );
    let text = shown(&Why::of(&model, now()));
    let bounds = text.lines().skip_while(|line| !line.contains("bounds")).take(2);
    insta::assert_snapshot!(bounds.collect::<Vec<_>>().join("\n"));
    // What is over freezes nothing.
    let later = "2026-11-15T17:00:00Z".parse().unwrap();
    assert_eq!(Why::of(&model, later).bounds.unwrap().frozen_until, None);
}

#[test]
fn the_past_is_told_as_far_as_it_is_known() {
    let past = [
        entry("2026-11-15T13:00:00Z", None, 2),
        entry("2026-11-15T13:40:00Z", Some(2), 4),
        entry("2026-11-15T14:02:10Z", Some(4), 6),
    ];
    let at = |text: &str| held_at(&past, text.parse().unwrap(), now());
    assert_eq!(at("2026-11-15T13:59:00Z").unwrap().to, Some(4));
    assert_eq!(at("2026-11-15T12:00:00Z").unwrap_err().exit, Exit::Unknown);
    insta::assert_snapshot!("then", shown(&Why::then(&past[1], now())));
    let why = Why { earlier: past.to_vec(), ..growing() };
    let text = shown(&why);
    let table = text.split_once("\n\n").unwrap().1;
    insta::assert_snapshot!("earlier", table);
}
