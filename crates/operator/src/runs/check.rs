//! Answers to AdmissionChecks of Kueue whose controller is Flyball: whether a Workload that has its quota may start. Pure.
//!
//! A run that is to wait stays Pending with the reason, and is answered with Retry after a while, so that others get its quota;
//! Kueue asks again at once. What was admitted is never answered again: Retry would evict it, and no step is stopped in the middle. Workloads of which no TrainingRun speaks may
//! start.

use super::RunKey;
use super::gate::RunGate;
use super::kueue::{KueueWorkload, condition, is_owned, list, since};
use crate::observe::{GangKey, JobObjects};
use flyball_core::units::{Micros, Timestamp};
use flyball_resources::rfc3339;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The name by which an AdmissionCheck names Flyball.
pub const CONTROLLER: &str = "flyball.dev/runs";

/// A Workload that is held back has its quota for so long before others may have it. `requeueAfterSeconds` is not used: Kueue 0.19
/// keeps the quota until that is over.
const KEPT: Micros = Micros::from_seconds(30);

/// What is answered.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckAnswer {
    /// Namespace and name of the Workload.
    pub workload: RunKey,
    /// Its version when it was read: an answer to what has changed meanwhile must not count.
    resource_version: Option<String>,
    check: String,
    state: &'static str,
    message: String,
    /// When it came into that state, if it stays in it.
    since: Option<String>,
}

/// AdmissionChecks that are Flyball's, by name, and whether each says that somebody answers.
pub fn own_checks(all: &JobObjects) -> BTreeMap<String, bool> {
    let ours = all.values().filter(|one| one.data["spec"]["controllerName"] == CONTROLLER);
    let active = |one: &DynamicObject| condition(&one.data["status"], "Active").is_some();
    ours.map(|one| (one.name_any(), active(one))).collect()
}

/// What to answer to Workloads that have quota and wait for one of these checks. `gates` are all runs, by the object that
/// Kueue admits; `None` of one that was not looked at yet, which waits.
pub fn answers(
    checks: &BTreeSet<String>,
    workloads: &JobObjects,
    gates: &BTreeMap<GangKey, Option<RunGate>>,
    now: Timestamp,
) -> Vec<CheckAnswer> {
    let mut all = Vec::new();
    for (key, object) in workloads {
        let workload = KueueWorkload::of(object);
        if !workload.reserved || workload.admitted || workload.finished || workload.inactive {
            continue;
        }
        let asked = list(&object.data["status"]["admissionChecks"]).iter().filter(|one| {
            let is_ours = one["name"].as_str().is_some_and(|name| checks.contains(name));
            is_ours && one["state"] == "Pending"
        });
        for check in asked {
            let Some((state, message)) = answer(&gate_of(&key.0, object, gates), check, now) else {
                continue;
            };
            let since = check["lastTransitionTime"].as_str().filter(|_| state == "Pending");
            all.push(CheckAnswer {
                workload: key.clone(),
                resource_version: object.resource_version(),
                check: check["name"].as_str().unwrap_or_default().to_owned(),
                state,
                message,
                since: since.map(str::to_owned),
            });
        }
    }
    all
}

enum GateOf<'a> {
    Nobodys,
    Unseen,
    Run(&'a RunGate),
}

fn gate_of<'a>(
    namespace: &str,
    workload: &DynamicObject,
    gates: &'a BTreeMap<GangKey, Option<RunGate>>,
) -> GateOf<'a> {
    // One run that may not start is enough.
    let mut found = GateOf::Nobodys;
    for ((of, kind, name), gate) in gates {
        if of == namespace && is_owned(workload, *kind, name) {
            match gate {
                Some(gate @ RunGate::Shut(_)) => return GateOf::Run(gate),
                Some(gate) => found = GateOf::Run(gate),
                None => return GateOf::Unseen,
            }
        }
    }
    found
}

fn answer(gate: &GateOf<'_>, check: &Value, now: Timestamp) -> Option<(&'static str, String)> {
    match gate {
        GateOf::Unseen => None,
        GateOf::Nobodys => Some(("Ready", "no TrainingRun is about it".to_owned())),
        GateOf::Run(RunGate::Open(why)) => Some(("Ready", why.clone())),
        GateOf::Run(RunGate::Shut(why)) => {
            let kept = since(check).and_then(|since| now.since(since));
            match kept.is_some_and(|kept| kept >= KEPT) {
                true => Some(("Retry", why.clone())),
                false => (check["message"] != why.as_str()).then(|| ("Pending", why.clone())),
            }
        }
    }
}

impl CheckAnswer {
    /// As it is written into the status of the Workload, in this version of Kueue's API.
    pub fn patch(&self, api_version: &str, now: Timestamp) -> Value {
        let state = json!({
            "name": self.check,
            "state": self.state,
            "message": self.message,
            "lastTransitionTime": self.since.clone().unwrap_or_else(|| to_the_second(now)),
        });
        json!({
            "apiVersion": api_version,
            "kind": "Workload",
            "metadata": {
                "name": self.workload.1,
                "namespace": self.workload.0,
                "resourceVersion": self.resource_version,
            },
            "status": { "admissionChecks": [state] },
        })
    }
}

/// That somebody answers, as it is written into the status of an AdmissionCheck.
pub fn active(name: &str, api_version: &str, now: Timestamp) -> Value {
    json!({
        "apiVersion": api_version,
        "kind": "AdmissionCheck",
        "metadata": { "name": name },
        "status": { "conditions": [{
            "type": "Active",
            "status": "True",
            "reason": "Active",
            "message": "Flyball answers for training runs",
            "lastTransitionTime": to_the_second(now),
        }] },
    })
}

fn to_the_second(at: Timestamp) -> String {
    rfc3339(Timestamp::from_millis(at.as_millis() / 1_000 * 1_000))
}
