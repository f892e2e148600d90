//! Cost against misses: where each policy stands, and the edge that nobody can pass, because even
//! somebody who knew the future would have had to pay so much to miss so little.

use std::fmt::Write;

use super::super::board::Board;
use super::super::words;
use super::paths;
use crate::chart::escape;

const WIDTH: f64 = 510.0;
const HEIGHT: f64 = 330.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 496.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 286.0;
/// Room that one line of a label takes.
const LINE: f64 = 16.0;

/// Per cent at which the axis of misses may have a line.
const TICKS: [f64; 11] = [0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0];

struct Scale {
    low: f64,
    high: f64,
    most: f64,
    /// By the logarithm, where one policy costs many times what another does.
    log: bool,
}

impl Scale {
    fn x(&self, hours: f64) -> f64 {
        let share = match self.log {
            true => (hours.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
            false => (hours - self.low) / (self.high - self.low),
        };
        LEFT + share * (RIGHT - LEFT)
    }

    fn ticks(&self) -> Vec<f64> {
        let all: Vec<f64> = match self.log {
            true => (0..12)
                .flat_map(|decade| [1.0, 2.0, 5.0].map(|one| one * 10f64.powi(decade - 3)))
                .collect(),
            false => {
                let step = paths::ticks(self.high - self.low, 5)[1];
                let first = (self.low / step).ceil();
                (0..12).map(|index| (first + f64::from(index)) * step).collect()
            }
        };
        all.into_iter().filter(|tick| (self.low..=self.high).contains(tick)).collect()
    }

    /// By the root, which has a zero and still tells 0.2 % from 0.5 % when another is at 10 %.
    fn y(&self, missed: f64) -> f64 {
        BOTTOM - (missed / self.most).clamp(0.0, 1.0).sqrt() * (BOTTOM - TOP)
    }
}

pub(super) fn draw(board: &Board<'_>) -> String {
    let scale = scale(board);
    let mut out = String::from("<figure class=\"card\">\n<h2>Cost against misses</h2>\n");
    out.push_str("<p class=\"legend\">");
    if !board.hull.is_empty() {
        out.push_str(
            "<span><i class=\"k-hull\"></i>the least one can pay for so few \
             misses, knowing the future</span>",
        );
    }
    out.push_str("<span class=\"soft\">Lower left is better.</span></p>\n");
    let _ = writeln!(
        out,
        "<svg class=\"front\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-label=\"GPU-hours and share of requests missed, by policy\">"
    );
    axes(&mut out, &scale, board);
    hull(&mut out, &scale, board);
    points(&mut out, &scale, board);
    out.push_str("</svg>\n</figure>\n");
    out
}

fn scale(board: &Board<'_>) -> Scale {
    let hulls = board.hull.iter().map(|point| (point.gpu_hours, point.missed));
    let policies = board.policies.iter().map(|p| (p.gpu_hours.mean, p.missed.mean));
    let all: Vec<(f64, f64)> = policies.clone().collect();
    let most = all.iter().map(|(_, missed)| *missed).fold(2.0 * board.allowed_missed, f64::max);
    // The hull goes on to "serve nobody"; only the part beside the policies is of interest.
    let near = hulls.filter(|(_, missed)| *missed <= most * 1.2);
    let hours: Vec<f64> = near.chain(policies).map(|(hours, _)| hours).collect();
    let low = hours.iter().copied().fold(f64::INFINITY, f64::min);
    let high = hours.iter().copied().fold(0.0, f64::max);
    let (low, high) = if low.is_finite() { (low, high.max(low * 1.01)) } else { (0.0, 1.0) };
    if low > 0.0 && high / low > 4.0 {
        return Scale { low: low / 1.2, high: high * 1.3, most: most * 1.1, log: true };
    }
    let room = (high - low) * 0.08;
    Scale { low: (low - room).max(0.0), high: high + 2.0 * room, most: most * 1.1, log: false }
}

fn axes(out: &mut String, scale: &Scale, board: &Board<'_>) {
    let mut before = f64::INFINITY;
    for tick in TICKS.iter().filter(|tick| **tick / 100.0 <= scale.most) {
        let y = scale.y(tick / 100.0);
        if before - y < 18.0 {
            continue;
        }
        before = y;
        let _ = writeln!(
            out,
            "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{RIGHT}\"/>\
             <text class=\"tick\" x=\"{}\" y=\"{:.1}\">{tick} %</text>",
            LEFT - 6.0,
            y + 4.0
        );
    }
    for tick in scale.ticks() {
        let x = scale.x(tick);
        let _ = writeln!(
            out,
            "<path class=\"grid\" d=\"M{x:.1} {TOP}V{BOTTOM}\"/>\
             <text class=\"middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x.min(RIGHT - 12.0),
            BOTTOM + 16.0,
            if tick < 1e4 { words::count(tick) } else { words::many(tick) }
        );
    }
    let y = scale.y(board.allowed_missed);
    let _ = writeln!(
        out,
        "<path class=\"limit\" d=\"M{LEFT} {y:.1}H{RIGHT}\"/>\
         <text class=\"limit-word end\" x=\"{}\" y=\"{:.1}\">allowed: {}</text>\
         <text class=\"soft middle\" x=\"{:.1}\" y=\"{:.1}\">GPU-hours</text>",
        RIGHT - 4.0,
        y - 5.0,
        words::percent(board.allowed_missed),
        f64::midpoint(LEFT, RIGHT),
        BOTTOM + 34.0
    );
}

/// The edge, and below it the ground that cannot be reached.
fn hull(out: &mut String, scale: &Scale, board: &Board<'_>) {
    let mut points: Vec<(f64, f64)> =
        board.hull.iter().map(|point| (point.gpu_hours, point.missed)).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points.retain(|(hours, _)| *hours >= scale.low);
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return };
    let mut path = format!("M{:.1} {:.1}", scale.x(first.0), scale.y(first.1));
    for (hours, missed) in &points[1..] {
        let _ = write!(path, "L{:.1} {:.1}", scale.x(*hours), scale.y(*missed));
    }
    let _ = writeln!(
        out,
        "<path class=\"beyond\" d=\"{path}V{BOTTOM}H{LEFT}V{:.1}z\"/><path class=\"hull\" d=\"{path}\"/>",
        scale.y(first.1)
    );
    // Whoever pays more than enough to miss nothing cannot miss less.
    let _ = writeln!(
        out,
        "<path class=\"hull\" d=\"M{:.1} {:.1}H{RIGHT}\"/>",
        scale.x(last.0),
        scale.y(last.1)
    );
}

