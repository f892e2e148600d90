//! What one replica carries: as given, or as `perf` predicts it for an accelerator.

use std::sync::Arc;
use std::time::Duration;

use flyball_core::pooling::Pooling;
use flyball_core::snapshot::Objectives;
use flyball_core::units::Micros;
use flyball_estimator::reading::Paces;
use flyball_perf::catalog::{Catalog, PriceKind};
use flyball_perf::hardware::Accelerator;
use flyball_perf::search::serve::{
    Knowledge, OfferedPart, ServeChoice, ServeObjective, ServeQuestion, Targets, serve,
};
use flyball_perf::serving::capacity::{self, CapacityPrediction, ReplicaWork};
use flyball_perf::serving::fold::ServingReplica;
use flyball_perf::serving::steady::{RequestShape, at_rate, most_running};
use flyball_perf::serving::step::StepModel;
use flyball_simulator::cluster::{Speed, StepSpeed};
use flyball_simulator::engine::EngineSettings;
use flyball_simulator::knee::{Knee, fleet, knee, like};
use flyball_simulator::traffic::Trace;
use flyball_simulator::traffic::load::Traffic;

use super::args::ReplayArgs;
use crate::catalog;
use crate::model::Model;
use crate::output::{Exit, Failure, FailureCode};

/// What one replica carries, and how it behaves at that.
#[derive(Clone, Debug)]
pub(super) struct Capacity {
    /// Requests per second inside the targets, when they come at random.
    pub(super) per_second: f64,
    /// Requests per second that none exceeds: while a queue stands, or as one of very many.
    pub(super) at_most: f64,
    /// The same as whoever decides is told it: time and room apart.
    pub(super) prediction: CapacityPrediction,
    /// How much more each of many carries.
    pub(super) pooling: Pooling,
    /// Of a million parts of its work, those that are reading, if known.
    pub(super) reading_per_million: Option<u32>,
    /// Share of the requests that miss a target though nobody else is there.
    pub(super) unavoidable: f64,
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
    /// How long its tokens take, where that is predicted.
    pub(super) paces: Option<Paces>,
    /// What the numbers rest on.
    pub(super) from: String,
    /// Dollars per accelerator and hour.
    pub(super) usd_per_gpu_hour: Option<f64>,
}

/// Maximum concurrent requests of one replica; vLLM's default.
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
        at_most: per_second,
        prediction: CapacityPrediction { rate: per_second, held: None },
        pooling: Pooling::NONE,
        reading_per_million: None,
        unavoidable: 0.0,
        first_token,
        service,
        // Little's law.
        running: (per_second * service).max(1.0),
        prompt_tokens_per_second: per_second * tokens.0,
        weights: None,
        speed: None,
        paces: None,
        from: "given".to_owned(),
        usd_per_gpu_hour: args.price,
    }
}

