//! The page "Five minutes without a GPU", command by command as it stands there, and whether the accounts
//! of the chart were ever refused something meanwhile.

use super::rights::{Granted, Log};
use anyhow::{Context, Result, ensure};
use flyball_e2e::{Cluster, figure, note};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
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
    let shell = Shell::new(Cluster::connect().await?)?;
    let told = tell(&shell);
    if told.is_err() {
        let log = "kubectl logs --namespace flyball-demo --prefix --tail=200 \
                   --selector app.kubernetes.io/name=flyball";
        shell.run("account", log)?;
        note(&shell.read("account")?);
    }
    let left = shell.run("rest", REST)?;
    ensure!(left.success(), "not everything was removed: {}", shell.read("rest")?);
    told
}

fn tell(shell: &Shell) -> Result<()> {
    let blocks = blocks(&std::fs::read_to_string(root().join("docs/guides/five-minutes.md"))?);
    let (clean_up, before) = blocks.split_last().context("a page without commands")?;
    // Read between the commands, which change nothing by that.
    let look = format!(
        "kubectl get roles,clusterroles --all-namespaces --output json \
         --selector app.kubernetes.io/instance=flyball > {}/roles\n\
         kubectl logs --namespace {NAMESPACE} deployment/flyball-operator > {0}/operator\n\
         wc -l < \"${{FLYBALL_E2E_AUDIT:-/dev/null}}\" > {0}/lines\n",
        shell.folder.display()
    );
    let log = Log::open()?;
    let began = Instant::now();
    let script = format!("set -e\n{}\n{look}{clean_up}", before.join("\n"));
    let status = shell.run("page", &script)?;
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    let said = shell.read("page")?;
    note(&said);
    ensure!(status.success(), "a command of the page failed: {status}");
    note(&format!("{minutes:.2} minutes from the first command to the last"));
    figure("operator.quickstart_minutes", minutes, "minutes", "<=5")?;
    ensure!(said.contains(r#""object":"chat.completion""#), "no request was answered");
    let rose = said.lines().any(|line| {
        line.contains(&format!("{NAMESPACE}/demo"))
            && ["ScaledUp", "Forecast"].iter().any(|reason| line.contains(reason))
    });
    ensure!(rose, "no decision to have more replicas");
    ensure!(said.contains("─ reason "), "`why` names no reason");
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
        note(&format!("{component}: granted and not used here: {}", granted.without(used)));
        ensure!(used.refused.is_empty(), "{component} was refused: {:?}", used.refused);
    }
    Ok(())
}

/// The text of every fenced block of commands.
fn blocks(page: &str) -> Vec<String> {
    let parts = page.split("\n```sh\n").skip(1);
    parts.filter_map(|part| part.split("\n```").next()).map(str::to_owned).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A shell with kubectl, helm and flyball that speaks to the cluster, and a folder for what it says.
struct Shell {
    cluster: Cluster,
    folder: PathBuf,
}

impl Shell {
    fn new(cluster: Cluster) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("flyball-page-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let named = |variable: &str, program: &str| {
            std::env::var_os(variable).map_or_else(|| program.into(), PathBuf::from)
        };
        let programs = [
            ("kubectl", named("FLYBALL_E2E_KUBECTL", "")),
            ("helm", named("FLYBALL_E2E_HELM", "")),
            ("flyball", cluster.binary.clone()),
        ];
        for (name, program) in programs {
            // Whoever names none has it where the shell looks.
            if program.is_absolute() {
                std::os::unix::fs::symlink(program, folder.join(name))?;
            }
        }
        Ok(Self { cluster, folder })
    }

    /// Runs a script to its end, and ends what it left running.
    fn run(&self, name: &str, script: &str) -> Result<ExitStatus> {
        let out = std::fs::File::create(self.folder.join(name))?;
        let path = std::env::var("PATH").unwrap_or_default();
        let mut child = Command::new("bash")
            .args(["-c", script])
            .current_dir(root())
            .env("KUBECONFIG", &self.cluster.kubeconfig)
            .env("PATH", format!("{}:{path}", self.folder.display()))
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out)
            .process_group(0)
            .spawn()
            .context("could not start bash")?;
        let status = child.wait();
        let group = format!("-{}", child.id());
        // Nobody left is what is wanted.
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        Ok(status?)
    }

    fn read(&self, name: &str) -> Result<String> {
        Ok(std::fs::read_to_string(self.folder.join(name))?)
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn commands_are_taken_from_blocks_of_sh_only() {
    let page = "a\n```sh\none\ntwo \\\n  three\n```\nb\n```console\n$ no\n```\n```sh\nfour\n```\n";
    assert_eq!(blocks(page), ["one\ntwo \\\n  three", "four"]);
}
