//! `flyball plan serve`: how to serve a load inside latency targets.

pub(super) mod answer;
pub(super) mod emit;
mod picture;
mod view;
mod warnings;
mod why;

use std::path::PathBuf;

use clap::Args;
use clap::builder::BoolishValueParser;
use flyball_perf::search::sensitivity;
use flyball_perf::search::serve::{Knowledge, ServeObjective, ServeQuestion, serve};
use flyball_perf::serving::steady::RequestShape;

use super::parts::PartsArgs;
use super::quantities;
use super::service::ServiceArgs;
use super::trace;
use crate::model::{FormatArgs, Model};
use crate::output::document::html;
use crate::output::{Answer, Detail, Exit, Failure, Printer};
use answer::{LoadView, ServeAnswer};
use emit::EngineCommand;

/// Plan a service: GPUs, layout, replicas and price for a load and latency targets
///
/// The targets must hold for 95 % of requests. The chosen plan is the cheapest whose latencies stay
/// inside their targets over their whole intervals, with room for more load and for a lost replica.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Folder of a checkpoint, its config.json, or a name from flyball explain FLY-603
    #[arg(long, value_name = "MODEL", env = "FLYBALL_PLAN_MODEL", hide_env_values = true)]
    model: String,

    /// Requests per time, as in 12/s or 720/min; with a trace, its busy minute if not set
    #[arg(long, value_name = "RATE", env = "FLYBALL_PLAN_RATE", hide_env_values = true)]
    #[arg(value_parser = quantities::rate, allow_hyphen_values = true, required_unless_present = "trace")]
    rate: Option<f64>,

    /// Mean prompt tokens of a request
    #[arg(long, value_name = "TOKENS", env = "FLYBALL_PLAN_INPUT", hide_env_values = true)]
    #[arg(value_parser = quantities::at_least_one, allow_hyphen_values = true, required_unless_present = "trace")]
    input: Option<f64>,

    /// Mean output tokens of a request
    #[arg(long, value_name = "TOKENS", env = "FLYBALL_PLAN_OUTPUT", hide_env_values = true)]
    #[arg(value_parser = quantities::at_least_one, allow_hyphen_values = true, required_unless_present = "trace")]
    output: Option<f64>,

    /// Take rate and lengths from a file of requests; see flyball explain FLY-605
    #[arg(long, value_name = "FILE", env = "FLYBALL_PLAN_TRACE", hide_env_values = true)]
    trace: Option<PathBuf>,

    #[command(flatten)]
    service: ServiceArgs,

    /// What to optimize for
    #[arg(long, value_name = "WHAT", env = "FLYBALL_PLAN_OBJECTIVE", hide_env_values = true)]
    #[arg(default_value = "cheapest")]
    objective: Objective,

    /// Hourly budget in dollars for `--objective fastest`
    #[arg(long, value_name = "USD", env = "FLYBALL_PLAN_BUDGET", hide_env_values = true)]
    #[arg(value_parser = quantities::count, required_if_eq("objective", "fastest"))]
    budget: Option<f64>,

    /// Maximum accelerators per replica
    #[arg(long, value_name = "N", env = "FLYBALL_PLAN_MAX_GPUS", hide_env_values = true)]
    #[arg(default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..))]
    #[arg(alias = "most-gpus")]
    max_gpus: u32,

    /// Maximum concurrent requests of one replica
    #[arg(long, value_name = "N", env = "FLYBALL_PLAN_SEQUENCES", hide_env_values = true)]
    #[arg(default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    sequences: u32,

    /// Rows of the table
    #[arg(long, value_name = "N", env = "FLYBALL_PLAN_TOP", hide_env_values = true)]
    #[arg(default_value_t = 6)]
    top: usize,

    /// Show the time breakdown of a step and the sources of the numbers
    #[arg(long, env = "FLYBALL_PLAN_EXPLAIN", hide_env_values = true)]
    #[arg(value_parser = BoolishValueParser::new())]
    explain: bool,

    /// Print the engine's command line for the chosen plan instead
    #[arg(long, env = "FLYBALL_PLAN_EMIT", hide_env_values = true)]
    #[arg(value_parser = BoolishValueParser::new())]
    emit: bool,

    /// Also write the answer with its picture as one page of HTML
    #[arg(long, value_name = "FILE", env = "FLYBALL_PLAN_HTML", hide_env_values = true)]
    html: Option<PathBuf>,

    #[command(flatten)]
    formats: FormatArgs,

    #[command(flatten)]
    parts: PartsArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Objective {
    /// The least money per hour
    Cheapest,
    /// The least time to the first token within the budget
    Fastest,
    /// The most output tokens per dollar with every replica full
    TokensPerDollar,
}