fn points(out: &mut String, scale: &Scale, board: &Board<'_>) {
    let mut taken: Vec<(f64, f64, f64)> = Vec::new();
    let mut order = board.policies.clone();
    order.sort_by(|a, b| a.missed.mean.total_cmp(&b.missed.mean).reverse());
    for policy in order {
        let (x, y) = (scale.x(policy.gpu_hours.mean), scale.y(policy.missed.mean));
        let wide = 8.0 * policy.name.chars().count() as f64;
        // Right of its point if there is room, and moved up past names that are there already.
        let before = x + 10.0 + wide > RIGHT;
        let left = if before { x - 10.0 - wide } else { x + 10.0 };
        let (anchor, words_at) = if before { (" end", x - 10.0) } else { ("", x + 10.0) };
        // Above its point on the ground line, where the axis has its numbers.
        let mut at = if y > BOTTOM - LINE { y - 10.0 } else { y + 4.0 };
        let meets = |at: f64, taken: &[(f64, f64, f64)]| {
            taken.iter().any(|(other, line, width)| {
                (line - at).abs() < LINE && left < other + width && *other < left + wide
            })
        };
        while meets(at, &taken) && at > TOP + LINE {
            at -= LINE / 2.0;
        }
        taken.push((left, at, wide));
        let bars = match (policy.gpu_hours.half(), policy.missed.half()) {
            (None, None) => String::new(),
            _ => format!(
                "<path class=\"bar\" d=\"M{:.1} {y:.1}H{:.1}M{x:.1} {:.1}V{:.1}\"/>",
                scale.x(policy.gpu_hours.low),
                scale.x(policy.gpu_hours.high),
                scale.y(policy.missed.low),
                scale.y(policy.missed.high)
            ),
        };
        let leader = match (at - y - 4.0).abs() > LINE {
            true => format!("<path class=\"bar\" d=\"M{x:.1} {y:.1}L{words_at:.1} {at:.1}\"/>"),
            false => String::new(),
        };
        let _ = writeln!(
            out,
            "<g class=\"{}\"><title>{}: {} GPU-hours, {} missed</title>{bars}{leader}\
             <circle class=\"dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"6\"/>\
             <text class=\"who name{anchor}\" x=\"{words_at:.1}\" y=\"{at:.1}\">{}</text></g>",
            board.colour(policy),
            escape(&policy.name),
            words::grouped(policy.gpu_hours.mean),
            words::percent(policy.missed.mean),
            escape(&policy.name),
        );
    }
}
