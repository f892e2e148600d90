//! How `flyball simulate` shows its answer on a terminal.

use super::answer::{ExpectationView, SimulatedView, Simulation};
use super::backtest::answer::PolicyModelView;
use super::backtest::words;
use crate::output::document::{Below, Block, Cell, Column, Document, Row, Table, Tone};
use crate::output::{Answer, Detail, Exit, duration, plural};

impl Answer for Simulation {
    const KIND: &'static str = "Simulation";

    fn view(&self, detail: Detail) -> Document {
        let full = detail == Detail::Full;
        let mut document = Document::new();
        if full {
            let took = format!("played request by request in {}", duration(self.took));
            document.push(Block::Line(format!("{}   {took}", self.header())));
            document.push(Block::Notes(self.grounds()));
            document.push(Block::Gap);
        }
        document.push(Block::Table(self.table()));
        document.push(Block::Gap);
        if self.minutes {
            self.show_minutes(&mut document);
        } else if full {
            document.push(Block::Table(self.board().sparks()));
            document.push(Block::Gap);
        }
        if let Some(table) = self.expected() {
            document.push(Block::Table(table));
            document.push(Block::Gap);
        }
        document.push(Block::Facts(self.verdicts()));
        document
    }

    fn exit(&self) -> Exit {
        let held = self.policies.first().is_none_or(SimulatedView::is_as_expected);
        let broken = self.policies.iter().any(|policy| !policy.broken.is_empty());
        if held && !broken { Exit::Yes } else { Exit::No }
    }
}

impl SimulatedView {
    fn is_as_expected(&self) -> bool {
        self.expectations.iter().all(|one| one.holds)
    }
}

impl Simulation {
    pub(super) fn header(&self) -> String {
        let requests: f64 = self.models.iter().map(|model| model.requests).sum();
        format!(
            "{}: {}, {}, {} requests, seed {}",
            self.scenario,
            words::span(self.span_seconds),
            plural(self.models.len(), "model"),
            words::many(requests),
            self.seed,
        )
    }

    /// What the numbers rest on.
    pub(super) fn grounds(&self) -> Vec<String> {
        let mut notes = vec![self.about.clone()];
        notes.extend(self.models.iter().map(|model| {
            format!(
                "{}: a replica of {} serves {} requests/s ({})",
                model.name,
                plural(model.gpus_per_replica as usize, "GPU"),
                words::grouped(model.replica_capacity),
                model.capacity_from,
            )
        }));
        notes.extend(self.policies.iter().flat_map(|policy| policy.notes.clone()));
        notes
    }

    pub(super) fn table(&self) -> Table {
        let columns = [
            Column::left("POLICY"),
            Column::right("MISSED"),
            Column::right("GPU-HOURS"),
            Column::right("REPLICA-HOURS"),
            Column::right("TTFT-P99"),
            Column::right("STARTS"),
            Column::right("REVERSALS"),
            Column::right("KILLED"),
        ];
        let mut table = Table::new(columns.into());
        let best = self.best().map(|best| best.came.name.as_str());
        for policy in &self.policies {
            let came = &policy.came;
            let is_met = came.missed.mean <= self.allowed_missed;
            let killed = if came.killed.mean > 0.0 { Tone::Bad } else { Tone::Plain };
            let p99 = came.ttft_p99_seconds.map(|p99| words::seconds(p99.mean));
            let mut row = Row::new([
                came.name.clone().into(),
                Cell::toned(
                    words::percent(came.missed.mean),
                    if is_met { Tone::Good } else { Tone::Bad },
                ),
                words::grouped(came.gpu_hours.mean).into(),
                words::grouped(policy.replica_hours).into(),
                p99.unwrap_or_default().into(),
                words::count(came.starts.mean).into(),
                words::count(came.reversals.mean).into(),
                Cell::toned(words::count(came.killed.mean), killed),
            ]);
            row.mark = (best == Some(came.name.as_str())).then_some('*');
            table.rows.push(row);
        }
        table
    }

    /// What the scenario expects, with where that comes from, and what came of it under each policy.
    pub(super) fn expected(&self) -> Option<Table> {
        let first = self.policies.first().filter(|first| !first.expectations.is_empty())?;
        let mut columns = vec![Column::left("EXPECTED")];
        columns.extend(self.policies.iter().map(|policy| Column::right(&policy.came.name)));
        let mut table = Table::new(columns);
        for (place, expectation) in first.expectations.iter().enumerate() {
            let mut cells = vec![Cell::from(expectation.words())];
            let each = self.policies.iter().map(|policy| &policy.expectations[place]);
            cells.extend(each.map(|one| match one.holds {
                true => Cell::toned(format!("{} pass", number(one.value)), Tone::Good),
                false => Cell::toned(format!("{} FAIL", number(one.value)), Tone::Bad),
            }));
            let mut row = Row::new(cells);
            row.below = vec![Below::Words(expectation.origin.clone())];
            table.rows.push(row);
        }
        Some(table)
    }

