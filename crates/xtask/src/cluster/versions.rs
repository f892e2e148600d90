//! The pinned versions, and the key that a change of any of them changes.

use anyhow::{Context, Result};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::path::Path;

/// `cluster/versions.toml`, read with unknown keys refused.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Versions {
    pub(crate) kubernetes: String,
    pub(crate) jobset: String,
    pub(crate) kueue: String,
    pub(crate) kwok: String,
    pub(crate) metrics_server: String,
    pub(crate) coredns: String,
    pub(crate) etcd: String,
    pub(crate) debian: Vec<String>,
}

/// Raised by hand when `parts.rs` builds, renders or packs differently.
const RECIPE: u32 = 1;

/// Files whose content decides what is built.
const INPUTS: [&str; 8] = [
    "cluster/versions.toml",
    "cluster/parts/go.mod",
    "cluster/parts/go.sum",
    "cluster/parts/tools.go",
    "cluster/parts/coredns/main.go",
    "cluster/parts/etcd/main.go",
    "cluster/parts/pause/main.go",
    "cluster/parts/targets/main.go",
];

impl Versions {
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let path = root.join("cluster/versions.toml");
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("could not read {}", path.display()))?;
        toml::from_str(&text).with_context(|| format!("{} is not as expected", path.display()))
    }

    /// The whole list in one line, for people.
    pub(super) fn in_words(&self) -> String {
        format!(
            "Kubernetes {}, etcd {}, CoreDNS {}, JobSet {}, Kueue {}, metrics-server {}, kwok {}",
            self.kubernetes,
            self.etcd,
            self.coredns,
            self.jobset,
            self.kueue,
            self.metrics_server,
            self.kwok
        )
    }

    /// Refuses to begin when a program from Debian is not there, with the command that brings it.
    pub(super) fn require_debian_programs(&self) -> Result<()> {
        let programs = [
            "buildah",
            "containerd",
            "ctr",
            "conntrack",
            "ip",
            "iptables",
            "nsenter",
            "prometheus",
            "runc",
        ];
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let missing: Vec<&str> = programs
            .into_iter()
            .filter(|name| !std::env::split_paths(&paths).any(|folder| folder.join(name).exists()))
            .collect();
        anyhow::ensure!(
            missing.is_empty(),
            "not installed: {}\n\nhint: apt-get install --no-install-recommends {}",
            missing.join(", "),
            self.debian.join(" ")
        );
        Ok(())
    }

    /// Names the cache folder of everything built from these versions.
    pub(super) fn key(&self, root: &Path) -> Result<String> {
        let mut digest = Sha256::new();
        for input in INPUTS {
            digest.update(std::fs::read(root.join(input)).context(input)?);
        }
        digest.update(RECIPE.to_le_bytes());
        let hex: String = digest.finalize().iter().take(6).map(|b| format!("{b:02x}")).collect();
        Ok(format!("{}-{hex}", self.kubernetes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_mod_asks_for_the_pinned_versions() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let versions = Versions::read(&root).unwrap();
        let go_mod = std::fs::read_to_string(root.join("cluster/parts/go.mod")).unwrap();
        let pinned = [
            ("k8s.io/kubernetes", &versions.kubernetes),
            ("sigs.k8s.io/jobset", &versions.jobset),
            ("sigs.k8s.io/kueue", &versions.kueue),
            ("sigs.k8s.io/kwok", &versions.kwok),
            ("sigs.k8s.io/metrics-server", &versions.metrics_server),
            ("github.com/coredns/coredns", &versions.coredns),
            ("go.etcd.io/etcd/server/v3", &versions.etcd),
        ];
        for (module, version) in pinned {
            assert!(
                go_mod.lines().any(|line| line.trim() == format!("{module} {version}")),
                "cluster/parts/go.mod does not ask for {module} {version}"
            );
        }
        let staging = versions.kubernetes.replacen("v1.", "v0.", 1);
        assert!(go_mod.contains(&format!("k8s.io/client-go => k8s.io/client-go {staging}")));
    }
}
