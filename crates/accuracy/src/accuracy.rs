//! `cargo xtask accuracy`: the performance model against what others have measured.
//!
//! Each quantity is scored in a folder of its own and hands over a [`Section`]; `report`
//! writes them into docs/accuracy.md with what was missed first, `gate` holds a run against the one
//! that was committed, and `speed` times the model itself. `fit` and `score` are what they share.

use crate::section::Section;
use crate::{gate, memory, report, serving, speed, training};
use anyhow::{Context as _, Result, bail, ensure};
use flyball_perf::catalog::Catalog;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Instant;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write nothing; fail if a score got worse or fewer rows are answered than committed
    #[arg(long)]
    check: bool,
    /// Fit again and write catalog/coefficients
    #[arg(long, conflicts_with_all = ["check", "figure"])]
    fit: bool,
    /// Write `plan.*` to docs/figures
    #[arg(long, conflicts_with = "check")]
    figure: bool,
}

/// The published rows, as text.
struct Points {
    inference: String,
    training: String,
    memory: String,
    models: String,
}

pub(crate) fn run(root: &Path, args: &Args) -> Result<()> {
    let points = Points::read(root)?;
    let catalog = Catalog::builtin();
    let mut sections = Vec::new();
    let timed = |name: &str, began: Instant| {
        println!("{name}: scored in {:.1} s", began.elapsed().as_secs_f64());
    };
    let began = Instant::now();
    let (section, training) = training::section(&points.training, &catalog)?;
    sections.push(section);
    timed("training", began);
    let began = Instant::now();
    let texts = memory::Texts {
        memory_points: &points.memory,
        inference_points: &points.inference,
        models: &points.models,
    };
    sections.push(memory::section(&texts, &catalog)?);
    timed("memory", began);
    let began = Instant::now();
    let serving = serving::section()?;
    sections.insert(0, serving.section);
    timed("serving", began);
    sections.push(speed::section(&catalog)?);

    print!("{}", summary(&sections));
    let committed = root.join("docs/accuracy.json");
    if args.check {
        if let Some(unlike) = serving.unlike {
            bail!("{unlike}\n\nhint: cargo xtask accuracy --fit");
        }
        return gate::check(&committed, &sections);
    }
    if args.fit {
        write(root, "catalog/coefficients/training.toml", &coefficients(&training)?)?;
        for (name, content) in &serving.files {
            write(root, &format!("catalog/coefficients/{name}"), content)?;
        }
        println!("fitted again: run it once more without --fit to score what was written");
        return Ok(());
    }
    gate::write(&committed, &sections)?;
    write(root, "docs/accuracy.md", &report::page(&sections))?;
    if args.figure {
        for figure in sections.iter().flat_map(|section| &section.figures) {
            figure.write("cargo xtask accuracy --figure")?;
        }
    }
    Ok(())
}

impl Points {
    /// Reads the files and refuses any that is not the one that was frozen.
    fn read(root: &Path) -> Result<Self> {
        let folder = root.join("validation");
        let hashes = text(&folder.join("hashes.txt"))?;
        let frozen = |name: &str| -> Result<String> {
            let content = text(&folder.join(name))?;
            let mut hash = String::new();
            for byte in Sha256::digest(content.as_bytes()) {
                write!(hash, "{byte:02x}")?;
            }
            let known = hashes.lines().any(|line| line == format!("{hash}  {name}"));
            ensure!(
                known,
                "validation/{name} is not the file that was frozen\n\nhint: restore it, or, if new \
                 rows were added on purpose, run sha256sum *.csv > hashes.txt in that folder"
            );
            Ok(content)
        };
        frozen("peer_aiconfigurator_0.12.0.csv")?;
        Ok(Self {
            inference: frozen("inference_points.csv")?,
            training: frozen("training_points.csv")?,
            memory: frozen("memory_points.csv")?,
            models: frozen("models.csv")?,
        })
    }
}

fn text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
}

fn write(root: &Path, name: &str, content: &str) -> Result<()> {
    let path = root.join(name);
    fs::write(&path, content).with_context(|| format!("writing {}", path.display()))
}

fn coefficients(fitted: &flyball_perf::coefficients::Coefficients) -> Result<String> {
    let body = toml::to_string(fitted).context("writing coefficients as TOML")?;
    Ok(format!(
        "# Written by `cargo xtask accuracy --fit`. What each one means stands in crates/perf and in\n\
         # docs/accuracy.md.\n{body}"
    ))
}

/// One line per figure, for the terminal.
fn summary(sections: &[Section]) -> String {
    let mut lines = String::new();
    for figure in sections.iter().flat_map(|section| &section.figures) {
        let target = figure.target;
        let verdict = if target.is_met(figure.value) { "met" } else { "MISSED" };
        // Writing to a String cannot fail.
        let _ = writeln!(
            lines,
            "{:32} {:>9.2} {:7} target {target}  {verdict}",
            figure.name, figure.value, figure.unit
        );
    }
    lines
}