    /// Names and what is to be said of them.
    pub(super) fn verdicts(&self) -> Vec<(String, String)> {
        let mut facts = Vec::new();
        if let Some(first) = self.policies.first() {
            facts.push(("verdict".to_owned(), first.verdict()));
        }
        let allowed = words::percent(self.allowed_missed);
        if self.policies.len() > 1 {
            facts.push((
                "cheapest".to_owned(),
                match self.best() {
                    Some(best) => format!(
                        "{} is the cheapest that misses at most {allowed}: {} GPU-hours, {} \
                         replica-hours",
                        best.came.name,
                        words::grouped(best.came.gpu_hours.mean),
                        words::grouped(best.replica_hours),
                    ),
                    None => format!("no policy misses at most {allowed}"),
                },
            ));
        }
        for policy in &self.policies {
            for broken in &policy.broken {
                facts.push(("broken".to_owned(), format!("{}: {broken}", policy.came.name)));
            }
        }
        if let Some((file, bytes)) = &self.page {
            let kb = (*bytes as f64 / 1e3).ceil();
            facts.push(("report".to_owned(), format!("{file} ({kb:.0} kB, loads nothing)")));
        }
        facts
    }

    /// The cheapest that misses no more than is allowed. Nodes that are always there cost the same under each policy.
    fn best(&self) -> Option<&SimulatedView> {
        let able = self.policies.iter().filter(|one| one.came.missed.mean <= self.allowed_missed);
        let cost = |one: &SimulatedView| (one.came.gpu_hours.mean, one.replica_hours);
        able.min_by(|a, b| {
            let ((gpus, replicas), (others, other)) = (cost(a), cost(b));
            gpus.total_cmp(&others).then(replicas.total_cmp(&other))
        })
    }

    /// Every minute of each policy and model.
    fn show_minutes(&self, document: &mut Document) {
        for policy in &self.policies {
            for model in &policy.came.models {
                let title = match self.models.len() {
                    1 => policy.came.name.clone(),
                    _ => format!("{}, {}", policy.came.name, model.model),
                };
                document.push(Block::Heading(title));
                document.push(Block::Table(self.minutes(model)));
                document.push(Block::Gap);
            }
        }
    }

    fn minutes(&self, model: &PolicyModelView) -> Table {
        let mut columns = vec![Column::left("TIME")];
        let names = ["DEMAND", "READY", "STARTING", "DRAINING", "WAITING", "REQUESTS", "MISSED"];
        columns.extend(names.map(Column::right));
        let mut table = Table::new(columns);
        let timeline = &model.timeline;
        for (step, demand) in timeline.demand.iter().enumerate() {
            let at = timeline.begins_seconds + step as f64 * timeline.step_seconds;
            let count = |value: Option<f64>| value.map(words::count).unwrap_or_default();
            let column = |values: &[Option<f64>]| count(values.get(step).copied().flatten());
            table.rows.push(Row::new([
                self.clock.time(at),
                demand.map(|demand| format!("{demand:.1}")).unwrap_or_default(),
                column(&timeline.ready),
                column(&timeline.starting),
                column(&timeline.draining),
                column(&timeline.waiting),
                column(&timeline.requests),
                column(&timeline.missed),
            ]));
        }
        table
    }
}

impl SimulatedView {
    fn verdict(&self) -> String {
        let (name, all) = (&self.came.name, self.expectations.len());
        let held = self.expectations.iter().filter(|one| one.holds).count();
        match (all, held == all) {
            (0, _) => format!("the scenario expects nothing of {name}"),
            (1, true) => format!("{name}: the expectation holds"),
            (_, true) => format!("{name}: all {all} expectations hold"),
            (_, false) => format!("{name}: {} of {all} expectations FAIL", all - held),
        }
    }
}

impl ExpectationView {
    /// `missed_percent <= 7`.
    fn words(&self) -> String {
        match (self.min, self.max) {
            (Some(min), Some(max)) => format!("{} {min} to {max}", self.what),
            (Some(min), None) => format!("{} >= {min}", self.what),
            (None, Some(max)) => format!("{} <= {max}", self.what),
            (None, None) => self.what.clone(),
        }
    }
}

fn number(value: f64) -> String {
    if value == value.round() { words::count(value) } else { words::grouped(value) }
}
