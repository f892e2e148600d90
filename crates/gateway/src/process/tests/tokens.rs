//! Callers with tokens, against a provider and an API server of a few lines, up to the answer that a client gets.

use super::tenants::watching;
use super::*;
use crate::settings::IssuerSettings;
use crate::tokens::tests::{CLUSTER, ISSUER, at_url, cluster, page};
use flyball_identity::testing::TestKey;
use serde_json::Value;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::time::UNIX_EPOCH;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// An identity provider: what it says at its address, and how often it was asked.
struct Provider {
    url: String,
    scripted: Arc<Mutex<Vec<u8>>>,
    requests: Arc<AtomicUsize>,
}

impl Provider {
    async fn start(set: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap());
        let scripted = Arc::new(Mutex::new(page("200 OK", set)));
        let requests = Arc::new(AtomicUsize::new(0));
        let (answer, count) = (Arc::clone(&scripted), Arc::clone(&requests));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.read(&mut [0; 4_096]).await;
                count.fetch_add(1, Ordering::SeqCst);
                let answer = answer.lock().unwrap().clone();
                let _ = stream.write_all(&answer).await;
            }
        });
        Self { url, scripted, requests }
    }

    fn answer_with(&self, answer: Vec<u8>) {
        *self.scripted.lock().unwrap() = answer;
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

fn with(issuers: Vec<IssuerSettings>, cache_file: Option<&Path>) -> GatewaySettingsFile {
    let mut settings = watching(cache_file);
    settings.tenants.issuers = issuers;
    settings
}

/// A Tenant of the namespace `team` without keys.
fn tenant(name: &str, members: Value) -> Value {
    json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "Tenant",
        "metadata": { "name": name, "namespace": "team", "resourceVersion": "1" },
        "spec": { "models": ["*"], "members": members },
    })
}

fn of_group(group: &str) -> Value {
    json!({ "issuer": ISSUER, "claims": { "groups": [group] } })
}

