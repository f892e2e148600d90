//! Runs the stories of `crates/e2e` on a real cluster: ours, or any other by its kubeconfig.

use crate::{cluster, engines, image, process, tools};
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
            // Lets a story take Kueue away and put it back.
            let (kubectl, kueue) = cluster::kueue_installer(root, &layout)?;
            stories.env("FLYBALL_E2E_KUBECTL", kubectl).env("FLYBALL_E2E_KUEUE", kueue);
        }
    }
    stories.env("FLYBALL_E2E_IMAGE", &args.image).env("FLYBALL_E2E_BINARY", &built.program);
    stories.env("FLYBALL_E2E_LLAMA", &args.llama);
    stories.args(&args.story);
    process::run(&mut stories)
}
