//! `flyball backtest tune`: better settings of a policy, searched on the first part of the
//! traffic and tested on the rest, which the search has not seen.

use clap::Args;
use flyball_simulator::fluid::{self, Keep};
use flyball_simulator::rivals::{self, RivalSettings};
use flyball_simulator::tune::{TuneResult, best, front};
use schemars::JsonSchema;
use serde::Serialize;

use super::answer::{PolicyView, Spread, tidy};
use super::args::{ReplayArgs, share};
use super::ground::Ground;
use super::policies::{self, Named, facts};
use super::{collect, replay, words};
use crate::output::document::{Block, Column, Document, Row, Table};
use crate::output::{Answer, Detail, Exit, Failure, FailureCode, Printer};

/// Search a policy's settings on the first part of the traffic, and test them on the rest
///
/// The search tries a grid of settings with the first seed and takes the cheapest that misses no
/// more than --misses. The test replays all seeds and scores only what the search has not seen.
#[derive(Debug, Args)]
pub(crate) struct TuneArgs {
    #[command(flatten)]
    replay: ReplayArgs,

    /// The rival to tune, by name
    #[arg(long, value_name = "POLICY", env = "FLYBALL_BACKTEST_POLICY", hide_env_values = true)]
    #[arg(default_value = "hpa")]
    policy: String,

    /// Share of the traffic that the search sees
    #[arg(long, value_name = "SHARE", env = "FLYBALL_BACKTEST_TRAIN", hide_env_values = true)]
    #[arg(default_value = "50%", value_parser = share)]
    train: f64,
}

