//! What one replica carries: as given, or as `perf` predicts it for an accelerator.

use std::sync::Arc;

use flyball_perf::catalog::{Catalog, Purchase};
use flyball_perf::hardware::Accelerator;
use flyball_perf::search::serve::{
    Choice, Knowledge, Part, ServeObjective, ServeQuestion, Targets, serve,
};
use flyball_perf::serving::fold::Replica;
use flyball_perf::serving::steady::Shape;
use flyball_perf::serving::step::StepModel;
use flyball_simulator::cluster::{Speed, StepSpeed};
use flyball_simulator::engine::Settings;

use super::args::ReplayArgs;
use crate::catalog;
use crate::model::Model;
use crate::output::{Exit, Failure, FailureCode};

/// What one replica carries, and how it behaves at that.
#[derive(Clone, Debug)]
pub(super) struct Capacity {
    /// Requests per second inside the targets.
    pub(super) per_second: f64,
    /// Time to the first token when nothing waits, in seconds.
    pub(super) first_token: f64,
    /// How long an engine works on a request, in seconds.
    pub(super) service: f64,
    /// Requests inside at once when it carries so much.
    pub(super) running: f64,
    /// Prompt tokens per second that it can take in.
    pub(super) prompt_tokens_per_second: f64,
    /// What a token of a prompt and one of an answer weigh, in any unit; nothing if every request
    /// is taken as equal work.
    pub(super) weights: Option<(f64, f64)>,
    /// The engine's steps, where they are predicted.
    pub(super) speed: Option<Speed>,
    /// What the numbers rest on.
    pub(super) from: String,
    /// Dollars per accelerator and hour.
    pub(super) usd_per_gpu_hour: Option<f64>,
}

/// Requests that run at once in one replica, at most; vLLM's default.
const SEQUENCES: u32 = 256;
/// A prompt of nothing special takes a tenth of the usual target when nothing waits: 0.3 s of 3 s,
/// as 3,000 tokens at 10,000 tokens per second do.
const FIRST_TOKEN_SHARE: f64 = 0.1;
/// At its capacity a replica just meets the time per token; over a request it is quicker.
const MEAN_TPOT_SHARE: f64 = 0.6;

/// As the user says it.
pub(super) fn given(per_second: f64, args: &ReplayArgs, tokens: (f64, f64)) -> Capacity {
    let first_token = FIRST_TOKEN_SHARE * args.ttft.as_secs_f64();
    let service = first_token + tokens.1 * MEAN_TPOT_SHARE * args.tpot.as_secs_f64();
    Capacity {
        per_second,
        first_token,
        service,
        // Little's law.
        running: (per_second * service).max(1.0),
        prompt_tokens_per_second: per_second * tokens.0,
        weights: None,
        speed: None,
        from: "given".to_owned(),
        usd_per_gpu_hour: args.price,
    }
}

/// As `perf` predicts it.
pub(super) fn predicted(
    name: &str,
    gpu: &str,
    args: &ReplayArgs,
    catalog: &Catalog,
    shape: Shape,
) -> Result<Capacity, Failure> {
    let model = Model::load(name, &args.formats)?;
    let accelerator = catalog::accelerator(catalog, gpu, "flyball backtest --gpu")?;
    let offer = catalog.cheapest(&accelerator.id, None, Purchase::OnDemand);
    let parts = [Part { accelerator, offer }];
    let knowledge = Knowledge::builtin();
    let ask = |shape: Shape, rate: f64| {
        let question = ServeQuestion {
            model: &model.architecture,
            engine: args.engine,
            cache: model.cache,
            shape,
            rate,
            targets: Targets {
                ttft_p95: Some(args.ttft.as_secs_f64()),
                itl_p95: Some(args.tpot.as_secs_f64()),
            },
            parts: &parts,
            objective: ServeObjective::Cheapest,
            spare: 0,
            most_gpus: args.tensor,
            sequences: SEQUENCES,
        };
        let plan = serve(&question, &knowledge);
        let wanted = format!("TP{}", args.tensor);
        let found = |choice: &&Choice| choice.layout.to_string() == wanted;
        let reason = plan.rejected.iter().find(|one| one.layout.to_string() == wanted);
        let reason = reason.map(|one| one.reason.to_string());
        plan.ranked.iter().find(found).cloned().ok_or(reason)
    };
    // Next to nothing to do: what it is like when nothing waits.
    let idle = ask(shape, 1e-3).map_err(|reason| cannot(name, gpu, args.tensor, reason))?;
    let per_second = idle.capacity.point;
    let busy = ask(shape, 0.8 * per_second).unwrap_or_else(|_| idle.clone());
    let seconds = |shape: Shape| ask(shape, 1e-3).map(|choice| 1.0 / choice.capacity.point);
    let longer = |input: f64, output: f64| {
        seconds(Shape { input: shape.input * input, output: shape.output * output, ..shape })
    };
    let weights = match (seconds(shape), longer(1.2, 1.0), longer(1.0, 1.2)) {
        (Ok(one), Ok(more_input), Ok(more_output)) => {
            let prompt = (more_input - one).max(0.0) / (0.2 * shape.input);
            let output = (more_output - one).max(0.0) / (0.2 * shape.output);
            Some((prompt, output)).filter(|(prompt, output)| prompt + output > 0.0)
        }
        _ => None,
    };
    let price = offer.map(|offer| offer.price.amount().micros() as f64 / 1e6);
    Ok(Capacity {
        per_second,
        first_token: idle.at.ttft_mean,
        service: busy.at.ttft_mean + shape.output * busy.at.tpot,
        running: busy.at.running.max(1.0) / 0.8,
        prompt_tokens_per_second: per_second * shape.input,
        weights,
        speed: speed(&model, accelerator, &idle, args, &knowledge),
        from: format!("predicted for {} TP{}, {}", accelerator.id, args.tensor, idle.evidence),
        usd_per_gpu_hour: args.price.or(price),
    })
}

/// Steps of the engine as it would be started: so many requests at once, this chunk, this cache.
fn speed(
    model: &Model,
    accelerator: &Accelerator,
    choice: &Choice,
    args: &ReplayArgs,
    knowledge: &Knowledge,
) -> Option<Speed> {
    let replica = Replica {
        model: &model.architecture,
        accelerator,
        layout: choice.layout,
        engine: args.engine,
        cache: model.cache,
    };
    let kernels = accelerator.kernels_or_assumed();
    let step = StepModel::new(&replica, &kernels, &knowledge.coefficients).ok()?;
    // 16 tokens are a block.
    let blocks = u32::try_from(choice.memory.cache_tokens.point().get() / 16).ok()?;
    let settings = Settings::vllm(SEQUENCES, choice.chunk, blocks);
    Some(Speed { step: StepSpeed::Modelled(Arc::new(step)), settings })
}

fn cannot(model: &str, gpu: &str, tensor: u32, reason: Option<String>) -> Failure {
    let what = format!("{model} cannot be served on {tensor} x {gpu} inside the targets");
    let failure = Failure::new(Exit::No, what)
        .hint(format!("flyball plan serve --model {model} shows what can"))
        .code(FailureCode::ReplicaCapacity);
    match reason {
        Some(reason) => failure.because(reason),
        None => failure.because(format!("{tensor} accelerators cannot share this model")),
    }
}
