//! The process that decides is replaced, by the program that users have: what it hands on is the text of
//! `status.learnt`, as the operator writes and reads it.

use super::worlds::{CASES, WORLDS};
use crate::programs;
use crate::{checkout, process};
use anyhow::{Context, Result};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Moments of the wave: going up, at the top, going down, at the bottom, and again.
const MOMENTS: [u32; 6] = [260, 500, 740, 980, 1_220, 1_480];
/// At the end of a world most is known.
const LAST: u32 = 5_390;
/// The governor looks every 15 seconds; the second look is judged.
const SECOND_TICK: f64 = 30.0;

/// What came of it.
pub(super) struct HandedOn {
    pub(super) moments: usize,
    /// Decisions after restarts, and those of them that differ.
    pub(super) decisions: usize,
    pub(super) divergence: usize,
    /// The longest text of one model.
    pub(super) bytes: u64,
}

pub(super) fn measured(root: &Path, flyball: Option<&Path>) -> Result<HandedOn> {
    let flyball = match flyball {
        Some(program) => program.to_owned(),
        None => built(root)?,
    };
    let folder = programs::scratch("restart")?;
    let wave = fs::read_to_string(root.join("scenarios/live-wave.toml"))?;
    let without = simulated(&flyball, &folder, &wave)?;
    let mut handed_on = HandedOn { moments: MOMENTS.len(), decisions: 0, divergence: 0, bytes: 0 };
    for at in MOMENTS {
        let with = simulated(&flyball, &folder, &(wave.clone() + &restart(at)))?;
        let from = f64::from(at) + SECOND_TICK;
        let (with_it, without_it) = (moves(&with, from), moves(&without, from));
        handed_on.decisions += without_it.len();
        let here = with_it.iter().filter(|one| !without_it.contains(one)).count();
        let there = without_it.iter().filter(|one| !with_it.contains(one)).count();
        handed_on.divergence += here.max(there);
        handed_on.bytes = handed_on.bytes.max(bytes(&with)?);
    }
    for world in WORLDS {
        for case in CASES {
            let text = world.text(*case)? + &restart(LAST);
            handed_on.bytes = handed_on.bytes.max(bytes(&simulated(&flyball, &folder, &text)?)?);
        }
    }
    Ok(handed_on)
}

fn restart(at: u32) -> String {
    format!("\n[[faults]]\nname = \"restart\"\nkind = \"operator-restart\"\nat_seconds = {at}\n")
}

fn built(root: &Path) -> Result<PathBuf> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root).args(["build", "--locked", "--quiet", "--package", "flyball-cli"]);
    process::run(&mut cargo)?;
    Ok(checkout::target_folder(root)?.join("debug/flyball"))
}

/// What the governor did, as `flyball simulate -o json` tells it.
fn simulated(flyball: &Path, folder: &Path, text: &str) -> Result<Value> {
    let file = folder.join("scenario.toml");
    fs::write(&file, text)?;
    let mut command = Command::new(flyball);
    command.arg("simulate").arg(&file).args(["--policy", "governor", "-o", "json"]);
    let answer: Value = serde_json::from_str(&process::read(&mut command)?)?;
    Ok(answer["policies"][0].clone())
}

/// Every change of replicas from a moment on: when, from and to.
fn moves(policy: &Value, from: f64) -> Vec<(u64, u64, u64)> {
    let all = policy["decisions"].as_array().into_iter().flatten();
    let number = |one: &Value, key: &str| one[key].as_f64().unwrap_or(0.0);
    all.filter(|one| number(one, "atSeconds") >= from)
        .map(|one| ["atSeconds", "from", "to"].map(|key| number(one, key) as u64).into())
        .collect()
}

fn bytes(policy: &Value) -> Result<u64> {
    policy["learntBytes"].as_u64().context("nothing was handed on")
}
