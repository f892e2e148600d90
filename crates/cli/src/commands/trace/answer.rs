//! What is in a file of traffic, as an answer.

use flyball_simulator::seconds::Seconds;
use flyball_simulator::traffic::lengths::Lengths;
use flyball_simulator::traffic::load::{Loaded, LoadedPart, Traffic};
use flyball_simulator::traffic::reuse::Reuse;
use flyball_simulator::traffic::shape::{RateSeries, TrafficShape};
use schemars::JsonSchema;
use serde::Serialize;

use crate::output::document::{Block, Document};
use crate::output::{Answer, Detail, plural};

/// What is in a file of traffic.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TraceReport {
    pub(super) file: String,
    /// Detected format.
    pub(super) form: String,
    /// Start time, if the file has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) start: Option<String>,
    /// Rows that became traffic.
    pub(super) rows: usize,
    /// Rows that could not be read and are ignored.
    pub(super) unread: usize,
    /// The first of them, with their reasons.
    pub(super) unread_examples: Vec<String>,
    /// Requests that failed at their source; they are ignored too.
    pub(super) failed: usize,
    /// Columns that are not used.
    pub(super) unknown_columns: Vec<String>,
    pub(super) remarks: Vec<String>,
    pub(super) models: Vec<ModelTraffic>,
}

/// The traffic of one model.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ModelTraffic {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// `requests` or `rates`.
    kind: &'static str,
    /// Number of requests; of rates what they add up to.
    requests: f64,
    /// Clients with rates of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    clients: Option<usize>,
    span_seconds: f64,
    /// Where there is no data although there was traffic.
    gaps: Vec<GapView>,
    /// Requests per second where there is data.
    mean_rate: f64,
    /// Requests per second in the busiest window.
    peak_rate: f64,
    /// Length of the windows that the peak is the busiest of.
    peak_window_seconds: f64,
    /// Standard deviation of the distance between requests over its mean; one is Poisson.
    #[serde(skip_serializing_if = "Option::is_none")]
    variation: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_tokens: Option<TokensView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_tokens: Option<TokensView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reuse: Option<ReuseView>,
    series: SeriesView,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct GapView {
    start_seconds: f64,
    end_seconds: f64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct TokensView {
    mean: f64,
    p50: f64,
    p90: f64,
    p99: f64,
}

/// What prompts share, as a cache without end would see it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ReuseView {
    block_tokens: u32,
    /// Share of the blocks that an earlier prompt had.
    hit_share: f64,
    /// Share of the requests that share anything.
    request_share: f64,
    /// Mean shared blocks of those that do.
    depth_blocks: f64,
}

/// The rate over time, in few enough windows to draw.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SeriesView {
    window_seconds: f64,
    /// Requests per second; null where there is no data.
    rates: Vec<Option<f64>>,
}

impl TraceReport {
    pub(super) fn new(loaded: Loaded) -> TraceReport {
        let start = loaded.start.and_then(|start| {
            let stamp = jiff::Timestamp::from_second(start as i64).ok()?;
            Some(stamp.to_string())
        });
        TraceReport {
            file: loaded.tally.file,
            form: loaded.form.to_string(),
            start,
            rows: loaded.tally.read,
            unread: loaded.tally.unread,
            unread_examples: loaded.tally.examples,
            failed: loaded.tally.failed,
            unknown_columns: loaded.tally.unknown_columns,
            remarks: loaded.tally.notes,
            models: loaded.parts.into_iter().map(ModelTraffic::new).collect(),
        }
    }
}

impl ModelTraffic {
    fn new(part: LoadedPart) -> ModelTraffic {
        match part.traffic {
            Traffic::Trace(mut trace) => {
                trace.mask_gaps();
                let shape = TrafficShape::of_trace(&trace);
                let gaps = trace.gaps.iter().map(|gap| GapView::new(gap.start, gap.end)).collect();
                let reuse = Reuse::of(&trace).map(|reuse| ReuseView {
                    block_tokens: trace.block_tokens,
                    hit_share: reuse.hit_share,
                    request_share: reuse.request_share,
                    depth_blocks: reuse.depth,
                });
                let lengths = trace.lengths();
                let traffic = ModelTraffic { reuse, ..Self::shaped(shape, gaps, Some(&lengths)) };
                ModelTraffic { model: part.model, ..traffic }
            }
            Traffic::Rates(mut rates) => {
                rates.mask_gaps();
                let shape = TrafficShape::of_rates(&rates);
                let at = |window: usize| rates.window * window as f64;
                let gaps = rates.gaps.iter().map(|gap| GapView::new(at(gap.start), at(gap.end)));
                let traffic = Self::shaped(shape, gaps.collect(), part.lengths.as_ref());
                let clients = Some(rates.clients.len());
                ModelTraffic { model: part.model, kind: "rates", clients, ..traffic }
            }
        }
    }

    fn shaped(shape: TrafficShape, gaps: Vec<GapView>, lengths: Option<&Lengths>) -> ModelTraffic {
        ModelTraffic {
            model: None,
            kind: "requests",
            requests: shape.requests.round(),
            clients: None,
            span_seconds: shape.span.get(),
            gaps,
            mean_rate: shape.mean_rate,
            peak_rate: shape.peak_rate,
            peak_window_seconds: shape.series.window.get(),
            variation: shape.variation,
            prompt_tokens: lengths.map(|lengths| TokensView::new(lengths, |pair| pair.0)),
            output_tokens: lengths.map(|lengths| TokensView::new(lengths, |pair| pair.1)),
            reuse: None,
            series: SeriesView::new(&shape.series),
        }
    }
}

