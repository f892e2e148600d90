//! Random overlays: whatever owners of models write, the pod that is made keeps to the standard (INV-15) and
//! to what Flyball needs of it.

use super::*;
use crate::validate::{ValidationRules, beyond, validate};
use flyball_resources::Pool;
use proptest::strategy::BoxedStrategy;

/// Names of fields, many of which are dangerous, by where they stand.
const OF_SPEC: &[&str] = &[
    "activeDeadlineSeconds",
    "affinity",
    "automountServiceAccountToken",
    "containers",
    "dnsPolicy",
    "ephemeralContainers",
    "hostAliases",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostUsers",
    "imagePullSecrets",
    "initContainers",
    "nodeName",
    "nodeSelector",
    "priorityClassName",
    "resourceClaims",
    "runtimeClassName",
    "securityContext",
    "serviceAccount",
    "serviceAccountName",
    "shareProcessNamespace",
    "terminationGracePeriodSeconds",
    "tolerations",
    "volumes",
];
const OF_CONTAINER: &[&str] = &[
    "args",
    "command",
    "env",
    "image",
    "lifecycle",
    "livenessProbe",
    "ports",
    "readinessProbe",
    "resources",
    "securityContext",
    "startupProbe",
    "stdin",
    "volumeDevices",
    "volumeMounts",
];
const OF_CONTEXT: &[&str] = &[
    "allowPrivilegeEscalation",
    "appArmorProfile",
    "capabilities",
    "fsGroup",
    "privileged",
    "procMount",
    "readOnlyRootFilesystem",
    "runAsNonRoot",
    "runAsUser",
    "seLinuxOptions",
    "seccompProfile",
    "sysctls",
    "windowsOptions",
];
const OF_VOLUME: &[&str] = &[
    "configMap",
    "csi",
    "emptyDir",
    "hostPath",
    "nfs",
    "persistentVolumeClaim",
    "projected",
    "secret",
];
const OF_METADATA: &[&str] = &[
    "cdi.k8s.io/x",
    "container.apparmor.security.beta.kubernetes.io/engine",
    "flyball.dev/model",
    "flyball.dev/variant",
    "team",
];

fn any_of(names: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(names)
}

/// Fields of these names, each with a value that could stand there.
fn object(names: &'static [&'static str]) -> BoxedStrategy<Value> {
    let field = any_of(names).prop_flat_map(|name| (Just(name), value_of(name)));
    prop::collection::vec(field, 0..3)
        .prop_map(|fields| {
            Value::Object(
                fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            )
        })
        .boxed()
}

fn named(names: &'static [&'static str]) -> BoxedStrategy<Value> {
    let one =
        (any_of(&["engine", "other", "shm"]), object(names)).prop_map(|(name, mut object)| {
            object["name"] = json!(name);
            object
        });
    prop::collection::vec(one, 1..3).prop_map(Value::Array).boxed()
}

fn value_of(name: &str) -> BoxedStrategy<Value> {
    let plain = || {
        let values = [
            json!(true),
            json!(false),
            json!(0),
            json!(1_000),
            json!("x"),
            json!("default"),
            json!("Unmasked"),
            json!({}),
            json!([]),
            json!(null),
            json!("system-node-critical"),
            json!({"type": "Unconfined"}),
            json!({"type": "spc_t"}),
            json!({"hostProcess": true}),
        ];
        prop::sample::select(values.to_vec()).boxed()
    };
    match name {
        "containers" | "initContainers" | "ephemeralContainers" => named(OF_CONTAINER),
        "volumes" => named(OF_VOLUME),
        "securityContext" => object(OF_CONTEXT),
        "labels" | "annotations" => object(OF_METADATA),
        "capabilities" => Just(json!({"add": ["SYS_ADMIN"], "drop": []})).boxed(),
        "ports" => Just(json!([{"containerPort": 1, "hostPort": 1}])).boxed(),
        "sysctls" => Just(json!([{"name": "kernel.msgmax", "value": "1"}])).boxed(),
        "readinessProbe" | "lifecycle" => {
            Just(json!({"httpGet": {"host": "h"}, "preStop": {}})).boxed()
        }
        "resources" => Just(json!({"limits": {"nvidia.com/gpu": "8"}})).boxed(),
        "nodeSelector" => Just(json!({"pool": "other", "zone": "a"})).boxed(),
        "projected" => Just(json!({"sources": [{"serviceAccountToken": {}}]})).boxed(),
        _ => plain(),
    }
}

