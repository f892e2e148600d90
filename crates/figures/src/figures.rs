//! What was measured, against what was promised.
//!
//! Each figure is one file `docs/figures/NAME.json`, written by the command that measured it and
//! committed with the change. A missed target is not an error here: the command that measures decides
//! whether to fail. A malformed file is one.

use crate::checkout;
use crate::day::Day;
use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

const FOLDER: &str = "docs/figures";

/// What was promised.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureTarget {
    /// Which side of the value is good.
    pub op: Op,
    /// The bound, in the figure's unit.
    #[serde(serialize_with = "whole_if_possible")]
    pub value: f64,
}

/// On which side of its value a target is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Less is better.
    #[serde(rename = "<=")]
    AtMost,
    /// More is better.
    #[serde(rename = ">=")]
    AtLeast,
    /// Nothing else is right.
    #[serde(rename = "=")]
    Exactly,
}

/// One figure, as its file has it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Dotted, such as `cluster.up_warm_seconds`.
    pub name: String,
    /// What was measured.
    #[serde(serialize_with = "whole_if_possible")]
    pub value: f64,
    /// Of the value and of its target.
    pub unit: String,
    /// What was promised.
    pub target: FigureTarget,
    /// What measured it, so that anybody can repeat it.
    pub command: String,
    /// When it was measured.
    pub date: Day,
}

/// Writes one figure, dated today (UTC), over what was there; returns the file. The value is rounded:
/// what a repeated run changes beyond that is noise, and would show in every diff.
pub fn write(
    name: &str,
    value: f64,
    unit: &str,
    target: FigureTarget,
    command: &str,
) -> Result<PathBuf> {
    let figure = Figure {
        name: name.to_owned(),
        value: rounded(value),
        unit: unit.to_owned(),
        target,
        command: command.to_owned(),
        date: Day::today(),
    };
    write_in(&checkout::root()?.join(FOLDER), &figure)
}

/// The value that is on record, if there is one.
pub fn recorded(root: &Path, name: &str) -> Option<f64> {
    read(&root.join(FOLDER).join(format!("{name}.json"))).ok().map(|figure| figure.value)
}

/// The figures by name, and a sentence for each file that is not one.
pub fn all(root: &Path) -> Result<(Vec<Figure>, Vec<String>)> {
    read_all(&root.join(FOLDER))
}

/// Rounded to hundredths, or to two digits where that would leave nothing.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || value.abs() >= 0.01 {
        return (value * 100.0).round() / 100.0;
    }
    format!("{value:.1e}").parse().unwrap_or(value)
}

fn write_in(folder: &Path, figure: &Figure) -> Result<PathBuf> {
    figure.validate()?;
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    let path = folder.join(format!("{}.json", figure.name));
    let text = serde_json::to_string_pretty(figure).context("writing a figure as JSON")?;
    fs::write(&path, text + "\n").with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}

fn read_all(folder: &Path) -> Result<(Vec<Figure>, Vec<String>)> {
    let mut paths = Vec::new();
    if folder.exists() {
        for entry in
            fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?
        {
            paths.push(entry.with_context(|| format!("reading {}", folder.display()))?.path());
        }
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let (mut figures, mut malformed) = (Vec::new(), Vec::new());
    for path in paths {
        match read(&path) {
            Ok(figure) => figures.push(figure),
            Err(error) => malformed.push(format!("{}: {error:#}", path.display())),
        }
    }
    Ok((figures, malformed))
}

fn read(path: &Path) -> Result<Figure> {
    let text = fs::read_to_string(path).context("cannot be read")?;
    let figure: Figure = serde_json::from_str(&text).context("is not a figure")?;
    figure.validate()?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    ensure!(stem == figure.name, "holds the figure {}; file and name must agree", figure.name);
    Ok(figure)
}

impl Figure {
    /// Whether what was promised was reached.
    pub fn is_met(&self) -> bool {
        self.target.is_met(self.value)
    }

    fn validate(&self) -> Result<()> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
        let starts_well = self.name.starts_with(|c: char| c.is_ascii_lowercase());
        if !starts_well || !self.name.chars().all(plain) {
            bail!("the name {:?} may hold a-z, 0-9, dot, underscore and dash only", self.name);
        }
        ensure!(self.value.is_finite() && self.target.value.is_finite(), "a value is not a number");
        ensure!(!self.unit.is_empty(), "the unit is empty");
        ensure!(!self.command.is_empty(), "the command that measured it is empty");
        Ok(())
    }
}

