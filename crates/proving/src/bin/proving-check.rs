//! Judges a history: one JSON object on standard output.
#![expect(clippy::print_stdout, reason = "its answer is one JSON object")]

use anyhow::Context;
use clap::Parser;
use flyball_proving::history::{HistoryRecord, judge};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

/// Says what a history shows: requests lost, streams cut silently, requests that hung.
#[derive(Parser)]
struct Args {
    history: PathBuf,
}

fn main() -> anyhow::Result<()> {
    let path = Args::parse().history;
    let file = std::fs::File::open(&path).with_context(|| format!("opening {path:?}"))?;
    let mut records: Vec<HistoryRecord> = Vec::new();
    for line in BufReader::new(file).lines() {
        records.push(serde_json::from_str(&line?).with_context(|| format!("in {path:?}"))?);
    }
    println!("{}", serde_json::to_string(&judge(records))?);
    Ok(())
}
