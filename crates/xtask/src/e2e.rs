//! Runs the stories of `crates/e2e` on a real cluster: ours, or any other by its kubeconfig.
//!
//! A story that needs llama-server has `llama` in its name, one that needs PyTorch `torch`: where there is none, those are
//! left out.

use crate::compile::TimedTest;
use crate::{cluster, compile, engines, figures, image, process, tools};
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Which cluster and which stories.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run on this cluster instead of starting one; the image must be there already
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<std::path::PathBuf>,
    /// Name of the image that the stories' pods run
    #[arg(long, default_value = image::NAME)]
    image: String,
    /// Name of the image with llama-server and its models
    #[arg(long, default_value = engines::IMAGE)]
    llama: String,
    /// Write the figures that stories measure
    #[arg(long)]
    figure: bool,
    /// Build no llama-server: take the one that is there, or Debian's, or leave its stories out
    #[arg(long)]
    quick: bool,
    /// Leave out stories that take minutes with the cluster for themselves
    #[arg(long)]
    brief: bool,
    /// Program that stories start instead of the one that is built: an optimised one for figures of time
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Run only stories whose name contains this
    story: Option<String>,
}

impl Args {
    /// Every story that there is time for, on the cluster that we start ourselves.
    pub(crate) fn in_ci() -> Self {
        Self {
            kubeconfig: None,
            image: image::NAME.into(),
            llama: engines::IMAGE.into(),
            figure: false,
            quick: true,
            brief: true,
            program: None,
            story: None,
        }
    }
}

pub(crate) fn run(root: &Path, args: &Args) -> Result<Vec<TimedTest>> {
    let built = image::build_for_tests(root)?;
    let mut stories = match &args.kubeconfig {
        Some(kubeconfig) => elsewhere(root, kubeconfig)?,
        None => on_our_own(root, args, &built)?,
    };
    // Ignored for whoever types `cargo test` without a cluster; here there is one.
    stories.args(["--run-ignored", "all", "--profile", "e2e"]);
    let program = args.program.as_ref().unwrap_or(&built.program);
    stories.env("FLYBALL_E2E_IMAGE", &args.image).env("FLYBALL_E2E_BINARY", program);
    stories.env("FLYBALL_E2E_LLAMA", &args.llama).env("FLYBALL_E2E_HELM", tools::helm()?);
    stories.args(&args.story);
    let noted = std::env::temp_dir().join(format!("flyball-figures-{}", std::process::id()));
    if args.figure {
        // Whoever measures is alone.
        stories.args(["--test-threads", "1"]).env("FLYBALL_E2E_FIGURES", &noted);
    }
    // nextest counts wrong and ends in a panic where it is to tell programs of a part of the stories.
    let ended = match args.story {
        Some(_) => process::run(&mut stories).map(|()| Vec::new()),
        None => compile::all_pass(&mut stories),
    };
    // A story that failed has measured too.
    if let Ok(text) = std::fs::read_to_string(&noted) {
        std::fs::remove_file(&noted)?;
        text.lines().try_for_each(record)?;
    }
    ended
}

/// On a cluster that somebody else made.
fn elsewhere(root: &Path, kubeconfig: &Path) -> Result<Command> {
    eprintln!("e2e: skipped: the story that removes Kueue, because this Kueue is not ours");
    eprintln!("e2e: skipped: the gateway's, because they call Services from this machine");
    let filter = "package(flyball-e2e) and not test(kueue_is_missing) and not test(gateway)";
    let mut stories = compile::nextest(root, filter)?;
    stories.env("FLYBALL_E2E_KUBECONFIG", kubeconfig);
    Ok(stories)
}

/// On the cluster of this machine, which is started if it is not up.
fn on_our_own(root: &Path, args: &Args, built: &image::Built) -> Result<Command> {
    let layout = cluster::ensure_up(root)?;
    cluster::load_image(&layout, &built.archive)?;
    cluster::load_image(&layout, &image::shell()?)?;
    let mut filter = "package(flyball-e2e)".to_owned();
    match llama(root, args) {
        Ok(archive) => cluster::load_image(&layout, &archive)?,
        Err(why) if args.quick => {
            eprintln!("e2e: skipped: stories that need llama-server, because {why:#}");
            filter += " and not test(llama)";
        }
        Err(error) => return Err(error),
    }
    let training = match args.brief {
        true => None,
        false => engines::training(root, !args.quick)?,
    };
    match &training {
        None if args.brief => {
            let how = "`cargo xtask e2e loans` and `cargo xtask e2e torch` run them";
            eprintln!(
                "e2e: skipped: stories of loans and of PyTorch, which take minutes alone; {how}"
            );
            filter += " and not test(/::(loans|torch)::/)";
        }
        Some(parts) => cluster::load_image(&layout, &parts.archive)?,
        None => {
            let how = "`cargo xtask heartbeat faults` downloads it";
            eprintln!("e2e: skipped: stories that need PyTorch, which is not in the cache; {how}");
            filter += " and not test(torch)";
        }
    }
    let mut stories = compile::nextest(root, &filter)?;
    if let Some(parts) = training {
        stories.env("FLYBALL_E2E_TRAINING", parts.volume);
        stories.env("FLYBALL_E2E_PYTHON_IMAGE", engines::PYTHON_IMAGE);
    }
    stories.env("FLYBALL_E2E_KUBECONFIG", layout.kubeconfig());
    stories.env("FLYBALL_E2E_SHELL", image::SHELL);
    // What our accounts asked for is held against what the chart gives them.
    stories.env("FLYBALL_E2E_AUDIT", layout.audit_log());
    // Lets a story take Kueue away and put it back.
    let (kubectl, kueue) = cluster::kueue_installer(root, &layout)?;
    stories.env("FLYBALL_E2E_KUBECTL", kubectl).env("FLYBALL_E2E_KUEUE", kueue);
    // Another stops the API server for a while.
    if let Some(pid) = cluster::api_server_pid()? {
        stories.env("FLYBALL_E2E_APISERVER_PID", pid.to_string());
    }
    // Another stops the second node's kubelet.
    if let Some(pid) = cluster::second_kubelet_pid()? {
        stories.env("FLYBALL_E2E_KUBELET_PID", pid.to_string());
    }
    // One takes whole nodes away: their kubelets, and what pods of its own run.
    let kubelets = cluster::kubelets()?.into_iter().map(|(node, pid)| format!("{node}={pid}"));
    stories.env("FLYBALL_E2E_KUBELETS", kubelets.collect::<Vec<_>>().join(","));
    stories.env("FLYBALL_E2E_CGROUP", cluster::cgroup());
    // Where pods and the API server reach what stories start here.
    stories.env("FLYBALL_E2E_HOST", cluster::HOST);
    // One of them asks with the official client.
    stories.env("FLYBALL_E2E_PYTHON", engines::clients_python(root)?);
    Ok(stories)
}

/// The image with llama-server.
fn llama(root: &Path, args: &Args) -> Result<PathBuf> {
    if args.quick && !engines::are_cached(root)? {
        return engines::debian(root);
    }
    Ok(engines::build(root)?.archive)
}

/// A figure, as a story notes it.
#[derive(serde::Deserialize)]
struct Noted {
    name: String,
    value: f64,
    unit: String,
    target: String,
}

fn record(line: &str) -> Result<()> {
    let Noted { name, value, unit, target } = serde_json::from_str(line)?;
    let command = "cargo xtask e2e --figure";
    figures::write(&name, value, &unit, target.parse()?, command).map(drop)
}
