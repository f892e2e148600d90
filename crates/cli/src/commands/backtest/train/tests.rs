//! A made-up recording, small and with known sums, and what is shown of it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::answer::TrainReplay;
use super::ground::TrainGround;
use super::{TrainArgs, page, play};
use crate::output::{self, Color, Detail, Exit, Format, Printer};
use clap::Parser;

#[derive(Parser)]
struct Typed {
    #[command(flatten)]
    train: TrainArgs,
}

/// Two zones over four days of half hours: one that is there by day, one that comes and goes.
fn recorded() -> &'static Path {
    static FILE: OnceLock<PathBuf> = OnceLock::new();
    FILE.get_or_init(write)
}

fn write() -> PathBuf {
    let mut text = "seconds,zone,machines\n".to_owned();
    for step in 0..192u32 {
        let day = u16::from((16..40).contains(&(step % 48))) * 4;
        let often = if step % 11 < 7 { 2 } else { 0 };
        let at = step * 1_800;
        let _ = write!(text, "{at},east-1a,{day}\n{at},west-1b,{often}\n");
    }
    let file = std::env::temp_dir().join(format!("flyball-train-{}.csv", std::process::id()));
    std::fs::write(&file, text).expect("a file");
    file
}

fn typed(file: &Path, more: &[&str]) -> TrainArgs {
    let file = file.display().to_string();
    let all = ["train", "--availability", &file, "--on-demand", "3", "--spot", "1"];
    Typed::parse_from(all.iter().chain(more)).train
}

fn replayed(more: &[&str]) -> Result<TrainReplay, output::Failure> {
    let args = typed(recorded(), more);
    let ground = TrainGround::read(&args)?;
    let policies = play::policies(&args.policy)?;
    let printer =
        Printer { format: Format::Table, color: Color::Never, quiet: true, progress: false };
    let mut answer = TrainReplay::of(&ground, play::all(&ground, &policies, &printer.progress()));
    answer.recording = "made-up".to_owned();
    Ok(answer)
}

const RUN: [&str; 6] = ["--work", "20h", "--deadline", "30h", "--starts", "3"];

#[test]
fn the_table_shows_every_policy_and_a_verdict() {
    let answer = replayed(&RUN).expect("a replay");
    let table = output::answer_table(&answer, Detail::Full);
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    insta::assert_snapshot!("full", table);
    insta::assert_snapshot!("quiet", output::answer_table(&answer, Detail::Problems));
}

#[test]
fn the_document_has_its_schema_and_the_page_loads_nothing() {
    let answer = replayed(&RUN).expect("a replay");
    output::conforms("backtest-train", &output::answer_json(&answer));
    let page = page::page(&answer);
    for outside in ["http:", "https:", "src=", "@import", "fetch(", "url(//"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert_eq!(page, page::page(&replayed(&RUN).expect("a replay")), "the same bytes");
}

#[test]
fn work_in_steps_is_the_same_work() {
    let steps = ["--steps", "72k", "--step-time", "1s", "--deadline", "30h", "--starts", "3"];
    let one = replayed(&steps).expect("a replay");
    assert_eq!(one, replayed(&RUN).expect("a replay"));
}

#[test]
fn what_cannot_be_replayed_says_what_to_do() {
    let said = |more: &[&str]| {
        let failure = replayed(more).expect_err("a failure");
        let text = format!("{failure:?}");
        (failure.exit, text)
    };
    let (exit, text) = said(&["--work", "20h", "--deadline", "19h"]);
    assert!(exit == Exit::Usage && text.contains("later --deadline"), "{text}");
    let (_, text) = said(&["--work", "20h", "--deadline", "40d"]);
    assert!(text.contains("shorter than the run may take"), "{text}");
    let (_, text) = said(&["--work", "20h", "--deadline", "30h", "--zones", "mars-1a"]);
    assert!(text.contains("east-1a, west-1b"), "{text}");
    let (_, text) = said(&["--work", "20h", "--deadline", "30h", "--policy", "hope"]);
    assert!(text.contains("uniform-progress"), "{text}");
    let absent = typed(Path::new("/nowhere/spot.csv"), &RUN);
    let failure = TrainGround::read(&absent).err().expect("a failure");
    assert_eq!(failure.exit, Exit::Unknown);
}
