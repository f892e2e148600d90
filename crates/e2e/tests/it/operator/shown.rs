//! What people see of a model and of a pool: tables, events, conditions and answers, as they were looked at.
//!
//! Times, ages and names that differ from run to run are replaced; columns are held apart by three
//! spaces, because their width follows what was replaced.

use super::rig::{Rig, Setup};
use anyhow::{Result, ensure};
use flyball_e2e::{Story, dynamic, in_namespace, kubectl, kubectl_output, note, until};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::process::Command;
use std::time::Duration;

/// What differs from run to run.
const REPLACED: [(&str, &str); 12] = [
    (r"story-[a-z0-9]{5}", "NAMESPACE"),
    (r"model-[a-z0-9]{8,10}-[a-z0-9]{5}", "POD"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
    // With the date, where it is another day.
    (r"\b(\d{4}-\d\d-\d\d )?\d\d:\d\d(:\d\d)?\b", "CLOCK"),
    (r"\d+( \(\d+ to \d+\))? s until", "# s until"),
    (r"\d+ starts? measured", "# starts measured"),
    (r"\b(\d+h)?(\d+m)?\d+(\.\d+)?s\b|\b\d+ s\b|\b\d+m\b|\b\d+ms\b", "AGE"),
    (r"<(unknown|invalid)>", "AGE"),
    (r">?\d+\.\d+", "#"),
    (r" {2,}", "   "),
    // At the first look, when the gateway may have said something or nothing yet.
    (r"is unknown: [a-z, ]+ missing\.", "is unknown: SIGNALS missing."),
    // Of past decisions: what served then and what an HPA would have had.
    (r"(CLOCK   NAMESPACE/model   \S+   \d+)   \S+   \S+", "$1   #   #"),
];

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn what_people_see_of_a_model_is_as_it_was_looked_at() -> Result<()> {
    in_namespace(&[], async |story| {
        let scaling = json!({ "mode": "Act", "max": 4 });
        let rig = Rig::of(story, Setup { scaling, serves: true, ..Setup::default() }).await?;
        // No rate can be told from less than four seconds.
        tokio::time::sleep(Duration::from_secs(6)).await;
        let mut page = Page { story, rig: &rig, text: String::new() };
        rig.settled(1, Duration::from_secs(120)).await?;
        rig.wait_for("signals", |model| is(model, "SignalsFresh", "True")).await?;
        rig.wait_for("its reason", |model| decided(model) == "Steady").await?;
        page.add_moment("It serves")?;

        rig.change(&json!({ "spec": { "scaling": { "min": 2 } } })).await?;
        rig.settled(2, Duration::from_secs(120)).await?;
        rig.wait_for("two", |model| model["status"]["readyReplicas"] == 2).await?;
        page.add_moment("Two at least are wanted")?;

        rig.pin(Some(3)).await?;
        rig.settled(3, Duration::from_secs(120)).await?;
        rig.wait_for("three", |model| model["status"]["readyReplicas"] == 3).await?;
        page.add_moment("A person pins three")?;

        page.flyball(&["freeze", "model", "--for", "1h", "--reason", "a repair", "--yes"])?;
        rig.wait_for("frozen", |model| decided(model) == "Frozen").await?;
        page.add_moment("A person freezes it")?;

        page.flyball(&["resume", "model", "--yes"])?;
        rig.wait_for("pinned again", |model| decided(model) == "Pinned").await?;
        let past = json!({ "from": "1960-01-01T00:00:00Z", "until": "1960-01-02T00:00:00Z" });
        let calendar = json!([{ "replicas": 2, "once": past }]);
        rig.change(&json!({ "spec": { "scaling": { "calendar": calendar } } })).await?;
        rig.wait_for("refused", |model| is(model, "Stalled", "True")).await?;
        page.add_moment("Its calendar cannot be read")?;

        page.conditions()?;
        page.events()?;
        page.flyball(&["decisions", "model"])?;
        page.hold("model");
        Ok(())
    })
    .await
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn what_people_see_of_a_pool_is_as_it_was_looked_at() -> Result<()> {
    in_namespace(&[], async |story| {
        let rig = Rig::new(story, 0, &json!({ "mode": "Recommend" })).await?;
        let seen = pool(story, &rig).await;
        // They are in no namespace, so that nobody else removes them.
        for kind in ["node", "pool"] {
            kubectl(&story.cluster, &["delete", kind, &story.namespace, "--ignore-not-found"], "")?;
        }
        seen
    })
    .await
}

/// A node that no kubelet keeps: it is there for as long as the story looks.
async fn pool(story: &Story, rig: &Rig<'_>) -> Result<()> {
    let name = &story.namespace;
    let pool = json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "Pool", "metadata": { "name": name },
        "spec": {
            "accelerator": "h100-sxm-80gb", "nodeSelector": { "flyball.dev/story": name }, "limit": 16,
            "prices": [{ "purchase": "Spot", "perGpuHour": "2.50" }],
        },
    });
    kubectl(&story.cluster, &["apply", "--filename", "-"], &pool.to_string())?;
    let mut page = Page { story, rig, text: String::new() };
    let pools = dynamic(&story.cluster.client, None, "flyball.dev/v1alpha1", "Pool");
    let gpus = async |count: i64| {
        until("the pool's status", Duration::from_secs(30), async || {
            let pool = pools.get(name).await?;
            Ok((pool.data["status"]["gpus"] == count).then_some(()))
        })
        .await
    };
    gpus(0).await?;
    page.kubectl("A pool without a node", &["get", "pool", name])?;
    page.pool_conditions()?;
    let labels = json!({ "flyball.dev/story": name, "karpenter.sh/capacity-type": "spot" });
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": name, "labels": labels },
        "spec": { "taints": [{ "key": "flyball.dev/story", "effect": "NoSchedule" }] },
    });
    kubectl(&story.cluster, &["create", "--filename", "-"], &node.to_string())?;
    let status = json!({ "status": {
        "allocatable": { "nvidia.com/gpu": "4" }, "capacity": { "nvidia.com/gpu": "4" },
        "conditions": [{ "type": "Ready", "status": "True", "reason": "Story" }],
    } });
    let patch = ["patch", "node", name, "--subresource=status", "--type=merge", "--patch"];
    kubectl(&story.cluster, &[&patch[..], &[&status.to_string()]].concat(), "")?;
    gpus(4).await?;
    page.kubectl("A pool with a node", &["get", "pool", name])?;
    page.pool_conditions()?;
    page.hold("pool");
    Ok(())
}

