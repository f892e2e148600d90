//! The page "Training in ten minutes", command by command as it stands there.

use super::place;
use crate::operator::five::blocks;
use crate::operator::shell::{Shell, root};
use anyhow::{Context, Result, ensure};
use flyball_e2e::{Cluster, figure, note};
use std::time::Instant;

/// What is left when the page was not read to its end.
const REST: &str = "kubectl delete trainingruns --all --namespace flyball-train --ignore-not-found
helm uninstall flyball --namespace flyball-train --ignore-not-found
kubectl delete namespace flyball-train --ignore-not-found
kubectl delete --ignore-not-found --filename docs/guides/training-in-ten-minutes/places.yaml
helm uninstall flyball-crds --ignore-not-found";

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn a_new_user_trains_in_ten_minutes() -> Result<()> {
    let Some(volume) = place::volume() else {
        note("left out: there is no PyTorch");
        return Ok(());
    };
    let shell = Shell::new(&Cluster::connect().await?)?;
    let outcome = play(&shell, &volume.display().to_string());
    if outcome.is_err() {
        let log = "kubectl get pods,jobsets,workloads,trainingruns --namespace flyball-train --output yaml
                   kubectl logs --namespace flyball-train --prefix --tail=200 --selector flyball.dev/run=first
                   kubectl logs --namespace flyball-train --prefix --tail=100 deployment/flyball-operator";
        let account = shell.run("account", log).and_then(|_| shell.read("account"));
        note(&account.unwrap_or_else(|error| format!("no account: {error:#}")));
    }
    let left = shell.run("rest", REST)?;
    let ran = volume.join("runs/first");
    if ran.exists() {
        std::fs::remove_dir_all(ran)?;
    }
    ensure!(left.success(), "not everything was removed: {}", shell.read("rest")?);
    outcome
}

fn play(shell: &Shell, volume: &str) -> Result<()> {
    let page = std::fs::read_to_string(root().join("docs/guides/training-in-ten-minutes.md"))?;
    let blocks = blocks(&page);
    let (clean_up, before) = blocks.split_last().context("a page without commands")?;
    let began = Instant::now();
    let script = format!("set -e -o pipefail\nexport VOLUME={volume}\n{}", before.join("\n"));
    let status = shell.run("page", &script)?;
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    let printed = shell.read("page")?;
    note(&printed);
    ensure!(status.success(), "a command of the page failed: {status}");
    note(&format!("{minutes:.2} minutes from the first command to the end of the run"));
    ensure!(printed.contains("complete"), "it did not end");
    figure("training.first_run_minutes", minutes, "minutes", "<=10")?;
    ensure!(shell.run("clean", &format!("set -e\n{clean_up}"))?.success(), "clean up");
    Ok(())
}
