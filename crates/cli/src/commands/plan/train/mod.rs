//! `flyball plan train`: how to train on so many tokens.

pub(super) mod answer;
mod changes;
pub(super) mod emit;
pub(super) mod manifest;
mod picture;
mod rejected;
mod view;
mod warnings;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args};
use flyball_perf::evidence::Intervals;
use flyball_perf::precision::Math;
use flyball_perf::search::train::changes::changes;
use flyball_perf::search::train::{Reliability, Size, TrainQuestion, train};
use flyball_perf::training::{Framework, TrainingCoefficients};

use super::parts::PartsArgs;
use super::{quantities, serve};
use crate::model::{FormatArgs, Model};
use crate::output::document::html;
use crate::output::{Answer, Detail, Exit, Failure, Printer};
use answer::TrainAnswer;
use emit::TrainingCommand;
use manifest::{ManifestArgs, TrainingRunManifest};

/// Plan a training run: GPUs, layout, time and price for a number of tokens
///
/// Fix one of three: how many accelerators (the earliest end wins), the deadline (the least money
/// wins), or the budget (the earliest end wins). Four in five of such runs must keep the deadline or
/// the budget; --confidence asks for more or fewer.
#[derive(Debug, Args)]
// The usage that clap makes is wider than 100 columns.
#[command(override_usage = "flyball plan train [OPTIONS] --model <MODEL> --tokens <TOKENS>\
                            \n                          \
                            <--gpus <N>|--deadline <TIME>|--budget <USD>> [-- <COMMAND>...]")]
#[command(group = ArgGroup::new("size").required(true).args(["gpus", "deadline", "budget"]))]
pub(crate) struct TrainArgs {
    /// Folder of a checkpoint, its config.json, or a name from flyball explain FLY-603
    #[arg(long, value_name = "MODEL", env = "FLYBALL_PLAN_MODEL", hide_env_values = true)]
    model: String,

    /// Tokens to train on, as in 300B or 1T
    #[arg(long, value_name = "TOKENS", env = "FLYBALL_PLAN_TOKENS", hide_env_values = true)]
    #[arg(value_parser = quantities::count, allow_hyphen_values = true)]
    tokens: f64,

    /// So many GPUs are there; fewer are used where that ends earlier or all do not divide
    #[arg(long, value_name = "N", env = "FLYBALL_PLAN_GPUS", hide_env_values = true)]
    #[arg(value_parser = quantities::whole, allow_hyphen_values = true)]
    gpus: Option<u32>,

    /// It must end within this time, as in 30d
    #[arg(long, value_name = "TIME", env = "FLYBALL_PLAN_DEADLINE", hide_env_values = true)]
    #[arg(value_parser = quantities::span, allow_hyphen_values = true)]
    deadline: Option<f64>,

    /// Budget in dollars, as in 2M
    #[arg(long, value_name = "USD", env = "FLYBALL_PLAN_BUDGET", hide_env_values = true)]
    #[arg(value_parser = quantities::count, allow_hyphen_values = true)]
    budget: Option<f64>,

    /// Percent of such runs that must keep the deadline or the budget, from 50 to 95
    #[arg(long, value_name = "PERCENT", env = "FLYBALL_PLAN_CONFIDENCE", hide_env_values = true)]
    #[arg(default_value = "80", value_parser = clap::value_parser!(u8).range(50..=95))]
    confidence: u8,

    /// Tokens of one sequence
    #[arg(long, value_name = "TOKENS", env = "FLYBALL_PLAN_SEQUENCE", hide_env_values = true)]
    #[arg(value_parser = quantities::count, default_value = "8192", allow_hyphen_values = true)]
    sequence: f64,

    /// Tokens of one step over all accelerators, rounded to what each layout divides into; 4M, or a sequence for
    /// every 8 of --gpus where that is more, if not set
    #[arg(long, value_name = "TOKENS", env = "FLYBALL_PLAN_BATCH", hide_env_values = true)]
    #[arg(value_parser = quantities::count, allow_hyphen_values = true)]
    batch: Option<f64>,

    /// What trains
    #[arg(long, value_name = "NAME", env = "FLYBALL_PLAN_FRAMEWORK", hide_env_values = true)]
    #[arg(default_value = "megatron", value_parser = frameworks())]
    framework: Framework,

    /// Compute precision
    #[arg(long, value_name = "FORMAT", env = "FLYBALL_PLAN_PRECISION", hide_env_values = true)]
    #[arg(default_value = "bf16")]
    precision: Precision,

    /// Most accelerators to consider with a deadline or a budget
    #[arg(long, value_name = "N", env = "FLYBALL_PLAN_MAX_GPUS", hide_env_values = true)]
    #[arg(default_value = "4096", value_parser = quantities::whole, allow_hyphen_values = true)]
    #[arg(alias = "most-gpus", hide_short_help = true)]
    max_gpus: u32,

    /// Rows of the table
    #[arg(long, value_name = "N", env = "FLYBALL_PLAN_TOP", hide_env_values = true)]
    #[arg(default_value = "6", value_parser = quantities::whole, allow_hyphen_values = true)]
    top: u32,

    /// Print this for the chosen plan instead; the framework's settings if no FORM is given
    #[arg(long, value_name = "FORM", env = "FLYBALL_PLAN_EMIT", hide_env_values = true)]
    #[arg(num_args = 0..=1, default_missing_value = "command")]
    emit: Option<Emit>,

    /// Also write the answer with its picture as one page of HTML
    #[arg(long, value_name = "FILE", env = "FLYBALL_PLAN_HTML", hide_env_values = true)]
    html: Option<PathBuf>,