impl FigureTarget {
    /// Whether this value is as good as was promised.
    pub fn is_met(&self, value: f64) -> bool {
        match self.op {
            Op::AtMost => value <= self.value,
            Op::AtLeast => value >= self.value,
            // Meant for counts; anything measured has a spread and takes a bound.
            Op::Exactly => value.total_cmp(&self.value).is_eq(),
        }
    }
}

impl Op {
    const ALL: [(Self, &'static str); 3] =
        [(Self::AtMost, "<="), (Self::AtLeast, ">="), (Self::Exactly, "=")];
}

impl fmt::Display for FigureTarget {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = Op::ALL.iter().find(|(op, _)| *op == self.op).map_or("?", |(_, sign)| sign);
        write!(out, "{sign} {}", self.value)
    }
}

impl FromStr for FigureTarget {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let with_sign = |(op, sign): &(Op, &str)| Some((*op, text.strip_prefix(sign)?));
        let (op, value) = Op::ALL
            .iter()
            .find_map(with_sign)
            .with_context(|| format!("{text:?} does not start with <=, >= or ="))?;
        Ok(Self { op, value: value.trim().parse().context("the target is not a number")? })
    }
}

/// 60 and not 60.0: counts stay readable in the files.
fn whole_if_possible<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        serializer.serialize_i64(*value as i64)
    } else {
        serializer.serialize_f64(*value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(name: &str, value: f64, target: &str) -> Figure {
        Figure {
            name: name.to_owned(),
            value,
            unit: "s".to_owned(),
            target: target.parse().unwrap(),
            command: "cargo xtask cluster up".to_owned(),
            date: "2026-09-30".parse().unwrap(),
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = write_in(folder.path(), &figure("cluster.up", 41.5, "<= 60")).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["target"], serde_json::json!({"op": "<=", "value": 60}));
        assert_eq!(json["date"], "2026-09-30");
        assert_eq!(path.file_name().unwrap(), "cluster.up.json");
        let (figures, malformed) = read_all(folder.path()).unwrap();
        assert_eq!((figures.len(), malformed.len()), (1, 0));
        assert!(figures[0].is_met());
    }

    #[test]
    fn a_malformed_file_is_named_with_its_fault() {
        let folder = tempfile::tempdir().unwrap();
        let good = serde_json::to_string(&figure("good", 1.0, "<=2")).unwrap();
        let cases = [
            ("broken", "{".to_owned()),
            ("other", good.clone()),
            ("extra", good.replace("\"unit\"", "\"units\"")),
            ("sign", good.replace("<=", "~")),
            ("day", good.replace("09-30", "09-31")),
            ("good", good),
        ];
        for (name, text) in &cases {
            fs::write(folder.path().join(format!("{name}.json")), text).unwrap();
        }
        let (figures, malformed) = read_all(folder.path()).unwrap();
        assert_eq!(figures.len(), 1);
        assert_eq!(malformed.len(), 5);
        assert!(malformed.iter().any(|line| line.contains("file and name must agree")));
    }

    #[test]
    fn a_bad_name_or_value_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["", "../up", "Up", ".up"] {
            assert!(write_in(folder.path(), &figure(name, 1.0, "<=2")).is_err(), "{name}");
        }
        assert!(write_in(folder.path(), &figure("up", f64::NAN, "<=2")).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn no_folder_means_no_figures() {
        let folder = tempfile::tempdir().unwrap();
        let (figures, malformed) = read_all(&folder.path().join("none")).unwrap();
        assert!(figures.is_empty() && malformed.is_empty());
    }
}
