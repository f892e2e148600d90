//! `flyball plan fleet`: which models fit together on the GPUs that are there.

pub(super) mod answer;

use clap::Args;
use flyball_perf::catalog::Catalog;
use flyball_perf::hardware::Accelerator;
use flyball_perf::search::fleet::{self, FleetDemand, Way};
use flyball_perf::search::serve::{
    Knowledge, OfferedPart, ServeObjective, ServePlan, ServeQuestion, serve,
};
use flyball_perf::serving::steady::RequestShape;

use super::quantities;
use super::service::ServiceArgs;
use crate::catalog::{self, CatalogArgs};
use crate::model::{FormatArgs, Model};
use crate::output::{Exit, Failure, Printer};
use answer::FleetAnswer;

/// Place several models on GPUs that you have
///
/// Each model gets one kind of GPU; every combination is tried. Where all do not fit, it says how
/// much of their load fits, and which of them fit whole.
#[derive(Debug, Args)]
pub(crate) struct FleetArgs {
    /// GPUs that are there, as in 60xh100-sxm-80gb,16xl40s
    #[arg(long, value_name = "NxGPU", env = "FLYBALL_PLAN_HAVE", hide_env_values = true)]
    #[arg(value_delimiter = ',', required = true)]
    have: Vec<String>,

    /// A model by name, folder or config.json; once for each
    #[arg(long, value_name = "MODEL", env = "FLYBALL_PLAN_MODEL", hide_env_values = true)]
    #[arg(required = true, value_delimiter = ',')]
    model: Vec<String>,

    /// Requests per time, as in 12/s or 720/min; once, or once for each model
    #[arg(long, value_name = "RATE", env = "FLYBALL_PLAN_RATE", hide_env_values = true)]
    #[arg(value_parser = quantities::rate, required = true, value_delimiter = ',')]
    rate: Vec<f64>,

    /// Mean prompt tokens of a request; once, or once for each model
    #[arg(long, value_name = "TOKENS", env = "FLYBALL_PLAN_INPUT", hide_env_values = true)]
    #[arg(value_parser = quantities::at_least_one, required = true, value_delimiter = ',')]
    input: Vec<f64>,

    /// Mean output tokens of a request; once, or once for each model
    #[arg(long, value_name = "TOKENS", env = "FLYBALL_PLAN_OUTPUT", hide_env_values = true)]
    #[arg(value_parser = quantities::at_least_one, required = true, value_delimiter = ',')]
    output: Vec<f64>,

    #[command(flatten)]
    service: ServiceArgs,

    #[command(flatten)]
    formats: FormatArgs,

    #[command(flatten)]
    catalog: CatalogArgs,
}

/// GPUs of one kind.
struct Stock<'a> {
    accelerator: &'a Accelerator,
    gpus: u32,
}

/// One model, what it asks for, and every way to serve it.
struct PlannedModel {
    name: String,
    rate: f64,
    plan: ServePlan,
}

pub(super) fn run(args: &FleetArgs, printer: &Printer) -> Result<Exit, Failure> {
    Ok(printer.answer(&outcome(args)?))
}

pub(super) fn outcome(args: &FleetArgs) -> Result<FleetAnswer, Failure> {
    let catalog = args.catalog.load()?;
    let stock = stock(args, &catalog)?;
    let parts: Vec<OfferedPart<'_>> = stock
        .iter()
        .map(|one| OfferedPart { accelerator: one.accelerator, offers: Vec::new() })
        .collect();
    let knowledge = Knowledge::builtin();
    let mut planned = Vec::new();
    for (index, name) in args.model.iter().enumerate() {
        planned.push(ask(args, index, name, &parts, &stock, &knowledge)?);
    }
    let demands: Vec<FleetDemand> = planned.iter().map(|one| demand(args, one)).collect();
    let have: Vec<u32> = stock.iter().map(|one| one.gpus).collect();
    let whole = fleet::all(&demands, &have);
    let scaled = whole.is_none().then(|| fleet::scaled(&demands, &have)).flatten();
    let some = whole.is_none().then(|| fleet::most(&demands, &have));
    Ok(FleetAnswer::new(&stock, &planned, &demands, [whole, scaled, some]))
}

fn demand(args: &FleetArgs, planned: &PlannedModel) -> FleetDemand {
    let ways = planned.plan.ranked.iter().enumerate();
    let way =
        |(index, choice)| Way::of(index, choice, args.service.max_load, args.service.min_replicas);
    FleetDemand { rate: planned.rate, ways: ways.map(way).collect() }
}

fn ask(
    args: &FleetArgs,
    index: usize,
    name: &str,
    parts: &[OfferedPart<'_>],
    stock: &[Stock<'_>],
    knowledge: &Knowledge,
) -> Result<PlannedModel, Failure> {
    let model = Model::load(name, &args.formats)?;
    let count = args.model.len();
    let [rate, input, output] = [
        one_of("--rate", &args.rate, index, count)?,
        one_of("--input", &args.input, index, count)?,
        one_of("--output", &args.output, index, count)?,
    ];
    let question = ServeQuestion {
        model: &model.architecture,
        engine: args.service.engine,
        cache: model.cache,
        shape: RequestShape::usual(input, output),
        rate,
        targets: args.service.targets(),
        parts,
        objective: ServeObjective::FewestGpus,
        spare: 0,
        most_load: args.service.max_load,
        fewest_replicas: args.service.min_replicas,
        most_gpus: stock.iter().map(|one| one.gpus).max().unwrap_or(0).min(64),
        sequences: 256,
    };
    Ok(PlannedModel { name: name.to_owned(), rate, plan: serve(&question, knowledge) })
}

/// The value of one model: its own, or the one that all share.
fn one_of(flag: &str, values: &[f64], index: usize, models: usize) -> Result<f64, Failure> {
    match values {
        [only] => Ok(*only),
        all if all.len() == models => Ok(all[index]),
        all => {
            let what = format!("{flag} is given {} times for {models} models", all.len());
            Err(Failure::new(Exit::Usage, what).hint("set it once, or once for each --model"))
        }
    }
}

/// `60xh100,16xl40s`.
fn stock<'a>(args: &FleetArgs, catalog: &'a Catalog) -> Result<Vec<Stock<'a>>, Failure> {
    let mut stock: Vec<Stock<'a>> = Vec::new();
    for text in &args.have {
        let wrong = || {
            Failure::new(Exit::Usage, format!("`{text}` is not a number of GPUs"))
                .at("--have")
                .hint("write 60xh100-sxm-80gb,16xl40s; flyball gpus lists the names")
        };
        let (count, name) = text.split_once(['x', 'X', '*']).ok_or_else(wrong)?;
        let gpus = quantities::whole(count).map_err(|_| wrong())?;
        let accelerator = catalog::accelerator(catalog, name.trim(), "flyball plan fleet --have")?;
        match stock.iter_mut().find(|one| one.accelerator.id == accelerator.id) {
            Some(known) => known.gpus = known.gpus.saturating_add(gpus),
            None => stock.push(Stock { accelerator, gpus }),
        }
    }
    Ok(stock)
}
