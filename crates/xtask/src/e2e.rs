//! Runs the stories of `crates/e2e` on a real cluster: ours, or any other by its kubeconfig.

use crate::{cluster, engines, figures, image, process, tools};
use anyhow::Result;
use std::path::Path;

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
    /// Run only stories whose name contains this
    story: Option<String>,
}

impl Args {
    /// Every story, on the cluster that we start ourselves.
    pub(crate) fn own_cluster() -> Self {
        Self {
            kubeconfig: None,
            image: image::NAME.into(),
            llama: engines::IMAGE.into(),
            figure: false,
            story: None,
        }
    }
}

pub(crate) fn run(root: &Path, args: &Args) -> Result<()> {
    let built = image::build(root, false)?;
    let mut stories = tools::nextest()?;
    stories.current_dir(root).args(["run", "--locked", "--package", "flyball-e2e"]);
    // Ignored for whoever types `cargo test` without a cluster; here there is one.
    stories.args(["--run-ignored", "all", "--profile", "e2e"]);
    match &args.kubeconfig {
        Some(kubeconfig) => {
            stories.env("FLYBALL_E2E_KUBECONFIG", kubeconfig);
            eprintln!("e2e: leaving out the story that removes Kueue: this Kueue is not ours");
            eprintln!("e2e: leaving out the gateway's: they call Services from this machine");
            stories.args(["--filterset", "not test(kueue_is_missing) and not test(gateway)"]);
        }
        None => {
            let layout = cluster::ensure_up(root)?;
            cluster::load_image(&layout, &built.archive)?;
            cluster::load_image(&layout, &engines::build(root)?.archive)?;
            stories.env("FLYBALL_E2E_KUBECONFIG", layout.kubeconfig());
            // What our accounts asked for is held against what the chart gives them.
            stories.env("FLYBALL_E2E_AUDIT", layout.audit_log());
            // Lets a story take Kueue away and put it back.
            let (kubectl, kueue) = cluster::kueue_installer(root, &layout)?;
            stories.env("FLYBALL_E2E_KUBECTL", kubectl).env("FLYBALL_E2E_KUEUE", kueue);
            // Another stops the API server for a while.
            if let Some(pid) = cluster::api_server_pid()? {
                stories.env("FLYBALL_E2E_APISERVER_PID", pid.to_string());
            }
            // One of them asks with the official client.
            stories.env("FLYBALL_E2E_PYTHON", engines::clients_python(root)?);
        }
    }
    stories.env("FLYBALL_E2E_IMAGE", &args.image).env("FLYBALL_E2E_BINARY", &built.program);
    stories.env("FLYBALL_E2E_LLAMA", &args.llama).env("FLYBALL_E2E_HELM", tools::helm()?);
    stories.args(&args.story);
    let noted = std::env::temp_dir().join(format!("flyball-figures-{}", std::process::id()));
    if args.figure {
        stories.env("FLYBALL_E2E_FIGURES", &noted);
    }
    let ended = process::run(&mut stories);
    // A story that failed has measured too.
    if let Ok(text) = std::fs::read_to_string(&noted) {
        std::fs::remove_file(&noted)?;
        text.lines().try_for_each(record)?;
    }
    ended
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
