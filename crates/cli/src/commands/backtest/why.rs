//! `flyball backtest why --at 13:05`: what the governor decided then, and from which numbers.

use clap::Args;
use flyball_core::decision::ModelDecision;
use flyball_governor::explain::explain;
use flyball_simulator::fluid::{self, Keep};
use schemars::JsonSchema;
use serde::Serialize;

use super::args::ReplayArgs;
use super::clock::Clock;
use super::ground::Ground;
use super::policies::{self, Named};
use super::recorded::Recorded;
use super::requests;
use crate::output::document::{Block, Column, Document, Row, Table};
use crate::output::{Answer, Detail, Exit, Failure, Printer};

/// Explain what the governor decided at a moment of the replay
///
/// Replays the traffic up to that moment with the first seed, and turns the receipt of the decision
/// into three sentences: what was seen, what decided, what it costs.
#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    #[command(flatten)]
    replay: ReplayArgs,

    /// The moment: 13:05, 2d13:05 for the second day, or a date
    #[arg(long, value_name = "TIME", env = "FLYBALL_BACKTEST_AT", hide_env_values = true)]
    at: String,
}

/// What the governor decided at a moment, and why.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WhyAnswer {
    /// Requested time, from the start of the replay.
    at_seconds: f64,
    models: Vec<WhyView>,
    #[serde(skip)]
    clock: Clock,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct WhyView {
    model: String,
    /// Time of the decision in effect at that time.
    decided_seconds: f64,
    /// Desired replicas.
    replicas: u32,
    /// Observation, bound and cost.
    explanation: String,
    reason: &'static str,
    /// Which bound set the number.
    bound: &'static str,
    /// Replicas that each bound alone would allow.
    candidates: Vec<CandidateView>,
    /// The last change before the moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_change: Option<ChangeView>,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CandidateView {
    bound: &'static str,
    replicas: u32,
    meaning: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ChangeView {
    at_seconds: f64,
    from: u32,
    to: u32,
}

pub(super) fn run(args: &WhyArgs, printer: &Printer) -> Result<Exit, Failure> {
    let progress = printer.progress();
    progress.show("reading traffic");
    let mut ground = Ground::read(&args.replay)?;
    let outside = |why: String| {
        Failure::new(Exit::Usage, format!("--at {} is not a time of this replay", args.at))
            .hint(why)
    };
    let at = ground.clock.read(&args.at).map_err(outside)?;
    if at < 0.0 || at > ground.length.get() {
        let (first, last) = (ground.clock.label(0.0), ground.clock.label(ground.length.get()));
        return Err(outside(format!("it lasts from {first} to {last}")));
    }
    progress.show("replaying");
    let policy = Named::read("governor", &policies::scaled(&ground, &args.replay))?;
    // A little more, so that the last decision at the moment is made.
    ground.upto = Some((at + 60.0).min(ground.length.get()));
    let mut recorded = Recorded::new(policy.make()).watching(at);
    let world = ground.world(&args.replay, 1, Keep::default());
    match ground.by_request {
        true => requests::play(&ground, &args.replay, &world, &mut recorded),
        false => fluid::run(&world, &mut recorded),
    };
    drop(progress);
    let change = |model: usize| {
        let before = recorded.decisions.iter().filter(|one| one.model == model);
        before.rev().find(|one| one.at_seconds <= at).map(|one| ChangeView {
            at_seconds: one.at_seconds,
            from: one.from,
            to: one.to,
        })
    };
    let models = ground.subjects.iter().enumerate().filter_map(|(index, subject)| {
        let (seconds, decided) = recorded.seen.iter().find(|(_, one)| one.model == subject.id)?;
        Some(WhyView::new(&subject.name, *seconds, decided, change(index)))
    });
    let answer = WhyAnswer { at_seconds: at, models: models.collect(), clock: ground.clock };
    Ok(printer.answer(&answer))
}

impl WhyView {
    fn new(name: &str, at: f64, decided: &ModelDecision, change: Option<ChangeView>) -> WhyView {
        let candidates = decided.receipt.candidates.iter().map(|(bound, replicas)| CandidateView {
            bound: bound.name(),
            replicas: replicas.get(),
            meaning: bound.summary(),
        });
        WhyView {
            model: name.to_owned(),
            decided_seconds: at,
            replicas: decided.targets.iter().map(|target| target.replicas.get()).sum(),
            // The virtual world has a namespace of its own, which nobody typed.
            explanation: explain(decided).replace("backtest/", ""),
            reason: decided.reason.name(),
            bound: decided.bound.name(),
            candidates: candidates.collect(),
            last_change: change,
        }
    }
}

impl Answer for WhyAnswer {
    const KIND: &'static str = "BacktestWhy";

    fn view(&self, _: Detail) -> Document {
        let mut document = Document::new();
        for (index, model) in self.models.iter().enumerate() {
            if index > 0 {
                document.push(Block::Gap);
            }
            let at = self.clock.label(self.at_seconds);
            document.push(Block::Heading(format!("{} at {at}", model.model)));
            document.push(Block::Notes(vec![model.explanation.clone()]));
            document.push(Block::Gap);
            let mut table = Table::new(vec![
                Column::left("BOUND"),
                Column::right("REPLICAS"),
                Column::left("MEANING"),
            ]);
            for one in &model.candidates {
                let mut row = Row::new([
                    one.bound.to_owned(),
                    one.replicas.to_string(),
                    one.meaning.to_owned(),
                ]);
                row.mark = (one.bound == model.bound).then_some('*');
                table.rows.push(row);
            }
            if !table.rows.is_empty() {
                document.push(Block::Table(table));
            }
            if let Some(change) = &model.last_change {
                let at = self.clock.label(change.at_seconds);
                let (from, to) = (change.from, change.to);
                document.push(Block::Line(format!("last change {at}: {from} → {to} replicas")));
            }
        }
        if self.models.is_empty() {
            document.push(Block::Line("nothing was decided by then".to_owned()));
        }
        document
    }
}
