//! The test cluster, by xtask's own command line: how it is made is nobody's business here.

use crate::process;
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The image as pods ask for it: `cargo xtask image --for-tests` gives it this name.
pub(super) const IMAGE: &str = "flyball.test/flyball:dev";

/// A cluster that is up.
pub(super) struct Cluster {
    root: PathBuf,
    kubectl: PathBuf,
    pub(super) kubeconfig: PathBuf,
    /// This machine's address, as pods and the API server reach it.
    pub(super) host: String,
}

impl Cluster {
    /// Brings it up if it is not.
    pub(super) fn up(root: &Path) -> Result<Self> {
        process::run(xtask(root).args(["cluster", "up"]))?;
        let setting = |what: &str| -> Result<String> {
            Ok(process::read(xtask(root).args(["cluster", what]))?.trim().to_owned())
        };
        Ok(Self {
            root: root.to_owned(),
            kubectl: setting("kubectl")?.into(),
            kubeconfig: setting("kubeconfig")?.into(),
            host: setting("host")?,
        })
    }

    /// Puts the image of a program that was built for this machine on every node.
    pub(super) fn load(&self, program: &Path) -> Result<()> {
        let mut image = xtask(&self.root);
        let archive =
            process::read(image.args(["image", "--for-tests", "--program"]).arg(program))?;
        process::run(xtask(&self.root).args(["cluster", "load", archive.trim()]))
    }

    /// kubectl, pointed at it.
    pub(super) fn kubectl(&self) -> Command {
        let mut command = Command::new(&self.kubectl);
        command.arg("--kubeconfig").arg(&self.kubeconfig);
        // Longer than any wait we ask for, so that nothing hangs on a server that went silent.
        command.arg("--request-timeout=200s");
        command
    }
}

/// The xtask that started this program, or the checkout's.
fn xtask(root: &Path) -> Command {
    let Some(program) = std::env::var_os("FLYBALL_XTASK") else {
        let mut cargo = Command::new("cargo");
        cargo.current_dir(root).arg("xtask");
        return cargo;
    };
    let mut command = Command::new(program);
    command.current_dir(root).env("CARGO_MANIFEST_DIR", root.join("crates/xtask"));
    command
}
