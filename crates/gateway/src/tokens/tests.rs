//! Key sets that come, stay away, change and are nonsense; time is an argument wherever nothing is fetched.

use super::fetch::fetch;
use super::sources::{FetchedKeySet, KeySources, Taken};
use super::{FetchProblem, KeySetOutcome, KeySetSource, file};
use crate::settings::IssuerSettings;
use bytes::Bytes;
use flyball_core::units::{Micros, Timestamp};
use flyball_fleet::testing::ApiServer;
use flyball_identity::testing::TestKey;
use flyball_identity::{JwksRefusal, MAX_JWKS_BYTES, TokenRefusal};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

pub(crate) const ISSUER: &str = "https://login.example.test";
pub(crate) const CLUSTER: &str = "https://kubernetes.default.svc";

/// An issuer whose set is at this address.
pub(crate) fn at_url(url: &str) -> IssuerSettings {
    IssuerSettings {
        issuer: Some(ISSUER.to_owned()),
        audience: Some("flyball".to_owned()),
        jwks_url: Some(url.to_owned()),
        ..IssuerSettings::default()
    }
}

/// The cluster.
pub(crate) fn cluster() -> IssuerSettings {
    IssuerSettings { kubernetes: true, ..IssuerSettings::default() }
}

/// An address at which everybody hears this, as it is; and the other end hangs up then.
pub(crate) async fn serves(answer: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/keys", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0; 4_096];
            // All of the question has come: it is short and in one piece.
            let _ = stream.read(&mut head).await;
            let _ = stream.write_all(&answer).await;
        }
    });
    url
}

pub(crate) fn page(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}").into_bytes()
}

async fn fetched(answer: Vec<u8>) -> Result<Bytes, FetchProblem> {
    let url = serves(answer).await;
    fetch(&at_url(&url), None).await.map(|fetched| fetched.body)
}

#[tokio::test]
async fn a_key_set_is_what_comes_with_200_and_is_not_too_long() {
    let set = TestKey::new("a").set(&[]);
    assert_eq!(fetched(page("200 OK", &set)).await, Ok(Bytes::from(set.clone())));
    // An address that was trusted does not pass its trust on.
    let elsewhere = serves(page("200 OK", &set)).await;
    let redirect =
        format!("HTTP/1.1 302 Found\r\nlocation: {elsewhere}\r\ncontent-length: 0\r\n\r\n");
    assert_eq!(fetched(redirect.into_bytes()).await, Err(FetchProblem::Status(302)));
    assert_eq!(fetched(page("204 No Content", "")).await, Err(FetchProblem::Status(204)));
    assert_eq!(fetched(page("500 Oh", &set)).await, Err(FetchProblem::Status(500)));
    let huge = " ".repeat(MAX_JWKS_BYTES + 1);
    assert_eq!(fetched(page("200 OK", &huge)).await, Err(FetchProblem::Long));
    // Without an end that is said before: it is read no further either.
    let endless = format!("HTTP/1.1 200 OK\r\n\r\n{}", " ".repeat(1 << 20));
    assert_eq!(fetched(endless.into_bytes()).await, Err(FetchProblem::Long));
    for broken in [&b""[..], b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"]
    {
        let problem = fetched(broken.to_vec()).await.unwrap_err();
        assert_eq!(problem.outcome(), KeySetOutcome::Unreachable, "{problem}");
    }
    let head = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(50_000));
    assert_eq!(fetched(head.into_bytes()).await.unwrap_err().outcome(), KeySetOutcome::Unreachable);
    let nobody = fetch(&at_url("http://127.0.0.1:1/keys"), None).await.unwrap_err();
    assert_eq!(nobody.outcome(), KeySetOutcome::Unreachable);
    assert!(fetch(&cluster(), None).await.unwrap_err().to_string().contains("no API server"));
}

#[tokio::test(start_paused = true)]
async fn who_hangs_is_late() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/keys", listener.local_addr().unwrap());
    assert_eq!(fetch(&at_url(&url), None).await, Err(FetchProblem::Late));
}

