//! `flyball fit`: does it fit, and how many tokens of cache are left.

use clap::Args;
use flyball_perf::layout::ServingLayout;
use flyball_perf::memory::serving::{Budget, ReplicaMemory};
use flyball_perf::memory::{Fit, FitAnswer};
use flyball_perf::search::layouts;
use schemars::JsonSchema;
use serde::Serialize;

use super::plan::whole;
use crate::catalog::{self, CatalogArgs};
use crate::model::{FormatArgs, Model, ModelView};
use crate::output::document::{Block, Cell, Column, Document, Row, Table, Tone};
use crate::output::{Answer, Detail, Exit, Failure, Printer};

/// Show on which GPUs a model fits, and the cache that is left
///
/// `fits`: the upper estimate of the memory fits. `does not fit`: the lower estimate does not, or the engine's share of
/// the memory cannot hold one request. In between is `tight`: try it. Exit status 1 if nothing fits.
#[derive(Debug, Args)]
pub(crate) struct FitArgs {
    /// Folder of a checkpoint, its config.json, or a name from flyball explain FLY-603
    #[arg(value_name = "MODEL")]
    model: String,

    /// GPUs to consider; the usual ones if not set
    #[arg(long = "gpu", aliases = ["accelerators", "accelerator"], value_name = "NAME")]
    #[arg(value_delimiter = ',', env = "FLYBALL_FIT_ACCELERATORS", hide_env_values = true)]
    accelerators: Vec<String>,

    /// Only this tensor-parallel size; 1, 2, 4 and 8 if not set
    #[arg(
        long,
        alias = "tensor",
        value_name = "N",
        env = "FLYBALL_FIT_TP",
        hide_env_values = true
    )]
    #[arg(value_parser = whole, allow_hyphen_values = true)]
    tp: Option<u32>,

    /// Maximum tokens of one request; 8192, or the model's context length if smaller, if not set
    // Not `--context`: that is the one of the kubeconfig, for every command.
    #[arg(long, value_name = "TOKENS", env = "FLYBALL_FIT_REQUEST_TOKENS", hide_env_values = true)]
    #[arg(value_parser = whole, allow_hyphen_values = true)]
    request_tokens: Option<u32>,

    #[command(flatten)]
    formats: FormatArgs,

    #[command(flatten)]
    catalog: CatalogArgs,
}

/// The parts that most people have or can rent.
const USUAL: [&str; 9] = [
    "l4",
    "l40s",
    "a100-sxm-40gb",
    "a100-sxm-80gb",
    "rtx-pro-6000",
    "h100-sxm-80gb",
    "h200-sxm-141gb",
    "mi300x",
    "b200-sxm-180gb",
];

/// Whether a model fits, by accelerator.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FitReport {
    model: ModelView,
    /// Tokens that one request may have.
    context: u32,
    /// Share of the memory that the engine may use.
    memory_utilisation: f64,
    fits: Vec<FitView>,
    /// What to know about splits that were left out or that reach over more than one host.
    remarks: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct FitView {
    accelerator: String,
    tensor_parallel: u32,
    /// `fits`, `tight` or `does not fit`.
    answer: &'static str,
    /// Bytes per accelerator.
    weight_bytes: u64,
    /// The least and the most that it can need on the fullest accelerator, with one request.
    needs_at_least_bytes: u64,
    needs_at_most_bytes: u64,
    usable_bytes: u64,
    /// Tokens that the whole replica's cache holds: low, best guess and high; absent if it does not
    /// fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_tokens: Option<[u64; 3]>,
    /// Requests of the longest allowed length that the cache holds, at its low end.
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<u64>,
}

pub(crate) fn run(args: &FitArgs, printer: &Printer) -> Result<Exit, Failure> {
    let model = Model::load(&args.model, &args.formats)?;
    let catalog = args.catalog.load()?;
    let names: Vec<&str> = match args.accelerators.is_empty() {
        true => USUAL.to_vec(),
        false => args.accelerators.iter().map(String::as_str).collect(),
    };
    let longest = match model.architecture.max_context {
        0 => 8192,
        most => most.min(8192),
    };
    let context = args.request_tokens.unwrap_or(longest);
    if let Some(degree) = args.tp {
        divides(&model, degree)?;
    }
    let (mut fits, mut remarks) = (Vec::new(), Vec::new());
    for name in names {
        let part = catalog::accelerator(&catalog, name, "flyball fit --gpu")?;
        let host = part.node_gpus.get();
        let degrees = match args.tp {
            Some(degree) => vec![degree],
            None => [1, 2, 4, 8].into_iter().filter(|degree| *degree <= host).collect(),
        };
        for degree in degrees {
            let layout = ServingLayout::tensor(degree);
            match layouts::indivisible(&model.architecture, &layout) {
                Some(reason) => remarks.push(format!("TP{degree} is left out: {reason}.")),
                None => fits.push(FitView::new(&model, part, layout, context)),
            }
            if degree > host {
                let hosts = degree.div_ceil(host);
                remarks.push(format!(
                    "TP{degree} takes {hosts} hosts of {host} x {}, with the network between.",
                    part.id
                ));
            }
        }
    }
    remarks.sort_unstable();
    remarks.dedup();
    let report = FitReport {
        model: model.view(),
        context,
        memory_utilisation: Budget::default().utilisation,
        fits,
        remarks,
    };
    Ok(printer.answer(&report))
}

