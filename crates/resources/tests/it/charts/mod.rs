//! Holds the Helm charts against what they are made from and what they promise.
//!
//! Charts rot without a sound: a typo in a value is ignored, a right stays that nobody needs any more, a setting has no
//! key. So everything here fails: values that no template reads and settings that the schema does not know (`schema`), a
//! right without a reason and a pod that is not restricted (`judge`), a manifest that is not the one that was looked at
//! (`render`), bad values that helm takes.
//!
//! `cargo xtask charts` makes helm and starts this with its path in `FLYBALL_HELM`; without it nothing is rendered. With
//! `UPDATE=1` it writes what it would otherwise compare.

mod judge;
mod render;
mod schema;

use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};

/// One test, because with `UPDATE=1` what is rendered is made of what was written just before.
#[test]
#[expect(clippy::print_stderr, reason = "a test that skips must say so")]
fn charts_are_what_they_are_made_from_and_keep_what_they_promise() {
    let mut desk = Desk {
        root: Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."),
        update: std::env::var("UPDATE").is_ok_and(|word| word == "1"),
        problems: Vec::new(),
    };
    versions(&mut desk);
    carried(&mut desk);
    let settings = schema::hold(&mut desk);
    eprintln!("charts: {settings} settings of the gateway have a key");
    match std::env::var_os("FLYBALL_HELM") {
        Some(program) => {
            let helm = render::Helm::new(program.into(), &desk.root);
            let (sets, refused) =
                (render::sets(&mut desk, &helm), render::refused(&mut desk, &helm));
            eprintln!("charts: {sets} sets of values rendered, {refused} bad ones refused");
        }
        None => eprintln!("skipped: nothing is rendered without FLYBALL_HELM; cargo xtask charts"),
    }
    assert!(desk.problems.is_empty(), "{}", desk.problems.join("\n"));
}

/// Where the work is done, and what was found to be wrong.
struct Desk {
    root: PathBuf,
    update: bool,
    problems: Vec<String>,
}

impl Desk {
    /// Holds a file against what it should be, or makes it so.
    fn current(&mut self, file: &str, should: &str) {
        let path = self.root.join(file);
        if fs::read_to_string(&path).unwrap_or_default() == should {
            return;
        }
        if self.update {
            fs::write(&path, should).unwrap();
            return;
        }
        self.wrong(format!("{file} is not current: look at UPDATE=1 cargo xtask charts"));
    }

    fn wrong(&mut self, problem: String) {
        self.problems.push(problem);
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }

    /// The files of a folder with this ending, by name.
    fn files(&self, folder: &str, ending: &str) -> Vec<(String, PathBuf)> {
        let mut found = Vec::new();
        for entry in fs::read_dir(self.root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if let Some(stem) = name.strip_suffix(ending) {
                found.push((stem.to_owned(), path));
            }
        }
        found.sort();
        found
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chart {
    version: String,
    app_version: String,
}

/// Both charts have the version of the program.
fn versions(desk: &mut Desk) {
    for chart in render::CHARTS {
        let file = format!("{chart}/Chart.yaml");
        let found: Chart = serde_saphyr::from_str(&desk.read(&file)).unwrap();
        let ours = env!("CARGO_PKG_VERSION");
        if found.version != ours || found.app_version != ours {
            desk.wrong(format!("{file}: version and appVersion must be {ours}, the workspace's"));
        }
    }
}

/// What the chart carries of dashboards/: helm reads no file outside of a chart.
fn carried(desk: &mut Desk) {
    for (from, ending, to) in [
        ("dashboards", ".json", "charts/flyball/files/boards"),
        ("dashboards/rules", ".yaml", "charts/flyball/files/rules"),
    ] {
        let mut sources = desk.files(from, ending);
        sources.retain(|(name, _)| !name.ends_with(".test"));
        for (name, path) in &sources {
            desk.current(&format!("{to}/{name}{ending}"), &fs::read_to_string(path).unwrap());
        }
        for (name, _) in desk.files(to, ending) {
            if !sources.iter().any(|(source, _)| *source == name) {
                desk.wrong(format!("{to}/{name}{ending} is not in {from} any more: remove it"));
            }
        }
    }
}