fn overlay() -> impl Strategy<Value = Value> {
    let metadata = prop_oneof![4 => Just(json!({})), 1 => object(&["annotations", "labels"])];
    (metadata, object(OF_SPEC))
        .prop_map(|(metadata, spec)| json!({"metadata": metadata, "spec": spec}))
}

fn pool() -> Pool {
    serde_json::from_value(json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "Pool", "metadata": {"name": "p"},
        "spec": {"accelerator": "h100-sxm-80gb", "nodeSelector": {"pool": "p"}},
    }))
    .unwrap()
}

fn made(kind: &str, overlay: &Value) -> (ModelService, Value) {
    let engine = json!({"kind": kind, "image": "i", "args": ["--x"], "podOverlay": overlay});
    let service = service(&[], "m", engine);
    let variant = &service.spec.variants[0];
    let template =
        pod::template(&service, variant, variant.engine.as_ref().unwrap(), Some(&pool()));
    (service, template)
}

/// What Flyball counts on, whatever is laid over it.
fn own(template: &Value) -> Value {
    let spec = &template["spec"];
    let engine = &spec["containers"][0];
    let fields = ["name", "image", "command", "args", "ports", "lifecycle"];
    let probes = ["readinessProbe", "livenessProbe", "startupProbe"];
    let marks = [labels::MODEL, labels::VARIANT];
    json!({
        "engine": fields.map(|field| &engine[field]),
        "asks": probes.map(|probe| &engine[probe]["httpGet"]),
        "gpus": engine["resources"]["limits"]["nvidia.com/gpu"],
        "labels": marks.map(|label| &template["metadata"]["labels"][label]),
        "pool": spec["nodeSelector"]["pool"],
        "grace": spec["terminationGracePeriodSeconds"],
        "token": spec["automountServiceAccountToken"],
        "count": spec["containers"].as_array().unwrap().len(),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    #[test]
    fn inv_15_no_overlay_makes_a_pod_beyond_the_standard(
        kind in any_of(&["VLLM", "SGLang", "LlamaCpp", "TensorRTLLM"]),
        overlay in overlay(),
    ) {
        let (service, template) = made(kind, &overlay);
        let accounts = ["default".to_owned()];
        let rules = ValidationRules { accelerators: ["nvidia.com/gpu"].into(), accounts: &accounts };
        if validate(&service, &rules).is_ok() {
            prop_assert_eq!(beyond(&template), Vec::<String>::new(), "{}", overlay);
            prop_assert_eq!(own(&template), own(&made(kind, &json!({})).1), "{}", overlay);
        }
    }
}

#[test]
fn lists_are_merged_by_name_so_that_nothing_of_flyballs_is_lost() {
    let (service, template) = made(
        "VLLM",
        &json!({"spec": {
            "containers": [{
                "name": "engine",
                "env": [{"name": "HF_HOME", "value": "/w"}],
                "volumeMounts": [{"name": "w", "mountPath": "/w"}],
                "resources": {"requests": {"cpu": "4"}},
            }],
            "initContainers": [{"name": "fetch", "image": "f"}],
            "volumes": [{"name": "w", "emptyDir": {}}, {"name": "shm", "emptyDir": {"sizeLimit": "20Gi"}}],
        }}),
    );
    assert!(validate(&service, &ValidationRules::default()).is_ok());
    let engine = &template["spec"]["containers"][0];
    assert_eq!(engine["resources"]["limits"]["nvidia.com/gpu"], "2");
    assert_eq!(engine["volumeMounts"].as_array().unwrap().len(), 2);
    assert_eq!(engine["args"].as_array().unwrap().last().unwrap(), "--x");
    let shm = &template["spec"]["volumes"][0]["emptyDir"];
    assert_eq!((&shm["medium"], &shm["sizeLimit"]), (&json!("Memory"), &json!("20Gi")));
    let fetch = &template["spec"]["initContainers"][0]["securityContext"];
    assert_eq!(fetch["capabilities"]["drop"], json!(["ALL"]));
}
