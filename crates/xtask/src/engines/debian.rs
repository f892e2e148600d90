//! llama-server as Debian has it ready made, for pods: ten seconds instead of a quarter of an hour.
//!
//! It is in `sid` only, whose libraries this machine need not have, so all of them go into the image;
//! it cannot run outside of one. What `sid` has moves, and a version that was never tried must not break
//! anybody's run: another one than the pinned is refused, and stories that need it are left out.

use super::llama;
use super::pins::{DebianLlama, Pins};
use super::shelf::{Part, Shelf};
use crate::oci::{self, Image};
use crate::process;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The image archive with the program and the models.
pub(super) fn pack(pins: &Pins, shelf: &Shelf, nano: &Path, smollm2: &Path) -> Result<PathBuf> {
    let pinned = &pins.debian_llama;
    let models = [nano, smollm2].map(|path| path.display().to_string());
    let made_from: Vec<&str> =
        pinned.packages.iter().chain(&models).map(String::as_str).chain([llama::IMAGE]).collect();
    let part = Part { name: "llama-debian", version: &pinned.version, made_from: &made_from };
    let folder = shelf.once(&part, "a download of 30 MB", |folder| {
        let root = folder.join("root");
        unpack(pinned, folder, &root)?;
        let mut files = libraries(&root)?;
        files.push((root.join("usr/bin/llama-server"), "/llama-server".to_owned()));
        files.push((root.join("usr/lib64").join(LOADER), format!("/lib64/{LOADER}")));
        files.push((nano.to_owned(), llama::NANO.to_owned()));
        files.push((smollm2.to_owned(), llama::SMOLLM2.to_owned()));
        let entrypoint = vec!["/llama-server".into()];
        let image = Image { name: llama::IMAGE.into(), files, entrypoint, environment: Vec::new() };
        oci::write_archive(&image, &folder.join(ARCHIVE))?;
        std::fs::remove_dir_all(root)?;
        Ok(())
    })?;
    Ok(folder.join(ARCHIVE))
}

const ARCHIVE: &str = "llama-server.tar";
const LOADER: &str = "ld-linux-x86-64.so.2";

/// Where the libraries are, below the root; the second and third are looked into by llama-server itself.
const LIBRARIES: [&str; 3] = [
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/x86_64-linux-gnu/llama",
    "usr/lib/x86_64-linux-gnu/ggml/backends0",
];

/// Gets the packages without touching what apt knows of this machine, and unpacks them.
fn unpack(pinned: &DebianLlama, folder: &Path, root: &Path) -> Result<()> {
    let apt = folder.join("apt");
    for inside in ["lists/partial", "cache/archives/partial", "debs"] {
        std::fs::create_dir_all(apt.join(inside))?;
    }
    let sources = apt.join("sid.sources");
    std::fs::write(
        &sources,
        format!(
            "Types: deb\nURIs: {}\nSuites: sid\nComponents: main\n\
             Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n",
            mirror()?
        ),
    )?;
    let get = |args: &[&str]| {
        let mut get = Command::new("apt-get");
        get.current_dir(apt.join("debs"));
        for (name, value) in [
            ("Dir::Etc::sourcelist", sources.display().to_string()),
            ("Dir::Etc::sourceparts", "/dev/null".to_owned()),
            ("Dir::State::lists", apt.join("lists").display().to_string()),
            ("Dir::Cache", apt.join("cache").display().to_string()),
        ] {
            get.arg("--option").arg(format!("{name}={value}"));
        }
        process::read(get.args(args))
    };
    get(&["update"]).context("Debian's suite sid cannot be reached")?;
    let version = &pinned.version;
    let ours = ["llama.cpp-tools", "libllama0"].map(|name| format!("{name}={version}"));
    let ours: Vec<&str> = ours.iter().map(String::as_str).collect();
    get(&[&["download"], &ours[..]].concat())
        .with_context(|| format!("Debian has no llama.cpp {version} any more"))?;
    let others: Vec<&str> = pinned.packages.iter().map(String::as_str).collect();
    get(&[&["download"], &others[..]].concat())?;
    for package in std::fs::read_dir(apt.join("debs"))?.flatten() {
        process::read(Command::new("dpkg-deb").arg("--extract").arg(package.path()).arg(root))?;
    }
    std::fs::remove_dir_all(apt)?;
    Ok(())
}

/// Where this machine has its own Debian packages from.
fn mirror() -> Result<String> {
    let format = "--format=$(REPO_URI) $(LABEL)";
    let mut ask = Command::new("apt-get");
    let known = process::read(ask.args(["indextargets", format, "Created-By: Packages"]))?;
    let main = known.lines().find_map(|line| line.strip_suffix(" Debian"));
    Ok(main.context("this machine has no source of Debian packages")?.to_owned())
}

/// Every library under the name by which it is asked for, which for most is a link to a file.
fn libraries(root: &Path) -> Result<Vec<(PathBuf, String)>> {
    let mut found = Vec::new();
    for folder in LIBRARIES {
        let entries = std::fs::read_dir(root.join(folder)).with_context(|| folder.to_owned())?;
        let entries = entries.collect::<std::io::Result<Vec<_>>>()?;
        let linked: Vec<PathBuf> =
            entries.iter().filter_map(|entry| std::fs::read_link(entry.path()).ok()).collect();
        for entry in entries {
            let name = entry.file_name();
            let is_library = name.to_string_lossy().contains(".so");
            if is_library && entry.path().is_file() && !linked.contains(&PathBuf::from(&name)) {
                found.push((entry.path(), format!("/{folder}/{}", name.to_string_lossy())));
            }
        }
    }
    found.sort();
    ensure!(!found.is_empty(), "the packages hold no library");
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_packed_once_under_the_name_that_is_asked_for() {
        let root = tempfile::tempdir().unwrap();
        for folder in LIBRARIES {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        let folder = root.path().join(LIBRARIES[0]);
        std::fs::write(folder.join("libx.so.1.2.3"), "x").unwrap();
        std::os::unix::fs::symlink("libx.so.1.2.3", folder.join("libx.so.1")).unwrap();
        std::fs::write(folder.join("liby.so"), "y").unwrap();
        std::fs::write(folder.join("README"), "z").unwrap();
        let found = libraries(root.path()).unwrap();
        let places: Vec<&str> = found.iter().map(|(_, to)| to.as_str()).collect();
        let expected = ["libx.so.1", "liby.so"].map(|name| format!("/{}/{name}", LIBRARIES[0]));
        assert_eq!(places, expected);
    }
}
