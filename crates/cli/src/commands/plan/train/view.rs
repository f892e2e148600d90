//! How `flyball plan train` shows its answer.

use flyball_perf::catalog::Purchase;

use super::super::parts::price_note;
use super::super::range::short;
use super::answer::{TrainAnswer, TrainChoiceView};
use super::picture;
use crate::output::document::{Block, Column, Document, Row, Table};
use crate::output::{Answer, Detail, Exit};

/// More than a screenful of reasons hides the ones that matter; the JSON has all of them.
const SHOWN_REJECTED: usize = 10;

impl Answer for TrainAnswer {
    const KIND: &'static str = "TrainPlan";

    fn view(&self, detail: Detail) -> Document {
        let mut document = Document::new();
        if detail == Detail::Full {
            document.push(Block::Facts(self.facts()));
            document.push(Block::Gap);
        }
        if !self.choices.is_empty() {
            document.push(Block::Table(self.table()));
            document.push(Block::Gap);
        }
        document.push(Block::Notes(self.verdict()));
        if detail == Detail::Full && !self.rejected.is_empty() {
            document.push(Block::Gap);
            document.push(Block::Table(self.rejected_table()));
        }
        if detail == Detail::Full && self.choices.len() > 1 && self.choices[0].usd.is_some() {
            document.push(Block::Gap);
            document.push(Block::Picture(picture::frontier(self)));
        }
        document
    }

    fn exit(&self) -> Exit {
        if self.choices.is_empty() { Exit::No } else { Exit::Yes }
    }
}

impl TrainAnswer {
    fn facts(&self) -> Vec<(String, String)> {
        let fixed = match self.fixed {
            "gpus" => format!("{:.0} GPUs; the earliest end wins", self.fixed_value),
            "deadline" => {
                format!("within {} days; the least money wins", short(self.fixed_value / 86_400.0))
            }
            _ => format!("${:.0} at most; the earliest end wins", self.fixed_value),
        };
        let run = format!(
            "{} tokens, {:.0} sequences of {:.0} tokens per step, {}, {}",
            tokens(self.tokens),
            self.sequences_per_step,
            self.sequence_tokens,
            self.framework,
            self.precision,
        );
        [
            ("Model", self.model.sentence()),
            ("Run", run),
            ("Fixed", fixed),
            ("Assumed", self.assumed.join("; ")),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    fn table(&self) -> Table {
        let mut table = Table::new(vec![
            Column::right("#"),
            Column::left("GPU"),
            Column::right("GPUS"),
            Column::left("LAYOUT"),
            Column::right("STEP-S"),
            Column::right("MFU"),
            Column::right("GB"),
            Column::right("DAYS"),
            Column::right("$"),
            Column::left("EVIDENCE"),
        ]);
        for (index, choice) in self.choices.iter().enumerate() {
            let mut row = Row::new([
                (index + 1).to_string(),
                choice.accelerator.clone(),
                choice.gpus.to_string(),
                choice.layout.clone(),
                short(choice.step_seconds.point),
                format!("{:.0}%", choice.mfu * 100.0),
                format!("{:.0}", choice.memory_bytes as f64 / 1e9),
                choice.days.cell(),
                choice.usd.map_or(String::new(), |usd| usd.money_cell()),
                choice.evidence.clone(),
            ]);
            row.mark = (index == 0).then_some('*');
            table.rows.push(row);
        }
        table
    }

    fn rejected_table(&self) -> Table {
        let mut table = Table::new(vec![
            Column::left("REJECTED"),
            Column::right("LAYOUTS"),
            Column::left("BECAUSE"),
            Column::left("FOR-EXAMPLE"),
        ]);
        for class in self.rejected.iter().take(SHOWN_REJECTED) {
            table.rows.push(Row::new([
                class.accelerator.clone(),
                class.count.to_string(),
                class.because.clone(),
                class.example.clone(),
            ]));
        }
        table
    }

    fn verdict(&self) -> Vec<String> {
        let Some(first) = self.choices.first() else {
            return vec![format!(
                "Nothing fits: {} layouts were tried. The reasons stand below; allow more \
                 accelerators, money or time, or another precision.",
                self.considered
            )];
        };
        let mut notes = vec![chosen(first, self.considered, self.feasible)];
        if let Some(because) = self.choices.get(1).and_then(|second| second.lost_because.as_ref()) {
            notes.push(format!("2 lost: {because}."));
        }
        notes.push(spent(first));
        notes.push(format!(
            "Checkpoints of {} GB, best saved every {} min; saves and failures take {:.1} % of the \
             time.",
            short(first.checkpoint_bytes as f64 / 1e9),
            short(first.save_every_seconds / 60.0),
            first.lost_share * 100.0
        ));
        if self.model.has_experts() {
            notes.push(
                "The speed of training with experts is not validated: 24 held-out rows were 20 % off \
                 in the median."
                    .to_owned(),
            );
        }
        let purchase = Purchase::named(self.purchase).unwrap_or(Purchase::OnDemand);
        let prices: Vec<_> =
            self.choices.iter().filter_map(|choice| choice.price.as_ref()).collect();
        if !prices.is_empty() {
            notes.push(price_note(&prices, purchase));
        }
        notes
    }
}

fn chosen(first: &TrainChoiceView, considered: usize, feasible: usize) -> String {
    let price =
        first.price.as_ref().map_or(String::new(), |price| format!(" from {}", price.from()));
    format!(
        "Chosen 1: {} x {}{price}, {}; MFU {:.1} % (causal attention, dense peak), HFU {:.1} %; \
         {considered} layouts tried, {feasible} possible.",
        first.gpus,
        first.accelerator,
        first.layout,
        first.mfu * 100.0,
        first.hfu * 100.0,
    )
}

/// Where the time of a step goes, the four largest parts.
fn spent(first: &TrainChoiceView) -> String {
    let parts: Vec<String> = first
        .step_parts
        .iter()
        .take(4)
        .map(|part| format!("{} {:.0} %", part.part, part.share * 100.0))
        .collect();
    format!("A step goes into {}.", parts.join(", "))
}

/// `1T`, `300B`.
fn tokens(count: f64) -> String {
    match count {
        count if count >= 1e12 => format!("{}T", short(count / 1e12)),
        count if count >= 1e9 => format!("{}B", short(count / 1e9)),
        count => format!("{}M", short(count / 1e6)),
    }
}
