//! One model over time: demand against capacity, what waited and what missed beneath, policy below
//! policy on one axis of time and one of replicas, so that they can be compared by eye.

use std::fmt::Write;

use serde::Serialize;

use super::super::answer::{DecisionView, PolicyView, TimelineView};
use super::super::board::Board;
use super::super::words;
use super::paths;
use crate::chart::escape;

const WIDTH: f64 = 1_040.0;
/// Names and ticks stand left of this.
const LEFT: f64 = 168.0;
const RIGHT: f64 = 1_032.0;
const TOP: f64 = 24.0;
/// Heights of the parts of a panel, from top to bottom.
const CAPACITY: f64 = 92.0;
const MARKS: f64 = 14.0;
const STRIP: f64 = 20.0;
const BETWEEN: f64 = 4.0;
/// Capacity is drawn in half pixels: whole ones make stairs of a slope.
const FINE: f64 = 2.0;
/// The axis ends at so many times the demand.
const WILD: f64 = 2.5;
const PANEL: f64 = CAPACITY + MARKS + 2.0 * (STRIP + BETWEEN) + 22.0;
/// What a reason may take in the page; the document has it whole.
const REASON_LETTERS: usize = 180;
/// Decisions that the page has room for: some 80 bytes each. The document has all of them.
const DECISIONS: usize = 1_000;

/// The figure of one model.
pub(super) fn draw(board: &Board<'_>, model: usize) -> String {
    let Some(figure) = Figure::new(board, model) else { return String::new() };
    figure.draw()
}

struct Figure<'a> {
    board: &'a Board<'a>,
    model: usize,
    /// The policies with their series of this model.
    panels: Vec<(&'a PolicyView, &'a TimelineView)>,
    ticks: Vec<f64>,
    /// Replicas at the upper end of the axis.
    top: f64,
    waiting: f64,
    missed: f64,
}

