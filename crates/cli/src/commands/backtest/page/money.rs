//! Where the money went: what was paid for, by cause, one bar per policy.

use std::fmt::Write;

use super::super::answer::CausesView;
use super::super::board::Board;
use super::super::words;
use super::paths;
use crate::chart::escape;

const WIDTH: f64 = 510.0;
const LEFT: f64 = 112.0;
const RIGHT: f64 = 440.0;
const TOP: f64 = 34.0;
/// What the figure beside it has for its field; few policies get thicker bars.
const FIELD: f64 = 290.0;
/// The axis ends at so many times the shortest bar.
const WILD: f64 = 4.0;

/// A class, a name, and how much of it there was.
type Cause = (&'static str, &'static str, fn(&CausesView) -> f64);

const CAUSES: [Cause; 5] = [
    ("useful", "useful work", |causes| causes.useful),
    ("idle", "idle headroom", |causes| causes.idle),
    ("starting", "starting", |causes| causes.starting),
    ("draining", "draining", |causes| causes.draining),
    ("lent", "lent to training", |causes| causes.lent),
];

pub(super) fn draw(board: &Board<'_>) -> String {
    let all = board.policies.iter().map(|policy| total(&policy.gpu_hours_by_cause));
    let all: Vec<f64> = all.collect();
    let least = all.iter().copied().filter(|one| *one > 0.0).fold(f64::INFINITY, f64::min);
    // A policy that ran wild must not flatten the others: its bar is cut, and says its sum.
    let most = all.iter().copied().fold(0.0, f64::max).min(WILD * least);
    let ticks = paths::ticks(most, 4);
    let row = (FIELD / board.policies.len().max(1) as f64).clamp(30.0, 56.0);
    let bar = row - 12.0;
    let height = TOP + board.policies.len() as f64 * row + 10.0;
    let mut out = String::from("<figure class=\"card\">\n<h2>Where the money went</h2>\n");
    let used: Vec<_> = CAUSES
        .iter()
        .filter(|(_, _, of)| board.policies.iter().any(|p| of(&p.gpu_hours_by_cause) > 0.0))
        .collect();
    out.push_str("<p class=\"legend\">");
    for (class, name, _) in &used {
        let _ = write!(out, "<span><i class=\"m-{class}\"></i>{name}</span>");
    }
    let _ = write!(
        out,
        "</p>\n<svg class=\"money\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"GPU-hours by cause and policy\">\n\
         <text class=\"soft\" x=\"{LEFT}\" y=\"12\">GPU-hours</text>\n"
    );
    let top = ticks.last().copied().unwrap_or(1.0);
    let x = |hours: f64| LEFT + (hours / top).min(1.0) * (RIGHT - LEFT);
    for tick in &ticks {
        let at = x(*tick);
        let _ = writeln!(
            out,
            "<path class=\"grid\" d=\"M{at:.1} {TOP}V{height}\"/>\
             <text class=\"middle soft\" x=\"{at:.1}\" y=\"{}\">{}</text>",
            TOP - 6.0,
            if *tick < 1e4 { words::count(*tick) } else { words::many(*tick) }
        );
    }
    for (index, policy) in board.policies.iter().enumerate() {
        let y = TOP + index as f64 * row + 6.0;
        let causes = &policy.gpu_hours_by_cause;
        let _ = writeln!(
            out,
            "<text class=\"who end\" x=\"{}\" y=\"{:.1}\">{}</text>",
            LEFT - 8.0,
            y + bar / 2.0 + 4.5,
            escape(&policy.name)
        );
        let whole = total(causes);
        stack(&mut out, &policy.name, causes, (y, bar), (top, x));
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x(whole) + 6.0,
            y + bar / 2.0 + 4.5,
            if whole > top {
                format!("» {}", words::grouped(whole))
            } else {
                words::grouped(whole)
            }
        );
    }
    out.push_str("</svg>\n</figure>\n");
    out
}

fn total(causes: &CausesView) -> f64 {
    CAUSES.iter().map(|(_, _, of)| of(causes)).sum()
}

/// The causes of one policy, side by side; cut at the end of the axis.
fn stack(
    out: &mut String,
    name: &str,
    causes: &CausesView,
    place: (f64, f64),
    scale: (f64, impl Fn(f64) -> f64),
) {
    let (top, x) = scale;
    let (y, bar) = place;
    let whole = total(causes);
    let mut from = 0.0;
    for (class, cause, of) in CAUSES {
        let hours = of(causes);
        if hours <= 0.0 || from >= top {
            continue;
        }
        let (left, wide) = (x(from), x(from + hours) - x(from));
        let share = format!("{:.0} %", hours / whole * 100.0);
        let _ = write!(
            out,
            "<g><title>{}: {cause} {} GPU-hours, {share}</title><rect class=\"m-{class}\" \
             x=\"{left:.1}\" y=\"{y:.1}\" width=\"{wide:.1}\" height=\"{bar}\"/>",
            escape(name),
            words::grouped(hours)
        );
        if wide > 38.0 {
            let _ = write!(
                out,
                "<text class=\"middle m-word-{class}\" x=\"{:.1}\" y=\"{:.1}\">{share}</text>",
                left + wide / 2.0,
                y + bar / 2.0 + 4.5
            );
        }
        out.push_str("</g>\n");
        from += hours;
    }
}
