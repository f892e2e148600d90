//! `cargo xtask bench data`: the public data that figures rest on, and whether what lies here is it.
//!
//! None of it is shipped: some has no licence that allows it, and the rest is somebody else's to keep. Whoever has the files
//! can repeat the figures, and this command says whether the files are the same ones. `table.rs` has one row per file,
//! `hash.rs` its hash, which does not depend on how a file was packed; docs/data.md is written from the table.

mod hash;
mod table;

use crate::sources;
use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use table::{DATASETS, Dataset};

const PAGE: &str = "docs/data.md";

#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Write docs/data.md
    #[arg(long)]
    page: bool,
}

pub(crate) fn run(root: &Path, args: &Args) -> Result<()> {
    if args.page {
        fs::write(root.join(PAGE), page()).with_context(|| format!("writing {PAGE}"))?;
    }
    let folder = sources::folder(root);
    let mut different = 0;
    for dataset in DATASETS {
        let state = dataset.state(&folder)?;
        different += usize::from(matches!(state, State::Different(_)));
        println!("{:<44} {}", dataset.file, state.in_words(dataset));
    }
    match different {
        0 => Ok(()),
        _ => bail!(
            "{different} files are not those that the figures rest on; hint: {PAGE} says where each comes from"
        ),
    }
}

/// What lies in the folder.
enum State {
    Same,
    Absent,
    /// With this hash instead.
    Different(String),
}

impl State {
    fn in_words(&self, dataset: &Dataset) -> String {
        match self {
            Self::Same => "is the file that the figures rest on".to_owned(),
            Self::Absent => format!("is absent; source: {}", dataset.source),
            Self::Different(hash) => {
                format!("differs: SHA-256 {hash}, expected {}", dataset.sha256)
            }
        }
    }
}

impl Dataset {
    fn state(&self, folder: &Path) -> Result<State> {
        let path = folder.join(self.file);
        if !path.exists() {
            return Ok(State::Absent);
        }
        let hash = hash::of(&path)?;
        Ok(if hash == self.sha256 { State::Same } else { State::Different(hash) })
    }
}

fn page() -> String {
    let mut text = "# Public data behind the figures\n\n\
        *Generated from the code. `cargo xtask bench data --page` writes it anew.*\n\n\
        Flyball ships none of these files: some have no licence that allows it. Get them from their sources, put them into one \
        folder under the names below, and set `FLYBALL_SHARED` to that folder. `cargo xtask bench data` then says which are \
        absent and which differ from the files that the figures rest on. The SHA-256 is that of the unpacked content, so it does \
        not matter how you pack a file. Of an archive it is that of a list as `sha256sum` prints it, one line a file in order \
        of path.\n\n\
        What needs none of them: `cargo xtask accuracy`, `cargo xtask known-answers` (their data is in `validation/` and \
        `docs/known-answers/`), `cargo xtask bench wrong-capacity`, `cargo xtask bench admission`, and everything live.\n"
        .to_owned();
    for dataset in DATASETS {
        let Dataset { file, source, licence, make, used_by, sha256 } = dataset;
        let _ = write!(
            text,
            "\n## {file}\n\n| | |\n|---|---|\n| Source | {source} |\n| Licence | {licence} |\n| How to make it | {make} |\n\
             | Used by | {used_by} |\n| SHA-256 | {sha256} |\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write as _;

    #[test]
    fn the_page_is_that_of_the_table() {
        let root = crate::checkout::root().unwrap();
        let path = root.join(PAGE);
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, page()).unwrap();
        }
        assert_eq!(
            fs::read_to_string(path).unwrap(),
            page(),
            "hint: cargo xtask bench data --page"
        );
    }

    #[test]
    fn a_file_that_differs_and_one_that_is_absent_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let dataset = &DATASETS[0];
        assert!(matches!(dataset.state(folder.path()).unwrap(), State::Absent));
        let path = folder.path().join(dataset.file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(b"TIMESTAMP,ContextTokens,GeneratedTokens\n").unwrap();
        fs::write(&path, packed.finish().unwrap()).unwrap();
        let state = dataset.state(folder.path()).unwrap();
        assert!(state.in_words(dataset).starts_with("differs: SHA-256 "));
    }
}
