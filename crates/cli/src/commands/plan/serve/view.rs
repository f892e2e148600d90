//! How `flyball plan serve` shows its answer.

use flyball_perf::catalog::PriceKind;
use flyball_perf::search::serve::{Knowledge, ServePlan, ServeQuestion};
use flyball_perf::serving::batch::Batch;
use flyball_perf::serving::fold::ServingReplica;
use flyball_perf::serving::step::StepModel;

use super::super::parts::price_note;
use super::super::range::{short, tidy};
use super::answer::{ChangeView, ChoiceView, CliffView, ServeAnswer, StepPartView, StepView};
use super::picture;
use crate::output::document::{Block, Column, Document, Row, Table, Tone};
use crate::output::{Answer, Detail, Exit, plural};

/// More than a screenful of reasons hides the ones that matter.
const SHOWN_REJECTED: usize = 10;

impl Answer for ServeAnswer {
    const KIND: &'static str = "ServePlan";

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
        for (title, serves) in [("REJECTED", false), ("AVOID", true)] {
            let table = self.rejected_table(title, serves);
            if !table.rows.is_empty() && (detail == Detail::Full || self.choices.is_empty()) {
                document.push(Block::Table(table));
                document.push(Block::Gap);
            }
        }
        document.push(Block::Notes(self.notes()));
        if let Some(step) = &self.step {
            document.push(Block::Gap);
            document.push(Block::Heading("Where a step's time goes".to_owned()));
            document.push(Block::Table(step_table(step)));
            let running = format!("with {} requests decoding in a replica", short(step.running));
            document.push(Block::Line(running));
        }
        if detail == Detail::Full && self.points.len() > 1 {
            document.push(Block::Gap);
            document.push(Block::Picture(picture::picture(self)));
        }
        document
    }

    fn exit(&self) -> Exit {
        if self.choices.is_empty() { Exit::No } else { Exit::Yes }
    }
}

