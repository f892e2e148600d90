//! The control plane: etcd, API server, controller manager, scheduler; kwok beside it.

use super::certs::Certs;
use super::daemon::Daemon;
use super::layout::{CONTROL_ADDRESS, Layout, POD_RANGE, SERVICE_RANGE};
use super::parts::Parts;
use super::space::Space;
use anyhow::Result;
use std::path::{Path, PathBuf};

/// Starts etcd and the API server; the caller waits for `/readyz`.
pub(super) fn start_api(
    layout: &Layout,
    parts: &Parts,
    space: &Space,
    certs: &Certs,
) -> Result<()> {
    let data = layout.state().join("etcd");
    start(
        layout,
        space,
        "etcd",
        parts.program("etcd"),
        &[
            format!("--data-dir={}", data.display()),
            "--listen-client-urls=http://127.0.0.1:2379".into(),
            "--advertise-client-urls=http://127.0.0.1:2379".into(),
            "--listen-peer-urls=http://127.0.0.1:2380".into(),
            // A test cluster's state is thrown away; waiting for the disk would only slow it.
            "--unsafe-no-fsync".into(),
        ],
    )?;
    std::fs::write(audit_policy(layout), AUDIT_POLICY)?;
    start(
        layout,
        space,
        "kube-apiserver",
        parts.program("kube-apiserver"),
        &api_args(layout, certs),
    )
}

/// Which requests the API server writes down.
const AUDIT_POLICY: &str = include_str!("../../../../cluster/audit.yaml");

/// Whether the API server was started with what it is to write down today: it reads that only when it starts.
pub(super) fn is_current(layout: &Layout) -> bool {
    std::fs::read_to_string(audit_policy(layout)).is_ok_and(|policy| policy == AUDIT_POLICY)
}

fn audit_policy(layout: &Layout) -> PathBuf {
    layout.state().join("audit-policy.yaml")
}

fn api_args(layout: &Layout, certs: &Certs) -> Vec<String> {
    let path = |flag: &str, path: &Path| format!("--{flag}={}", path.display());
    vec![
        "--etcd-servers=http://127.0.0.1:2379".into(),
        "--bind-address=0.0.0.0".into(),
        "--secure-port=6443".into(),
        format!("--advertise-address={CONTROL_ADDRESS}"),
        format!("--service-cluster-ip-range={SERVICE_RANGE}"),
        "--authorization-mode=Node,RBAC".into(),
        "--allow-privileged=true".into(),
        path("client-ca-file", &certs.authority),
        path("tls-cert-file", &certs.api_server.cert),
        path("tls-private-key-file", &certs.api_server.key),
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local".into(),
        path("service-account-key-file", &certs.service_accounts.cert),
        path("service-account-signing-key-file", &certs.service_accounts.key),
        path("kubelet-client-certificate", &certs.kubelet_client.cert),
        path("kubelet-client-key", &certs.kubelet_client.key),
        "--kubelet-preferred-address-types=InternalIP".into(),
        // Aggregation, for metrics.k8s.io.
        path("requestheader-client-ca-file", &certs.front_proxy_authority),
        "--requestheader-allowed-names=front-proxy-client".into(),
        "--requestheader-username-headers=X-Remote-User".into(),
        "--requestheader-group-headers=X-Remote-Group".into(),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".into(),
        path("proxy-client-cert-file", &certs.front_proxy.cert),
        path("proxy-client-key-file", &certs.front_proxy.key),
        "--enable-aggregator-routing=true".into(),
        path("cert-dir", &layout.state().join("apiserver")),
        path("audit-policy-file", &audit_policy(layout)),
        path("audit-log-path", &layout.audit_log()),
        // Megabytes; the one before is kept.
        "--audit-log-maxsize=100".into(),
        "--audit-log-maxbackup=1".into(),
    ]
}

/// Starts what works against a ready API server.
pub(super) fn start_controllers(
    layout: &Layout,
    parts: &Parts,
    space: &Space,
    certs: &Certs,
) -> Result<()> {
    let state = layout.state();
    let config = |name: &str| format!("--kubeconfig={}", state.join(name).display());
    // One of each, so no election; the rates let a thousand emulated nodes settle in seconds.
    let shared = ["--leader-elect=false", "--kube-api-qps=300", "--kube-api-burst=600"];
    let mut args = vec![
        config("controller-manager.kubeconfig"),
        format!("--cluster-cidr={POD_RANGE}"),
        "--use-service-account-credentials=true".into(),
        format!("--service-account-private-key-file={}", certs.service_accounts.key.display()),
        format!("--root-ca-file={}", certs.authority.display()),
        format!("--cert-dir={}", state.join("controller-manager").display()),
    ];
    args.extend(shared.map(str::to_owned));
    start(
        layout,
        space,
        "kube-controller-manager",
        parts.program("kube-controller-manager"),
        &args,
    )?;

    let mut args = vec![
        config("scheduler.kubeconfig"),
        format!("--cert-dir={}", state.join("scheduler").display()),
    ];
    args.extend(shared.map(str::to_owned));
    start(layout, space, "kube-scheduler", parts.program("kube-scheduler"), &args)
}

/// Starts kwok, which acts only on nodes that carry its annotation.
pub(super) fn start_kwok(layout: &Layout, parts: &Parts, space: &Space) -> Result<()> {
    start(
        layout,
        space,
        "kwok",
        parts.program("kwok"),
        &[
            format!("--kubeconfig={}", layout.kubeconfig().display()),
            format!("--config={}", parts.manifest("kwok-stages.yaml").display()),
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake".into(),
            "--node-lease-duration-seconds=200".into(),
            "--server-address=127.0.0.1:10247".into(),
        ],
    )
}

fn start(
    layout: &Layout,
    space: &Space,
    name: &str,
    program: PathBuf,
    args: &[String],
) -> Result<()> {
    Daemon { name: name.into(), inside: space.enter(), program, args: args.to_vec() }
        .start(layout)
        .map(drop)
}