/// The plan, or the command that it comes to.
pub(super) enum Outcome {
    Plan(Box<ServeAnswer>),
    Command(EngineCommand),
}

pub(super) fn run(args: &ServeArgs, printer: &Printer) -> Result<Exit, Failure> {
    match outcome(args)? {
        Outcome::Command(command) => Ok(printer.answer(&command)),
        Outcome::Plan(answer) => {
            if let Some(file) = &args.html {
                let title = format!("Plan for {}", answer.model.name());
                write_page(file, &html::page(&title, &answer.view(Detail::Full), &[]))?;
            }
            Ok(printer.answer(&*answer))
        }
    }
}

pub(super) fn outcome(args: &ServeArgs) -> Result<Outcome, Failure> {
    let mut model = Model::load(&args.model, &args.formats)?;
    let assumed_cache = model.cache_of_engine(args.service.engine, &args.formats);
    let catalog = args.parts.catalog.load()?;
    let parts = args.parts.choose(&catalog, "flyball plan serve --gpu")?;
    if parts.is_empty() {
        return Err(args.parts.nothing_to_buy());
    }
    let mut load = load(args)?;
    if assumed_cache {
        load.assumed.push("an FP8 cache, as NVIDIA's FP8 and FP4 checkpoints require");
    }
    within_context(&model, &load)?;
    if args.budget.is_some() && args.objective != Objective::Fastest {
        return Err(Failure::new(Exit::Usage, "--budget requires --objective fastest")
            .hint("remove it, or add --objective fastest"));
    }
    let question = ServeQuestion {
        model: &model.architecture,
        engine: args.service.engine,
        cache: model.cache,
        shape: load.shape,
        rate: load.rate,
        targets: args.service.targets(),
        parts: &parts,
        objective: args.objective(),
        spare: u32::from(args.parts.spot),
        most_load: args.service.max_load,
        fewest_replicas: args.service.min_replicas,
        most_gpus: args.max_gpus,
        sequences: args.sequences,
    };
    let knowledge = Knowledge::builtin();
    let plan = serve(&question, &knowledge);
    if args.emit {
        return emit::command(args.service.engine, &model, &plan, &load).map(Outcome::Command);
    }
    let changes = sensitivity::changes(&question, &knowledge);
    let mut answer = ServeAnswer::new(&model, &load, &question, &plan, &changes, args.top);
    answer.purchase = args.parts.purchase().name();
    answer.warnings = warnings::warnings(&question, &plan, &knowledge);
    if let Some(first) = plan.ranked.first() {
        let cliffs = sensitivity::cliffs(&question, &knowledge, first);
        answer.cliffs = cliffs.iter().map(Into::into).collect();
    }
    if args.explain {
        answer.explain(&question, &plan, &knowledge);
    }
    Ok(Outcome::Plan(Box::new(answer)))
}

impl ServeArgs {
    fn objective(&self) -> ServeObjective {
        match self.objective {
            Objective::Cheapest => ServeObjective::Cheapest,
            Objective::TokensPerDollar => ServeObjective::TokensPerDollar,
            Objective::Fastest => {
                ServeObjective::Fastest { usd_per_hour: self.budget.unwrap_or(f64::INFINITY) }
            }
        }
    }
}

/// Requests longer than the model goes cannot be served by any part.
fn within_context(model: &Model, load: &LoadView) -> Result<(), Failure> {
    let (most, requested) = (model.architecture.max_context, load.shape.input + load.shape.output);
    if most == 0 || requested <= f64::from(most) {
        return Ok(());
    }
    let what =
        format!("requests of {requested:.0} tokens exceed the context length of {}", model.name);
    Err(Failure::new(Exit::No, what)
        .because(format!("its config.json allows {most} tokens at most"))
        .hint("shorten --input or --output"))
}

/// Writes a page, or says why not.
pub(super) fn write_page(file: &std::path::Path, page: &str) -> Result<(), Failure> {
    std::fs::write(file, page).map_err(|error| {
        Failure::new(Exit::Usage, "the page cannot be written")
            .at(file.display().to_string())
            .because(error.to_string())
            .hint("give --html a file in a folder that exists and that you may write to")
    })
}

/// Rate and lengths from the flags, from the trace, or both; and what was assumed.
fn load(args: &ServeArgs) -> Result<LoadView, Failure> {
    let trace = match &args.trace {
        Some(file) => Some(trace::read(file)?),
        None => None,
    };
    Ok(LoadView::new(args.rate, args.input, args.output, trace.as_ref()))
}

/// The shape of requests about which only means are known: lengths vary as in the public traces,
/// where the longest twentieth of prompts is some 2.5 times the mean.
fn assumed_shape(input: f64, output: f64) -> RequestShape {
    RequestShape { input, output, input_variation: 1.0, input_p95: 2.5 }
}