impl<'a> Figure<'a> {
    fn new(board: &'a Board<'a>, model: usize) -> Option<Figure<'a>> {
        let panels: Vec<(&PolicyView, &TimelineView)> = board
            .policies
            .iter()
            .copied()
            .filter_map(|policy| Some((policy, &policy.models.get(model)?.timeline)))
            .filter(|(_, timeline)| !timeline.demand.is_empty())
            .collect();
        panels.first()?;
        let most = |of: &dyn Fn(&TimelineView) -> Vec<Option<f64>>| {
            let all = panels.iter().flat_map(|(_, timeline)| of(timeline));
            all.flatten().fold(0.0, f64::max)
        };
        let demand = most(&|timeline| timeline.demand.clone());
        // A policy that ran wild must not flatten the others; its panel says how far it went.
        let capacity = most(&|timeline| held(timeline, 3)).min(WILD * demand).max(demand);
        let waiting = most(&|timeline| timeline.waiting.clone());
        let missed = most(&shares);
        let top = (capacity * 1.04).max(1.0);
        let mut ticks = paths::ticks(top, 4);
        ticks.retain(|tick| *tick <= top);
        Some(Figure { board, model, panels, ticks, top, waiting, missed })
    }

    fn draw(&self) -> String {
        let mut out = String::new();
        let name = &self.board.models[self.model].name;
        let height = TOP + self.panels.len() as f64 * PANEL + 4.0;
        let _ = write!(
            out,
            "<h2>{0} over time</h2>\n{1}<figure>\n<svg class=\"time\" viewBox=\"0 0 {WIDTH} {height}\" \
             role=\"img\" aria-label=\"Demand, capacity, queue and misses of {0} over time\" \
             data-model=\"{2}\">\n",
            escape(name),
            LEGEND,
            self.model,
        );
        // Each figure has its own names: two on one page must not share them.
        let _ = writeln!(
            out,
            "<defs><path id=\"demand-{0}\" vector-effect=\"non-scaling-stroke\" d=\"{1}\"/>\
             <pattern id=\"hatch-{0}\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" \
             patternTransform=\"scale({2:.4} {FINE}) rotate(45)\">\
             <rect class=\"hatch-paper\" width=\"5\" height=\"5\"/>\
             <rect class=\"hatch\" width=\"2.5\" height=\"5\"/></pattern></defs>",
            self.model,
            paths::line(&self.panels[0].1.demand, FINE * CAPACITY, self.top),
            // Takes back the stretching of the axis of time.
            1.0 / self.scale().1,
        );
        self.axis(&mut out, height);
        for (index, (policy, timeline)) in self.panels.iter().enumerate() {
            self.panel(&mut out, TOP + index as f64 * PANEL, policy, timeline);
        }
        let _ = write!(
            out,
            "<path class=\"cross\" d=\"M0 {TOP}V{height}\" visibility=\"hidden\"/></svg>\n</figure>\n"
        );
        out
    }

    /// The length of the axis in seconds, and pixels per step.
    fn scale(&self) -> (f64, f64) {
        let timeline = self.panels[0].1;
        let steps = timeline.demand.len() as f64;
        (steps * timeline.step_seconds, (RIGHT - LEFT) / steps)
    }

    /// Days or hours, as lines through all panels and words above them; and gaps of the data.
    fn axis(&self, out: &mut String, height: f64) {
        let timeline = self.panels[0].1;
        let (length, per_step) = self.scale();
        let mut at = 0;
        while at < timeline.demand.len() {
            let gap = timeline.demand[at..].iter().take_while(|one| one.is_none()).count();
            if gap > 0 {
                let (x, wide) = (LEFT + at as f64 * per_step, gap as f64 * per_step);
                let _ = writeln!(
                    out,
                    "<rect class=\"gap\" x=\"{x:.1}\" y=\"{TOP}\" width=\"{wide:.1}\" \
                     height=\"{:.0}\"><title>no data</title></rect>",
                    height - TOP
                );
            }
            at += gap.max(1);
        }
        let clock = &self.board.clock;
        let days = length > 2.5 * 86_400.0;
        let every = match length {
            length if length > 15.0 * 86_400.0 => 2.0 * 86_400.0,
            _ if days => 86_400.0,
            length if length > 12.0 * 3_600.0 => 3.0 * 3_600.0,
            length if length > 4.0 * 3_600.0 => 3_600.0,
            length if length > 3_600.0 => 900.0,
            _ => 300.0,
        };
        let begins = timeline.begins_seconds;
        let mut at = if days {
            clock.midnight(begins)
        } else {
            // Midnight is a whole number of any of these lengths away.
            let midnight = clock.midnight(begins);
            midnight - ((midnight - begins) / every).floor() * every
        };
        let mut path = String::new();
        while at < begins + length {
            let x = LEFT + (at - begins) / length * (RIGHT - LEFT);
            let _ = write!(path, "M{x:.1} {TOP}V{height}");
            let words = if days { clock.day(at) } else { clock.time(at) };
            if x < RIGHT - 24.0 {
                let _ = writeln!(out, "<text x=\"{:.1}\" y=\"15\">{words}</text>", x + 3.0);
            }
            at += every;
        }
        let _ = writeln!(out, "<path class=\"grid\" d=\"{path}\"/>");
    }

    fn panel(&self, out: &mut String, y: f64, policy: &PolicyView, timeline: &TimelineView) {
        let (_, per_step) = self.scale();
        let class = self.board.colour(policy);
        let _ = writeln!(
            out,
            "<g class=\"panel {class}\" data-policy=\"{}\" transform=\"translate(0 {y})\">",
            self.board.policies.iter().take_while(|one| one.name != policy.name).count()
        );
        self.words(out, policy);
        for tick in &self.ticks {
            let at = CAPACITY * (1.0 - tick / self.top);
            let _ = writeln!(
                out,
                "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{RIGHT}\"/><text class=\"tick\" \
                 x=\"{}\" y=\"{:.1}\">{}</text>",
                LEFT - 6.0,
                at + 4.0,
                words::count(*tick)
            );
        }
        let _ = writeln!(
            out,
            "<g transform=\"translate({LEFT} 0) scale({per_step:.4} 1)\"><g transform=\"scale(1 {})\">",
            1.0 / FINE
        );
        let draw = |heights: Vec<Option<f64>>| paths::area(&heights, FINE * CAPACITY, self.top);
        let ready = timeline.ready.clone();
        for (class, path) in [
            ("drains", draw(held(timeline, 3))),
            ("starts", draw(held(timeline, 2))),
            ("ready", draw(ready.clone())),
        ] {
            let fill = match class {
                "starts" => format!(" fill=\"url(#hatch-{})\"", self.model),
                _ => String::new(),
            };
            let _ = writeln!(out, "<path class=\"{class}\"{fill} d=\"{path}\"/>");
        }
        let edge = paths::edge(&ready, FINE * CAPACITY, self.top);
        let _ = writeln!(
            out,
            "<path class=\"edge\" d=\"{edge}\"/><use class=\"demand\" href=\"#demand-{}\"/></g>",
            self.model
        );
        let marks = self.marks(policy, timeline);
        let _ = writeln!(out, "<g transform=\"translate(0 {})\">{marks}</g>", CAPACITY);
        let mut strip = |number: f64, class: &str, heights: Vec<Option<f64>>, most: f64| {
            let y = CAPACITY + MARKS + number * (STRIP + BETWEEN);
            let rooted: Vec<Option<f64>> = heights.iter().map(|one| one.map(f64::sqrt)).collect();
            let path = paths::area(&rooted, STRIP, most.sqrt());
            let _ = writeln!(
                out,
                "<g transform=\"translate(0 {y})\"><path class=\"base\" d=\"M0 {STRIP}H{}\"/>\
                 <path class=\"{class}\" d=\"{path}\"/></g>",
                heights.len()
            );
        };
        strip(0.0, "waits", timeline.waiting.clone(), self.waiting);
        strip(1.0, "misses", shares(timeline), self.missed);
        out.push_str("</g></g>\n");
    }

    /// Who it is, and what its two strips are. Their heights grow with the root, so that a little
    /// is seen beside a lot.
    fn words(&self, out: &mut String, policy: &PolicyView) {
        let came = &policy.models[self.model];
        let mut lines = vec![
            format!("{} GPU-hours", words::grouped(came.gpu_hours)),
            format!("{} missed", words::percent(came.missed)),
        ];
        if self.board.models.len() == 1
            && let Some(times) = policy.times_optimum
        {
            lines.insert(1, format!("{:.2} x optimum", times.mean));
        }
        let peak = held(&came.timeline, 3).into_iter().flatten().fold(0.0, f64::max);
        if peak > self.top {
            lines.push(format!("to {} replicas", words::count(peak.round())));
        }
        let _ = writeln!(
            out,
            "<rect class=\"swatch\" x=\"0\" y=\"3\" width=\"4\" height=\"{:.0}\"/>\
             <text class=\"who\" x=\"12\" y=\"14\">{}</text>",
            14.0 + 17.0 * lines.len() as f64,
            escape(&shortened(&policy.name, 17))
        );
        for (index, line) in lines.iter().enumerate() {
            let y = 31.0 + 17.0 * index as f64;
            let _ = writeln!(out, "<text class=\"soft\" x=\"12\" y=\"{y}\">{line}</text>");
        }
        let most = |values: Vec<Option<f64>>| values.into_iter().flatten().fold(0.0, f64::max);
        let timeline = &came.timeline;
        let waiting = words::many(most(timeline.waiting.clone()));
        let missed = words::percent(most(shares(timeline)));
        for (number, label) in
            [(0.0, format!("waiting, most {waiting}")), (1.0, format!("missed, most {missed}"))]
        {
            let y = CAPACITY + MARKS + number * (STRIP + BETWEEN) + STRIP - 4.0;
            let _ = writeln!(
                out,
                "<text class=\"tick soft\" x=\"{}\" y=\"{y}\">{label}</text>",
                LEFT - 6.0
            );
        }
    }

    /// A stroke up for each place with a scale-up, down for a scale-down.
    fn marks(&self, policy: &PolicyView, timeline: &TimelineView) -> String {
        let (mut up, mut down) = (String::new(), String::new());
        let (mut last_up, mut last_down) = (usize::MAX, usize::MAX);
        for decision in policy.decisions.iter().filter(|one| one.model == self.model) {
            let Some(step) = place(decision, timeline) else { continue };
            let (path, last, stroke) = match decision.to > decision.from {
                true => (&mut up, &mut last_up, "7v-5"),
                false => (&mut down, &mut last_down, "8v5"),
            };
            if *last != step {
                let _ = write!(path, "M{step}.5 {stroke}");
            }
            *last = step;
        }
        format!("<path class=\"up\" d=\"{up}\"/><path class=\"down\" d=\"{down}\"/>")
    }
}

