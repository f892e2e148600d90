//! Embeds docs/errors/*.md, so that `flyball explain` answers without a network.

use std::fmt::Write;
use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    // Asked when it runs, not when it is compiled: a target folder that outlives its checkout would
    // otherwise look for the pages where the old one was.
    let here = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
    let folder = here.join("../../docs/errors");
    println!("cargo::rerun-if-changed={}", folder.display());

    let mut files: Vec<PathBuf> =
        fs::read_dir(&folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|ext| ext == "md"));
    files.sort();

    let mut list = String::from("pub(crate) const PAGES: &[(&str, &str)] = &[\n");
    for file in files {
        let name = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        // The text itself, not include_str!: the binary's source then names no folder of the
        // machine it was built on.
        let text = fs::read_to_string(&file)?;
        let _ = writeln!(list, "    ({name:?}, {text:?}),");
    }
    list.push_str("];\n");

    let out = env::var_os("OUT_DIR").map(PathBuf::from).unwrap_or_default();
    fs::write(out.join("pages.rs"), list)
}
