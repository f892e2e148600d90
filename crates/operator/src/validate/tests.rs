use super::*;
use serde_json::{Value, json};

fn problems(overlay: &Value) -> Vec<ConversionProblem> {
    let accounts = ["default".to_owned(), "reader".to_owned()];
    let rules = ValidationRules {
        accelerators: ["nvidia.com/gpu", "amd.com/gpu"].into(),
        accounts: &accounts,
    };
    overlay::problems("podOverlay", overlay.as_object().unwrap(), &rules)
}

/// The one field that is wrong.
fn refused(overlay: &Value) -> String {
    let problems = problems(overlay);
    assert_eq!(problems.len(), 1, "{overlay}: {problems:?}");
    problems[0].field.clone()
}

fn engine(with: Value) -> Value {
    let mut container = json!({"name": "engine"});
    container.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
    json!({"spec": {"containers": [container]}})
}

#[test]
fn what_owners_of_models_need_may_be_laid_over_a_pod() {
    let token = json!({"secretKeyRef": {"name": "hf", "key": "token"}});
    for overlay in [
        json!({"metadata": {"labels": {"team": "a"}, "annotations": {"linkerd.io/inject": "enabled"}}}),
        json!({"spec": {
            "nodeSelector": {"zone": "a"}, "affinity": {}, "runtimeClassName": "nvidia",
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
            "imagePullSecrets": [{"name": "registry"}], "serviceAccountName": "reader",
            "priorityClassName": "serving", "hostUsers": false,
            "securityContext": {"runAsNonRoot": true, "runAsUser": 2_000, "fsGroup": 0},
            "volumes": [
                {"name": "weights", "persistentVolumeClaim": {"claimName": "w"}},
                {"name": "ca", "projected": {"sources": [{"configMap": {"name": "ca"}}]}},
                {"name": "model", "image": {"reference": "r/m:1"}},
            ],
            "initContainers": [{
                "name": "fetch", "image": "r/fetch:1", "args": ["m"], "restartPolicy": "Always",
                "ports": [{"containerPort": 9_000}],
                "volumeMounts": [{"name": "weights", "mountPath": "/w"}],
            }],
        }}),
        engine(json!({
            "env": [{"name": "HF_TOKEN", "valueFrom": token}],
            "resources": {"requests": {"cpu": "4", "memory": "64Gi"}, "limits": {"rdma/hca": "1"}},
            "volumeMounts": [{"name": "weights", "mountPath": "/models", "readOnly": true}],
            "startupProbe": {"failureThreshold": 9_000},
            "securityContext": {"readOnlyRootFilesystem": true},
        })),
    ] {
        let problems = problems(&overlay);
        assert!(problems.is_empty(), "{overlay}: {problems:?}");
    }
}

