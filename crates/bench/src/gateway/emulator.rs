//! The emulator against the simulator: the same requests, over HTTP and in virtual time.
//!
//! The comparison itself is `crates/emulator/examples/agreement.rs`, started as a process; here its
//! answer becomes a table and the figure.

use crate::figures::Op;
use crate::page::{Measured, measure};
use crate::sources;
use crate::{checkout, process};
use anyhow::{Context, Result};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// The first minutes of this trace, four times as dense, over four engines: 2.5 minutes, in which
/// each engine gets what one got from the trace.
const TRACE: &str = "traces/azure_llm_2023_conv.csv.gz";
const MINUTES: f64 = 10.0;
const QUICK_MINUTES: f64 = 2.0;

/// Measures it. Where the trace is not there, requests are drawn from a seed.
pub(super) fn run(root: &Path, quick: bool) -> Result<Measured> {
    let mut build = Command::new(env!("CARGO"));
    build.current_dir(root).args(["build", "--release", "--quiet"]);
    process::run(build.args(["-p", "flyball-emulator", "--example", "agreement"]))?;
    let program = checkout::target_folder(root)?.join("release/examples/agreement");
    let mut command = first_in_line(&program);
    let minutes = if quick { QUICK_MINUTES } else { MINUTES };
    command.args(["--minutes", &minutes.to_string()]);
    let trace = sources::shared(root).ok().map(|shared| shared.join(TRACE));
    let trace = trace.filter(|trace| trace.is_file());
    if let Some(trace) = &trace {
        command.arg("--trace").arg(trace);
    }
    let text = process::read(&mut command)?;
    let report: Value = serde_json::from_str(&text).context("reading what the example printed")?;
    let worst = report["vs_simulator_pct"].as_f64().context("no vs_simulator_pct")?;
    let of = if trace.is_some() { "of Azure's conversations of 2023" } else { "drawn from a seed" };
    let figure = measure("emulator.vs_simulator_pct", round(worst), "%", Op::AtMost, 5.0);
    Ok(Measured { text: table(&report, of), figures: vec![figure] })
}

/// The program with priority over whatever else runs on this machine, where that is allowed: it is
/// compared with virtual time, in which nothing else runs. Under a load of 30 on two cores the first
/// token was 14 % late at the median without it, and 1.3 % with it.
fn first_in_line(program: &Path) -> Command {
    const FIRST: [&str; 2] = ["-r", "10"];
    let mut command = Command::new("chrt");
    command.args(FIRST);
    if process::read(Command::new("chrt").args(FIRST).arg("true")).is_err() {
        return Command::new(program);
    }
    command.arg(program);
    command
}

fn table(report: &Value, of: &str) -> String {
    let mut text = format!(
        "{} requests {of}, Llama-3.1-8B on four H100, over HTTP in real time; {} failed.\n\n\
         | | simulator | emulator | apart |\n|---|---|---|---|\n",
        report["requests"], report["failed"]
    );
    for (quantity, title) in [("ttft", "Time to first token"), ("itl", "Time per output token")] {
        let one = &report[quantity];
        for name in ["mean", "p50", "p90", "p99"] {
            let number = |kind: &str| one[kind][name].as_f64().unwrap_or(f64::NAN);
            let (simulator, emulator) = (number("simulator_seconds"), number("emulator_seconds"));
            // Writing into a string cannot fail.
            let _ = writeln!(
                text,
                "| {title}, {name} | {:.2} ms | {:.2} ms | {:+.2} % |",
                1e3 * simulator,
                1e3 * emulator,
                number("apart_pct")
            );
        }
    }
    let each = |quantity: &str, name: &str| {
        report[quantity]["each_request_apart_pct"][name].as_f64().unwrap_or(f64::NAN)
    };
    let _ = writeln!(
        text,
        "\nRequest by request: first token {:.2} % apart at the median and {:.2} % at p90, time per \
         token {:.2} % and {:.2} %.\nThe figure is the worst of: mean, p50 and p90 of the first token, \
         mean and p50 of the time per token.",
        each("ttft", "p50"),
        each("ttft", "p90"),
        each("itl", "p50"),
        each("itl", "p90"),
    );
    text
}

fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