#[tokio::test]
async fn who_is_not_named_by_a_certificate_of_the_ca_is_not_asked() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let pem = |name: &str, text: &str| -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let tls = crate::settings::Tls {
        certificate: pem("crt", &made.cert.pem()),
        key: pem("key", &made.signing_key.serialize_pem()),
    };
    let acceptor = crate::accept::acceptor(&tls).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let set = TestKey::new("a").set(&[]);
    let answer = page("200 OK", &set);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let _ = stream.read(&mut [0; 4_096]).await;
            let _ = stream.write_all(&answer).await;
            let _ = stream.shutdown().await;
        }
    });
    let ask = async |host: &str, ca: PathBuf| {
        let url = format!("https://{host}:{port}/keys");
        fetch(&IssuerSettings { ca: Some(ca), ..at_url(&url) }, None).await
    };
    let own = tls.certificate.clone();
    assert_eq!(ask("localhost", own.clone()).await.unwrap().body, set);
    assert!(ask("127.0.0.1", own).await.is_err(), "another name");
    assert!(ask("localhost", pem("other", &other.cert.pem())).await.is_err(), "another CA");
    assert_eq!(ask("localhost", pem("none", "")).await, Err(FetchProblem::NoRoots));
    let missing = ask("localhost", folder.path().join("missing")).await.unwrap_err();
    assert!(matches!(missing, FetchProblem::File(_)), "{missing}");
}

#[tokio::test]
async fn a_set_comes_from_a_file_or_from_the_api_server_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys");
    let set = TestKey::new("a").set(&[]);
    std::fs::write(&path, &set).unwrap();
    let file = |path: &PathBuf| IssuerSettings {
        jwks_url: None,
        jwks_file: Some(path.clone()),
        ..at_url("")
    };
    assert_eq!(fetch(&file(&path), None).await.unwrap().body, set);
    let missing = fetch(&file(&folder.path().join("none")), None).await.unwrap_err();
    assert!(matches!(missing, FetchProblem::File(_)), "{missing}");
    let (server, client) = ApiServer::start(Vec::new()).await;
    server.serve_page("/openid/v1/jwks", &set);
    server
        .serve_page("/.well-known/openid-configuration", json!({ "issuer": CLUSTER }).to_string());
    let came = fetch(&cluster(), Some(&client)).await.unwrap();
    assert_eq!(came, FetchedKeySet { issuer: Some(CLUSTER.to_owned()), body: set.clone().into() });
    let named = IssuerSettings { issuer: Some("mine".to_owned()), ..cluster() };
    assert_eq!(fetch(&named, Some(&client)).await.unwrap().issuer, None);
    for nothing in ["", "{}", r#"{"issuer":""}"#, r#"{"issuer":1}"#] {
        server.serve_page("/.well-known/openid-configuration", nothing);
        assert_eq!(fetch(&cluster(), Some(&client)).await, Err(FetchProblem::Unnamed));
    }
    server.refuse("/openid/v1/jwks", 403);
    assert_eq!(fetch(&named, Some(&client)).await, Err(FetchProblem::Status(403)));
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(1_800_000_000_000 + seconds * 1_000)
}

fn came(set: &str) -> Result<FetchedKeySet, FetchProblem> {
    Ok(FetchedKeySet { issuer: None, body: Bytes::from(set.to_owned()) })
}

fn cluster_came(issuer: &str, set: &str) -> Result<FetchedKeySet, FetchProblem> {
    came(set).map(|came| FetchedKeySet { issuer: Some(issuer.to_owned()), ..came })
}

fn claims(issuer: &str) -> Value {
    let exp = at(30 * 24 * 3_600).as_millis() / 1_000;
    json!({ "iss": issuer, "sub": "u", "aud": "flyball", "exp": exp })
}

fn verifies(sources: &KeySources, key: &TestKey, issuer: &str, now: Timestamp) -> bool {
    let token = key.token(&claims(issuer));
    let verified = sources.verifier().verify(token.as_bytes(), now);
    let unknown = |why: &TokenRefusal| {
        matches!(why, TokenRefusal::KeyUnknown { .. } | TokenRefusal::IssuerUnknown)
    };
    assert!(verified.as_ref().err().is_none_or(unknown), "{verified:?}");
    verified.is_ok()
}

