//! A model is served because somebody applied its ModelService: no settings of the gateway name it.

use super::rig::{Setup, crds, operator};
use anyhow::{Context, Result, ensure};
use flyball_e2e::http::HttpAnswer;
use flyball_e2e::process::{ServiceProcess, free};
use flyball_e2e::{Story, in_namespace, kubectl, note, until};
use serde_json::json;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// One that Flyball starts, with two names.
const STARTED: &str = r#"
apiVersion: flyball.dev/v1alpha1
kind: ModelService
metadata: { name: started }
spec:
  model: llama-3.1-8b
  names: [started, Also/Started]
  objectives: { firstTokenMilliseconds: 5000 }
  scaling: { mode: Act, max: 1 }
  gateway: { queueMilliseconds: 60000 }
  variants:
    - gpusPerReplica: 0
      coldStartSeconds: 10
      capacity: { prefillTokensPerSecond: 5000, decodeTokensPerSecond: 500, residentTokens: 37000 }
      engine:
        kind: VLLM
        image: IMAGE
        command: [/flyball]
        args: [emulate, --served-name=started, --served-name=Also/Started, --host=0.0.0.0]
        drainSeconds: 5
        podOverlay: { spec: { securityContext: { runAsNonRoot: true } } }
"#;

/// One whose Deployment runs already, without a Service, and which Flyball may only recommend for.
const ADOPTED: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: { name: plain }
spec:
  replicas: 1
  selector: { matchLabels: { app: plain } }
  template:
    metadata: { labels: { app: plain } }
    spec:
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: 30
      securityContext: { runAsNonRoot: true, seccompProfile: { type: RuntimeDefault } }
      containers:
        - name: engine
          image: IMAGE
          imagePullPolicy: Never
          args: [emulate, --served-name=adopted, --host=0.0.0.0, --port=8007]
          readinessProbe: { httpGet: { path: /health, port: 8007 }, periodSeconds: 1 }
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: { drop: [ALL] }
---
apiVersion: flyball.dev/v1alpha1
kind: ModelService
metadata: { name: adopted }
spec:
  variants: [{ gpusPerReplica: 0, targetRef: { kind: Deployment, name: plain } }]
"#;

/// One that claims a name which another has.
const CLAIMS: &str = r#"
apiVersion: flyball.dev/v1alpha1
kind: ModelService
metadata: { name: claims }
spec:
  names: [adopted]
  variants: [{ gpusPerReplica: 0, targetRef: { kind: Deployment, name: nothing } }]
"#;

/// The longest that anything here may take.
const LONG: Duration = Duration::from_secs(120);

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn operator_and_gateway_serve_what_a_model_service_says() -> Result<()> {
    in_namespace(&[], async |story| {
        crds(story)?;
        let (operator, link) = operator(story, &Setup::default(), None)?;
        operator.ready().await?;
        let (gateway, http) = gateway(story, link)?;
        // There is nothing to serve yet, and that is no reason not to be ready.
        gateway.ready().await?;
        let outcome = play(story, &gateway, http).await;
        outcome.with_context(|| {
            format!("the operator's log:\n{}\nthe gateway's:\n{}", operator.log(), gateway.log())
        })
    })
    .await
}

async fn play(story: &Story, gateway: &ServiceProcess, http: SocketAddr) -> Result<()> {
    ensure!(ask(http, "started").await?.0 == 404, "a model that nobody applied is served");
    let began = Instant::now();
    apply(story, STARTED)?;
    for name in ["started", "Also/Started"] {
        answered(http, name).await?;
    }
    note(&format!("{:.1} s from apply to the first answer", began.elapsed().as_secs_f64()));
    apply(story, ADOPTED)?;
    answered(http, "adopted").await?;
    apply(story, CLAIMS)?;
    until("the claim to be told of", LONG, async || {
        let (status, body) = HttpAnswer::of(gateway.admin, "/readyz", None).await?.whole().await?;
        ensure!(status == 200, "a claim makes the gateway unready: {body}");
        Ok(body.contains("/claims is ignored").then_some(()))
    })
    .await?;
    ensure!(ask(http, "adopted").await?.0 == 200, "the older one serves it no more");
    // Without its ModelService it is not served; its Deployment is its owner's.
    delete(story, "modelservice/claims")?;
    delete(story, "modelservice/adopted")?;
    until("the model to go", LONG, async || {
        Ok((ask(http, "adopted").await?.0 == 404).then_some(()))
    })
    .await?;
    let get = ["--namespace", &story.namespace, "get", "deployment/plain"];
    kubectl(&story.cluster, &get, "")?;
    ensure!(ask(http, "started").await?.0 == 200, "another model was taken along");
    Ok(())
}

/// A gateway that is told of no model.
fn gateway(story: &Story, link: SocketAddr) -> Result<(ServiceProcess, SocketAddr)> {
    let (http, admin) = (free()?, free()?);
    let settings = format!(
        "listen = \"{http}\"\nadmin = \"{admin}\"\nthreads = 1\n\n[telemetry]\naccess_log = false\n\n\
         [kubernetes]\nwatch = \"model-services\"\nnamespaces = [\"{}\"]\n\n\
         [operator]\naddress = \"http://{link}\"\n",
        story.namespace
    );
    Ok((ServiceProcess::start(story, "gateway", &settings, admin)?, http))
}

fn apply(story: &Story, manifest: &str) -> Result<()> {
    let manifest = manifest.replace("IMAGE", &story.cluster.image);
    story.apply(&manifest)
}

fn delete(story: &Story, what: &str) -> Result<()> {
    kubectl(&story.cluster, &["--namespace", &story.namespace, "delete", what], "")
}

/// Waits for an answer of this model. Until the gateway has heard of it, it says 404.
async fn answered(http: SocketAddr, model: &str) -> Result<()> {
    until(&format!("an answer of {model}"), LONG, async || {
        let (status, body) = ask(http, model).await?;
        ensure!([200, 404, 503].contains(&status), "{model}: {status} {body}");
        Ok((status == 200).then_some(()))
    })
    .await
}

async fn ask(http: SocketAddr, model: &str) -> Result<(u16, String)> {
    let body = json!({
        "model": model, "max_tokens": 8, "messages": [{ "role": "user", "content": "Hello" }],
    });
    HttpAnswer::of(http, "/v1/chat/completions", Some(&body)).await?.whole().await
}