#[test]
fn what_would_give_a_pod_more_than_others_have_is_refused_by_its_place() {
    let volume = |with: Value| json!({"spec": {"volumes": [with]}});
    let container = |with: Value| json!({"spec": {"initContainers": [with]}});
    for (overlay, place) in [
        (json!({"spec": {"hostNetwork": true}}), "spec.hostNetwork"),
        (json!({"spec": {"hostPID": false}}), "spec.hostPID"),
        (json!({"spec": {"nodeName": "n"}}), "spec.nodeName"),
        (
            json!({"spec": {"automountServiceAccountToken": true}}),
            "spec.automountServiceAccountToken",
        ),
        (json!({"spec": {"serviceAccountName": "admin"}}), "spec.serviceAccountName"),
        (json!({"spec": {"priorityClassName": "system-node-critical"}}), "spec.priorityClassName"),
        (
            json!({"spec": {"terminationGracePeriodSeconds": 1}}),
            "spec.terminationGracePeriodSeconds",
        ),
        (json!({"spec": {"hostUsers": true}}), "spec.hostUsers"),
        (json!({"spec": {"securityContext": {"sysctls": []}}}), "spec.securityContext.sysctls"),
        (json!({"spec": {"securityContext": {"runAsUser": 0}}}), "spec.securityContext.runAsUser"),
        (
            json!({"spec": {"securityContext": {"runAsNonRoot": false}}}),
            "spec.securityContext.runAsNonRoot",
        ),
        (json!({"spec": {"securityContext": null}}), "spec.securityContext"),
        (
            json!({"spec": {"securityContext": {"seccompProfile": {"type": "Unconfined"}}}}),
            "spec.securityContext.seccompProfile",
        ),
        (json!({"spec": {"nodeSelector": {"pool": null}}}), "spec.nodeSelector"),
        (volume(json!({"name": "v", "hostPath": {"path": "/"}})), "spec.volumes[v].hostPath"),
        (volume(json!({"name": "v", "nfs": {}})), "spec.volumes[v].nfs"),
        (volume(json!({"emptyDir": {}})), "spec.volumes[0]"),
        (
            volume(json!({"name": "v", "projected": {"sources": [{"serviceAccountToken": {}}]}})),
            "spec.volumes[v].projected.sources[0].serviceAccountToken",
        ),
        (json!({"spec": {"containers": [{"name": "other"}]}}), "spec.containers[other].name"),
        (json!({"spec": {"containers": {}}}), "spec.containers"),
        (engine(json!({"args": []})), "spec.containers[engine].args"),
        (engine(json!({"image": "r/other:1"})), "spec.containers[engine].image"),
        (engine(json!({"lifecycle": {}})), "spec.containers[engine].lifecycle"),
        (engine(json!({"ports": []})), "spec.containers[engine].ports"),
        (
            engine(json!({"readinessProbe": {"httpGet": {"host": "h"}}})),
            "spec.containers[engine].readinessProbe.httpGet",
        ),
        (
            engine(json!({"securityContext": {"privileged": true}})),
            "spec.containers[engine].securityContext.privileged",
        ),
        (
            engine(json!({"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}})),
            "spec.containers[engine].securityContext.capabilities",
        ),
        (
            engine(json!({"resources": {"limits": {"amd.com/gpu": "8"}}})),
            "spec.containers[engine].resources.limits",
        ),
        (
            engine(json!({"resources": {"claims": [{"name": "gpu"}]}})),
            "spec.containers[engine].resources.claims",
        ),
        (container(json!({"name": "engine"})), "spec.initContainers[engine].name"),
        (
            container(json!({"name": "i", "ports": [{"hostPort": 1}]})),
            "spec.initContainers[i].ports[0].hostPort",
        ),
        (json!({"metadata": {"labels": {"flyball.dev/model": "other"}}}), "metadata.labels"),
        (
            json!({"metadata": {"annotations": {"cdi.k8s.io/x": "nvidia.com/gpu=all"}}}),
            "metadata.annotations",
        ),
        (json!({"metadata": {"finalizers": []}}), "metadata.finalizers"),
        (json!({"ephemeralContainers": []}), "ephemeralContainers"),
    ] {
        assert_eq!(refused(&overlay), format!("podOverlay.{place}"));
    }
}

#[test]
fn a_refused_overlay_is_told_with_its_place() {
    let service: ModelService = serde_json::from_value(json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "ModelService",
        "metadata": {"name": "m", "namespace": "a"},
        "spec": {"model": "m", "variants": [{"name": "x", "engine": {
            "kind": "VLLM", "image": "i", "podOverlay": {"spec": {"hostNetwork": true}},
        }}]},
    }))
    .unwrap();
    let problems = validate(&service, &ValidationRules::default()).unwrap_err();
    let place = "spec.variants[x].engine.podOverlay.spec.hostNetwork";
    assert_eq!(
        problems,
        [ConversionProblem { field: place.to_owned(), what: "may not be set".to_owned() }]
    );
}

/// A pod that keeps to the standard, with one value put somewhere.
fn put(place: &str, value: Value) -> Value {
    let mut pod = json!({
        "metadata": {"annotations": {}},
        "spec": {
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "volumes": [{"name": "v", "emptyDir": {}}],
            "containers": [{
                "name": "c",
                "ports": [{"containerPort": 1}],
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "capabilities": {"drop": ["ALL"]},
                },
            }],
        },
    });
    let mut at = &mut pod;
    for part in place.split('/').filter(|part| !part.is_empty()) {
        at = match part.parse::<usize>() {
            Ok(index) => &mut at[index],
            Err(_) => &mut at[part.replace('~', "/")],
        };
    }
    *at = value;
    pod
}

