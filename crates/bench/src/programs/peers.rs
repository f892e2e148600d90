//! The peers, installed by package name into the cache folder. Nothing is installed into the system
//! and no service is started: Debian's packages are only unpacked.

use crate::{checkout, process};
use anyhow::{Context, Result, ensure};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the peers are.
pub(crate) struct Peers {
    folder: PathBuf,
}

/// Packages of the Python index at pinned versions. `LiteLLM` 1.82.7 and 1.82.8 carried a trojan
/// (reliability.md T-01); this is a release from long after their removal.
const WHEELS: [(&str, &str, &str); 3] = [
    ("vllm-router", "", "0.1.16"),
    ("sglang-router", "", "0.3.2"),
    ("litellm", "[proxy]", "1.100.5"),
];

/// Debian's packages, with the libraries that a bare system lacks.
const PACKAGES: [(&str, &[&str]); 2] = [
    ("nginx", &["nginx", "libpcre2-8-0"]),
    ("haproxy", &["haproxy", "liblua5.3-0", "libopentracing-c-wrapper0", "libopentracing1"]),
];

impl Peers {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self { folder: checkout::cache()?.join("peers") })
    }

    /// Installs what is missing and says how that went.
    pub(crate) fn install(&self) {
        let names = PACKAGES.iter().map(|(name, _)| *name).chain(WHEELS.map(|(name, ..)| name));
        for name in names {
            match self.folder_of(name) {
                Ok(folder) => eprintln!("peers: {name} is in {}", folder.display()),
                Err(error) => eprintln!("peers: {name} is not there: {error:#}"),
            }
        }
    }

    /// The folder of an installed peer; installs it if it is not.
    pub(crate) fn folder_of(&self, name: &str) -> Result<PathBuf> {
        if let Some((_, packages)) = PACKAGES.iter().find(|(package, _)| *package == name) {
            let folder = self.folder.join(name);
            return once(&folder, name, || unpack(&folder, packages));
        }
        let wheel = WHEELS.iter().find(|(wheel, ..)| *wheel == name);
        let (_, extra, version) = wheel.with_context(|| format!("no peer {name}"))?;
        let folder = self.folder.join(format!("{name}-{version}"));
        once(&folder, name, || environment(&folder, &format!("{name}{extra}=={version}")))
    }

    /// One of the two routers, with its own defaults except for the policy and room for all.
    pub(crate) fn router(
        &self,
        name: &str,
        listen: SocketAddr,
        spare: SocketAddr,
        policy: &str,
        engines: &[SocketAddr],
    ) -> Result<Command> {
        let mut command = Command::new(self.folder_of(name)?.join("bin").join(name));
        if name == "sglang-router" {
            command.arg("launch");
        }
        command.args(["--host", "127.0.0.1", "--port", &listen.port().to_string()]);
        command.args(["--prometheus-port", &spare.port().to_string()]);
        command.args(["--policy", policy, "--log-level", "error"]);
        command.args(["--max-concurrent-requests", "60000"]);
        command.arg("--worker-urls").args(engines.iter().map(|engine| format!("http://{engine}")));
        Ok(command)
    }

    /// Its version, for the page.
    pub(crate) fn version_of(&self, name: &str) -> String {
        if let Some((.., version)) = WHEELS.iter().find(|(wheel, ..)| *wheel == name) {
            return (*version).to_owned();
        }
        let entries = std::fs::read_dir(self.folder.join(name)).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let prefix = format!("{name}_");
        let mut versions = names
            .filter_map(|file| Some(file.strip_prefix(&prefix)?.split('_').next()?.to_owned()));
        versions.next().unwrap_or_else(|| "unknown".to_owned())
    }
}

/// A folder is only used once it is complete.
fn once(folder: &Path, name: &str, install: impl FnOnce() -> Result<()>) -> Result<PathBuf> {
    let complete = folder.join(".complete");
    if !complete.exists() {
        eprintln!("peers: installing {name}");
        std::fs::create_dir_all(folder)?;
        install().with_context(|| format!("could not install {name}"))?;
        std::fs::write(&complete, "")?;
    }
    Ok(folder.to_owned())
}

fn unpack(folder: &Path, packages: &[&str]) -> Result<()> {
    let mut download = Command::new("apt-get");
    process::read(download.current_dir(folder).arg("download").args(packages))
        .context("apt-get download failed\n\nhint: run apt-get update first")?;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            process::read(Command::new("dpkg").arg("-x").arg(&path).arg(folder))?;
        }
    }
    Ok(())
}

fn environment(folder: &Path, package: &str) -> Result<()> {
    process::read(Command::new("python3").args(["-m", "venv"]).arg(folder))
        .context("no virtual environment\n\nhint: python3 with venv")?;
    let pip = folder.join("bin/pip");
    ensure!(pip.exists(), "the virtual environment has no pip");
    let options = ["install", "--quiet", "--disable-pip-version-check"];
    process::read(Command::new(pip).args(options).arg(package)).map(drop)
}
