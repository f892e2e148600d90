//! Who did what: the logs of a real API server and of a gateway are one stream, and no key is in either.

use super::callers::{Gateway, LONG};
use super::rig::crds;
use super::tenants::{Engine, sha256};
use anyhow::{Context, Result, ensure};
use flyball_e2e::{Story, in_namespace, kubectl, kubectl_output, note, until};
use serde_json::{Value, json};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Command;

const TENANT: &str = "\
apiVersion: flyball.dev/v1alpha1
kind: Tenant
metadata: { name: search }
spec:
  models: [m]
";

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn gateway_and_api_server_tell_who_did_what_as_one_stream() -> Result<()> {
    in_namespace(&[], async |story| {
        let Some(log) = std::env::var_os("FLYBALL_E2E_AUDIT").map(PathBuf::from) else {
            note("no audit log: who did what is unknown");
            return Ok(());
        };
        crds(story)?;
        let folder = std::env::temp_dir().join(format!("flyball-{}-audit", story.namespace));
        std::fs::create_dir_all(&folder)?;
        let outcome = Box::pin(play(story, &log, &folder)).await;
        std::fs::remove_dir_all(folder)?;
        outcome
    })
    .await
}

async fn play(story: &Story, log: &Path, folder: &Path) -> Result<()> {
    let from = std::fs::metadata(log)?.len();
    let engine = Engine::start().await?;
    let own = folder.join("gateway.jsonl");
    let log_of_its_own = format!("\n[telemetry]\naudit_log = \"{}\"\n", own.display());
    let gateway = Gateway::start(story, engine.address, &log_of_its_own)?;
    gateway.process.ready().await?;
    let tenant = format!("{}/search", story.namespace);
    story.apply(TENANT)?;
    flyball(story, &["key", "create", &tenant, "--name", "app", "--to-secret", "app-key"])?;
    let template = "go-template={{index .data \"api-key\" | base64decode}}";
    let stored = ["--namespace", &story.namespace, "get", "secret", "app-key", "-o", template];
    let first = kubectl_output(&story.cluster, &stored, "")?;
    let second = flyball(story, &["key", "rotate", &tenant, "app"])?.trim().to_owned();
    gateway.until(&second, 200).await?;
    ensure!(gateway.ask(&first).await? == 200, "a key is refused before its time");
    flyball(story, &["key", "revoke", &tenant, "app-2"])?;
    gateway.until(&second, 401).await?;
    forbidden(story)?;
    // Every ten seconds.
    let line = format!("key {} of {tenant}", id(&second)?);
    until("the gateway's audit log", LONG, async || {
        Ok(std::fs::read_to_string(&own)?.contains(&line).then_some(()))
    })
    .await?;
    let part = folder.join("api-server.jsonl");
    let written = since(log, from)?;
    std::fs::write(&part, &written)?;
    let files = [&part, &own].map(|file| file.to_str().unwrap_or_default());
    let printed = flyball(story, &["audit", files[0], files[1], "-o", "json"])?;
    in_order(&printed, &story.namespace, (id(&first)?, id(&second)?))?;
    for key in [&first, &second] {
        let hash = sha256(key)?;
        let ours = printed.clone() + &gateway.output().await? + &std::fs::read_to_string(&own)?;
        for (secret, text) in [(key, &ours), (&hash, &ours), (key, &written)] {
            // A part of it would do too.
            ensure!(!text.contains(&secret[20..40]), "a key or its hash is shown");
        }
        ensure!(written.contains(&hash), "the API server's log has no bodies of Tenants");
    }
    Ok(())
}

/// Somebody without any right, in whose name an administrator asks.
fn forbidden(story: &Story) -> Result<()> {
    let apply = ["--namespace", &story.namespace, "--as", "mallory", "apply", "--server-side"];
    let more = ["--validate=false", "--force-conflicts", "--filename", "-"];
    let refused = kubectl(&story.cluster, &[&apply[..], &more].concat(), TENANT);
    let why = refused.err().context("mallory may change a Tenant")?.to_string();
    ensure!(why.contains("forbidden"), "{why}");
    Ok(())
}

/// All of it is told, each with who, on what and outcome.
fn in_order(printed: &str, namespace: &str, (first, second): (&str, &str)) -> Result<()> {
    let printed: Value = serde_json::from_str(printed)?;
    ensure!(printed["problems"] == json!([]), "{}", printed["problems"]);
    let acts = printed["acts"].as_array().context("no acts")?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    ensure!(acts.is_sorted_by_key(|act| text(&act["time"])), "{printed:#}");
    // Other stories write at the same time.
    let here = acts.iter().filter(|act| text(&act["object"]).contains(namespace));
    let (ours, theirs): (Vec<&Value>, Vec<&Value>) =
        here.partition(|act| act["source"] == "api-server");
    let short: Vec<Value> = ours
        .iter()
        .map(|act| {
            let change = &act["changes"][0];
            let what = ["what", "key", "id", "replaces"].map(|field| change[field].clone());
            json!([act["act"], text(&act["object"]), what, act["outcome"], act["actingAs"]])
        })
        .collect();
    let tenant = format!("tenant/{namespace}/search");
    let secret = format!("secret/{namespace}/app-key");
    let none = json!([null, null, null, null]);
    let expected = [
        json!(["created", tenant, none, "accepted", null]),
        json!(["changed", tenant, ["keyCreated", "app", first, null], "accepted", null]),
        json!(["created", secret, none, "accepted", null]),
        json!(["changed", tenant, ["keyRotated", "app-2", second, "app"], "accepted", null]),
        json!(["changed", tenant, ["keyRevoked", "app-2", second, null], "accepted", null]),
        json!(["changed", tenant, none, "refused 403", "mallory"]),
    ];
    ensure!(short == expected, "{short:#?}");
    ensure!(ours.iter().all(|act| !text(&act["who"]).is_empty()), "{ours:#?}");
    let has = |act: &str, object: &str, outcome: &str| {
        theirs.iter().any(|one| {
            one["act"] == act
                && text(&one["object"]).contains(object)
                && text(&one["outcome"]).starts_with(outcome)
        })
    };
    ensure!(has("tenants", &format!("+{namespace}/search"), "loaded"), "{theirs:#?}");
    ensure!(has("key", &format!("key {second} of"), "refused: disabled"), "{theirs:#?}");
    Ok(())
}

/// What was written to a log from there on. One that is shorter was begun anew.
fn since(log: &Path, from: u64) -> Result<String> {
    let mut file = std::fs::File::open(log)?;
    if file.metadata()?.len() >= from {
        file.seek(SeekFrom::Start(from))?;
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    // Its last line may be half written.
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    Ok(String::from_utf8(bytes[..end].to_vec())?)
}

/// The public part of a key.
fn id(key: &str) -> Result<&str> {
    key.strip_prefix("sk-fly-").and_then(|rest| rest.get(..10)).context("that is no key")
}

/// What the program answers.
fn flyball(story: &Story, args: &[&str]) -> Result<String> {
    let mut command = Command::new(&story.cluster.binary);
    let ran = command.env("KUBECONFIG", &story.cluster.kubeconfig).args(args).output()?;
    let complaint = String::from_utf8_lossy(&ran.stderr);
    ensure!(ran.status.success(), "flyball {}: {complaint}", args.join(" "));
    Ok(String::from_utf8(ran.stdout)?)
}
