//! A model that is only recommended wants more than its full pool has: its neighbour keeps what it has.

use super::super::faults::{never_fewer, under_load};
use super::super::rig::{Rig, Setup};
use anyhow::{Context, Result, ensure};
use flyball_e2e::{Story, in_namespace, kubectl, note, until};
use serde_json::json;
use std::time::Duration;

/// Of the eight accelerators of the test cluster's two nodes.
const ACTS: i32 = 6;

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn trust_a_recommended_model_takes_nothing_from_its_neighbour() -> Result<()> {
    in_namespace(&[], async |story| {
        let pool = Pool::new(story)?;
        let setup = Setup {
            scaling: json!({ "mode": "Act", "max": ACTS }),
            // Eight streams of some 60 tokens a second want more than six.
            decode: Some(40),
            pool: Some(pool.0.clone()),
            ..Setup::default()
        };
        let rig = Box::pin(Rig::of(story, setup)).await?;
        let shown = async {
            rig.settled(ACTS as usize, Duration::from_secs(180)).await?;
            never_fewer(&rig, ACTS, neighbour(story, &rig, &pool)).await
        };
        let ((), load) = under_load(&rig, 200, shown).await?;
        ensure!(load.errors.is_empty(), "{:?}", load.errors.first());
        note("six replicas throughout, beside a model that is recommended five of eight");
        Ok(())
    })
    .await
}

/// Two replicas, five recommended, three of them not there.
async fn neighbour(story: &Story, rig: &Rig<'_>, pool: &Pool) -> Result<()> {
    let setup = Setup {
        scaling: json!({ "mode": "Recommend", "min": 5, "max": 5 }),
        pool: Some(pool.0.clone()),
        ..Setup::default()
    };
    let manifest = setup.manifest(story)?.replace("replicas: 1", "replicas: 2");
    let named = manifest
        .replace("name: model }", "name: neighbour }")
        .replace("app: model }", "app: neighbour }")
        .replace("name: model}", "name: neighbour}")
        .replace("served-name=model", "served-name=neighbour");
    story.apply(&named)?;
    until("a recommendation", Duration::from_secs(60), async || {
        let status = rig.model_of(&story.namespace, "neighbour").await?["status"].clone();
        Ok(status["decision"].is_object().then_some(()))
    })
    .await
    .with_context(|| rig.operator.log())?;
    // Twenty looks: one would do.
    tokio::time::sleep(Duration::from_secs(20)).await;
    let draining = rig.draining().await?;
    ensure!(draining == 0, "{draining} pods drain: {}", rig.operator.log());
    Ok(())
}

/// A pool of the test cluster's nodes; it belongs to no namespace, so it is removed by hand.
struct Pool(String, std::path::PathBuf);

impl Pool {
    fn new(story: &Story) -> Result<Self> {
        super::super::rig::crds(story)?;
        let name = format!("pool-{}", story.namespace);
        let pool = json!({
            "apiVersion": "flyball.dev/v1alpha1", "kind": "Pool", "metadata": { "name": name },
            "spec": {
                "accelerator": "h100-sxm-80gb",
                "nodeSelector": { "flyball.dev/pool": "test" },
            },
        });
        kubectl(&story.cluster, &["apply", "--filename", "-"], &pool.to_string())?;
        Ok(Self(name, story.cluster.kubeconfig.clone()))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let program = std::env::var("FLYBALL_E2E_KUBECTL").unwrap_or_else(|_| "kubectl".into());
        let _ = std::process::Command::new(program)
            .arg("--kubeconfig")
            .arg(&self.1)
            .args(["delete", "pool.flyball.dev", &self.0, "--wait=false"])
            .status();
    }
}
