//! How `flyball backtest train` shows its answer on a terminal.

use super::answer::{TrainPolicyView, TrainReplay, TrainRunView};
use crate::commands::backtest::{spark, words};
use crate::output::document::{Block, Cell, Column, Document, Overflow, Row, Table, Tone};
use crate::output::{Answer, Detail, duration, plural};

impl Answer for TrainReplay {
    const KIND: &'static str = "BacktestTrain";

    fn view(&self, detail: Detail) -> Document {
        let mut document = Document::new();
        if detail == Detail::Full {
            document.push(Block::Line(format!(
                "{}   done in {}",
                self.header(),
                duration(self.took)
            )));
            document.push(Block::Notes(self.grounds()));
            document.push(Block::Gap);
        }
        document.push(Block::Table(self.table()));
        document.push(Block::Gap);
        if detail == Detail::Full {
            document.push(Block::Table(self.strips()));
            document.push(Block::Gap);
        }
        document.push(Block::Facts(self.verdicts()));
        document
    }
}

impl TrainReplay {
    pub(super) fn header(&self) -> String {
        format!(
            "{} of work in {}, {} GPUs, from {}",
            words::span(self.work_seconds),
            words::span(self.deadline_seconds),
            self.gpus,
            plural(self.starts_seconds.len(), "start"),
        )
    }

    /// What the numbers rest on.
    pub(super) fn grounds(&self) -> Vec<String> {
        let zones: Vec<String> = self
            .zones
            .iter()
            .map(|zone| format!("{} {}", zone.name, words::percent(zone.available)))
            .collect();
        vec![
            format!(
                "{}, {} at once: available {}",
                self.recording,
                plural(usize::from(self.machines), "machine"),
                zones.join(", ")
            ),
            format!("prices: {}", self.prices),
            format!(
                "restart {}, save {}; reclaims come without notice; on-demand machines can always be had",
                words::span(self.restart_seconds),
                words::seconds(self.save_seconds)
            ),
            "SHARE is the cost over that of on-demand machines alone, in %; ABOVE is points of it above the \
             optimum, which knows the future"
                .to_owned(),
        ]
    }

    pub(super) fn table(&self) -> Table {
        let mut table = Table::new(vec![
            Column::left("POLICY"),
            Column::right("COST"),
            Column::right("SHARE"),
            Column::right("ABOVE"),
            Column::right("LATE"),
            Column::right("SPOT"),
            Column::right("ON-DEMAND"),
            Column::right("WAITED"),
            Column::right("RECLAIMS"),
            Column::right("LOST"),
        ]);
        let optimum = format!("${}", words::grouped(self.optimum_usd.mean));
        let share = words::percent(self.optimum_usd.mean / self.on_demand_run_usd);
        let blank = || std::iter::repeat_n(String::new(), 7);
        let mut row = Row::new(["optimum".to_owned(), optimum, share].into_iter().chain(blank()));
        row.muted = true;
        table.rows.push(row);
        let best = self.best().map(|best| best.name.as_str());
        for policy in &self.policies {
            let mut row = Row::new(self.cells(policy));
            row.mark = (best == Some(policy.name.as_str())).then_some('*');
            table.rows.push(row);
        }
        table
    }

    fn cells(&self, policy: &TrainPolicyView) -> [Cell; 10] {
        let hours = |hours: f64| format!("{} h", words::count((hours * 10.0).round() / 10.0));
        let tone = if policy.late > 0 { Tone::Bad } else { Tone::Good };
        [
            policy.name.clone().into(),
            format!("${}", words::grouped(policy.usd.mean)).into(),
            words::percent(policy.of_on_demand).into(),
            format!("{:.1}", policy.points_above_optimum.mean).into(),
            Cell::toned(format!("{} of {}", policy.late, policy.runs.len()), tone),
            hours(policy.spot_hours).into(),
            hours(policy.on_demand_hours).into(),
            hours(policy.waited_hours).into(),
            words::count((policy.reclaims * 10.0).round() / 10.0).into(),
            hours(policy.lost_hours).into(),
        ]
    }

    /// The cheapest that was never late.
    pub(super) fn best(&self) -> Option<&TrainPolicyView> {
        let able = self.policies.iter().filter(|policy| policy.late == 0);
        able.min_by(|one, other| one.usd.mean.total_cmp(&other.usd.mean))
    }

    /// The run from the first start under each policy: where it was, over time.
    fn strips(&self) -> Table {
        let columns = ["FIRST RUN", "OVER TIME", "ENDED"].map(Column::left);
        let mut table = Table::new(columns.into());
        table.titled = false;
        table.overflow = Overflow::Hide;
        for policy in &self.policies {
            let Some(run) = policy.runs.first() else { continue };
            let ended = run.took_seconds.map_or_else(|| "not ended".to_owned(), words::span);
            table.rows.push(Row::new([policy.name.clone(), self.strip(run), ended]));
        }
        let mut legend = vec!["D on demand".to_owned(), ". waits".to_owned()];
        legend.extend(
            self.zones
                .iter()
                .enumerate()
                .map(|(place, zone)| format!("{} {}", letter(place), zone.name)),
        );
        let until = format!("of {}", words::span(self.deadline_seconds));
        let row = Row::new(["legend".to_owned(), legend.join(", "), until]);
        table.rows.push(Row { muted: true, ..row });
        table
    }

    /// One character for each part of the time up to the deadline: the place that it began in.
    fn strip(&self, run: &TrainRunView) -> String {
        let part = self.deadline_seconds / spark::COLUMNS as f64;
        (0..spark::COLUMNS).map(|column| self.place_at(run, (column as f64 + 0.5) * part)).collect()
    }

    fn place_at(&self, run: &TrainRunView, at: f64) -> char {
        let held = |stay: &&super::answer::TrainStayView| {
            stay.from_seconds <= at && at < stay.until_seconds
        };
        let Some(stay) = run.stays.iter().find(held) else { return ' ' };
        match (&stay.zone, stay.place) {
            (Some(zone), _) => {
                let place = self.zones.iter().position(|one| one.name == *zone);
                letter(place.unwrap_or_default())
            }
            (None, "wait") => '.',
            (None, _) => 'D',
        }
    }

    /// Names and what is to be said of them.
    pub(super) fn verdicts(&self) -> Vec<(String, String)> {
        let verdict = match self.best() {
            Some(best) => format!(
                "{} is the cheapest that was never late: ${}, {} of on-demand alone",
                best.name,
                words::grouped(best.usd.mean),
                words::percent(best.of_on_demand),
            ),
            None => "every policy was late at least once".to_owned(),
        };
        let mut facts = vec![("verdict".to_owned(), verdict)];
        if let Some((file, bytes)) = &self.page {
            let kb = (*bytes as f64 / 1e3).ceil();
            facts.push(("report".to_owned(), format!("{file} ({kb:.0} kB, loads nothing)")));
        }
        facts
    }
}

/// The letter of a zone.
pub(super) fn letter(place: usize) -> char {
    char::from(b'a' + (place % 26) as u8)
}