#[test]
fn every_control_of_the_standard_finds_what_goes_beyond_it() {
    let context = "spec/containers/0/securityContext";
    assert!(standard::beyond(&put("spec/hostIPC", json!(false))).is_empty());
    for (place, value, found) in [
        ("spec/hostNetwork", json!(true), "spec.hostNetwork"),
        ("spec/hostPID", json!("yes"), "spec.hostPID"),
        (
            "metadata/annotations/container.apparmor.security.beta.kubernetes.io~c",
            json!("unconfined"),
            "metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]",
        ),
        ("spec/volumes/0/hostPath", json!({"path": "/"}), "spec.volumes[v].hostPath"),
        ("spec/volumes/0/gitRepo", json!({}), "spec.volumes[v].gitRepo"),
        (
            "spec/securityContext/sysctls",
            json!([{"name": "kernel.msgmax", "value": "1"}]),
            "spec.securityContext.sysctls",
        ),
        ("spec/securityContext/runAsUser", json!(0), "spec.securityContext.runAsUser"),
        (
            "spec/securityContext/seccompProfile/type",
            json!("Unconfined"),
            "spec.securityContext.seccompProfile.type",
        ),
        (
            "spec/securityContext/seLinuxOptions",
            json!({"type": "spc_t"}),
            "spec.securityContext.seLinuxOptions.type",
        ),
        (
            "spec/securityContext/windowsOptions",
            json!({"hostProcess": true}),
            "spec.securityContext.windowsOptions.hostProcess",
        ),
        ("spec/containers/0/ports/0/hostPort", json!(80), "spec.containers[c].ports.hostPort"),
        (
            "spec/containers/0/livenessProbe",
            json!({"httpGet": {"host": "169.254.169.254"}}),
            "spec.containers[c].livenessProbe.host",
        ),
        (
            "spec/containers/0/lifecycle",
            json!({"preStop": {"tcpSocket": {"host": "h"}}}),
            "spec.containers[c].lifecycle.preStop.host",
        ),
        (
            &format!("{context}/privileged"),
            json!(true),
            "spec.containers[c].securityContext.privileged",
        ),
        (
            &format!("{context}/capabilities/add"),
            json!(["SYS_PTRACE"]),
            "spec.containers[c].securityContext.capabilities.add",
        ),
        (
            &format!("{context}/capabilities/drop"),
            json!(["KILL"]),
            "spec.containers[c].securityContext.capabilities.drop",
        ),
        (
            &format!("{context}/allowPrivilegeEscalation"),
            Value::Null,
            "spec.containers[c].securityContext.allowPrivilegeEscalation",
        ),
        (
            &format!("{context}/procMount"),
            json!("Unmasked"),
            "spec.containers[c].securityContext.procMount",
        ),
        (
            &format!("{context}/appArmorProfile"),
            json!({"type": "Unconfined"}),
            "spec.containers[c].securityContext.appArmorProfile.type",
        ),
        ("spec/securityContext", json!({}), "spec.containers[c].securityContext.seccompProfile"),
    ] {
        assert_eq!(standard::beyond(&put(place, value)), [found], "{place}");
    }
}

#[test]
fn a_container_that_says_nothing_goes_beyond_the_standard() {
    let bare = put("spec/initContainers", json!([{"name": "i"}]));
    let missing = ["allowPrivilegeEscalation", "capabilities.drop"];
    let missing = missing.map(|field| format!("spec.initContainers[i].securityContext.{field}"));
    assert_eq!(standard::beyond(&bare), missing);
}