const LEGEND: &str = "<p class=\"legend\">\
    <span><i class=\"k-demand\"></i>demand, in replicas at capacity</span>\
    <span><i class=\"k-ready\"></i>ready</span>\
    <span><i class=\"k-starts\"></i>starting</span>\
    <span><i class=\"k-drains\"></i>draining</span>\
    <span><i class=\"k-up\"></i>scaled up</span><span><i class=\"k-down\"></i>scaled down</span>\
    <span><i class=\"k-waits\"></i>waiting</span>\
    <span><i class=\"k-misses\"></i>missed</span>\
    <span class=\"soft\">Point at it for numbers and reasons.</span></p>\n";

/// Replicas of the first so many kinds, stacked: ready, starting, draining.
fn held(timeline: &TimelineView, kinds: usize) -> Vec<Option<f64>> {
    let columns = [&timeline.ready, &timeline.starting, &timeline.draining];
    (0..timeline.ready.len())
        .map(|index| columns[..kinds].iter().map(|column| column[index]).sum())
        .collect()
}

/// Share of requests missed, per step.
fn shares(timeline: &TimelineView) -> Vec<Option<f64>> {
    let both = timeline.missed.iter().zip(&timeline.requests);
    let share = |(missed, requests): (&Option<f64>, &Option<f64>)| match (missed, requests) {
        (Some(missed), Some(requests)) if *requests > 0.0 => Some((missed / requests).min(1.0)),
        (Some(_), Some(_)) => Some(0.0),
        _ => None,
    };
    both.map(share).collect()
}