/// As `perf` predicts it: the engine's steps, and what requests like these find when they go through them.
pub(super) fn predicted(
    name: &str,
    gpu: &str,
    args: &ReplayArgs,
    catalog: &Catalog,
    shape: RequestShape,
    part: &Traffic,
) -> Result<Capacity, Failure> {
    let model = Model::load(name, &args.formats)?;
    let accelerator = catalog::accelerator(catalog, gpu, "flyball backtest --gpu")?;
    let parts = [OfferedPart::priced(catalog, accelerator, None, PriceKind::OnDemand)];
    let offer = parts[0].offer(args.tensor);
    let knowledge = Knowledge::builtin();
    let question = ServeQuestion {
        model: &model.architecture,
        engine: args.engine,
        cache: model.cache,
        shape,
        // Next to nothing to do: what it is like when nothing waits.
        rate: 1e-3,
        targets: Targets { ttft_p95: None, itl_p95: None, tpot: Some(args.tpot.as_secs_f64()) },
        parts: &parts,
        objective: ServeObjective::Cheapest,
        spare: 0,
        most_load: 1.0,
        fewest_replicas: 1,
        most_gpus: args.tensor,
        sequences: SEQUENCES,
    };
    let plan = serve(&question, &knowledge);
    let layout_name = format!("TP{}", args.tensor);
    let reason = plan.rejected.iter().find(|one| one.layout.to_string() == layout_name);
    let reason = reason.map(|one| one.reason.to_string());
    let choice = plan.ranked.iter().find(|choice| choice.layout.to_string() == layout_name);
    let choice = choice.ok_or_else(|| cannot(name, gpu, args.tensor, reason))?;
    let unknown = || cannot(name, gpu, args.tensor, None);
    let speed = speed(&model, accelerator, choice, args, &knowledge).ok_or_else(unknown)?;
    let requests = sample(part, &shape);
    let knee = knee(&speed, &requests, &objectives(args)).ok_or_else(unknown)?;
    let limits = speed.limits();
    let tpot = args.tpot.as_secs_f64();
    let most = most_running(&speed.step, &shape, &limits, |at| at.tpot <= tpot);
    let at_most = most.map_or(knee.per_second, |at| at.rate.max(knee.per_second));
    let pooled = fleet(&speed, &requests, &objectives(args), Pooling::FLEET).ok_or_else(unknown)?;
    let pooling = Pooling::between(knee.per_second, pooled.per_second);
    let at = at_rate(&speed.step, &shape, &limits, knee.per_second.min(at_most));
    let work = at.map(|at| ReplicaWork::of(&speed.step, &shape, &at));
    let price = offer.map(|offer| offer.price.amount().micros() as f64 / 1e6);
    let (prediction, paces) = prediction(&speed, &shape, &objectives(args), &knee);
    Ok(Capacity {
        prediction,
        per_second: knee.per_second,
        at_most: at_most.max(knee.per_second * pooling.ratio()),
        pooling,
        reading_per_million: work.and_then(|work| work.reading_per_million(&shape)),
        unavoidable: knee.unavoidable,
        first_token: knee.first_token,
        service: knee.service,
        // Little's law.
        running: (knee.per_second * knee.service).max(1.0),
        prompt_tokens_per_second: knee.per_second * shape.input,
        weights: work.map(|work| (work.per_prompt_token, work.per_output_token)),
        from: format!("predicted for {} TP{}, {}", accelerator.id, args.tensor, choice.evidence),
        paces: Some(paces),
        speed: Some(speed),
        usd_per_gpu_hour: args.price.or(price),
    })
}

/// What whoever decides is told of it, as the operator is: how much sooner room ends than time is worked out, all else is
/// what the replay found.
fn prediction(
    speed: &Speed,
    shape: &RequestShape,
    objectives: &Objectives,
    knee: &Knee,
) -> (CapacityPrediction, Paces) {
    let limits = speed.limits();
    let carried = capacity::carried(&speed.step, &limits, shape, objectives);
    let timely = capacity::in_time(&speed.step, &limits, shape, objectives);
    let (more, slower) = carried.zip(timely).map_or((1.0, 1.0), |(carried, timely)| {
        (timely.rate / carried.rate, (timely.tpot / carried.tpot).max(1.0))
    });
    let prediction = CapacityPrediction::of(knee.per_second, more, knee.held);
    let full = if prediction.held.is_some() { slower * knee.pace } else { knee.pace };
    (prediction, Paces { idle: speed.idle_pace(shape), full, carried: knee.pace })
}

/// What a request is judged by.
pub(super) fn objectives(args: &ReplayArgs) -> Objectives {
    let micros = |time: Duration| Micros::from_millis(time.as_millis() as u64);
    Objectives {
        first_token: Some(micros(args.ttft)),
        between_tokens: Some(micros(args.tpot)),
        attainment_per_million: ((1.0 - args.misses) * 1e6).round() as u32,
    }
}

/// Requests like those of the traffic: its own where it has single ones, and else drawn.
fn sample(part: &Traffic, shape: &RequestShape) -> Trace {
    match part {
        Traffic::Trace(trace) => trace.clone(),
        Traffic::Rates(_) => like(shape),
    }
}

/// Steps of the engine as it would be started: so many requests at once, this chunk, this cache.
fn speed(
    model: &Model,
    accelerator: &Accelerator,
    choice: &ServeChoice,
    args: &ReplayArgs,
    knowledge: &Knowledge,
) -> Option<Speed> {
    let replica = ServingReplica {
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
    let settings = EngineSettings::vllm(SEQUENCES, choice.chunk, blocks);
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
