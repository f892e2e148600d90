//! kubectl, from the cluster's own parts, pointed at one kubeconfig.

use super::layout::Layout;
use super::parts;
use crate::process;
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A kubectl for one cluster, ours or any other.
pub(super) struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
}

impl Kubectl {
    pub(super) fn new(parts: &parts::Parts, kubeconfig: PathBuf) -> Self {
        Self { program: parts.program("kubectl"), kubeconfig }
    }

    /// Our test cluster, or another one (kind, EKS …) whose kubeconfig was named. The variable
    /// KUBECONFIG is not looked at: tests write, and it may point at something that matters.
    pub(super) fn for_tests(root: &Path, layout: &Layout, other: Option<PathBuf>) -> Result<Self> {
        let kubeconfig = other.unwrap_or_else(|| layout.kubeconfig());
        if !kubeconfig.exists() {
            bail!("there is no {}\n\nhint: cargo xtask cluster up", kubeconfig.display());
        }
        let program = match parts::cached(root, layout) {
            Ok(parts) => parts.program("kubectl"),
            Err(_) => PathBuf::from("kubectl"),
        };
        Ok(Self { program, kubeconfig })
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--kubeconfig").arg(&self.kubeconfig);
        // Longer than any wait we ask for, so that nothing hangs on a server that went silent.
        command.arg("--request-timeout=200s");
        command
    }

    pub(super) fn read(&self, args: &[&str]) -> Result<String> {
        process::read(self.command().args(args))
    }

    /// Server-side, as ourselves, taking over fields that an earlier attempt wrote.
    pub(super) fn apply(&self, manifest: &str) -> Result<()> {
        self.retrying(|| process::feed(self.command().args(APPLY), manifest).map(drop))
    }

    /// A CRD takes a moment to be served and a webhook to answer; what fails for those reasons
    /// succeeds a second later.
    fn retrying(&self, mut attempt: impl FnMut() -> Result<()>) -> Result<()> {
        for _ in 0..40 {
            match attempt() {
                Ok(()) => return Ok(()),
                Err(error) if is_passing(&format!("{error:#}")) => {
                    std::thread::sleep(Duration::from_millis(500));
                }
                Err(error) => return Err(error),
            }
        }
        attempt()
    }
}

/// Who we are to the API server.
pub(super) const FIELD_MANAGER: &str = "flyball-xtask";

const APPLY: [&str; 7] =
    ["apply", "--server-side", "--force-conflicts", "--field-manager", FIELD_MANAGER, "-f", "-"];

fn is_passing(error: &str) -> bool {
    ["no matches for kind", "failed calling webhook", "connection refused", "not found"]
        .iter()
        .any(|sign| error.contains(sign))
}