/// A split that was asked for and is impossible on every part.
fn divides(model: &Model, degree: u32) -> Result<(), Failure> {
    let split =
        |degree: u32| layouts::indivisible(&model.architecture, &ServingLayout::tensor(degree));
    let Some(reason) = split(degree) else { return Ok(()) };
    let possible: Vec<String> = (1..=16)
        .filter(|degree| split(*degree).is_none())
        .map(|degree| degree.to_string())
        .collect();
    Err(Failure::new(Exit::Usage, format!("{} cannot be split over {degree} GPUs", model.name))
        .because(reason.to_string())
        .hint(format!("use --tp {}", possible.join(", "))))
}

impl FitView {
    fn new(
        model: &Model,
        part: &flyball_perf::hardware::Accelerator,
        layout: ServingLayout,
        context: u32,
    ) -> FitView {
        let budget = Budget { cache: Some(model.cache), ..Budget::default() };
        let replica = ReplicaMemory::new(&model.architecture, layout, budget);
        let usable = part.usable_memory;
        let FitAnswer { fit, least, most, .. } =
            replica.fits_at_its_share(usable, f64::from(context));
        let memory = replica.memory(usable, f64::from(context));
        let tokens = memory.cache_tokens;
        let holds = fit != Fit::DoesNotFit;
        FitView {
            accelerator: part.id.to_string(),
            tensor_parallel: layout.tensor,
            answer: match fit {
                Fit::Fits => "fits",
                Fit::Tight => "tight",
                Fit::DoesNotFit => "does not fit",
            },
            weight_bytes: memory.weights.get(),
            needs_at_least_bytes: least.get(),
            needs_at_most_bytes: most.get(),
            usable_bytes: usable.get(),
            cache_tokens: holds
                .then(|| [tokens.low(), tokens.point(), tokens.high()].map(|t| t.get())),
            requests: holds.then(|| tokens.low().get() / u64::from(context.max(1))),
        }
    }

    fn row(&self) -> Row {
        let gb = |bytes: u64| format!("{:.1}", bytes as f64 / 1e9);
        let tone = match self.answer {
            "fits" => Tone::Good,
            "tight" => Tone::Caution,
            _ => Tone::Bad,
        };
        let thousands = |tokens: u64| match tokens {
            0..10_000 => tokens.to_string(),
            _ => format!("{}k", tokens / 1000),
        };
        let tokens = self.cache_tokens.map_or(String::new(), |[low, point, _]| {
            format!("{} (>= {})", thousands(point), thousands(low))
        });
        let mut row = Row::new([
            Cell::from(self.accelerator.clone()),
            Cell::from(self.tensor_parallel.to_string()),
            Cell::toned(self.answer, tone),
            Cell::from(gb(self.weight_bytes)),
            Cell::from(format!(
                "{} to {}",
                gb(self.needs_at_least_bytes),
                gb(self.needs_at_most_bytes)
            )),
            Cell::from(gb(self.usable_bytes)),
            Cell::from(tokens),
            Cell::from(self.requests.map_or(String::new(), |count| count.to_string())),
        ]);
        row.muted = self.answer == "does not fit";
        row
    }
}

impl Answer for FitReport {
    const KIND: &'static str = "FitReport";

    fn view(&self, detail: Detail) -> Document {
        let mut table = Table::new(vec![
            Column::left("GPU"),
            Column::right("TP"),
            Column::left("ANSWER"),
            Column::right("WEIGHTS-GB"),
            Column::right("NEEDS-GB"),
            Column::right("HAS-GB"),
            Column::right("CACHE-TOKENS"),
            Column::right("REQUESTS"),
        ]);
        table.rows.extend(self.shown(detail).map(FitView::row));
        let mut document = Document::new();
        document.push(Block::Facts(vec![("Model".to_owned(), self.model.sentence())]));
        document.push(Block::Gap);
        document.push(Block::Table(table));
        document.push(Block::Gap);
        let mut notes = vec![format!(
            "Per GPU; needs: weights, workspace and one request of {} tokens; an engine may use \
             {:.0} % of the memory.",
            self.context,
            self.memory_utilisation * 100.0
        )];
        notes.extend(self.remarks.iter().cloned());
        notes.push(self.verdict());
        document.push(Block::Notes(notes));
        document
    }

    fn exit(&self) -> Exit {
        if self.fits.iter().any(|fit| fit.answer == "fits") { Exit::Yes } else { Exit::No }
    }
}

impl FitReport {
    /// What fits or is tight, and of what does not fit the widest split of each part: narrower ones
    /// need more. All of it is in the JSON.
    fn shown(&self, detail: Detail) -> impl Iterator<Item = &FitView> {
        self.fits.iter().filter(move |fit| {
            let out = |other: &&FitView| {
                other.accelerator == fit.accelerator && other.answer == "does not fit"
            };
            let widest = self.fits.iter().filter(out).map(|other| other.tensor_parallel).max();
            fit.answer != "does not fit"
                || detail == Detail::Full && widest == Some(fit.tensor_parallel)
        })
    }

    fn verdict(&self) -> String {
        let count = |answer: &str| self.fits.iter().filter(|fit| fit.answer == answer).count();
        let smallest = self.fits.iter().filter(|fit| fit.answer == "fits").min_by_key(|fit| {
            (u64::from(fit.tensor_parallel) * fit.usable_bytes, fit.usable_bytes)
        });
        let least = smallest.map_or("nothing fits".to_owned(), |fit| {
            format!("the least memory it fits: {} x {}", fit.tensor_parallel, fit.accelerator)
        });
        format!(
            "{} fit, {} tight, {} do not; {least}.",
            count("fits"),
            count("tight"),
            count("does not fit")
        )
    }
}