impl ServeAnswer {
    fn facts(&self) -> Vec<(String, String)> {
        let load = format!(
            "{} requests/s, {} tokens in, {} out; assumed: {}",
            short(self.load.rate),
            self.load.input_tokens.round(),
            self.load.output_tokens.round(),
            self.load.assumed.join(", "),
        );
        let target =
            |name: &str, ms: Option<f64>| ms.map(|ms| format!("{name} <= {} ms", short(ms)));
        let targets: Vec<String> =
            [target("TTFT", self.targets.ttft_p95_ms), target("ITL", self.targets.itl_p95_ms)]
                .into_iter()
                .flatten()
                .collect();
        let targets = match targets.is_empty() {
            true => "none".to_owned(),
            false => format!("{}, for 95 % of requests", targets.join(", ")),
        };
        [
            ("Model", self.model.sentence()),
            ("Load", load),
            ("Target", targets),
            ("Engine", self.engine.to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    fn table(&self) -> Table {
        let slow = self.choices.iter().any(|choice| choice.ttft_p95_ms.point >= 1e3);
        let mut table = Table::new(vec![
            Column::right("#"),
            Column::left("GPU"),
            Column::left("LAYOUT"),
            Column::right("SIZE"),
            Column::right(if slow { "TTFT-S" } else { "TTFT-MS" }),
            Column::right("ITL-MS"),
            Column::left("BOUND-BY"),
            Column::right("$/H"),
            Column::right("$/M-OUT"),
            Column::left("EVIDENCE"),
        ]);
        for (index, choice) in self.choices.iter().enumerate() {
            let mut row = Row::new(cells(index, choice, slow));
            row.mark = (index == 0).then_some('*');
            table.rows.push(row);
        }
        table
    }

    /// Of parts that do not serve, what came closest; of parts that do, the links that are traps. The
    /// JSON has every reason of every part.
    fn rejected_table(&self, title: &str, serves: bool) -> Table {
        let mut table =
            Table::new(vec![Column::left(title), Column::left("LAYOUT"), Column::left("BECAUSE")]);
        let mut seen: Vec<&str> = Vec::new();
        for one in self.rejected.iter().filter(|one| one.part_serves == serves) {
            let shown =
                !seen.contains(&one.accelerator.as_str()) && (!serves || one.reason == "link");
            if shown && table.rows.len() < SHOWN_REJECTED {
                seen.push(&one.accelerator);
                let cells = [&one.accelerator, &one.layout, &one.because].map(String::clone);
                table.rows.push(Row { muted: true, ..Row::new(cells) });
            }
        }
        table
    }

    /// The answer in one sentence.
    fn verdict(&self) -> Block {
        let Some(first) = self.choices.first() else {
            let relax = match (self.targets.ttft_p95_ms, self.targets.itl_p95_ms) {
                (None, None) => "Name",
                _ => "Relax a target, or name",
            };
            return Block::Verdict(
                format!(
                    "No GPU serves this load; {} layouts were tried. {relax} other GPUs with \
                     --gpu; the table lists why each is out.",
                    self.considered
                ),
                Tone::Bad,
            );
        };
        let price = first.usd_per_hour.map_or(String::new(), |usd| {
            let from = first
                .price
                .as_ref()
                .map_or(String::new(), |price| format!(" from {}", price.from()));
            format!(", ${usd:.2}/h{from}")
        });
        let words = format!(
            "Run {} x {} {} ({}{price}): {:.0} % loaded, bound by {}.",
            first.replicas,
            first.accelerator,
            first.layout,
            plural(first.gpus as usize, "GPU"),
            first.load * 100.0,
            first.bound_by,
        );
        let tone = if first.rests_on_datasheet() { Tone::Caution } else { Tone::Good };
        Block::Verdict(words, tone)
    }

    fn notes(&self) -> Vec<String> {
        let purchase = PriceKind::named(self.purchase).unwrap_or(PriceKind::OnDemand);
        let Some(first) = self.choices.first() else { return Vec::new() };
        let mut notes = vec![self.chosen(first)];
        notes.extend(self.cliffs.iter().map(|cliff| cliff_words(cliff, first)));
        if let Some((second, because)) = self
            .choices
            .get(1)
            .and_then(|second| second.lost_because.as_ref().map(|because| (second, because)))
        {
            notes.push(format!("2 lost ({}): {because}.", second.accelerator));
        }
        notes.extend(self.price_that_changes_it(first));
        notes.push(self.sensitivity());
        notes.extend(self.warnings.iter().cloned());
        let prices: Vec<_> =
            self.choices.iter().filter_map(|choice| choice.price.as_ref()).collect();
        if !prices.is_empty() {
            notes.push(price_note(&prices, purchase));
        }
        notes
    }

    fn chosen(&self, first: &ChoiceView) -> String {
        let whole = match first.billed_gpus > first.gpus {
            true => {
                format!(" {} GPUs are billed, because they are sold in hosts.", first.billed_gpus)
            }
            false => String::new(),
        };
        format!(
            "Chosen 1: a replica serves {} requests/s within the objectives with {} prompt tokens \
             per step.{whole} {} layouts and settings tried.",
            first.replica_capacity.cell(),
            first.chunk_tokens,
            self.considered
        )
    }

    /// How much more expensive the chosen part may get before another part is cheaper.
    fn price_that_changes_it(&self, first: &ChoiceView) -> Option<String> {
        let other = self.points.iter().find(|point| point.accelerator != first.accelerator)?;
        let paid = first.usd_per_hour.filter(|_| self.objective == "cheapest")?;
        let percent = (other.usd_per_hour / paid - 1.0) * 100.0;
        // One that is cheaper on paper lost because nobody has measured it, which no price changes.
        (percent >= 0.5).then(|| {
            format!(
                "{} would win if {} got {percent:.0} % more expensive.",
                other.accelerator, first.accelerator
            )
        })
    }

    /// Changes that lead to another choice; else those that change its size; else that none does.
    fn sensitivity(&self) -> String {
        let then = |change: &&ChangeView| match &change.then {
            Some(then) => format!("{}: {then}", change.what),
            None => format!("{}: nothing would do", change.what),
        };
        let words = |of: &dyn Fn(&&ChangeView) -> bool| {
            self.changes.iter().filter(of).map(|change| then(&change)).collect::<Vec<_>>()
        };
        let other = words(&|change| change.changes_the_choice);
        if !other.is_empty() {
            return format!("Another choice with {}.", other.join("; "));
        }
        let size = self.choices.first().and_then(|first| first.usd_per_hour);
        let larger = words(&|change| change.usd_per_hour != size);
        if !larger.is_empty() {
            return format!("More of the same with {}.", larger.join("; "));
        }
        let changes: Vec<&str> = self.changes.iter().map(|change| change.what).collect();
        format!("The same with {}.", changes.join(", "))
    }

    /// Adds where the time of the first choice goes.
    pub(super) fn explain(
        &mut self,
        question: &ServeQuestion<'_>,
        plan: &ServePlan,
        knowledge: &Knowledge,
    ) {
        let Some(first) = plan.ranked.first() else { return };
        let accelerator = question.parts[first.part].accelerator;
        let replica = ServingReplica {
            model: question.model,
            accelerator,
            layout: first.layout,
            engine: question.engine,
            cache: question.cache,
        };
        let kernels = accelerator.kernels_or_assumed();
        let Ok(step) = StepModel::new(&replica, &kernels, &knowledge.coefficients) else { return };
        let shape = &question.shape;
        let decode = Batch::decoding(first.at.running, shape.input + shape.output / 2.0);
        let plain = step.parts(&decode).named();
        let mixed = step.parts(&decode.with_prompt(first.at.prompt_tokens, shape.input)).named();
        let parts = plain
            .into_iter()
            .zip(mixed)
            .map(|((part, plain), (_, mixed))| StepPartView {
                part,
                decode_ms: tidy(plain * 1e3),
                with_prompt_ms: tidy(mixed * 1e3),
            })
            .collect();
        self.step = Some(StepView { running: tidy(first.at.running), parts });
    }
}

/// `ITL 150 ms instead of 100 ms: 4 GPUs instead of 12.`
fn cliff_words(cliff: &CliffView, first: &ChoiceView) -> String {
    let (target, from, then) = (cliff.target, short(cliff.asked_ms), short(cliff.then_ms));
    let gpus = cliff.gpus.map_or_else(
        || format!("{} cannot do it", first.accelerator),
        |gpus| format!("{} instead of {}", plural(gpus as usize, "GPU"), first.gpus),
    );
    format!("Sensitive: with {target} {then} ms instead of {from} ms, {gpus}.")
}

fn cells(index: usize, choice: &ChoiceView, slow: bool) -> [String; 10] {
    let money = |usd: Option<f64>| match usd {
        None => String::new(),
        Some(usd) if usd >= 1e3 => format!("{usd:.0}"),
        Some(usd) => format!("{usd:.2}"),
    };
    let ttft = choice.ttft_p95_ms.cell_in(if slow { 1e3 } else { 1.0 });
    [
        (index + 1).to_string(),
        choice.accelerator.clone(),
        choice.layout.clone(),
        format!("{}x{}", choice.replicas, choice.gpus_per_replica),
        ttft,
        choice.itl_p95_ms.cell(),
        choice.bound_by.to_owned(),
        money(choice.usd_per_hour),
        money(choice.usd_per_million_output_tokens),
        choice.evidence.clone(),
    ]
}

fn step_table(step: &StepView) -> Table {
    let mut table = Table::new(vec![
        Column::left("PART"),
        Column::right("DECODING"),
        Column::right("WITH-PROMPT"),
    ]);
    let ms = |value: f64| format!("{value:.2} ms");
    for part in &step.parts {
        table.rows.push(Row::new([
            part.part.to_owned(),
            ms(part.decode_ms),
            ms(part.with_prompt_ms),
        ]));
    }
    let total = |of: fn(&StepPartView) -> f64| ms(step.parts.iter().map(of).sum());
    table.rows.push(Row::new([
        "together".to_owned(),
        total(|part| part.decode_ms),
        total(|part| part.with_prompt_ms),
    ]));
    table
}
