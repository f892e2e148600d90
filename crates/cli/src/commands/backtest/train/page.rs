//! The report: the verdict, the table, and where each run was under each policy.

use std::fmt::Write;

use super::answer::{TrainReplay, TrainRunView};
use crate::chart::escape;
use crate::commands::backtest::{page, words};
use crate::output::document::{Block, html};

const WIDTH: f64 = 1_060.0;
const LEFT: f64 = 150.0;
const ROW: f64 = 22.0;
/// So many runs are drawn; the document has all.
const RUNS: usize = 6;

/// The whole page.
pub(super) fn page(replay: &TrainReplay) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "<p class=\"soft\">{}</p>", escape(&replay.header()));
    for (name, words) in replay.verdicts() {
        if name == "verdict" {
            let _ = writeln!(out, "<p class=\"verdict\">{}</p>", escape(&words));
        }
    }
    out.push_str(&html::block(&Block::Table(replay.table())));
    for run in 0..replay.starts_seconds.len().min(RUNS) {
        figure(&mut out, replay, run);
    }
    out.push_str("<h2>What it rests on</h2>\n");
    out.push_str(&html::block(&Block::Notes(replay.grounds())));
    page::plain("Backtest of a training run", &out)
}

/// One start: a row per policy, on one axis that ends with the deadline.
fn figure(out: &mut String, replay: &TrainReplay, run: usize) {
    let start = words::span(replay.starts_seconds[run]);
    let height = ROW * (replay.policies.len() as f64 + 1.5);
    let _ = writeln!(
        out,
        "<figure class=\"card\">\n<h2>Start {} into the recording</h2>\n<p class=\"legend\">{}</p>\n\
         <svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"where the run was, by policy\">",
        start,
        legend(replay)
    );
    for (row, policy) in replay.policies.iter().enumerate() {
        let y = ROW * row as f64 + 4.0;
        let Some(came) = policy.runs.get(run) else { continue };
        let late = if came.late { ", late" } else { "" };
        let _ = writeln!(
            out,
            "<text class=\"who\" x=\"0\" y=\"{:.1}\">{}</text>",
            y + 13.0,
            escape(&policy.name)
        );
        stays(out, replay, came, y);
        let _ = writeln!(
            out,
            "<text class=\"end\" x=\"{WIDTH}\" y=\"{:.1}\">${}{late}</text>",
            y + 13.0,
            words::grouped(came.usd)
        );
    }
    axis(out, replay, height);
    out.push_str("</svg>\n</figure>\n");
}

/// The axis leaves room for the cost at its right.
const RIGHT: f64 = WIDTH - 110.0;

fn x(replay: &TrainReplay, seconds: f64) -> f64 {
    LEFT + (RIGHT - LEFT) * (seconds / replay.deadline_seconds).min(1.0)
}

fn stays(out: &mut String, replay: &TrainReplay, run: &TrainRunView, y: f64) {
    for stay in &run.stays {
        let (from, until) = (x(replay, stay.from_seconds), x(replay, stay.until_seconds));
        let zone = |name: &String| replay.zones.iter().position(|zone| zone.name == *name);
        let class = match stay.zone.as_ref().and_then(zone) {
            Some(place) => format!("swatch c{}", place % 6),
            None if stay.place == "wait" => "gap".to_owned(),
            None => "m-starting".to_owned(),
        };
        let because = stay.because.map(|why| format!(": {why}")).unwrap_or_default();
        let place = stay.zone.as_deref().unwrap_or(stay.place);
        let ended = if stay.reclaimed { ", reclaimed" } else { "" };
        let long = words::span(stay.until_seconds - stay.from_seconds);
        let _ = writeln!(
            out,
            "<rect class=\"{class}\" x=\"{from:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"16\">\
             <title>{} for {long}{ended}{}</title></rect>",
            (until - from).max(0.5),
            escape(place),
            escape(&because)
        );
    }
}

fn axis(out: &mut String, replay: &TrainReplay, height: f64) {
    for part in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let at = x(replay, part * replay.deadline_seconds);
        let name = match part {
            1.0 => "deadline".to_owned(),
            _ => words::span(part * replay.deadline_seconds),
        };
        let _ = writeln!(
            out,
            "<path class=\"grid\" d=\"M{at:.1} 0V{:.1}\"/><text class=\"soft middle\" x=\"{at:.1}\" y=\"{:.1}\">{name}</text>",
            height - 18.0,
            height - 4.0
        );
    }
}

fn legend(replay: &TrainReplay) -> String {
    let mut text = String::new();
    for (place, zone) in replay.zones.iter().enumerate() {
        let _ = write!(
            text,
            "<span><i class=\"c{}\" style=\"background:var(--c)\"></i>{}</span>",
            place % 6,
            escape(&zone.name)
        );
    }
    text.push_str("<span><i class=\"m-starting\"></i>on demand</span><span><i style=\"background:var(--shade)\"></i>waits</span>");
    text
}
