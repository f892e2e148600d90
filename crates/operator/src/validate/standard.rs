//! Kubernetes' Pod Security Standards, as far as they are about Linux, written from their list of fields
//! (kubernetes.io, "Pod Security Standards", 1.34). Pure.
//!
//! Held to is all of *baseline*, and all of *restricted* but for one control: images of engines run as root
//! today, so that `runAsNonRoot` is for their owners to set. Nobody may ask for root by number.
//!
//! This knows nothing of overlays: it looks at the pod that came out, as the API server would.

use serde_json::Value;

/// Capabilities that may be added.
const CAPABILITIES: &[&str] = &["NET_BIND_SERVICE"];

/// Kernel settings that concern a pod alone.
const SYSCTLS: &[&str] = &[
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_syncookies",
];

const SELINUX_TYPES: &[&str] =
    &["container_t", "container_init_t", "container_kvm_t", "container_engine_t"];

const VOLUMES: &[&str] = &[
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

const APPARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// The fields by which a pod template goes beyond the standard; none if it keeps to it.
pub(crate) fn beyond(template: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let spec = &template["spec"];
    for field in ["hostNetwork", "hostPID", "hostIPC"] {
        found.extend(unless(&format!("spec.{field}"), is_off(&spec[field])));
    }
    for (name, profile) in members(&template["metadata"]["annotations"]) {
        let fine = profile == "runtime/default"
            || profile.as_str().is_some_and(|profile| profile.starts_with("localhost/"));
        let place = format!("metadata.annotations[{name}]");
        found.extend(unless(&place, !name.starts_with(APPARMOR) || fine));
    }
    for volume in items(&spec["volumes"]) {
        for (kind, _) in members(volume).filter(|(kind, _)| *kind != "name") {
            let place = format!("spec.volumes[{}].{kind}", named(volume));
            found.extend(unless(&place, VOLUMES.contains(&kind)));
        }
    }
    for setting in items(&spec["securityContext"]["sysctls"]) {
        let fine = setting["name"].as_str().is_some_and(|name| SYSCTLS.contains(&name));
        found.extend(unless("spec.securityContext.sysctls", fine));
    }
    let pod = &spec["securityContext"];
    found.extend(context("spec.securityContext", pod));
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for one in items(&spec[list]) {
            let place = format!("spec.{list}[{}]", named(one));
            found.extend(container(&place, one, pod));
        }
    }
    found
}

/// What a pod and a container both have.
fn context(place: &str, context: &Value) -> Vec<String> {
    let selinux = &context["seLinuxOptions"];
    let user = &context["runAsUser"];
    let checks = [
        ("windowsOptions.hostProcess", is_off(&context["windowsOptions"]["hostProcess"])),
        (
            "seLinuxOptions.type",
            is_none(&selinux["type"]) || is_one(&selinux["type"], SELINUX_TYPES),
        ),
        ("seLinuxOptions.user", is_none(&selinux["user"])),
        ("seLinuxOptions.role", is_none(&selinux["role"])),
        ("seccompProfile.type", is_profile(&context["seccompProfile"])),
        ("appArmorProfile.type", is_profile(&context["appArmorProfile"])),
        ("runAsUser", user.is_null() || user.as_i64().is_some_and(|user| user > 0)),
    ];
    checks.iter().filter_map(|(field, fine)| unless(&format!("{place}.{field}"), *fine)).collect()
}

fn container(place: &str, one: &Value, pod: &Value) -> Vec<String> {
    let own = &one["securityContext"];
    let mut found = context(&format!("{place}.securityContext"), own);
    let capabilities = &own["capabilities"];
    let drops = items(&capabilities["drop"]).any(|name| name == "ALL");
    let adds = items(&capabilities["add"]).all(|name| is_one(name, CAPABILITIES));
    let has_seccomp = !own["seccompProfile"].is_null() || !pod["seccompProfile"].is_null();
    let checks = [
        ("privileged", is_off(&own["privileged"])),
        ("allowPrivilegeEscalation", own["allowPrivilegeEscalation"] == false),
        ("capabilities.drop", drops),
        ("capabilities.add", adds && is_list(&capabilities["add"])),
        ("procMount", is_none(&own["procMount"]) || own["procMount"] == "Default"),
        ("seccompProfile", has_seccomp),
    ];
    let wrong = checks.iter().filter(|(_, fine)| !fine);
    found.extend(wrong.map(|(field, _)| format!("{place}.securityContext.{field}")));
    let ports =
        items(&one["ports"]).all(|port| port["hostPort"].is_null() || port["hostPort"] == 0);
    found.extend(unless(&format!("{place}.ports.hostPort"), ports));
    let hooks = &one["lifecycle"];
    let handlers = [
        ("livenessProbe", &one["livenessProbe"]),
        ("readinessProbe", &one["readinessProbe"]),
        ("startupProbe", &one["startupProbe"]),
        ("lifecycle.postStart", &hooks["postStart"]),
        ("lifecycle.preStop", &hooks["preStop"]),
    ];
    for (name, handler) in handlers {
        let fine = is_none(&handler["httpGet"]["host"]) && is_none(&handler["tcpSocket"]["host"]);
        found.extend(unless(&format!("{place}.{name}.host"), fine));
    }
    found
}

fn unless(place: &str, fine: bool) -> Option<String> {
    (!fine).then(|| place.to_owned())
}

/// Anything but no and nothing counts as yes, also what is no truth value.
fn is_off(value: &Value) -> bool {
    value.is_null() || *value == false
}

fn is_none(value: &Value) -> bool {
    value.is_null() || *value == ""
}

fn is_one(value: &Value, of: &[&str]) -> bool {
    value.as_str().is_some_and(|text| of.contains(&text))
}

fn is_list(value: &Value) -> bool {
    value.is_null() || value.is_array()
}

fn is_profile(profile: &Value) -> bool {
    profile.is_null() || is_one(&profile["type"], &["RuntimeDefault", "Localhost"])
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn members(map: &Value) -> impl Iterator<Item = (&str, &Value)> {
    map.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

fn named(one: &Value) -> &str {
    one["name"].as_str().unwrap_or_default()
}