    #[command(flatten)]
    formats: FormatArgs,

    #[command(flatten)]
    parts: PartsArgs,

    #[command(flatten)]
    manifest: ManifestArgs,
}

/// What is printed in place of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Emit {
    /// The framework's settings
    #[value(aliases = ["true", "yes", "on", "1"])]
    Command,
    /// A TrainingRun, as YAML for kubectl apply
    #[value(name = "trainingrun")]
    TrainingRun,
    /// The plan
    #[value(name = "false", aliases = ["no", "off", "0"], hide = true)]
    Plan,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Precision {
    /// 16 bits everywhere
    Bf16,
    /// Linear layers in 8 bits
    Fp8,
    /// Linear layers in 4 bits
    Fp4,
}

impl Precision {
    fn math(self) -> Math {
        match self {
            Precision::Bf16 => Math::Half,
            Precision::Fp8 => Math::Fp8,
            Precision::Fp4 => Math::Fp4,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Precision::Bf16 => "bf16",
            Precision::Fp8 => "fp8",
            Precision::Fp4 => "fp4",
        }
    }
}

impl TrainArgs {
    /// Tokens of a step. Runs on thousands of GPUs take more than 4M tokens, or most of them wait: Llama 3.1 405B
    /// took one sequence of 8,192 for every host (arXiv 2407.21783).
    fn batch(&self) -> f64 {
        let hosts = f64::from(self.gpus.unwrap_or(0)) / 8.0;
        self.batch.unwrap_or((hosts * self.sequence).max(4e6))
    }
}

fn frameworks() -> impl TypedValueParser<Value = Framework> {
    PossibleValuesParser::new([Framework::Megatron.name(), Framework::Fsdp.name()])
        .map(|name| Framework::named(&name).expect("only names of frameworks come through"))
}

/// The plan, or what it comes to.
pub(super) enum Outcome {
    Plan(Box<TrainAnswer>),
    Command(TrainingCommand),
    Manifest(TrainingRunManifest),
}

pub(super) fn run(args: &TrainArgs, printer: &Printer) -> Result<Exit, Failure> {
    let outcome = {
        let progress = printer.progress();
        let begin = Instant::now();
        outcome(args, &mut |considered| {
            // A line that flashes up is noise; after a second somebody wonders.
            if begin.elapsed() > Duration::from_secs(1) {
                progress.show(&format!("planning: {considered} layouts"));
            }
        })?
    };
    match outcome {
        Outcome::Command(command) => Ok(printer.answer(&command)),
        Outcome::Manifest(manifest) => Ok(printer.answer(&manifest)),
        Outcome::Plan(answer) => {
            if let Some(file) = &args.html {
                let title = format!("Training plan for {}", answer.model.name());
                let page = html::page(&title, &answer.view(Detail::Full), &[]);
                serve::write_page(file, &page)?;
            }
            Ok(printer.answer(&*answer))
        }
    }
}

pub(super) fn outcome(
    args: &TrainArgs,
    progress: &mut dyn FnMut(usize),
) -> Result<Outcome, Failure> {
    if args.framework == Framework::Fsdp && args.precision == Precision::Fp4 {
        return Err(Failure::new(Exit::Usage, "torchtitan does not train in fp4")
            .because("--framework fsdp stands for torchtitan, which has bf16 and fp8")
            .hint("use --precision fp8, or --framework megatron"));
    }
    if args.emit != Some(Emit::TrainingRun) {
        args.manifest.unused()?;
    }
    let model = Model::load(&args.model, &args.formats)?;
    let catalog = args.parts.catalog.load()?;
    let parts = args.parts.choose(&catalog, "flyball plan train --gpu")?;
    let size = match (args.gpus, args.deadline, args.budget) {
        (Some(gpus), ..) => Size::Gpus(gpus),
        (_, Some(seconds), _) => Size::Deadline(seconds),
        (.., budget) => Size::Budget(budget.unwrap_or(f64::INFINITY)),
    };
    let question = TrainQuestion {
        model: &model.architecture,
        tokens: args.tokens,
        sequence: args.sequence,
        global_batch: (args.batch() / args.sequence).max(1.0),
        math: args.precision.math(),
        framework: args.framework,
        parts: &parts,
        all: &catalog.accelerators,
        size,
        confidence: f64::from(args.confidence) / 100.0,
        most_gpus: args.max_gpus,
        reliability: Reliability::default(),
    };
    let (coefficients, intervals) = (TrainingCoefficients::builtin(), Intervals::builtin());
    let plan = train(&question, &coefficients, &intervals, progress);
    let precision = args.precision.name();
    match args.emit {
        Some(Emit::Command) => {
            return emit::command(&question, &plan, precision).map(Outcome::Command);
        }
        Some(Emit::TrainingRun) => {
            let (chosen, first) = emit::chosen(&question, &plan, precision)?;
            let now = jiff::Timestamp::now();
            let of = (args.model.as_str(), first);
            return manifest::manifest(&args.manifest, &chosen, of, now).map(Outcome::Manifest);
        }
        Some(Emit::Plan) | None => {}
    }
    let mut answer = TrainAnswer::new(&model, &question, &plan, args.top as usize);
    let before = plan.considered;
    let moved = changes(&question, &answer.parts, &coefficients, &intervals, &mut |considered| {
        progress(before + considered);
    });
    answer.changes = changes::views(&question, &plan, &moved);
    answer.precision = precision;
    answer.purchase = args.parts.purchase().name();
    answer.warnings = warnings::warnings(&answer);
    Ok(Outcome::Plan(Box::new(answer)))
}
