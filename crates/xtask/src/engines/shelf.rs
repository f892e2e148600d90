//! The engines' place in the cache: each part in a folder under a key of what it is made from.

use crate::checkout;
use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub(super) struct Shelf {
    folder: PathBuf,
}

/// A part by name, by what a person calls this version, and by everything that decides its content.
pub(super) struct Part<'a> {
    pub(super) name: &'a str,
    pub(super) version: &'a str,
    pub(super) made_from: &'a [&'a str],
}

impl Shelf {
    pub(super) fn open() -> Result<Self> {
        Ok(Self { folder: checkout::cache()?.join("engines") })
    }

    /// The part's folder, filled by `make` if it never was. One process fills at a time.
    pub(super) fn once(
        &self,
        part: &Part<'_>,
        about: &str,
        make: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<PathBuf> {
        let folder = self.folder_of(part);
        if self.has(part) {
            return Ok(folder);
        }
        let _lock = self.lock()?;
        if self.has(part) {
            return Ok(folder);
        }
        let begin = Instant::now();
        eprintln!("engines: {} {} ({about})", part.name, part.version);
        // What a killed run left is of no use.
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::create_dir_all(&folder)?;
        make(&folder).with_context(|| format!("could not make {}", part.name))?;
        let seconds = begin.elapsed().as_secs_f64();
        std::fs::write(folder.join("complete"), format!("{seconds:.0} s\n"))?;
        eprintln!("engines: {} took {seconds:.0} s", part.name);
        self.prune(part, &folder)?;
        Ok(folder)
    }

    pub(super) fn has(&self, part: &Part<'_>) -> bool {
        self.folder_of(part).join("complete").exists()
    }

    /// Lets tests find `target` under a plain name, whatever its key.
    pub(super) fn show(&self, name: &str, target: &Path) -> Result<PathBuf> {
        let link = self.shown().join(name);
        if std::fs::read_link(&link).is_ok_and(|now| now == target) {
            return Ok(link);
        }
        std::fs::create_dir_all(self.shown())?;
        // Made aside and moved over, so that a test never finds nothing.
        let fresh = self.shown().join(format!(".{name}.{}", std::process::id()));
        std::os::unix::fs::symlink(target, &fresh)?;
        std::fs::rename(&fresh, &link).with_context(|| format!("{}", link.display()))?;
        Ok(link)
    }

    pub(super) fn shown(&self) -> PathBuf {
        self.folder.join("now")
    }

    fn folder_of(&self, part: &Part<'_>) -> PathBuf {
        self.folder.join(part.name).join(format!("{}-{}", part.version, key_of(part.made_from)))
    }

    fn lock(&self) -> Result<File> {
        std::fs::create_dir_all(&self.folder)?;
        let path = self.folder.join("lock");
        let file = File::create(&path).with_context(|| format!("{}", path.display()))?;
        if file.try_lock().is_err() {
            eprintln!("engines: waiting for another `cargo xtask engines`");
            file.lock()?;
        }
        Ok(file)
    }

    /// Keeps the newest two of a part: enough to go back and forth between two branches.
    fn prune(&self, part: &Part<'_>, newest: &Path) -> Result<()> {
        let mut others = Vec::new();
        for entry in std::fs::read_dir(self.folder.join(part.name))?.flatten() {
            if entry.path() != newest {
                others.push((entry.metadata()?.modified()?, entry.path()));
            }
        }
        others.sort();
        others.pop();
        for (_, old) in others {
            std::fs::remove_dir_all(&old).with_context(|| format!("{}", old.display()))?;
        }
        Ok(())
    }
}

fn key_of(made_from: &[&str]) -> String {
    let mut digest = Sha256::new();
    for text in made_from {
        // With its length, or ["ab", "c"] and ["a", "bc"] would be the same.
        digest.update(text.len().to_le_bytes());
        digest.update(text);
    }
    digest.finalize().iter().take(6).map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    #[test]
    fn a_part_is_made_once_per_content_and_a_failed_one_again() {
        let folder = tempfile::tempdir().unwrap();
        let shelf = Shelf { folder: folder.path().to_owned() };
        let made = |from: &[&str], result: fn() -> Result<()>| {
            let mut calls = 0;
            let part = Part { name: "x", version: "1", made_from: from };
            let made = shelf.once(&part, "now", |_| {
                calls += 1;
                result()
            });
            (calls, made.is_ok())
        };
        assert_eq!(made(&["ab", "c"], || bail!("no network")), (1, false));
        assert_eq!(made(&["ab", "c"], || Ok(())), (1, true));
        assert_eq!(made(&["ab", "c"], || Ok(())), (0, true));
        assert_eq!(made(&["a", "bc"], || Ok(())), (1, true));
    }

    #[test]
    fn a_plain_name_follows_the_newest_version() {
        let folder = tempfile::tempdir().unwrap();
        let shelf = Shelf { folder: folder.path().to_owned() };
        for text in ["old", "new"] {
            let file = folder.path().join(text);
            std::fs::write(&file, text).unwrap();
            let shown = shelf.show("model", &file).unwrap();
            assert_eq!(std::fs::read_to_string(shown).unwrap(), text);
        }
    }
}
