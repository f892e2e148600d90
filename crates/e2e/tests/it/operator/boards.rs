//! Every query of the boards and every rule against a real Prometheus that scrapes a running operator and
//! gateway. It runs beside them, because the cluster's own reaches only pods.

use super::rig::Rig;
use anyhow::{Context, Result, ensure};
use flyball_e2e::http::json;
use flyball_e2e::process::free;
use flyball_e2e::{in_namespace, note, until};
use futures::future::join_all;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const DASHBOARDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dashboards");

/// Boards that are the operator's; the gateway's has panels of things that this story has none of, and the one of training
/// runs is looked at by their story.
const BOARDS: [&str; 3] = ["operator", "operator-fleet", "operator-model"];

/// Panels that show something only when something is wrong, or where prices are known.
const MAY_BE_EMPTY: [&str; 10] = [
    "Accelerators",
    "Errors",
    "Furthest behind",
    "Longest wait for a node",
    "Stale or missing signals",
    "Possible savings",
    "False conditions",
    "Decisions",
    "Oldest replica that is not ready",
    "Used",
];

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn every_panel_of_the_operators_boards_has_something_to_show() -> Result<()> {
    in_namespace(&[], async |story| {
        let rig = Rig::new(story, 0, &json!({ "mode": "Act", "max": 4, "min": 2 })).await?;
        let prometheus = Prometheus::start(&[rig.operator.admin, rig.gateway.admin])?;
        rig.settled(2, Duration::from_secs(120)).await?;
        for round in 0..6 {
            let answers = join_all((0..8).map(|one| rig.ask(round * 8 + one, 40))).await;
            answers.into_iter().collect::<Result<Vec<()>>>()?;
        }
        // An operator that has just begun waits for gateways that may still come before it says what is needed.
        let needed = format!(
            "flyball_model_need_replicas{{target_namespace=\"{}\", kind=\"now\"}}",
            story.namespace
        );
        until("the work to be known", Duration::from_secs(150), async || {
            Ok((prometheus.ask(&needed).await? >= 1.0).then_some(()))
        })
        .await?;
        // Rates need two scrapes, and a scrape of what was counted meanwhile.
        tokio::time::sleep(Duration::from_secs(10)).await;
        let queries = all_queries(&story.namespace)?;
        let shown = prometheus.shows_all(&queries).await;
        let rules = prometheus.rules().await?;
        note(&format!("{} queries asked, {rules} rules evaluated", queries.len()));
        shown
    })
    .await
}

/// Every query of the operator's boards as a person would ask it, with the panel that it is of.
fn all_queries(namespace: &str) -> Result<Vec<(String, String)>> {
    let of_boards: Result<Vec<_>> = BOARDS.iter().map(|board| queries(board, namespace)).collect();
    Ok(of_boards?.concat())
}

/// Title and query of everything on a board, as a person would ask it.
pub(super) fn queries(board: &str, namespace: &str) -> Result<Vec<(String, String)>> {
    let text = std::fs::read_to_string(format!("{DASHBOARDS}/{board}.json"))?;
    let board: Value = serde_json::from_str(&text)?;
    let panels = board["panels"].as_array().context("a board without panels")?;
    let of_panel = |panel: &Value| {
        let title = panel["title"].as_str().unwrap_or_default().to_owned();
        let targets = panel["targets"].as_array().cloned().unwrap_or_default();
        targets.into_iter().map(move |target| {
            (title.clone(), filled_in(target["expr"].as_str().unwrap_or_default(), namespace))
        })
    };
    Ok(panels.iter().flat_map(of_panel).collect())
}

/// With what a person would have chosen.
fn filled_in(query: &str, namespace: &str) -> String {
    query
        .replace("$__rate_interval", "1m")
        .replace("$target_namespace", namespace)
        .replace("$instance", ".*")
        .replace("$model", "model")
}

/// A Prometheus of this machine, with our rules; ends with this.
pub(super) struct Prometheus {
    child: Child,
    address: SocketAddr,
    folder: PathBuf,
}

impl Prometheus {
    /// Waits until each of these panels shows something. A scrape that a busy machine misses leaves nothing to show until
    /// the next.
    pub(super) async fn shows_all(&self, queries: &[(String, String)]) -> Result<()> {
        let mut empty = Vec::new();
        let shown = until("every panel to show something", Duration::from_secs(30), async || {
            empty = self.shows_nothing_for(queries).await?;
            Ok(empty.is_empty().then_some(()))
        });
        let shown = shown.await;
        shown.with_context(|| format!("nothing to show:\n{}", empty.join("\n")))
    }

    /// Those of these panels that are empty and should not be.
    async fn shows_nothing_for(&self, queries: &[(String, String)]) -> Result<Vec<String>> {
        let mut empty = Vec::new();
        for (panel, query) in queries {
            let found = self.ask(query).await.with_context(|| query.clone())?;
            if found < 1.0 && !MAY_BE_EMPTY.contains(&panel.as_str()) && !query.contains("cost") {
                empty.push(format!("{panel}: {query}"));
            }
        }
        Ok(empty)
    }

    pub(super) fn start(targets: &[SocketAddr]) -> Result<Self> {
        let address = free()?;
        let folder = std::env::temp_dir().join(format!("flyball-prometheus-{}", address.port()));
        std::fs::create_dir_all(&folder)?;
        let rules = Path::new(DASHBOARDS).join("rules");
        let targets = targets.iter().chain([&address]).map(ToString::to_string);
        let targets: Vec<String> = targets.collect();
        let settings = json!({
            "global": { "scrape_interval": "1s", "evaluation_interval": "1s" },
            "rule_files": [rules.join("gateway.yaml"), rules.join("operator.yaml")],
            "scrape_configs": [{ "job_name": "flyball", "static_configs": [{ "targets": targets }] }],
        });
        let file = folder.join("prometheus.yaml");
        std::fs::write(&file, settings.to_string())?;
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(folder.join("log"))?)
            .spawn()
            .context("could not start prometheus; hint: apt install prometheus")?;
        Ok(Self { child, address, folder })
    }

    /// How many series a query finds.
    async fn ask(&self, query: &str) -> Result<f64> {
        self.number(&format!("count({query})")).await
    }

    /// The number that a query gives; 0 if it gives none.
    async fn number(&self, query: &str) -> Result<f64> {
        let query = utf8_percent_encode(query, NON_ALPHANUMERIC);
        let path = format!("/api/v1/query?query={query}");
        let answer = json(self.address, &path, None).await?;
        let value = answer["data"]["result"][0]["value"][1].as_str().unwrap_or("0");
        value.parse().with_context(|| format!("{query}: {answer}"))
    }

    /// Waits until every rule was evaluated, and says how many there are. One that cannot be is an error.
    async fn rules(&self) -> Result<f64> {
        until("rules to be evaluated", Duration::from_secs(30), async || {
            let failed = self.number("sum(prometheus_rule_evaluation_failures_total)").await?;
            ensure!(failed < 1.0, "{failed} evaluations of rules failed");
            let all = self.number("sum(prometheus_rule_group_rules)").await?;
            let done = self.number("sum(prometheus_rule_evaluations_total)").await?;
            Ok((all > 0.0 && done >= 2.0 * all).then_some(all))
        })
        .await
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // Gone already is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
