//! Callers without a key: a service account of the cluster is let in by its own token, and by no other.

use super::callers::{Gateway, LONG};
use super::rig::crds;
use super::tenants::Engine;
use anyhow::{Context, Result, ensure};
use flyball_e2e::{Story, in_namespace, kubectl, kubectl_output, note, until};
use std::time::Instant;

/// What a person writes to let in what runs as a service account. There is no key in it, and none is made.
const TENANT: &str = "\
apiVersion: flyball.dev/v1alpha1
kind: Tenant
metadata: { name: jobs }
spec:
  models: [m]
  members:
    - { issuer: kubernetes, serviceAccounts: [{ namespace: NAMESPACE, name: loader }] }
";

/// The gateway takes tokens of the cluster.
const ISSUER: &str = "\n[[tenants.issuers]]\nkubernetes = true\n";

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn gateway_lets_a_service_account_in_by_its_token() -> Result<()> {
    in_namespace(&[], async |story| {
        crds(story)?;
        for account in ["loader", "other"] {
            let create = ["--namespace", &story.namespace, "create", "serviceaccount", account];
            kubectl(&story.cluster, &create, "")?;
        }
        let (loader, other) =
            (token(story, "loader", "flyball")?, token(story, "other", "flyball")?);
        let elsewhere = token(story, "loader", "https://kubernetes.default.svc.cluster.local")?;
        let engine = Engine::start().await?;
        let gateway = Gateway::start(story, engine.address, ISSUER)?;
        gateway.process.ready().await?;
        // Ready means that the key set of the cluster is there: nothing has to be tried twice.
        ensure!(gateway.ask(&loader).await? == 401, "nobody is let in while there is no Tenant");
        let manifest = TENANT.replace("NAMESPACE", &story.namespace);
        let began = Instant::now();
        story.apply(&manifest)?;
        gateway.until(&loader, 200).await?;
        note(&format!("{:.1} s from apply to the first answer", began.elapsed().as_secs_f64()));
        ensure!(gateway.ask(&elsewhere).await? == 401, "a token for another audience is let in");
        ensure!(gateway.ask(&other).await? == 401, "another account is let in");
        ensure!(
            gateway.ask(&cut(&loader)?).await? == 401,
            "a token without its signature is let in"
        );
        // Seen tokens are remembered, and yet whoever is no member any more is refused.
        let began = Instant::now();
        story.apply(&manifest.replace("name: loader", "name: other"))?;
        gateway.until(&loader, 401).await?;
        let took = began.elapsed().as_secs_f64();
        note(&format!("{took:.1} s from apply to the first refusal"));
        ensure!(took < 5.0, "a member was refused after {took} s only");
        gateway.until(&other, 200).await?;
        check_tokens(&gateway, &story.namespace, &[&loader, &other, &elsewhere]).await
    })
    .await
}

/// Reasons are told, and tokens are nowhere.
async fn check_tokens(gateway: &Gateway, namespace: &str, tokens: &[&str]) -> Result<()> {
    let refused = "flyball_gateway_keys_refused_total{reason=\"token_audience\"} 1";
    let page = gateway.page("/metrics").await?;
    ensure!(page.contains(refused), "{page}");
    ensure!(
        page.contains("key_set_fetches_total{source=\"kubernetes\",outcome=\"taken\"}"),
        "{page}"
    );
    // Every ten seconds.
    let line = format!("a token of service account {namespace}/other");
    until("the audit log", LONG, async || Ok(gateway.process.log().contains(&line).then_some(())))
        .await?;
    let output = gateway.output().await?;
    for part in tokens.iter().flat_map(|token| token.split('.')) {
        // Headers are the same for all, and the rest is a secret.
        ensure!(!output.contains(part), "a part of a token is shown");
    }
    Ok(())
}

/// A token of an account for an audience, as a pod gets it.
fn token(story: &Story, account: &str, audience: &str) -> Result<String> {
    let namespace = &story.namespace;
    let create = ["--namespace", namespace, "create", "token", account, "--audience", audience];
    Ok(kubectl_output(&story.cluster, &create, "")?.trim().to_owned())
}

fn cut(token: &str) -> Result<String> {
    let end = token.rfind('.').context("a token has dots")?;
    Ok(token[..=end].to_owned())
}
