//! How `flyball plan train` shows its answer.

use flyball_perf::catalog::PriceKind;

use super::super::parts::price_note;
use super::super::range::short;
use super::answer::{TrainAnswer, TrainChoiceView};
use super::{changes, picture, rejected};
use crate::output::document::{Block, Column, Document, Row, Table, Tone};
use crate::output::{Answer, Detail, Exit, plural};

impl Answer for TrainAnswer {
    const KIND: &'static str = "TrainPlan";

    fn view(&self, detail: Detail) -> Document {
        let mut document = Document::new();
        document.push(self.verdict());
        document.push(Block::Gap);
        if detail == Detail::Full {
            document.push(Block::Facts(self.facts()));
            document.push(Block::Gap);
        }
        if !self.choices.is_empty() {
            document.push(Block::Table(self.table()));
            document.push(Block::Gap);
        }
        document.push(Block::Notes(self.notes()));
        if detail == Detail::Full {
            for table in rejected::tables(&self.rejected) {
                document.push(Block::Gap);
                document.push(Block::Table(table));
            }
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
            "gpus" => {
                format!("{}; the earliest end wins", plural(self.fixed_value as usize, "GPU"))
            }
            "deadline" => {
                format!("within {} days; the least money wins", short(self.fixed_value / 86_400.0))
            }
            _ => format!("${:.0} at most; the earliest end wins", self.fixed_value),
        };
        let run = format!(
            "{} tokens, some {:.0} sequences of {:.0} tokens per step (rounded to fit each layout), \
             {}, {}",
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

    /// The answer in one sentence.
    fn verdict(&self) -> Block {
        let Some(first) = self.choices.first() else {
            let most = match self.fixed {
                "gpus" => String::new(),
                _ => {
                    let tried = plural(self.largest_tried as usize, "GPU");
                    format!(" Up to {tried} were tried; --max-gpus allows more.")
                }
            };
            let allow = match self.fixed {
                "gpus" => "more GPUs",
                "deadline" => "more time",
                _ => "more money",
            };
            let words = format!(
                "No layout fits; {} were tried. Allow {allow} or another precision; the table lists why each is out.{most}",
                self.considered
            );
            return Block::Verdict(words, Tone::Bad);
        };
        let of = match self.fixed {
            "gpus" if f64::from(first.gpus) < self.fixed_value => {
                format!(" of your {:.0}", self.fixed_value)
            }
            _ => String::new(),
        };
        let usd = first.usd.map_or(String::new(), |usd| format!(", ${}", usd.money_cell()));
        let confidence = first.kept_percent.map_or(String::new(), |percent| {
            format!(" {percent:.0} % of such runs keep the {}.", self.fixed)
        });
        let words = format!(
            "Train on {}{of} {} with {}: {} days{usd}.{confidence}",
            first.gpus,
            first.accelerator,
            first.layout,
            first.days.cell(),
        );
        let tone = if first.rests_on_datasheet() { Tone::Caution } else { Tone::Good };
        Block::Verdict(words, tone)
    }

    fn notes(&self) -> Vec<String> {
        let Some(first) = self.choices.first() else { return Vec::new() };
        let mut notes = vec![chosen(first, self.considered, self.feasible)];
        if let Some(because) = self.choices.get(1).and_then(|second| second.lost_because.as_ref()) {
            notes.push(format!("2 lost: {because}."));
        }
        notes.extend(changes::sentences(&self.changes));
        if self.fixed != "gpus" && first.gpus == self.largest_tried {
            notes.push(format!(
                "{} is the largest size tried; --max-gpus allows more.",
                plural(first.gpus as usize, "GPU")
            ));
        }
        notes.push(spent(first));
        notes.push(format!(
            "Checkpoints of {} GB, best saved every {} min; saves and failures take {:.1} % of the \
             time.",
            short(first.checkpoint_bytes as f64 / 1e9),
            short(first.save_every_seconds / 60.0),
            first.lost_share * 100.0
        ));
        notes.extend(self.warnings.iter().cloned());
        let purchase = PriceKind::named(self.purchase).unwrap_or(PriceKind::OnDemand);
        let prices: Vec<_> =
            self.choices.iter().filter_map(|choice| choice.price.as_ref()).collect();
        if !prices.is_empty() {
            notes.push(price_note(&prices, purchase));
        }
        notes
    }
}

fn chosen(first: &TrainChoiceView, considered: usize, feasible: usize) -> String {
    let price = first.price.as_ref().map_or(String::new(), |price| format!("{}, ", price.from()));
    format!(
        "Chosen 1: {price}{} per step; MFU {:.1} % (causal attention, dense peak), \
         HFU {:.1} %; {considered} layouts tried, {feasible} possible.",
        plural(first.sequences_per_step as usize, "sequence"),
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
    format!("A step of {} s goes into {}.", short(first.step_seconds.point), parts.join(", "))
}

/// `1T`, `14.8T`, `300B`: three digits, without zeros at the end.
fn tokens(count: f64) -> String {
    let (scaled, letter) = match count {
        count if count >= 1e12 => (count / 1e12, "T"),
        count if count >= 1e9 => (count / 1e9, "B"),
        count => (count / 1e6, "M"),
    };
    let digits = (2.0 - scaled.log10().floor()).clamp(0.0, 3.0) as usize;
    let text = format!("{scaled:.digits$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    format!("{text}{letter}")
}

#[cfg(test)]
mod tests {
    use super::tokens;

    #[test]
    fn tokens_keep_three_digits() {
        for (count, text) in [(1e12, "1T"), (14.8e12, "14.8T"), (300e9, "300B"), (1.25e9, "1.25B")]
        {
            assert_eq!(tokens(count), text);
        }
        assert_eq!(tokens(2e15), "2000T");
        assert_eq!(tokens(5e4), "0.05M");
    }
}
