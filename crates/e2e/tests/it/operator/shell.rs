//! Commands as people type them.

use anyhow::{Context, Result};
use flyball_e2e::Cluster;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// The top of the checkout.
pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A shell with kubectl, helm and flyball that speaks to the cluster, and a folder for what it says.
pub(super) struct Shell {
    kubeconfig: PathBuf,
    /// For files of its scripts too; it goes with the shell.
    pub(super) folder: PathBuf,
}

impl Shell {
    pub(super) fn new(cluster: &Cluster) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("flyball-shell-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let named = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
        let programs = [
            ("kubectl", named("FLYBALL_E2E_KUBECTL")),
            ("helm", named("FLYBALL_E2E_HELM")),
            ("flyball", Some(cluster.binary.clone())),
        ];
        for (name, program) in programs {
            // Whoever names none has it where the shell looks.
            if let Some(program) = program {
                std::os::unix::fs::symlink(program, folder.join(name))?;
            }
        }
        Ok(Self { kubeconfig: cluster.kubeconfig.clone(), folder })
    }

    /// Runs a script to its end, and ends what it left running.
    pub(super) fn run(&self, name: &str, script: &str) -> Result<ExitStatus> {
        let out = std::fs::File::create(self.folder.join(name))?;
        let path = std::env::var("PATH").unwrap_or_default();
        let mut child = Command::new("bash")
            .args(["-c", script])
            .current_dir(root())
            .env("KUBECONFIG", &self.kubeconfig)
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

    /// What a script said.
    pub(super) fn read(&self, name: &str) -> Result<String> {
        Ok(std::fs::read_to_string(self.folder.join(name))?)
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
