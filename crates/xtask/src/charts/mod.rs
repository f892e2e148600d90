//! `cargo xtask charts`: holds the Helm charts against what they are made from and what they promise.
//!
//! Charts rot without a sound too: a typo in a value is ignored, a right stays that nobody needs any
//! more, a setting has no key. So everything here fails: values that no template reads and settings
//! that the schema does not know (`schema`), a right without a reason and a pod that is not restricted
//! (`judge`), a manifest that is not the one that was looked at (`render`), bad values that helm takes.
//!
//! With `UPDATE=1` it writes what it would otherwise compare.

mod judge;
mod render;
mod schema;

use crate::tools;
use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What to do.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write nothing, whatever UPDATE says
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(root: &Path, args: &Args) -> Result<ExitCode> {
    let update = !args.check && std::env::var("UPDATE").is_ok_and(|word| word == "1");
    println!("charts: {}", hold(&mut Desk { root, update, problems: Vec::new() })?);
    Ok(ExitCode::SUCCESS)
}

/// Holds everything against everything. Says what was looked at.
pub(crate) fn check(root: &Path) -> Result<String> {
    hold(&mut Desk { root, update: false, problems: Vec::new() })
}

/// Where the work is done, and what was found to be wrong.
struct Desk<'a> {
    root: &'a Path,
    update: bool,
    problems: Vec<String>,
}

impl Desk<'_> {
    /// Holds a file against what it should be, or makes it so.
    fn current(&mut self, file: &str, should: &str) -> Result<()> {
        let path = self.root.join(file);
        if fs::read_to_string(&path).unwrap_or_default() == should {
            return Ok(());
        }
        if self.update {
            return fs::write(&path, should).with_context(|| path.display().to_string());
        }
        self.problems.push(format!("{file} is not current: look at UPDATE=1 cargo xtask charts"));
        Ok(())
    }

    fn wrong(&mut self, problem: String) {
        self.problems.push(problem);
    }

    fn read(&self, file: &str) -> Result<String> {
        fs::read_to_string(self.root.join(file)).with_context(|| file.to_owned())
    }

    /// The files of a folder with this ending, by name.
    fn files(&self, folder: &str, ending: &str) -> Result<Vec<(String, PathBuf)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(self.root.join(folder)).with_context(|| folder.to_owned())? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if let Some(stem) = name.strip_suffix(ending) {
                found.push((stem.to_owned(), path));
            }
        }
        found.sort();
        Ok(found)
    }
}

fn hold(desk: &mut Desk<'_>) -> Result<String> {
    versions(desk)?;
    carried(desk)?;
    let settings = schema::hold(desk)?;
    let helm = render::Helm::new(tools::helm()?, desk.root)?;
    let sets = render::sets(desk, &helm)?;
    let refused = render::refused(desk, &helm)?;
    if desk.problems.is_empty() {
        return Ok(format!(
            "{sets} sets of values render as they were looked at, {refused} bad ones are refused, \
             {settings} settings of the gateway have a key"
        ));
    }
    bail!("{}", desk.problems.join("\n"));
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chart {
    version: String,
    app_version: String,
}

/// Both charts have the version of the program.
fn versions(desk: &mut Desk<'_>) -> Result<()> {
    for chart in render::CHARTS {
        let file = format!("{chart}/Chart.yaml");
        let said: Chart =
            serde_saphyr::from_str(&desk.read(&file)?).with_context(|| file.clone())?;
        let ours = env!("CARGO_PKG_VERSION");
        if said.version != ours || said.app_version != ours {
            desk.wrong(format!("{file}: version and appVersion must be {ours}, the workspace's"));
        }
    }
    Ok(())
}

/// What the chart carries of dashboards/: helm reads no file outside of a chart.
fn carried(desk: &mut Desk<'_>) -> Result<()> {
    for (from, ending, to) in [
        ("dashboards", ".json", "charts/flyball/files/boards"),
        ("dashboards/rules", ".yaml", "charts/flyball/files/rules"),
    ] {
        let mut sources = desk.files(from, ending)?;
        sources.retain(|(name, _)| !name.ends_with(".test"));
        for (name, path) in &sources {
            desk.current(&format!("{to}/{name}{ending}"), &fs::read_to_string(path)?)?;
        }
        for (name, _) in desk.files(to, ending)? {
            if !sources.iter().any(|(source, _)| *source == name) {
                desk.wrong(format!("{to}/{name}{ending} is not in {from} any more: remove it"));
            }
        }
    }
    Ok(())
}
