//! Keys, certificates and kubeconfigs, made anew for every `up`: nothing secret outlives a cluster.

use super::layout::{API_SERVICE_ADDRESS, CONTROL_ADDRESS, Layout, NODES};
use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};
use std::path::{Path, PathBuf};

/// Where a certificate and its key were written.
pub(super) struct Pair {
    pub(super) cert: PathBuf,
    pub(super) key: PathBuf,
}

/// Everything the control plane and the nodes are started with.
pub(super) struct Certs {
    pub(super) authority: PathBuf,
    pub(super) front_proxy_authority: PathBuf,
    pub(super) front_proxy: Pair,
    pub(super) api_server: Pair,
    pub(super) kubelet_client: Pair,
    pub(super) service_accounts: Pair,
}

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// Makes both authorities, every certificate, and one kubeconfig per component.
pub(super) fn create(layout: &Layout) -> Result<Certs> {
    let folder = layout.state().join("pki");
    std::fs::create_dir_all(&folder)?;
    let cluster = authority("flyball-test", &folder.join("ca.crt"))?;
    let front = authority("flyball-test-front-proxy", &folder.join("front-proxy-ca.crt"))?;

    let server = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost"];
    let addresses = [CONTROL_ADDRESS, API_SERVICE_ADDRESS, "127.0.0.1"];
    let certs = Certs {
        authority: folder.join("ca.crt"),
        front_proxy_authority: folder.join("front-proxy-ca.crt"),
        front_proxy: write(
            &folder,
            "front-proxy",
            &sign(&front, "front-proxy-client", None, &[], &[])?,
        )?,
        api_server: write(
            &folder,
            "apiserver",
            &sign(&cluster, "kube-apiserver", None, &server, &addresses)?,
        )?,
        kubelet_client: write(
            &folder,
            "apiserver-kubelet-client",
            &sign(&cluster, "kube-apiserver-kubelet-client", Some("system:masters"), &[], &[])?,
        )?,
        service_accounts: write(
            &folder,
            "service-accounts",
            &sign(&cluster, "service-accounts", None, &[], &[])?,
        )?,
    };

    let state = layout.state();
    let mut clients: Vec<(PathBuf, String, Option<&str>)> = vec![
        (layout.kubeconfig(), "flyball-test-admin".into(), Some("system:masters")),
        (
            state.join("controller-manager.kubeconfig"),
            "system:kube-controller-manager".into(),
            None,
        ),
        (state.join("scheduler.kubeconfig"), "system:kube-scheduler".into(), None),
        (state.join("proxy.kubeconfig"), "system:kube-proxy".into(), None),
    ];
    for node in &NODES {
        let user = format!("system:node:{}", node.name);
        clients.push((state.join(format!("{}.kubeconfig", node.name)), user, Some("system:nodes")));
    }
    for (path, user, group) in clients {
        let signed = sign(&cluster, &user, group, &[], &[])?;
        std::fs::write(path, kubeconfig(&cluster, &user, &signed))?;
    }
    Ok(certs)
}

struct Signed {
    cert: String,
    key: String,
}

fn authority(name: &str, path: &Path) -> Result<Authority> {
    let mut params = CertificateParams::default();
    params.distinguished_name = named(name, None);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let key = KeyPair::generate()?;
    let cert = params.self_signed(&key)?;
    std::fs::write(path, cert.pem())?;
    Ok(Authority { pem: cert.pem(), issuer: Issuer::new(params, key) })
}

fn sign(
    authority: &Authority,
    name: &str,
    group: Option<&str>,
    hosts: &[&str],
    addresses: &[&str],
) -> Result<Signed> {
    let mut params = CertificateParams::default();
    params.distinguished_name = named(name, group);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
    for host in hosts {
        params.subject_alt_names.push(SanType::DnsName((*host).try_into()?));
    }
    for address in addresses {
        params.subject_alt_names.push(SanType::IpAddress(address.parse()?));
    }
    let key = KeyPair::generate()?;
    let cert = params.signed_by(&key, &authority.issuer)?;
    Ok(Signed { cert: cert.pem(), key: key.serialize_pem() })
}

fn named(common_name: &str, group: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    if let Some(group) = group {
        name.push(DnType::OrganizationName, group);
    }
    name
}

fn write(folder: &Path, name: &str, signed: &Signed) -> Result<Pair> {
    let pair =
        Pair { cert: folder.join(format!("{name}.crt")), key: folder.join(format!("{name}.key")) };
    std::fs::write(&pair.cert, &signed.cert)?;
    std::fs::write(&pair.key, &signed.key)?;
    Ok(pair)
}

/// JSON is YAML, so no template and no quoting to get wrong.
fn kubeconfig(authority: &Authority, user: &str, signed: &Signed) -> String {
    serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "flyball-test",
        "clusters": [{ "name": "flyball-test", "cluster": {
            "server": format!("https://{CONTROL_ADDRESS}:6443"),
            "certificate-authority-data": base64(authority.pem.as_bytes()),
        }}],
        "users": [{ "name": user, "user": {
            "client-certificate-data": base64(signed.cert.as_bytes()),
            "client-key-data": base64(signed.key.as_bytes()),
        }}],
        "contexts": [{ "name": "flyball-test", "context": {
            "cluster": "flyball-test", "user": user,
        }}],
    })
    .to_string()
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