fn accounts(namespace: &str, name: &str) -> Value {
    json!({ "issuer": "kubernetes", "serviceAccounts": [{ "namespace": namespace, "name": name }] })
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Claims of somebody in these groups, with one changed.
fn claims(groups: &[&str], name: &str, value: impl Into<Value>) -> Value {
    let mut claims = json!({
        "iss": ISSUER, "sub": "canary@example.test", "aud": ["x", "flyball"], "groups": groups,
        "iat": now(), "exp": now() + 3_600,
    });
    claims[name] = value.into();
    claims
}

fn of_account(namespace: &str, name: &str) -> Value {
    json!({
        "iss": CLUSTER, "sub": format!("system:serviceaccount:{namespace}:{name}"),
        "aud": ["flyball"], "iat": now(), "exp": now() + 3_600,
    })
}

impl Rig {
    /// The answer to whoever shows this token, with these headers too. There is no model, so 404 is the best there is.
    async fn shows(&self, token: &str, headers: &str) -> String {
        let mut stream = TcpStream::connect(self.process.running.address()).await.unwrap();
        let head = format!(
            "GET /v1/models/m HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {token}\r\n{headers}\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let differs =
            |line: &&str| !line.starts_with("x-request-id:") && !line.starts_with("date:");
        answer.lines().filter(differs).collect::<Vec<_>>().join("\n")
    }

    async fn status_of(&self, token: &str, headers: &str) -> u16 {
        self.shows(token, headers).await["HTTP/1.1 ".len()..][..3].parse().unwrap()
    }

    /// Why a token was refused, and what the audit log hears of it.
    async fn why(&self, token: &str, headers: &str) -> (String, String) {
        self.process.refusals.take();
        assert_eq!(self.status_of(token, headers).await, 401);
        let (what, outcome) = self.process.refusals.take().pop().expect("it was counted");
        let why = outcome.strip_prefix("refused: ").and_then(|rest| rest.split_once(';'));
        (why.expect("a reason").0.to_owned(), what)
    }
}

#[tokio::test]
async fn a_member_is_let_in_by_a_token_that_is_right_and_by_no_other() {
    let (key, stranger) = (TestKey::new("canary-key"), TestKey::new("stranger"));
    let provider = Provider::start(&key.set(&[])).await;
    let (server, client) = ApiServer::start(Vec::new()).await;
    server.put("tenants", vec![tenant("search", json!([of_group("ml-a")]))]);
    let rig = Rig::of(&with(vec![at_url(&provider.url)], None), client, WARM);
    let good = key.token(&claims(&["x", "ml-a"], "more", 1));
    rig.until_status(&good, 404).await;
    rig.until_ready().await;
    assert_eq!(rig.status_of(&good, "").await, 404, "as a bearer too");
    let right = || claims(&["ml-a"], "more", 1);
    let header = |alg: &str, kid: &str| json!({ "alg": alg, "kid": kid });
    let cut = |token: &str| token[..token.rfind('.').unwrap() + 1].to_owned();
    let none = cut(&key.signed(&header("none", "canary-key"), &right()));
    let swapped = format!(
        "{}{}",
        cut(&good),
        good.rsplit('.').next().unwrap().chars().rev().collect::<String>()
    );
    let unknown = rig.shows("sk-nobody", "").await;
    for (token, expected) in [
        (key.token(&claims(&["ml-a"], "aud", "other")), "token_audience"),
        (key.token(&claims(&["ml-a"], "exp", now() - 1)), "expired"),
        (key.token(&claims(&["ml-a"], "nbf", now() + 3_600)), "pending"),
        (key.token(&claims(&["ml-a"], "iss", "https://evil.example.test")), "token_issuer"),
        (key.token(&claims(&["ml-b"], "more", 1)), "no_member"),
        (key.token(&claims(&[], "more", 1)), "no_member"),
        (key.token(&of_account("ml", "loader")), "token_issuer"),
        (stranger.token(&right()), "token_key"),
        (stranger.signed(&header("EdDSA", "canary-key"), &right()), "token_invalid"),
        (key.signed(&header("HS256", "canary-key"), &right()), "token_invalid"),
        (key.signed(&json!({ "alg": "EdDSA" }), &right()), "token_invalid"),
        (none, "token_invalid"),
        (cut(&good), "token_invalid"),
        (swapped, "token_invalid"),
        ("eyJh.eyJi.c".to_owned(), "token_invalid"),
        (format!("eyJh.{}.c", "a".repeat(10_000)), "token_invalid"),
        (good[..good.len() - 20].to_owned(), "token_invalid"),
    ] {
        let (why, what) = rig.why(&token, "").await;
        assert_eq!(why, expected, "{token}");
        assert!(!what.contains("canary"), "{what}");
        assert_eq!(rig.shows(&token, "").await, unknown, "clients are not told why");
    }
    // What is in no answer, is on no page either.
    for path in ["/metrics", "/config", "/state", "/readyz"] {
        let (_, body) = rig.get(path).await;
        assert!(!body.contains("canary") && !body.contains(&good[..40]), "{path}: {body}");
    }
    let (_, page) = rig.get("/metrics").await;
    for line in [
        "flyball_gateway_keys_refused_total{reason=\"no_member\"} ",
        "flyball_gateway_key_set_age_seconds{source=\"url\"} ",
        "flyball_gateway_key_set_fetches_total{source=\"url\",outcome=\"taken\"} 1",
    ] {
        assert!(page.contains(line), "{line}{page}");
    }
}

#[tokio::test]
async fn who_is_a_member_no_more_is_refused_at_once_though_the_token_was_seen() {
    let key = TestKey::new("k");
    let provider = Provider::start(&key.set(&[])).await;
    let (server, client) = ApiServer::start(Vec::new()).await;
    server.put("tenants", vec![tenant("search", json!([of_group("ml-a")]))]);
    let rig = Rig::of(&with(vec![at_url(&provider.url)], None), client, WARM);
    let token = key.token(&claims(&["ml-a"], "more", 1));
    rig.until_status(&token, 404).await;
    server.watched(2).await;
    server.send_event("MODIFIED", &tenant("search", json!([of_group("ml-b")])));
    rig.until_status(&token, 401).await;
    assert_eq!(rig.why(&token, "").await.0, "no_member");
    server.send_event("MODIFIED", &tenant("search", json!([of_group("ml-b"), of_group("ml-a")])));
    rig.until_status(&token, 404).await;
    // A Tenant that is refused has no members.
    let mut orphan = tenant("search", json!([of_group("ml-a")]));
    orphan["spec"]["parent"] = json!("nobody");
    server.send_event("MODIFIED", &orphan);
    rig.until_status(&token, 401).await;
}

#[tokio::test]
async fn who_belongs_to_several_tenants_says_for_which_one_it_asks() {
    let key = TestKey::new("k");
    let provider = Provider::start(&key.set(&[])).await;
    let (server, client) = ApiServer::start(Vec::new()).await;
    let members = |group: &str| json!([of_group(group)]);
    let tenants =
        [tenant("a", members("one")), tenant("b", members("two")), tenant("c", members("x"))];
    server.put("tenants", tenants.to_vec());
    let rig = Rig::of(&with(vec![at_url(&provider.url)], None), client, WARM);
    let token = key.token(&claims(&["one", "two"], "more", 1));
    rig.until_status(&key.token(&claims(&["one"], "more", 1)), 404).await;
    assert_eq!(rig.why(&token, "").await.0, "several_tenants");
    for named in ["team/a", "team/b"] {
        assert_eq!(rig.status_of(&token, &format!("x-flyball-tenant: {named}\r\n")).await, 404);
    }
    for named in ["team/c", "team/nobody", "a", "", "team/a/b", "*", "team/*", "é"] {
        let (why, _) = rig.why(&token, &format!("x-flyball-tenant: {named}\r\n")).await;
        assert_eq!(why, "no_member", "{named}");
    }
    assert_eq!(rig.why(&token, "").await.0, "several_tenants", "what was named before is not kept");
}

#[tokio::test]
async fn made_up_names_of_keys_do_not_have_the_provider_asked_each_time() {
    let key = TestKey::new("k");
    let provider = Provider::start(&key.set(&[])).await;
    let (server, client) = ApiServer::start(Vec::new()).await;
    server.put("tenants", vec![tenant("search", json!([of_group("ml-a")]))]);
    let (began, rig) =
        (Instant::now(), Rig::of(&with(vec![at_url(&provider.url)], None), client, WARM));
    rig.until_status(&key.token(&claims(&["ml-a"], "more", 1)), 404).await;
    for number in 0..200 {
        let token = TestKey::new(&format!("made-up-{number}")).token(&claims(&["ml-a"], "more", 1));
        assert_eq!(rig.status_of(&token, "").await, 401);
    }
    let most = 1 + usize::try_from(began.elapsed().as_secs() / 30).unwrap();
    assert!(provider.requests() <= most, "{} of {most}", provider.requests());
    assert_eq!(
        rig.process.running.tokens().unknown_issuers(),
        [ISSUER],
        "it is asked when it may be"
    );
}

#[tokio::test]
async fn who_restarts_while_the_provider_and_the_api_server_are_away_knows_keys_and_members() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("list");
    let (key, next) = (TestKey::new("k"), TestKey::new("next"));
    let provider = Provider::start(&key.set(&[])).await;
    let (server, client) = ApiServer::start(Vec::new()).await;
    server.put("tenants", vec![tenant("search", json!([of_group("ml-a")]))]);
    let settings = with(vec![at_url(&provider.url)], Some(&file));
    let token = key.token(&claims(&["ml-a"], "more", 1));
    let rig = Rig::of(&settings, client.clone(), WARM);
    rig.until_status(&token, 404).await;
    let key_sets = crate::tokens::file::beside(&file);
    let stored = || crate::tokens::file::load(&key_sets).is_ok_and(|sets| sets.len() == 1);
    until("both on disk", || stored() && file.exists()).await;
    let body = std::fs::read_to_string(&key_sets).unwrap();
    assert!(!body.contains(&token[..40]));
    drop(rig);
    server.go_down(true);
    provider.answer_with(page("500 Oh", ""));
    let rig = Rig::of(&settings, client.clone(), WARM);
    assert_eq!(rig.status_of(&token, "").await, 404);
    assert!(rig.process.tenancy.ready(None).is_ok());
    // Nobody was asked for half a minute: a key that is new is there at once.
    provider.answer_with(page("200 OK", &next.set(&[])));
    rig.until_status(&next.token(&claims(&["ml-a"], "more", 1)), 404).await;
    // And the one that was withdrawn is good for nobody, though its token was seen.
    assert_eq!(rig.why(&token, "").await.0, "token_key");
    drop(rig);
    // Without the file: ready when each was tried once, and it says whose keys are missing.
    std::fs::remove_file(&key_sets).unwrap();
    provider.answer_with(page("500 Oh", ""));
    server.go_down(false);
    let rig = Rig::of(&settings, client, WARM);
    until("tried", || rig.process.ready().is_ok()).await;
    let (why, what) = rig.why(&token, "").await;
    assert_eq!((why.as_str(), what), ("token_key", format!("a token of {ISSUER}")));
    let (_, ready) = rig.get("/readyz").await;
    assert!(ready.contains("note: tenants.issuers[0] not fetched; no keys\n"), "{ready}");
    let (_, config) = rig.get("/config").await;
    let config: Value = serde_json::from_str(&config).unwrap();
    assert_eq!(config["tenants"]["keySets"][0]["trouble"], "HTTP status 500");
    let (_, page) = rig.get("/metrics").await;
    let line = "flyball_gateway_key_set_fetches_total{source=\"url\",outcome=\"status\"} 1\n";
    assert!(page.contains(line), "{page}");
}

#[tokio::test]
async fn a_service_account_is_let_in_without_any_key() {
    let key = TestKey::new("k");
    let (server, client) = ApiServer::start(Vec::new()).await;
    server.serve_page("/openid/v1/jwks", key.set(&[]));
    server
        .serve_page("/.well-known/openid-configuration", json!({ "issuer": CLUSTER }).to_string());
    let tenants = [
        tenant("jobs", json!([accounts("ml", "loader")])),
        tenant("all", json!([accounts("web", "*")])),
    ];
    server.put("tenants", tenants.to_vec());
    let rig = Rig::of(&with(vec![cluster()], None), client, WARM);
    let loader = key.token(&of_account("ml", "loader"));
    rig.until_status(&loader, 404).await;
    assert_eq!(rig.status_of(&key.token(&of_account("web", "shop")), "").await, 404);
    let (why, what) = rig.why(&key.token(&of_account("ml", "other")), "").await;
    assert_eq!((why.as_str(), what.as_str()), ("no_member", "a token of service account ml/other"));
    let mut other = of_account("ml", "loader");
    other["aud"] = json!(["https://kubernetes.default.svc"]);
    assert_eq!(rig.why(&key.token(&other), "").await.0, "token_audience");
    let mut person = of_account("ml", "loader");
    person["sub"] = json!("jane");
    assert_eq!(rig.why(&key.token(&person), "").await.0, "no_member");
}

#[tokio::test]
async fn without_issuers_a_token_is_a_key_that_nobody_has() {
    let (server, client) = ApiServer::start(Vec::new()).await;
    server.put("tenants", vec![tenant("search", json!([of_group("ml-a")]))]);
    let rig = Rig::of(&watching(None), client, WARM);
    until("ready", || rig.process.tenancy.ready(None).is_ok()).await;
    let token = TestKey::new("k").token(&claims(&["ml-a"], "more", 1));
    let expected = if token.len() > 512 { "missing" } else { "unknown" };
    assert_eq!(rig.why(&token, "").await.0, expected);
}
