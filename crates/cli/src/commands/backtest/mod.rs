//! `flyball backtest`: what each policy would have cost and missed on real traffic.
//!
//! [`BacktestArgs`] and `args` say what can be typed, `ground` makes worlds of it (with `capacity`: what a replica
//! carries), `policies` makes policies of names and files, `replay` runs them in the simulator (as a flow, or by
//! `requests`) and `optimum` asks the clairvoyant. `collect` turns scores into an `answer` with a table (`view`)
//! and a page (`page`); `caps` says which limits held, `gate` judges `--fail-if`. `train`, `tune` and `why` are the subcommands.
//!
//! Nothing is decided here: the simulator replays, the policies decide.

pub(super) mod answer;
mod args;
pub(super) mod board;
mod capacity;
mod caps;
pub(super) mod clock;
pub(super) mod collect;
mod gate;
mod ground;
mod optimum;
pub(super) mod page;
pub(super) mod policies;
pub(super) mod recorded;
pub(super) mod replay;
mod requests;
mod spark;
#[cfg(test)]
mod tests;
mod train;
mod tune;
mod view;
mod why;
pub(super) mod words;

use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, Subcommand};
use flyball_core::pooling::Pooling;

use crate::output::{Exit, Failure, FailureCode, Printer};
use answer::ModelView;
use args::ReplayArgs;
use collect::Played;
use gate::Gate;
use ground::Ground;
use policies::Named;
use replay::Replayed;

pub(crate) use answer::Backtest;
#[cfg(test)]
pub(crate) use {train::TrainReplay, tune::TuneAnswer, why::WhyAnswer};

/// Whom the governor is held against unless somebody says: the settings of others that do best where they are
/// published, and at the end the one that people copy.
const DEFAULT: &str = "governor,hpa-running,llm-d-slo,keda-running,hpa";

/// Replay traffic against scaling policies
///
/// Policies are scored against a clairvoyant. Needs no cluster. Every policy sees only what its metrics would have
/// shown, and pays for a replica from the moment it asks for it. The same seeds give the same output, byte for byte.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct BacktestArgs {
    #[command(subcommand)]
    what: Option<What>,

    #[command(flatten)]
    replay: ReplayArgs,

    /// Policy: governor, a rival by name (hpa, keda@8, static ...) or a file with a
    /// HorizontalPodAutoscaler or ScaledObject; may be repeated
    #[arg(long, value_name = "POLICY", env = "FLYBALL_BACKTEST_POLICY", value_delimiter = ',')]
    #[arg(hide_env_values = true, default_value = DEFAULT)]
    policy: Vec<String>,

    /// Policy to compare the others with; the first other than the governor if not set
    #[arg(long, value_name = "POLICY", env = "FLYBALL_BACKTEST_AGAINST", hide_env_values = true)]
    against: Option<String>,

    /// Exit with 1 if this is true, as in 'missed>1%', 'cost>100', 'x-optimum>1.3', 'killed>0' or
    /// 'hpa:ttft-p99>3s'; may be repeated
    #[arg(long, value_name = "RULE", env = "FLYBALL_BACKTEST_FAIL_IF", hide_env_values = true)]
    #[arg(value_parser = Gate::read)]
    fail_if: Vec<Gate>,

    /// Also write an HTML report
    #[arg(long, value_name = "FILE", env = "FLYBALL_BACKTEST_REPORT", hide_env_values = true)]
    report: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum What {
    Train(Box<train::TrainArgs>),
    Tune(tune::TuneArgs),
    Why(why::WhyArgs),
}

pub(crate) fn run(args: &BacktestArgs, printer: &Printer) -> Result<Exit, Failure> {
    match &args.what {
        None => backtest(args, printer),
        Some(What::Train(args)) => train::run(args, printer),
        Some(What::Tune(args)) => tune::run(args, printer),
        Some(What::Why(args)) => why::run(args, printer),
    }
}

