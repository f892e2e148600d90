//! Embeds docs/errors/*.md, so that `flyball explain` answers without a network, and names the commit of a release.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    // Asked when it runs, not when it is compiled: a target folder that outlives its checkout would
    // otherwise look for the pages where the old one was.
    let here = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
    let folder = here.join("../../docs/errors");
    println!("cargo::rerun-if-changed={}", folder.display());
    println!("cargo::rustc-env=FLYBALL_BUILT_FROM={}", commit());

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

/// Whoever builds without a checkout says it; else git does. A development build is of no commit, and asking for one
/// would link it anew with each.
fn commit() -> String {
    println!("cargo::rerun-if-env-changed=FLYBALL_COMMIT");
    if let Ok(given) = env::var("FLYBALL_COMMIT") {
        return given;
    }
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let git = |args: &[&str]| {
        let output =
            Command::new("git").args(args).output().ok().filter(|one| one.status.success())?;
        String::from_utf8(output.stdout).ok().map(|text| text.trim().to_owned())
    };
    let Some(head) = is_release.then(|| git(&["rev-parse", "--short=12", "HEAD"])).flatten() else {
        return String::new();
    };
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    head
}
