//! How `flyball backtest` shows its answer on a terminal.

use super::answer::{Backtest, ComparisonView, HullView, PolicyView};
use super::board::Board;
use super::words;
use crate::output::document::{Block, Cell, Column, Document, Row, Table, Tone};
use crate::output::{Answer, Detail, Exit, duration, plural};

impl Answer for Backtest {
    const KIND: &'static str = "Backtest";

    fn view(&self, detail: Detail) -> Document {
        let mut document = Document::new();
        if detail == Detail::Full {
            document.push(Block::Line(self.header()));
            document.push(Block::Notes(self.grounds()));
            document.push(Block::Gap);
        }
        document.push(Block::Table(self.table()));
        document.push(Block::Gap);
        if detail == Detail::Full {
            document.push(Block::Table(self.board().sparks()));
            document.push(Block::Gap);
        }
        document.push(Block::Facts(self.verdicts()));
        if detail == Detail::Full {
            document.push(Block::Gap);
            document.push(Block::Line(format!("hint: {}", self.hint())));
        }
        document
    }

    fn exit(&self) -> Exit {
        if self.gates.iter().any(|gate| gate.broken) { Exit::No } else { Exit::Yes }
    }
}

impl Backtest {
    /// What is drawn of it.
    pub(super) fn board(&self) -> Board<'_> {
        Board {
            models: &self.models,
            policies: self.policies.iter().collect(),
            hull: &self.hull,
            clock: self.clock,
            span_seconds: self.span_seconds,
            allowed_missed: self.allowed_missed,
        }
    }

    pub(super) fn header(&self) -> String {
        let requests: f64 = self.models.iter().map(|model| model.requests).sum();
        let first = format!(
            "{}, {}, {} requests, {}",
            words::span(self.span_seconds),
            plural(self.models.len(), "model"),
            words::many(requests),
            plural(self.seeds.len(), "seed"),
        );
        format!("{first}   {}, done in {}", self.how(), duration(self.took))
    }

    fn how(&self) -> &'static str {
        match self.method {
            "fluid" => "replayed as rates",
            _ => "replayed request by request",
        }
    }

    /// What the numbers rest on.
    pub(super) fn grounds(&self) -> Vec<String> {
        let mut notes: Vec<String> = self
            .models
            .iter()
            .map(|model| {
                let of_eight = match model.each_of_eight > 1.01 * model.replica_capacity {
                    true => format!(", each of eight {}", words::grouped(model.each_of_eight)),
                    false => String::new(),
                };
                format!(
                    "{}: {}, a replica of {} serves {} requests/s{of_eight} ({})",
                    model.name,
                    model.traffic,
                    plural(model.gpus_per_replica as usize, "GPU"),
                    words::grouped(model.replica_capacity),
                    model.capacity_from,
                )
            })
            .collect();
        let mut all = vec![format!("cold start {}", words::span(self.cold_start_seconds))];
        all.extend(self.ttft_seconds.map(|ttft| format!("TTFT <= {}", words::seconds(ttft))));
        all.extend(self.tpot_seconds.map(|tpot| format!("TPOT <= {}", words::pace(tpot))));
        all.extend(self.pool_gpus.map(|gpus| format!("a pool of {gpus} GPUs")));
        all.extend(self.usd_per_gpu_hour.map(|usd| format!("${usd:.2} per GPU-hour")));
        notes.push(all.join(", "));
        if !self.assumed.is_empty() {
            notes.push(format!("assumed: {}", self.assumed.join(", ")));
        }
        notes.extend(self.notes.iter().cloned());
        notes
    }

    pub(super) fn table(&self) -> Table {
        let mut table = Table::new(vec![
            Column::left("POLICY"),
            Column::right("GPU-HOURS"),
            Column::right("x-OPTIMUM"),
            Column::right("MISSED"),
            Column::right("TTFT-P99"),
            Column::right("TPOT-P99"),
            Column::right("STARTS"),
            Column::right("REVERSALS"),
            Column::right("KILLED"),
            Column::right("COST"),
        ]);
        let best = self.board().best().map(|best| best.name.as_str());
        for policy in &self.policies {
            let mut row = Row::new(self.cells(policy));
            row.mark = (best == Some(policy.name.as_str())).then_some('*');
            row.muted = policy.clairvoyant;
            table.rows.push(row);
        }
        table
    }

    fn cells(&self, policy: &PolicyView) -> [Cell; 10] {
        let hundredths = |value: f64| format!("{value:.2}");
        let missed = words::spread(policy.missed, words::percent, |half| {
            words::percent(half).trim_end_matches(" %").to_owned()
        });
        let tone = match policy {
            policy if policy.clairvoyant => Tone::Plain,
            policy if policy.missed.mean <= self.allowed_missed => Tone::Good,
            _ => Tone::Bad,
        };
        let bad = |value: f64| if value > 0.0 { Tone::Bad } else { Tone::Plain };
        let times = policy.times_optimum;
        let usd = policy.usd.map(|usd| format!("${}", words::grouped(usd.mean)));
        [
            policy.name.clone().into(),
            words::grouped(policy.gpu_hours.mean).into(),
            times.map(|one| words::spread(one, hundredths, hundredths)).unwrap_or_default().into(),
            Cell::toned(missed, tone),
            policy.ttft_p99_seconds.map(|p99| words::seconds(p99.mean)).unwrap_or_default().into(),
            policy.tpot_p99_seconds.map(|p99| words::pace(p99.mean)).unwrap_or_default().into(),
            words::count(policy.starts.mean).into(),
            words::count(policy.reversals.mean).into(),
            Cell::toned(words::count(policy.killed.mean), bad(policy.killed.mean)),
            usd.unwrap_or_default().into(),
        ]
    }

    /// Names and what is to be said of them.
    pub(super) fn verdicts(&self) -> Vec<(String, String)> {
        let allowed = words::percent(self.allowed_missed);
        let best = match self.board().best() {
            Some(best) => {
                let above = best.times_optimum.map(|times| {
                    format!(", {:.0} % above the optimum", (times.mean - 1.0).max(0.0) * 100.0)
                });
                format!(
                    "{} is the cheapest that misses at most {allowed}: {} GPU-hours{}",
                    best.name,
                    words::grouped(best.gpu_hours.mean),
                    above.unwrap_or_default(),
                )
            }
            None => format!("no policy misses at most {allowed}"),
        };
        let mut facts = vec![("verdict".to_owned(), best)];
        facts.extend(self.causal.map(|causal| ("in reach".to_owned(), in_reach(causal))));
        for comparison in self.compared() {
            facts.push((format!("vs {}", comparison.against), compared(comparison)));
        }
        facts.extend(self.worst().map(|words| ("worst 5 min".to_owned(), words)));
        for gate in &self.gates {
            let verdict = match gate.broken {
                true => format!("{}: FAIL ({})", gate.rule, gate.because.join("; ")),
                false => format!("{}: pass", gate.rule),
            };
            facts.push(("gate".to_owned(), verdict));
        }
        if let Some((file, bytes)) = &self.page {
            let kb = (*bytes as f64 / 1e3).ceil();
            facts.push(("report".to_owned(), format!("{file} ({kb:.0} kB, loads nothing)")));
        }
        facts
    }

    /// Comparisons worth a line: all of a few, else those of the best and of the governor.
    fn compared(&self) -> Vec<&ComparisonView> {
        let best = self.board().best().map_or("", |best| best.name.as_str());
        let few = self.comparisons.len() <= 3;
        let compared =
            |one: &&ComparisonView| few || [best, "governor"].contains(&one.policy.as_str());
        self.comparisons.iter().filter(compared).collect()
    }

    /// Of the best and of the one it is held against; the document has the others.
    fn worst(&self) -> Option<String> {
        let best = self.board().best().map(|best| best.name.as_str());
        let base = self.comparisons.first().map(|comparison| comparison.against.as_str());
        let shown = |policy: &&PolicyView| {
            [best, base].contains(&Some(policy.name.as_str())) && !policy.clairvoyant
        };
        let worst_hours = self.policies.iter().filter(shown).filter_map(|policy| {
            let at = policy.worst.at_seconds?;
            let share = words::percent(policy.worst.missed);
            Some(format!("{} {share} missed at {}", policy.name, self.clock.label(at)))
        });
        let worst_hours: Vec<String> = worst_hours.collect();
        (!worst_hours.is_empty()).then(|| worst_hours.join("; "))
    }

    fn hint(&self) -> String {
        let worst =
            self.board().best().or(self.policies.last()).and_then(|policy| policy.worst.at_seconds);
        match (&self.page, worst) {
            (None, _) => "--report backtest.html draws all of it".to_owned(),
            (_, Some(at)) => {
                let day = (at / 86_400.0).floor() + 1.0;
                let at = self.clock.time(at);
                format!("flyball backtest why --at {day:.0}d{at} explains that moment")
            }
            _ => "flyball backtest tune searches better settings of a policy".to_owned(),
        }
    }
}

/// What is left to gain without a crystal ball.
fn in_reach(causal: HullView) -> String {
    format!(
        "{} GPU-hours with {} missed, for who knows how this load moves but not what comes next",
        words::grouped(causal.gpu_hours),
        words::percent(causal.missed),
    )
}

/// `governor -6.9 % cost (-7.4 to -6.3), misses -0.03 points`.
fn compared(comparison: &ComparisonView) -> String {
    let percent = |share: f64| format!("{:+.1}", share * 100.0);
    let interval = match comparison.cost.half() {
        Some(_) => {
            format!(" ({} to {})", percent(comparison.cost.low), percent(comparison.cost.high))
        }
        None => String::new(),
    };
    format!(
        "{} {} % cost{interval}, misses {:+.2} points",
        comparison.policy,
        percent(comparison.cost.mean),
        comparison.missed.mean * 100.0
    )
}