fn backtest(args: &BacktestArgs, printer: &Printer) -> Result<Exit, Failure> {
    let start = Instant::now();
    let progress = printer.progress();
    progress.show("reading traffic");
    let ground = Ground::read(&args.replay)?;
    let policies = policies::all(&args.policy, &policies::scaled(&ground, &args.replay))?;
    let against = against(args, &policies)?;
    let replayed = replay::all(&ground, &args.replay, &policies, &progress);
    drop(progress);
    let mut answer = answer(&args.replay, &ground, &replayed, against.as_deref());
    answer.notes = policies.iter().flat_map(|policy| policy.notes.clone()).collect();
    answer.notes.extend(policies::copied(&policies));
    answer.notes.extend(caps::notes(&answer, args.replay.max));
    answer.notes.extend(ground.unreachable(&args.replay));
    answer.gates = args
        .fail_if
        .iter()
        .map(|gate| gate.judge(&answer.policies, args.against.as_deref()))
        .collect();
    answer.took = start.elapsed();
    if let Some(file) = &args.report {
        answer.page = Some(page::written(file, &page::page(&answer), "--report")?);
    }
    Ok(printer.answer(&answer))
}

/// Whom the others are held against; and no rule may name somebody who is not there.
fn against(args: &BacktestArgs, policies: &[Named]) -> Result<Option<String>, Failure> {
    let there = |name: &str| policies.iter().any(|policy| policy.name == name);
    let named = args.against.iter().map(String::as_str);
    let ruled = args.fail_if.iter().filter_map(|gate| gate.names());
    if let Some(stranger) = named.chain(ruled).find(|name| !there(name)) {
        let names: Vec<&str> = policies.iter().map(|policy| policy.name.as_str()).collect();
        return Err(Failure::new(Exit::Usage, format!("{stranger} is not replayed"))
            .because(format!("the policies are {}", names.join(", ")))
            .hint(format!("add --policy {stranger}"))
            .code(FailureCode::Policy));
    }
    let other = || policies.iter().find(|policy| policy.name != "governor");
    Ok(args.against.clone().or_else(|| other().map(|policy| policy.name.clone())))
}

fn answer(
    args: &ReplayArgs,
    ground: &Ground,
    replayed: &Replayed,
    against: Option<&str>,
) -> Backtest {
    let first = replayed.played.get(1).or(replayed.played.first());
    let requests = |index: usize| {
        let outcome = first.and_then(|played| played.outcomes.first());
        outcome.and_then(|outcome| outcome.models.get(index)).map_or(0.0, |model| model.requests)
    };
    let models: Vec<ModelView> = ground
        .subjects
        .iter()
        .enumerate()
        .map(|(index, subject)| ModelView {
            name: subject.name.clone(),
            traffic: subject.traffic.clone(),
            requests: answer::tidy(requests(index)),
            replica_capacity: answer::tidy(subject.capacity.per_second),
            each_of_eight: answer::tidy(
                subject.capacity.per_second
                    * subject.capacity.pooling.each(f64::from(Pooling::FLEET)),
            ),
            capacity_from: subject.capacity.from.clone(),
            gpus_per_replica: args.tensor,
        })
        .collect();
    let optimum = replayed.played.iter().find(|played| played.clairvoyant);
    let usd = ground.usd_per_gpu_hour;
    let optimum = optimum.map(|played| collect::Bound { played, hull: &replayed.hull });
    let show = |played: &Played| collect::policy(played, optimum, &models, usd);
    let base = replayed.played.iter().find(|played| Some(played.name.as_str()) == against);
    let others = || {
        replayed.played.iter().filter(|one| !one.clairvoyant && Some(one.name.as_str()) != against)
    };
    Backtest {
        span_seconds: ground.length.get() - args.warm_up,
        begins_at: ground.clock.origin.map(|origin| origin.to_string()),
        method: if ground.by_request { "requests" } else { "fluid" },
        seeds: replay::seeds(args),
        cold_start_seconds: args.cold_start.quantile(0.5).get(),
        ttft_seconds: Some(args.ttft.as_secs_f64()),
        tpot_seconds: Some(args.tpot.as_secs_f64()),
        pool_gpus: args.pool,
        usd_per_gpu_hour: usd,
        allowed_missed: args.misses,
        assumed: ground.assumed.clone(),
        notes: Vec::new(),
        policies: replayed.played.iter().map(show).collect(),
        models,
        hull: replayed.hull.clone(),
        causal: replayed.causal,
        comparisons: base
            .map(|base| others().map(|one| collect::compare(one, base)).collect())
            .unwrap_or_default(),
        gates: Vec::new(),
        took: Default::default(),
        page: None,
        clock: ground.clock,
    }
}
