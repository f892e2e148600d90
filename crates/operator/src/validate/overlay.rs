//! Which fields of a pod `podOverlay` may set: a list of what is allowed, because a list of what is not
//! would be out of date with the next release of Kubernetes. Pure.
//!
//! What stands here adds to the pod that Flyball makes and gives it no right that a plain pod of the same
//! namespace lacks. Program, arguments, image, port, probes' addresses and everything that draining rests on
//! belong to Flyball or to fields of `engine`. `standard` holds the result against Kubernetes' own standard,
//! without knowing this list. Decision 0037 says why each field is in or out.

use super::ValidationRules;
use flyball_resources::{ConversionProblem, labels};
use serde_json::{Map, Value};

/// The container that Flyball makes.
pub(crate) const ENGINE: &str = "engine";

/// Everything that is wrong with an overlay. `place` is where it stands.
pub(super) fn problems(
    place: &str,
    overlay: &Map<String, Value>,
    rules: &ValidationRules<'_>,
) -> Vec<ConversionProblem> {
    let mut judge = Judge { rules, problems: Vec::new() };
    judge.fields(place, overlay, TEMPLATE);
    judge.problems
}

/// What may stand at a place.
enum Shape {
    /// Whatever it is, it is harmless.
    Free,
    /// These fields and no others.
    Fields(&'static [(&'static str, Shape)]),
    /// A list of such.
    Each(&'static Shape),
    /// A list of objects with these fields, each with a name, by which they are merged.
    Named(&'static [(&'static str, Shape)]),
    /// What the function says nothing against.
    Judged(fn(&Value, &ValidationRules<'_>) -> Option<String>),
}

use Shape::{Each, Fields, Free, Judged, Named};

const TEMPLATE: &[(&str, Shape)] = &[
    (
        "metadata",
        Fields(&[
            ("annotations", Judged(|value, _| keys(value, FOREIGN))),
            ("labels", Judged(|value, _| keys(value, FOREIGN))),
        ]),
    ),
    ("spec", Fields(SPEC)),
];

const SPEC: &[(&str, Shape)] = &[
    // Where it runs, and before whom.
    ("affinity", Free),
    ("nodeSelector", Free),
    ("priorityClassName", Judged(|value, _| starts(value, "system-"))),
    ("runtimeClassName", Free),
    ("schedulerName", Free),
    ("tolerations", Free),
    ("topologySpreadConstraints", Free),
    // What it sees of the network.
    ("dnsConfig", Free),
    ("dnsPolicy", Free),
    ("enableServiceLinks", Free),
    ("hostAliases", Free),
    // Who it is.
    ("hostUsers", Judged(|value, _| only(value, &Value::Bool(false)))),
    ("imagePullSecrets", Free),
    ("securityContext", Fields(POD_USER)),
    ("serviceAccountName", Judged(account)),
    // What it runs and reads. Sidecars are `initContainers` with `restartPolicy: Always`: Kubernetes ends
    // them after the engine.
    ("containers", Named(ENGINE_CONTAINER)),
    ("initContainers", Named(OTHER_CONTAINER)),
    ("volumes", Named(VOLUME)),
];

const ENGINE_CONTAINER: &[(&str, Shape)] = &[
    ("name", Judged(|value, _| only(value, &Value::String(ENGINE.to_owned())))),
    ("env", Free),
    ("envFrom", Free),
    ("imagePullPolicy", Free),
    ("livenessProbe", Fields(PACE)),
    ("readinessProbe", Fields(PACE)),
    ("resources", Fields(RESOURCES)),
    ("securityContext", Fields(USER)),
    ("startupProbe", Fields(PACE)),
    ("volumeMounts", Free),
    ("workingDir", Free),
];

const OTHER_CONTAINER: &[(&str, Shape)] = &[
    ("name", Judged(not_the_engine)),
    ("args", Free),
    ("command", Free),
    ("env", Free),
    ("envFrom", Free),
    ("image", Free),
    ("imagePullPolicy", Free),
    ("ports", Each(&Fields(&[("containerPort", Free), ("name", Free), ("protocol", Free)]))),
    ("resources", Fields(RESOURCES)),
    ("restartPolicy", Free),
    ("securityContext", Fields(USER)),
    ("volumeMounts", Free),
    ("workingDir", Free),
];

/// How often and how patiently; not whom.
const PACE: &[(&str, Shape)] = &[
    ("failureThreshold", Free),
    ("initialDelaySeconds", Free),
    ("periodSeconds", Free),
    ("successThreshold", Free),
    ("timeoutSeconds", Free),
];

/// Without `claims`, by which devices come that nobody counts.
const RESOURCES: &[(&str, Shape)] =
    &[("limits", Judged(no_accelerator)), ("requests", Judged(no_accelerator))];

const USER: &[(&str, Shape)] = &[
    ("readOnlyRootFilesystem", Free),
    ("runAsGroup", Free),
    ("runAsNonRoot", Judged(|value, _| only(value, &Value::Bool(true)))),
    ("runAsUser", Judged(not_root)),
];

const POD_USER: &[(&str, Shape)] = &[
    ("fsGroup", Free),
    ("fsGroupChangePolicy", Free),
    ("runAsGroup", Free),
    ("runAsNonRoot", Judged(|value, _| only(value, &Value::Bool(true)))),
    ("runAsUser", Judged(not_root)),
    ("supplementalGroups", Free),
    ("supplementalGroupsPolicy", Free),
];

/// The volumes of the restricted standard. Of projected ones those that hold no token.
const VOLUME: &[(&str, Shape)] = &[
    ("name", Free),
    ("configMap", Free),
    ("csi", Free),
    ("downwardAPI", Free),
    ("emptyDir", Free),
    ("ephemeral", Free),
    ("image", Free),
    ("persistentVolumeClaim", Free),
    (
        "projected",
        Fields(&[
            ("defaultMode", Free),
            (
                "sources",
                Each(&Fields(&[
                    ("clusterTrustBundle", Free),
                    ("configMap", Free),
                    ("downwardAPI", Free),
                    ("secret", Free),
                ])),
            ),
        ]),
    ),
    ("secret", Free),
];

/// Names that Flyball writes itself, that choose a profile of the kernel, or that container runtimes take
/// for orders, some of which hand out devices.
const FOREIGN: &[&str] = &[
    "flyball.dev/",
    labels::DELETION_COST,
    "container.apparmor.security.beta.kubernetes.io/",
    "container.seccomp.security.alpha.kubernetes.io/",
    "seccomp.security.alpha.kubernetes.io/",
    "cdi.k8s.io/",
    "io.containerd.",
    "io.katacontainers.",
    "io.kubernetes.",
    "nri.io/",
];

struct Judge<'a> {
    rules: &'a ValidationRules<'a>,
    problems: Vec<ConversionProblem>,
}

