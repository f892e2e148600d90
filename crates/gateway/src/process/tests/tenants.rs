//! Tenants against the API server of a few lines, up to the answer that a client gets.

use super::*;
use sha2::{Digest as _, Sha256};
use std::os::unix::fs::PermissionsExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// A Tenant of the namespace `team` whose key's secret is its name.
fn tenant(name: &str, models: &[&str]) -> serde_json::Value {
    let sha256: String = Sha256::digest(name).iter().map(|byte| format!("{byte:02x}")).collect();
    let id = format!("{name:0>10}");
    json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "Tenant",
        "metadata": { "name": name, "namespace": "team", "resourceVersion": "1" },
        "spec": { "models": models, "keys": [{ "name": "app", "id": id, "sha256": sha256 }] },
    })
}

pub(super) fn watching(cache_file: Option<&Path>) -> GatewaySettingsFile {
    let tenants = crate::settings::TenantsSettings {
        watch: true,
        cache_file: cache_file.map(Path::to_owned),
        issuers: Vec::new(),
    };
    GatewaySettingsFile { kubernetes: everywhere(), tenants, ..settings(&[]) }
}

impl Rig {
    /// The status of a request of whoever has this key. There is no model, so 404 is the best there is.
    pub(super) async fn status(&self, secret: &str) -> u16 {
        let mut stream =
            tokio::net::TcpStream::connect(self.process.running.address()).await.unwrap();
        let head = format!(
            "GET /v1/models/m HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-api-key: {secret}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer["HTTP/1.1 ".len()..][..3].parse().unwrap()
    }

    pub(super) async fn until_status(&self, secret: &str, status: u16) {
        let waiting = async {
            while self.status(secret).await != status {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(120), waiting).await.expect("in the end");
    }

    /// Waits until it is ready: keys are known a moment before they count as fetched.
    pub(super) async fn until_ready(&self) {
        let waiting = async {
            while self.process.tenancy.ready(None).is_err() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(120), waiting).await.expect("in the end");
    }

    /// Numbers of what is known: let in, refused, keys.
    fn counts(&self) -> (usize, usize, usize) {
        let report = self.process.tenancy.now().unwrap().report;
        (report.accepted, report.refused, report.keys)
    }
}

#[tokio::test]
async fn a_tenant_is_let_in_when_it_comes_and_thrown_out_when_it_goes() {
    let (server, client) = ApiServer::start(Vec::new()).await;
    let rig = Rig::of(&watching(None), client, WARM);
    until("ready without a Tenant", || rig.process.ready().is_ok()).await;
    assert_eq!((rig.status("search").await, rig.counts()), (401, (0, 0, 0)));
    server.watched(2).await;
    server.send_event("ADDED", &tenant("search", &["*"]));
    rig.until_status("search", 404).await;
    let mut refused = tenant("deep", &["*"]);
    refused["spec"]["parent"] = json!("nobody");
    server.send_event("ADDED", &refused);
    until("both", || rig.counts() == (1, 1, 1)).await;
    assert_eq!(rig.status("deep").await, 401);
    let (_, ready) = rig.get("/readyz").await;
    let notes: Vec<&str> = ready.lines().collect();
    assert!(notes[1].starts_with("note: 1 Tenants accepted, 1 refused; list 0 s old"), "{ready}");
    assert_eq!(notes[2], "note: Tenant team/deep is refused: TenantParentMissing");
    let (_, config) = rig.get("/config").await;
    let config: serde_json::Value = serde_json::from_str(&config).unwrap();
    let trouble = &config["tenants"]["report"]["troubles"][0];
    assert!(trouble["problems"][0].as_str().unwrap().contains("nobody, which does not exist"));
    let (_, state) = rig.get("/state").await;
    let state: crate::state::GatewayStateView = serde_json::from_str(&state).unwrap();
    let tenants = state.tenants.unwrap();
    assert_eq!((tenants.accepted, tenants.refused, tenants.keys), (1, 1, 1));
    assert_eq!(tenants.troubles[0].reason, "TenantParentMissing");
    assert!(state.troubles.iter().any(|trouble| trouble.what == "refused-tenants"));
    let mut revoked = tenant("search", &["*"]);
    revoked["spec"]["keys"][0]["disabled"] = json!(true);
    server.send_event("MODIFIED", &revoked);
    rig.until_status("search", 401).await;
    let (_, page) = rig.get("/metrics").await;
    for line in [
        "flyball_gateway_tenants{state=\"accepted\"} 1.0\n",
        "flyball_gateway_tenant_keys{state=\"refused\"} 1.0\n",
        "flyball_gateway_tenants_list_age_seconds ",
        "flyball_gateway_keys_refused_total{reason=\"unknown\"} ",
        "flyball_gateway_caller_requests_total{caller=\"team/search\",outcome=\"answered\"} 0",
    ] {
        assert!(page.contains(line), "{line}{page}");
    }
    assert!(!page.contains("reason=\"disabled\"} 0"), "{page}");
    let refusals = rig.process.refusals.take();
    let disabled = |(what, _): &&(String, String)| what == "key 0000search of team/search";
    assert!(
        refusals.iter().find(disabled).unwrap().1.starts_with("refused: disabled"),
        "{refusals:?}"
    );
    // The last ones: the API server has to say so itself.
    server.send_event("MODIFIED", &tenant("search", &["*"]));
    rig.until_status("search", 404).await;
    server.put("tenants", Vec::new());
    server.send_event("DELETED", &tenant("search", &["*"]));
    server.send_event("DELETED", &refused);
    rig.until_status("search", 401).await;
    until("gone", || rig.counts() == (0, 0, 0)).await;
}

#[tokio::test]
async fn who_restarts_without_an_api_server_knows_keys_and_revocations() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tenants");
    let (server, client) = ApiServer::start(Vec::new()).await;
    server.put(
        "tenants",
        vec![tenant("search", &["*"]), tenant("gone", &["*"]), tenant("app", &["*"])],
    );
    let settings = watching(Some(&file));
    let rig = Rig::of(&settings, client.clone(), WARM);
    rig.until_status("search", 404).await;
    server.watched(2).await;
    let mut revoked = tenant("search", &["*"]);
    revoked["spec"]["keys"][0]["disabled"] = json!(true);
    server.send_event("MODIFIED", &revoked);
    server.send_event("DELETED", &tenant("gone", &["*"]));
    rig.until_status("search", 401).await;
    rig.until_status("gone", 401).await;
    let stored = || {
        let stored = crate::tenants::file::load(&file, SystemTime::now()).ok().flatten();
        stored.is_some_and(|stored| stored.readings == rig.process.tenancy.readings())
    };
    until("written", stored).await;
    server.go_down(true);
    // The process that runs goes on.
    until("noticed", || rig.process.failing_tenants().is_some()).await;
    assert_eq!((rig.status("app").await, rig.status("search").await), (404, 401));
    drop(rig);
    let rig = Rig::of(&settings, client.clone(), WARM);
    assert_eq!((rig.status("app").await, rig.status("search").await), (404, 401));
    assert_eq!(rig.status("gone").await, 401);
    assert!(rig.process.tenancy.ready(None).is_ok());
    drop(rig);
    // A list of yesterday makes nobody ready, and its revocations hold all the same.
    let old = SystemTime::now() - Duration::from_secs(25 * 60 * 60);
    crate::tenants::file::confirm(&file, old).unwrap();
    let rig = Rig::of(&settings, client.clone(), WARM);
    assert_eq!((rig.status("app").await, rig.status("search").await), (404, 401));
    let why = rig.process.tenancy.ready(Some("cannot watch tenants")).unwrap_err();
    assert_eq!(why, "Tenants: cannot watch tenants");
    let age = rig.process.tenancy.now().unwrap().age.unwrap();
    assert!(age >= Duration::from_secs(25 * 60 * 60), "{age:?}");
    server.put("tenants", vec![tenant("app", &["*"])]);
    server.go_down(false);
    until("ready", || rig.process.tenancy.ready(None).is_ok()).await;
    rig.until_status("app", 404).await;
    drop(rig);
    // One that others could have written is nobody's list.
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
    server.go_down(true);
    let rig = Rig::of(&settings, client, WARM);
    assert_eq!(rig.status("app").await, 401);
    assert!(rig.process.tenancy.ready(None).is_err());
}

#[tokio::test]
async fn without_the_right_to_look_nobody_is_let_in_and_the_gateway_says_why() {
    let (server, client) = ApiServer::start(Vec::new()).await;
    server.refuse("/tenants", 403);
    let rig = Rig::of(&watching(None), client, WARM);
    until("noticed", || rig.process.failing_tenants().is_some()).await;
    assert_eq!(rig.status("app").await, 401);
    let (status, why) = rig.get("/readyz").await;
    assert_eq!(status, 503);
    assert!(why.contains("Tenants: cannot watch tenants; hint: the Role"), "{why}");
}
