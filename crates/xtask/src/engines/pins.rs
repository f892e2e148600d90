//! `cluster/engines/versions.toml`, read with unknown keys refused.

use anyhow::{Context, Result};
use serde::Deserialize;
use std::path::Path;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Pins {
    pub(super) llama_server: Package,
    pub(super) debian_llama: DebianLlama,
    pub(super) model: Packages,
    pub(super) smollm2: SmolLm2,
    pub(super) vllm: Vllm,
    pub(super) torch: Packages,
    pub(super) sglang: Package,
    pub(super) arguments: Packages,
    pub(super) clients: Packages,
    debian: Vec<String>,
}

/// One file of a Python package, by version and digest.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Package {
    pub(super) package: String,
    pub(super) version: String,
    pub(super) sha256: String,
}

/// The same engine as Debian has it, and the packages whose libraries it needs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DebianLlama {
    pub(super) version: String,
    pub(super) packages: Vec<String>,
}

/// Python packages, each as `name==version`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Packages {
    pub(super) packages: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SmolLm2 {
    package: String,
    version: String,
    sha256: String,
    /// The model, inside the wheel.
    pub(super) file: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Vllm {
    package: String,
    version: String,
    sha256: String,
    pub(super) uv: String,
    pub(super) torch: String,
    pub(super) without: Vec<String>,
}

impl Pins {
    pub(super) fn read(root: &Path) -> Result<Self> {
        let path = root.join("cluster/engines/versions.toml");
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("could not read {}", path.display()))?;
        toml::from_str(&text).with_context(|| format!("{} is not as expected", path.display()))
    }

    /// The command that brings what a build was found to lack.
    pub(super) fn debian_hint(&self) -> String {
        format!("hint: apt-get install --no-install-recommends {}", self.debian.join(" "))
    }
}

impl SmolLm2 {
    pub(super) fn wheel(&self) -> Package {
        Package {
            package: self.package.clone(),
            version: self.version.clone(),
            sha256: self.sha256.clone(),
        }
    }
}

impl Vllm {
    pub(super) fn wheel(&self) -> Package {
        Package {
            package: self.package.clone(),
            version: self.version.clone(),
            sha256: self.sha256.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pin_of_the_tree_is_exact() {
        let pins = Pins::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap();
        for package in [&pins.model, &pins.clients, &pins.arguments, &pins.torch]
            .into_iter()
            .flat_map(|list| &list.packages)
        {
            let (name, version) = package.split_once("==").expect(package);
            assert!(!name.is_empty() && version.starts_with(|c: char| c.is_ascii_digit()));
        }
        let single = [pins.llama_server, pins.sglang, pins.smollm2.wheel(), pins.vllm.wheel()];
        for pinned in single {
            assert_eq!(pinned.sha256.len(), 64, "{}", pinned.package);
        }
    }
}
