//! When an engine has started, serves, and must be started again.
//!
//! All three ask the path that its table names, `/health` so far. vLLM's is answered by its API server: 503 once its engine is dead, and 200 when
//! that hangs, which only gateways see. SGLang's writes a token and never answers in less than a second, so
//! that Kubernetes' own timeout of one second fails it always. llama-server says 503 until its model is
//! loaded. A busy engine of any kind may be slow to answer: nothing here acts on a few slow answers.

use crate::observe::END_SECONDS;
use flyball_resources::model_service::{EngineSpec, VariantSpec};
use serde_json::{Value, json};

/// A start that nobody stated a length of.
const UNSTATED_SECONDS: i32 = 3_600;

/// No start gets less: to begin anew costs all that was loaded.
const SHORTEST_SECONDS: i32 = 1_800;

/// A start may take so many times what is stated.
const PATIENCE: i32 = 4;

/// How often it is looked whether a start is over: what it takes longer is lost to waiting requests.
const STARTS_EVERY: i32 = 2;

/// For one answer.
const TIMEOUT: i32 = 10;

/// The probes of an engine's container.
///
/// An engine that a probe ends answers nobody, so that it gets no time to drain.
/// The length of a start is the stated one: the learnt one moves with every start, and would move the pod
/// template with it, which starts every engine anew.
pub(super) fn probes(variant: &VariantSpec, engine: &EngineSpec) -> Value {
    let ask = json!({ "path": engine.kind.facts().health, "port": engine.port });
    let stated = variant.cold_start_seconds.map(|stated| stated.saturating_mul(PATIENCE));
    let patience = stated.unwrap_or(UNSTATED_SECONDS).max(SHORTEST_SECONDS);
    json!({
        "startupProbe": {
            "httpGet": ask,
            "periodSeconds": STARTS_EVERY,
            "timeoutSeconds": TIMEOUT,
            "failureThreshold": patience / STARTS_EVERY,
            "terminationGracePeriodSeconds": END_SECONDS,
        },
        "readinessProbe": {
            "httpGet": ask,
            "periodSeconds": 2,
            "timeoutSeconds": TIMEOUT,
            "failureThreshold": 3,
        },
        "livenessProbe": {
            "httpGet": ask,
            "periodSeconds": 10,
            "timeoutSeconds": TIMEOUT,
            "failureThreshold": 6,
            "terminationGracePeriodSeconds": END_SECONDS,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(cold_start_seconds: Option<i32>) -> Value {
        let variant = json!({
            "coldStartSeconds": cold_start_seconds, "engine": {"kind": "SGLang", "image": "i"},
        });
        let variant: VariantSpec = serde_json::from_value(variant).unwrap();
        probes(&variant, variant.engine.as_ref().unwrap())
    }

    /// Seconds after which a probe acts, if every answer takes longer than it waits.
    fn acts_after(probe: &Value) -> i64 {
        let number = |field: &str| probe[field].as_i64().unwrap();
        number("failureThreshold") * number("periodSeconds")
    }

    #[test]
    fn a_start_gets_several_times_what_is_stated_and_never_less_than_half_an_hour() {
        for (stated, least) in [(None, 3_600), (Some(30), 1_800), (Some(1_200), 4_800)] {
            let patience = acts_after(&made(stated)["startupProbe"]);
            assert_eq!(patience, least, "{stated:?}");
        }
    }

    #[test]
    fn a_busy_engine_is_not_ended_and_a_slow_answer_is_an_answer() {
        let made = made(None);
        assert!(acts_after(&made["livenessProbe"]) >= 60);
        for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
            // SGLang sleeps for a second before it answers; Kubernetes waits for one if nothing is said.
            assert!(made[probe]["timeoutSeconds"].as_i64().unwrap() > 5, "{probe}");
        }
    }
}