/// Everything that was seen, one after the other.
struct Page<'a> {
    story: &'a Story,
    rig: &'a Rig<'a>,
    text: String,
}

impl Page<'_> {
    /// The tables and the answer to "why?" at one moment.
    fn add_moment(&mut self, when: &str) -> Result<()> {
        self.kubectl(when, &["get", "modelservices"])?;
        self.kubectl("the same, wide", &["get", "modelservices", "--output=wide"])?;
        self.flyball(&["why", "model"])
    }

    fn conditions(&mut self) -> Result<()> {
        let columns = "--output=go-template={{range .status.conditions}}{{printf \"%-18s %-8s %-16s %s\\n\" .type .status .reason .message}}{{end}}";
        self.kubectl("Conditions", &["get", "modelservice", "model", columns])
    }

    fn pool_conditions(&mut self) -> Result<()> {
        let columns = "--output=go-template={{range .status.conditions}}{{printf \"%-8s %-8s %-20s %s\\n\" .type .status .reason .message}}{{end}}";
        self.kubectl("Its conditions", &["get", "pool", &self.story.namespace, columns])
    }

    fn events(&mut self) -> Result<()> {
        let of = "--field-selector=involvedObject.kind=ModelService";
        self.kubectl("Events", &["get", "events", of, "--sort-by=.metadata.creationTimestamp"])
    }

    fn kubectl(&mut self, title: &str, args: &[&str]) -> Result<()> {
        let args = [&["--namespace", &self.story.namespace], args].concat();
        let printed = kubectl_output(&self.story.cluster, &args, "")?;
        self.add(title, &printed);
        Ok(())
    }

    fn flyball(&mut self, args: &[&str]) -> Result<()> {
        let output = Command::new(&self.story.cluster.binary)
            .args(args)
            .env("KUBECONFIG", &self.story.cluster.kubeconfig)
            .env("FLYBALL_NAMESPACE", &self.story.namespace)
            .env("FLYBALL_OPERATOR", format!("http://{}", self.rig.operator.admin))
            .output()?;
        let printed = String::from_utf8(output.stdout)?;
        let also = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "flyball {args:?}: {printed}{also}");
        self.add(&format!("flyball {}", args.join(" ")), &format!("{printed}{also}"));
        Ok(())
    }

    fn add(&mut self, title: &str, printed: &str) {
        note(&format!("== {title}\n{printed}"));
        let _ = write!(self.text, "== {title}\n{}\n", unwrapped(printed));
    }

    fn hold(&self, name: &str) {
        insta::with_settings!({ filters => REPLACED.to_vec(), omit_expression => true }, {
            insta::assert_snapshot!(name, self.text);
        });
    }
}

/// Lines of a tree that were broken are put together again: where, depends on what was replaced.
fn unwrapped(printed: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in printed.lines() {
        let goes_on = line.starts_with(['│', ' ']) && !line.contains("─ ");
        match lines.last_mut() {
            Some(last) if goes_on => {
                *last = format!("{last} {}", line.trim_start_matches(['│', ' ']));
            }
            _ => lines.push(line.trim_end().to_owned()),
        }
    }
    lines.join("\n") + "\n"
}

fn is(model: &Value, kind: &str, status: &str) -> bool {
    let conditions = model["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|one| one["type"] == kind && one["status"] == status)
}

fn decided(model: &Value) -> &str {
    model["status"]["decision"]["reason"].as_str().unwrap_or_default()
}
