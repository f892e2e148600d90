//! The page "Five minutes without a GPU", command by command as it stands there, and whether the accounts
//! of the chart were ever refused something meanwhile.

use super::rights::{Granted, Log};
use super::shell::{Shell, root};
use anyhow::{Context, Result, ensure};
use flyball_e2e::{Cluster, figure, note};
use std::time::Instant;

/// Where the page puts everything.
const NAMESPACE: &str = "flyball-demo";

/// What is left when the page was not read to its end.
const REST: &str = "helm uninstall flyball --namespace flyball-demo --ignore-not-found
kubectl delete namespace flyball-demo --ignore-not-found
helm uninstall flyball-crds --ignore-not-found";

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn operator_does_what_the_page_of_five_minutes_says() -> Result<()> {
    let shell = Shell::new(&Cluster::connect().await?)?;
    let outcome = play(&shell);
    if outcome.is_err() {
        let log = "kubectl logs --namespace flyball-demo --prefix --tail=200 \
                   --selector app.kubernetes.io/name=flyball";
        let account = shell.run("account", log).and_then(|_| shell.read("account"));
        note(&account.unwrap_or_else(|error| format!("no account: {error:#}")));
    }
    let left = shell.run("rest", REST)?;
    ensure!(left.success(), "not everything was removed: {}", shell.read("rest")?);
    outcome
}

fn play(shell: &Shell) -> Result<()> {
    let blocks = blocks(&std::fs::read_to_string(root().join("docs/guides/five-minutes.md"))?);
    let (clean_up, before) = blocks.split_last().context("a page without commands")?;
    // Read between the commands, which change nothing by that.
    let requests = format!(
        "kubectl get roles,clusterroles --all-namespaces --output json \
         --selector app.kubernetes.io/instance=flyball > {}/roles\n\
         kubectl logs --namespace {NAMESPACE} deployment/flyball-operator > {0}/operator\n\
         wc -l < \"${{FLYBALL_E2E_AUDIT:-/dev/null}}\" > {0}/lines\n",
        shell.folder.display()
    );
    let log = Log::open()?;
    let began = Instant::now();
    let script = format!("set -e\n{}\n{requests}{clean_up}", before.join("\n"));
    let status = shell.run("page", &script)?;
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    let printed = shell.read("page")?;
    note(&printed);
    ensure!(status.success(), "a command of the page failed: {status}");
    note(&format!("{minutes:.2} minutes from the first command to the last"));
    figure("operator.quickstart_minutes", minutes, "minutes", "<=5")?;
    ensure!(printed.contains(r#""object":"chat.completion""#), "no request was answered");
    ensure!(printed.lines().any(rose), "no decision to have more replicas than some");
    ensure!(printed.contains("─ reason "), "`why` names no reason");
    let errors = shell.read("operator")?;
    let errors: Vec<&str> = errors.lines().filter(|line| line.contains(r#""ERROR""#)).collect();
    ensure!(errors.is_empty(), "the operator wrote {errors:#?}");
    rights(shell, log)
}

/// Nothing was forbidden until the page cleaned up, which takes the rights away before the pods.
fn rights(shell: &Shell, log: Option<Log>) -> Result<()> {
    let Some(log) = log else {
        note("no audit log: what the accounts asked for is unknown");
        return Ok(());
    };
    let granted = Granted::of(&serde_json::from_str(&shell.read("roles")?)?);
    let lines = shell.read("lines")?.trim().parse()?;
    let used = log.until(lines, NAMESPACE)?;
    for (component, granted) in granted {
        let used = used.get(&component).with_context(|| format!("{component} asked nothing"))?;
        let unused = granted.without(used);
        note(&format!("{component}: granted and not used here: {unused}"));
        // `flyball decisions` came through the API server with a token, which the operator had judged.
        ensure!(
            component != "operator" || !unused.contains("reviews"),
            "it asked nobody: {unused}"
        );
        ensure!(used.refused.is_empty(), "{component} was refused: {:?}", used.refused);
    }
    Ok(())
}

/// Whether this is a line of `flyball decisions` in which replicas that are there become more, with why.
fn rose(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, "flyball-demo/demo", from, to, _, _, reason, ..] = words[..] else { return false };
    let (Ok(from), Ok(to)) = (from.parse::<u32>(), to.parse::<u32>()) else { return false };
    from > 0 && to > from && ["ScaledUp", "Forecast"].contains(&reason)
}

/// The text of every fenced block of commands.
pub(super) fn blocks(page: &str) -> Vec<String> {
    let parts = page.split("\n```sh\n").skip(1);
    parts.filter_map(|part| part.split("\n```").next()).map(str::to_owned).collect()
}

#[test]
fn commands_are_taken_from_blocks_of_sh_only() {
    let page = "a\n```sh\none\ntwo \\\n  three\n```\nb\n```console\n$ no\n```\n```sh\nfour\n```\n";
    assert_eq!(blocks(page), ["one\ntwo \\\n  three", "four"]);
}

#[test]
fn the_first_replica_is_not_a_rise() {
    let line = |from: &str| {
        format!("22:23:09  flyball-demo/demo  {from}  2  1  2  ScaledUp  NeedNow  Act")
    };
    assert!(rose(&line("1")));
    assert!(!rose(&line("–")) && !rose(&line("2")) && !rose("NAME READY DESIRED"));
}