#[test]
fn an_issuer_that_is_away_is_asked_every_half_minute_and_its_keys_hold_for_a_day() {
    let key = TestKey::new("a");
    let mut sources = KeySources::new(&[at_url("http://127.0.0.1:1/keys")]);
    assert!(!sources.are_tried());
    assert_eq!(sources.due(at(0)), [0]);
    let late = || Err(FetchProblem::Late);
    let failed = |first| Taken::Failed { problem: FetchProblem::Late, first };
    assert_eq!(sources.take(0, late(), at(5)), failed(true));
    assert!(sources.are_tried(), "one try makes nobody wait any longer");
    assert!(sources.due(at(29)).is_empty());
    assert_eq!(sources.due(at(30)), [0]);
    assert_eq!(sources.take(0, late(), at(35)), failed(false), "said once");
    assert_eq!(sources.due(at(60)), [0]);
    assert_eq!(sources.take(0, came(&key.set(&[])), at(60)), Taken::Changed(1));
    assert!(sources.due(at(60 + 599)).is_empty());
    assert_eq!(sources.due(at(60 + 600)), [0]);
    let garbage = sources.take(0, came("{}"), at(660));
    let problem = FetchProblem::Useless(JwksRefusal::NotAKeySet);
    assert_eq!(garbage, Taken::Failed { problem, first: true });
    let now = &sources.now(at(700));
    assert_eq!((now.sets[0].keys, now.sets[0].age.unwrap().as_secs()), (1, 640));
    assert_eq!(now.sets[0].setting, "tenants.issuers[0]");
    assert_eq!(now.fetches[KeySetSource::Url as usize], [1, 0, 0, 2, 1]);
    let day = 60 + 24 * 3_600;
    assert!(verifies(&sources, &key, ISSUER, at(day)));
    assert!(!verifies(&sources, &key, ISSUER, at(day + 1)));
    assert_eq!(sources.take(0, came(&key.set(&[])), at(day + 2)), Taken::Same { again: true });
    assert!(verifies(&sources, &key, ISSUER, at(day + 2)));
}

#[test]
fn a_name_of_a_key_that_nobody_knows_has_its_issuer_asked_at_once_and_not_again_for_half_a_minute()
{
    let mut sources = KeySources::new(&[at_url("http://127.0.0.1:1/keys"), cluster()]);
    assert_eq!(sources.due(at(0)), [0, 1]);
    let (old, new) = (TestKey::new("old"), TestKey::new("new"));
    assert_eq!(sources.take(0, came(&old.set(&[])), at(0)), Taken::Changed(1));
    let fetched_at: Vec<u64> =
        (1..100).filter(|s| sources.unknown(ISSUER, at(*s)).is_some()).collect();
    assert_eq!(fetched_at, [30, 60, 90]);
    assert_eq!(sources.take(0, came(&old.set(&[&new])), at(90)), Taken::Changed(2));
    assert_eq!(sources.take(0, came(&old.set(&[&new])), at(91)), Taken::Same { again: false });
    assert!(verifies(&sources, &new, ISSUER, at(100)));
    // A key that was withdrawn is gone with the set that has it no more.
    assert_eq!(sources.take(0, came(&new.set(&[])), at(100)), Taken::Changed(1));
    assert!(!verifies(&sources, &old, ISSUER, at(100)));
    assert_eq!(sources.unknown("https://stranger.example.test", at(1_000)), None);
    // Who the cluster is was not said yet, and is asked for in the same way.
    assert_eq!(sources.due(at(101)), [1]);
    assert!(sources.due(at(130)).is_empty());
}