impl Judge<'_> {
    fn fields(&mut self, place: &str, map: &Map<String, Value>, allowed: &'static [(&str, Shape)]) {
        for (name, value) in map {
            let place = format!("{place}.{name}");
            match allowed.iter().find(|(field, _)| field == name) {
                Some((_, shape)) => self.value(&place, value, shape),
                None => self.wrong(&place, "may not be set"),
            }
        }
    }

    fn value(&mut self, place: &str, value: &Value, shape: &'static Shape) {
        let takes_away = match shape {
            Free | Judged(_) => has_null(value),
            Fields(_) | Each(_) | Named(_) => value.is_null(),
        };
        if takes_away {
            return self.wrong(place, "must not be null: an overlay can only add");
        }
        match (shape, value) {
            (Free, _) => {}
            (Fields(allowed), Value::Object(map)) => self.fields(place, map, allowed),
            (Fields(_), _) => self.wrong(place, "must be an object"),
            (Each(one), Value::Array(list)) => {
                for (index, value) in list.iter().enumerate() {
                    self.value(&format!("{place}[{index}]"), value, one);
                }
            }
            (Named(allowed), Value::Array(list)) => {
                for (index, value) in list.iter().enumerate() {
                    match (value.as_object(), value["name"].as_str()) {
                        (Some(map), Some(name)) => {
                            self.fields(&format!("{place}[{name}]"), map, allowed);
                        }
                        _ => self.wrong(&format!("{place}[{index}]"), "must have a name"),
                    }
                }
            }
            (Each(_) | Named(_), _) => self.wrong(place, "must be a list"),
            (Judged(judge), value) => {
                if let Some(what) = judge(value, self.rules) {
                    self.wrong(place, &what);
                }
            }
        }
    }

    fn wrong(&mut self, place: &str, what: &str) {
        self.problems.push(ConversionProblem { field: place.to_owned(), what: what.to_owned() });
    }
}

/// The API server would drop it, and a merge remove what is there.
fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.iter().any(has_null),
        Value::Object(map) => map.values().any(has_null),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn keys(value: &Value, foreign: &[&str]) -> Option<String> {
    let Value::Object(map) = value else { return Some("must be an object".to_owned()) };
    let taken = map.keys().find(|key| foreign.iter().any(|start| key.starts_with(start)));
    taken.map(|key| format!("may not have {key}"))
}

fn only(value: &Value, allowed: &Value) -> Option<String> {
    (value != allowed).then(|| format!("may only be {allowed}"))
}

fn starts(value: &Value, with: &str) -> Option<String> {
    match value {
        Value::String(text) if !text.starts_with(with) => None,
        _ => Some(format!("must be a text that does not begin with {with}")),
    }
}

fn not_the_engine(value: &Value, _: &ValidationRules<'_>) -> Option<String> {
    match value {
        Value::String(name) if name != ENGINE => None,
        _ => Some(format!("must be a name other than {ENGINE}")),
    }
}

fn not_root(value: &Value, _: &ValidationRules<'_>) -> Option<String> {
    let is_user = value.as_i64().is_some_and(|user| user > 0);
    (!is_user).then(|| "must be a number above 0: 0 is root".to_owned())
}

fn account(value: &Value, rules: &ValidationRules<'_>) -> Option<String> {
    let known = value.as_str().is_some_and(|name| rules.accounts.iter().any(|one| one == name));
    let allowed =
        || format!("must be one of {}, by the operator's settings", rules.accounts.join(", "));
    (!known).then(allowed)
}

/// Accelerators are counted by `gpusPerReplica`.
fn no_accelerator(value: &Value, rules: &ValidationRules<'_>) -> Option<String> {
    let Value::Object(map) = value else { return Some("must be an object".to_owned()) };
    let taken = map.keys().find(|name| rules.accelerators.contains(name.as_str()));
    taken.map(|name| format!("may not have {name}: set gpusPerReplica"))
}