impl GapView {
    fn new(start: Seconds, end: Seconds) -> GapView {
        GapView { start_seconds: start.get(), end_seconds: end.get() }
    }
}

impl TokensView {
    fn new(lengths: &Lengths, pick: fn((f64, f64)) -> f64) -> TokensView {
        let at = |share| pick(lengths.quantiles(share));
        TokensView { mean: pick(lengths.means()), p50: at(0.5), p90: at(0.9), p99: at(0.99) }
    }
}

/// So many fit beside a name on a line of 100 columns.
const DRAWN: usize = 72;

impl SeriesView {
    fn new(series: &RateSeries) -> SeriesView {
        let together = series.rates.len().div_ceil(DRAWN).max(1);
        let rates = series.rates.chunks(together).map(|chunk| {
            let known: Vec<f64> = chunk.iter().flatten().copied().collect();
            (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
        });
        SeriesView { window_seconds: series.window.get() * together as f64, rates: rates.collect() }
    }

    /// One bar per window, as high as its rate; a cross where there is no data.
    fn bars(&self) -> String {
        const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let most = self.rates.iter().flatten().copied().fold(0.0, f64::max).max(1e-12);
        let bar = |rate: &Option<f64>| match rate {
            None => '×',
            Some(rate) => BARS[((rate / most * 8.0).ceil() as usize).clamp(1, 8) - 1],
        };
        self.rates.iter().map(bar).collect()
    }
}

impl Answer for TraceReport {
    const KIND: &'static str = "TraceReport";

    fn view(&self, detail: Detail) -> Document {
        let mut document = Document::new();
        for model in &self.models {
            if detail == Detail::Full {
                let name = model.model.clone().unwrap_or_else(|| self.file.clone());
                document.push(Block::Heading(name));
                document.push(Block::Facts(model.facts()));
                document.push(Block::Gap);
            }
        }
        let notes = self.notes();
        if !notes.is_empty() {
            document.push(Block::Notes(notes));
            document.push(Block::Gap);
        }
        let start = self.start.as_ref().map(|start| format!(", from {start}"));
        document.push(Block::Line(format!(
            "{}: {}, {}{}",
            self.form,
            plural(self.rows, "row"),
            match self.unread {
                0 => "all read".to_owned(),
                count => format!("{count} more could not be read"),
            },
            start.unwrap_or_default()
        )));
        document
    }
}

impl TraceReport {
    fn notes(&self) -> Vec<String> {
        let mut notes = self.remarks.clone();
        notes.extend(self.unread_examples.iter().map(|example| format!("not read: {example}")));
        if !self.unknown_columns.is_empty() {
            notes.push(format!("without a meaning here: {}", self.unknown_columns.join(", ")));
        }
        notes
    }
}

impl ModelTraffic {
    fn facts(&self) -> Vec<(String, String)> {
        let (mean, peak) = (self.mean_rate, self.peak_rate);
        let clients = match self.clients {
            Some(count) => format!(" from {}", plural(count, "client")),
            None => String::new(),
        };
        let tokens = |tokens: &TokensView| {
            let TokensView { mean, p50, p90, p99 } = tokens;
            format!("{p50:.0} in the median, p90 {p90:.0}, p99 {p99:.0}, mean {mean:.0} tokens")
        };
        let window = time(self.peak_window_seconds);
        let peak = format!(
            "{mean:.2}/s, {peak:.2}/s in the busiest {window} ({:.2} times)",
            peak / mean.max(1e-12)
        );
        let variation = self.variation.map(|variation| {
            let of = if self.clients.is_some() { ", in the mean of the clients" } else { "" };
            format!("{variation:.2} (1 is Poisson){of}")
        });
        let reuse = self.reuse.as_ref().map(|reuse| {
            format!(
                "{:.1} % of the blocks of {} tokens; {:.0} % of the requests, {:.1} blocks each",
                reuse.hit_share * 100.0,
                reuse.block_tokens,
                reuse.request_share * 100.0,
                reuse.depth_blocks
            )
        });
        let missing: f64 = self.gaps.iter().map(|gap| gap.end_seconds - gap.start_seconds).sum();
        let gaps = match self.gaps.len() {
            0 => "none".to_owned(),
            count => format!("{} without data, {} in all", plural(count, "time"), time(missing)),
        };
        let unknown = || "not known".to_owned();
        let over = time(self.span_seconds);
        [
            ("requests", Some(format!("{:.0} over {over}{clients}", self.requests))),
            ("rate", Some(peak)),
            ("variation", Some(variation.unwrap_or_else(unknown))),
            ("prompts", Some(self.prompt_tokens.as_ref().map_or_else(unknown, tokens))),
            ("answers", Some(self.output_tokens.as_ref().map_or_else(unknown, tokens))),
            ("seen before", reuse),
            ("gaps", Some(gaps)),
            ("over time", Some(self.series.bars())),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
    }
}

/// `14 d`, `2 h 30 min`, `58 min`, `35 s`.
fn time(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    let (days, hours, minutes) = (whole / 86_400, whole / 3600 % 24, whole / 60 % 60);
    let parts = match whole {
        0..60 => vec![(whole, "s")],
        60..3600 => vec![(minutes, "min"), (whole % 60, "s")],
        3600..86_400 => vec![(hours, "h"), (minutes, "min")],
        _ => vec![(days, "d"), (hours, "h")],
    };
    let shown = parts.iter().enumerate().filter(|(place, (count, _))| *place == 0 || *count > 0);
    shown.map(|(_, (count, unit))| format!("{count} {unit}")).collect::<Vec<_>>().join(" ")
}