/// Settings that were tried, and the result of the best one on unseen traffic.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TuneAnswer {
    policy: String,
    /// Length of the traffic used for the search.
    train_seconds: f64,
    /// Length of the rest.
    test_seconds: f64,
    /// Share of requests that may miss.
    allowed_missed: f64,
    /// The best setting in words.
    best: String,
    /// Every setting, on the traffic used for the search; cheapest first.
    tried: Vec<TriedView>,
    /// On the rest: the clairvoyant, the policy as named, and the best setting.
    tested: Vec<TestedView>,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TriedView {
    setting: String,
    gpu_hours: f64,
    missed: f64,
    /// No other setting is better in both.
    on_front: bool,
    best: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TestedView {
    name: String,
    gpu_hours: Spread,
    times_optimum: Option<Spread>,
    missed: Spread,
    starts: Spread,
    reversals: Spread,
}

pub(super) fn run(args: &TuneArgs, printer: &Printer) -> Result<Exit, Failure> {
    let progress = printer.progress();
    progress.show("reading traffic");
    let mut ground = Ground::read(&args.replay)?;
    // Dozens of settings are tried: the flow is quick, and tells them apart.
    ground.by_request = false;
    let train = (ground.length.get() * args.train).floor();
    // Who sets up a policy knows the first part: calendars are learnt from it.
    ground.unscored = train;
    let as_named = Named::read(&args.policy, &policies::scaled(&ground, &args.replay))?;
    let settings = grid(args, &ground)?;
    ground.unscored = args.replay.warm_up;
    ground.upto = Some(train);
    let tried = replay::parallel(settings.len(), &progress, "backtest", |index| {
        let world = ground.world(&args.replay, 1, Keep::default());
        let policy = Named::rival(args.policy.clone(), settings[index].clone());
        TuneResult::of(&fluid::run(&world, policy.make().as_mut()))
    });
    let chosen = best(&tried, args.replay.misses).ok_or_else(|| nothing_to_tune(&args.policy))?;
    ground.unscored = train;
    ground.upto = None;
    let tuned = Named::rival(format!("{} tuned", args.policy), settings[chosen].clone());
    let replayed = replay::all(&ground, &args.replay, &[as_named, tuned], &progress);
    drop(progress);
    let optimum = replayed.played.first();
    let optimum = optimum.map(|played| collect::Bound { played, hull: &replayed.hull });
    let tested = replayed.played.iter().map(|played| {
        TestedView::of(collect::policy(played, optimum, &[], ground.usd_per_gpu_hour))
    });
    let answer = TuneAnswer {
        policy: args.policy.clone(),
        train_seconds: train - args.replay.warm_up,
        test_seconds: ground.length.get() - train,
        allowed_missed: args.replay.misses,
        best: label(&settings[chosen]),
        tried: tried_views(&settings, &tried, chosen),
        tested: tested.collect(),
    };
    Ok(printer.answer(&answer))
}

/// Settings to try, for each the settings of every model.
fn grid(args: &TuneArgs, ground: &Ground) -> Result<Vec<Vec<RivalSettings>>, Failure> {
    let per_model: Vec<Vec<RivalSettings>> = ground
        .subjects
        .iter()
        .map(|subject| rivals::grid(&args.policy, &facts(subject, ground, &args.replay)))
        .collect();
    let count = per_model.iter().map(Vec::len).min().unwrap_or(0);
    if count == 0 {
        return Err(nothing_to_tune(&args.policy));
    }
    let of_all = |index: usize| per_model.iter().map(|all| all[index].clone()).collect();
    Ok((0..count).map(of_all).collect())
}

fn label(settings: &[RivalSettings]) -> String {
    settings.first().map(RivalSettings::label).unwrap_or_default()
}

fn nothing_to_tune(policy: &str) -> Failure {
    Failure::new(Exit::Usage, format!("{policy} has no settings to search"))
        .because("the governor tunes itself, and a policy file is fixed")
        .hint("name a rival, such as --policy hpa")
        .code(FailureCode::Policy)
}

fn tried_views(
    settings: &[Vec<RivalSettings>],
    tried: &[TuneResult],
    chosen: usize,
) -> Vec<TriedView> {
    let on_front = front(tried);
    let mut views: Vec<TriedView> = tried
        .iter()
        .enumerate()
        .map(|(index, one)| TriedView {
            setting: label(&settings[index]),
            gpu_hours: tidy(one.gpu_hours),
            missed: tidy(one.missed),
            on_front: on_front.contains(&index),
            best: index == chosen,
        })
        .collect();
    views.sort_by(|a, b| a.gpu_hours.total_cmp(&b.gpu_hours));
    views
}

impl TestedView {
    fn of(policy: PolicyView) -> TestedView {
        TestedView {
            name: policy.name,
            gpu_hours: policy.gpu_hours,
            times_optimum: policy.times_optimum,
            missed: policy.missed,
            starts: policy.starts,
            reversals: policy.reversals,
        }
    }
}

impl Answer for TuneAnswer {
    const KIND: &'static str = "BacktestTune";

    fn view(&self, detail: Detail) -> Document {
        let mut document = Document::new();
        if detail == Detail::Full {
            document.push(Block::Line(format!(
                "{} settings of {} tried on the first {}; those that none beats:",
                self.tried.len(),
                self.policy,
                words::span(self.train_seconds)
            )));
            document.push(Block::Table(self.front()));
            document.push(Block::Gap);
            document.push(Block::Line(format!(
                "tested on the {} after it:",
                words::span(self.test_seconds)
            )));
        }
        document.push(Block::Table(self.tests()));
        document.push(Block::Gap);
        document.push(Block::Notes(vec![self.verdict()]));
        document
    }
}

impl TuneAnswer {
    fn front(&self) -> Table {
        let mut table = Table::new(vec![
            Column::left("SETTING"),
            Column::right("GPU-HOURS"),
            Column::right("MISSED"),
        ]);
        for one in self.tried.iter().filter(|one| one.on_front || one.best) {
            let mut row = Row::new([
                one.setting.clone(),
                words::grouped(one.gpu_hours),
                words::percent(one.missed),
            ]);
            row.mark = one.best.then_some('*');
            table.rows.push(row);
        }
        table
    }

    fn tests(&self) -> Table {
        let mut table = Table::new(vec![
            Column::left("POLICY"),
            Column::right("GPU-HOURS"),
            Column::right("x-OPTIMUM"),
            Column::right("MISSED"),
            Column::right("STARTS"),
            Column::right("REVERSALS"),
        ]);
        let hundredths = |value: f64| format!("{value:.2}");
        let points = |half: f64| words::percent(half).trim_end_matches(" %").to_owned();
        for one in &self.tested {
            let times = one.times_optimum.map(|times| words::spread(times, hundredths, hundredths));
            table.rows.push(Row::new([
                one.name.clone(),
                words::grouped(one.gpu_hours.mean),
                times.unwrap_or_default(),
                words::spread(one.missed, words::percent, points),
                words::count(one.starts.mean),
                words::count(one.reversals.mean),
            ]));
        }
        table
    }

    fn verdict(&self) -> String {
        let [_, named, tuned] = self.tested.as_slice() else { return String::new() };
        let cost = (tuned.gpu_hours.mean / named.gpu_hours.mean - 1.0) * 100.0;
        let allowed = words::percent(self.allowed_missed);
        let keeps = match tuned.missed.mean <= self.allowed_missed {
            true => {
                format!("and misses {}, inside the {allowed}", words::percent(tuned.missed.mean))
            }
            false => format!("but misses {} of {allowed}", words::percent(tuned.missed.mean)),
        };
        format!("best: {}. On what it had not seen it costs {cost:+.1} %, {keeps}.", self.best)
    }
}