/// The step in which a decision was made.
fn place(decision: &DecisionView, timeline: &TimelineView) -> Option<usize> {
    let after = decision.at_seconds - timeline.begins_seconds;
    let step = (after / timeline.step_seconds).floor();
    (step >= 0.0 && step < timeline.ready.len() as f64).then_some(step as usize)
}

fn shortened(words: &str, letters: usize) -> String {
    if words.chars().count() <= letters {
        return words.to_owned();
    }
    let beginning: String = words.chars().take(letters - 1).collect();
    format!("{}…", beginning.trim_end())
}

/// What the script shows at the pointer, once each.
#[derive(Serialize)]
struct Data {
    left: f64,
    right: f64,
    /// Reasons; decisions name them by number.
    because: Vec<String>,
    models: Vec<ModelData>,
}

#[derive(Serialize)]
struct ModelData {
    /// Words for the time of each step are made from these.
    begins: f64,
    step: f64,
    /// Milliseconds since 1970 of second zero, if the traffic says it.
    origin: Option<i64>,
    demand: Vec<Option<f64>>,
    policies: Vec<PolicyData>,
}

#[derive(Serialize)]
struct PolicyData {
    name: String,
    ready: Vec<Option<f64>>,
    starting: Vec<Option<f64>>,
    waiting: Vec<Option<f64>>,
    missed: Vec<Option<f64>>,
    /// Step, seconds, from, to, reason; the largest of each step.
    decisions: Vec<(usize, u64, u32, u32, usize)>,
}

/// The numbers behind the figures, rounded to what a tip shows.
pub(super) fn data(board: &Board<'_>) -> String {
    let mut because: Vec<String> = Vec::new();
    let rounded = |values: &[Option<f64>]| -> Vec<Option<f64>> {
        values.iter().map(|one| one.map(|one| (one * 10.0).round() / 10.0)).collect()
    };
    let mut models = Vec::new();
    let choices = board.policies.iter().filter(|policy| !policy.clairvoyant).count();
    let panels = board.models.len() * choices;
    let room = DECISIONS / panels.max(1);
    for index in 0..board.models.len() {
        let Some(figure) = Figure::new(board, index) else { continue };
        let first = figure.panels[0].1;
        let mut policies = Vec::new();
        for (policy, timeline) in &figure.panels {
            let per_mille: Vec<Option<f64>> = shares(timeline)
                .into_iter()
                .map(|one| one.map(|one| (one * 1e4).round() / 100.0))
                .collect();
            policies.push(PolicyData {
                name: policy.name.clone(),
                ready: rounded(&timeline.ready),
                starting: rounded(&timeline.starting),
                waiting: timeline.waiting.iter().map(|one| one.map(f64::round)).collect(),
                missed: per_mille,
                decisions: decisions(policy, timeline, index, room, &mut because),
            });
        }
        models.push(ModelData {
            begins: first.begins_seconds,
            step: first.step_seconds,
            origin: board.clock.origin.map(|origin| origin.as_millisecond()),
            demand: rounded(&first.demand),
            policies,
        });
    }
    let data = Data { left: LEFT / WIDTH, right: RIGHT / WIDTH, because, models };
    let text = serde_json::to_string(&data).expect("numbers are finite and keys are strings");
    // Whole numbers need no `.0`, and no text inside a script may end it.
    text.replace(".0,", ",").replace(".0]", "]").replace('<', "\\u003c")
}

/// The largest change of each step; and of those, the largest that there is room for.
fn decisions(
    policy: &PolicyView,
    timeline: &TimelineView,
    model: usize,
    room: usize,
    because: &mut Vec<String>,
) -> Vec<(usize, u64, u32, u32, usize)> {
    let size = |decision: &DecisionView| decision.to.abs_diff(decision.from);
    let mut largest: Vec<(usize, &DecisionView)> = Vec::new();
    for decision in policy.decisions.iter().filter(|one| one.model == model) {
        let Some(step) = place(decision, timeline) else { continue };
        match largest.last_mut().filter(|(last, _)| *last == step) {
            Some((_, known)) if size(known) >= size(decision) => {}
            Some(known) => known.1 = decision,
            None => largest.push((step, decision)),
        }
    }
    largest.sort_by_key(|(step, decision)| (u32::MAX - size(decision), *step));
    largest.truncate(room);
    largest.sort_by_key(|(step, _)| *step);
    let mut number = |decision: &DecisionView| {
        let reason = shortened(&decision.because, REASON_LETTERS);
        let known = because.iter().position(|one| *one == reason);
        known.unwrap_or_else(|| {
            because.push(reason);
            because.len() - 1
        })
    };
    largest
        .into_iter()
        .map(|(step, one)| (step, one.at_seconds.max(0.0) as u64, one.from, one.to, number(one)))
        .collect()
}