#[test]
fn the_api_server_says_who_it_is_and_is_nobody_else() {
    let mut sources = KeySources::new(&[at_url("http://127.0.0.1:1/keys"), cluster()]);
    let (own, theirs) = (TestKey::new("own"), TestKey::new("theirs"));
    sources.take(0, came(&theirs.set(&[])), at(0));
    assert_eq!(sources.take(1, cluster_came(CLUSTER, &own.set(&[])), at(1)), Taken::Changed(1));
    assert!(verifies(&sources, &own, CLUSTER, at(2)) && verifies(&sources, &theirs, ISSUER, at(2)));
    assert!(!verifies(&sources, &own, ISSUER, at(2)), "each key is for its issuer");
    // Nothing is forgotten for another name with nonsense.
    let nonsense = sources.take(1, cluster_came("https://x.example.test", "{}"), at(2));
    assert!(matches!(nonsense, Taken::Failed { .. }) && verifies(&sources, &own, CLUSTER, at(2)));
    // Another name: keys of the old one are good for nobody.
    let renamed = "https://oidc.example.test/cluster";
    assert_eq!(sources.take(1, cluster_came(renamed, &own.set(&[])), at(3)), Taken::Changed(1));
    assert!(verifies(&sources, &own, renamed, at(4)) && !verifies(&sources, &own, CLUSTER, at(4)));
    // The name of an issuer of the settings is taken.
    let Taken::Failed { problem: FetchProblem::Issuer(_), .. } =
        sources.take(1, cluster_came(ISSUER, &own.set(&[])), at(5))
    else {
        panic!("two with one name");
    };
    assert!(verifies(&sources, &theirs, ISSUER, at(6)) && !verifies(&sources, &own, ISSUER, at(6)));
    assert!(verifies(&sources, &own, renamed, at(6)), "what was known stays");
}

#[test]
fn what_is_on_disk_is_good_for_its_place_and_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = file::beside(&folder.path().join("list"));
    assert!(file::load(&path).unwrap().is_empty());
    let (key, own) = (TestKey::new("a"), TestKey::new("own"));
    let settings = [at_url("https://a.example.test/keys"), cluster()];
    let mut sources = KeySources::new(&settings);
    sources.take(0, came(&key.set(&[])), at(0));
    sources.take(1, cluster_came(CLUSTER, &own.set(&[])), at(0));
    file::save(&path, &sources.stored()).unwrap();
    let restored = |settings: &[IssuerSettings]| {
        let mut sources = KeySources::new(settings);
        sources.restore(file::load(&path).unwrap());
        sources
    };
    let again = restored(&settings);
    assert!(again.are_tried());
    assert!(verifies(&again, &key, ISSUER, at(1)) && verifies(&again, &own, CLUSTER, at(1)));
    let later = at(0).saturating_add(Micros::from_minutes(24 * 60 + 1));
    assert!(!verifies(&again, &key, ISSUER, later));
    // Whoever names another place does not trust the old one.
    let moved = restored(&[at_url("https://b.example.test/keys")]);
    assert!(!moved.are_tried() && !verifies(&moved, &key, ISSUER, at(1)));
    // What the cluster was called is another issuer's name now.
    let taken = IssuerSettings { issuer: Some(CLUSTER.to_owned()), ..at_url("https://c/keys") };
    let other = restored(&[taken, cluster()]);
    assert!(!verifies(&other, &own, CLUSTER, at(1)));
    let whole = std::fs::read(&path).unwrap();
    for place in [0, 20, 60, whole.len() - 1] {
        let mut changed = whole.clone();
        changed[place] ^= 1;
        std::fs::write(&path, changed).unwrap();
        assert!(file::load(&path).is_err(), "{place}");
    }
}

#[test]
fn nothing_that_is_kept_is_printed_with_a_token() {
    let tokens = Arc::new(super::Tokens::new(&crate::settings::TenantsSettings {
        watch: true,
        issuers: vec![cluster()],
        ..Default::default()
    }));
    let token = TestKey::new("a").token(&claims("canary"));
    let shown = super::ShownToken::new(token.as_bytes(), [7; 32], &http::HeaderMap::new());
    let table = crate::tenants::TenantTable::default();
    let refused = tokens.caller(&shown, &table, at(0)).unwrap_err();
    let printed = format!("{refused:?} {tokens:?}");
    assert!(!printed.contains("canary") && !printed.contains(&token[..20]), "{printed}");
}
