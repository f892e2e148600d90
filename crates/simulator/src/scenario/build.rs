//! From what is written to a world.

use super::form::{
    ColdStartForm, FaultForm, Form, KindForm, LengthForm, ModelForm, PoolForm, PurchaseForm,
    SpacingForm, TokensForm, TrafficForm, VariantForm, VictimForm,
};
use super::read::ScenarioProblems;
use super::speed;
use crate::cluster::{
    Fault, Habits, MetricsSetup, ModelSetup, PoolSetup, Setup, Spacing, StageTokens, Stages,
    StartParts, StatedCapacity, TrafficStage, VariantSetup, Victim,
};
use crate::cold_start::ColdStart;
use crate::seconds::Seconds;
use crate::traffic::Trace;
use flyball_core::ids::VariantName;
use flyball_core::snapshot::{Objectives, Purchase, ScalingBounds};
use flyball_core::units::{Currency, Gpus, Micros, Money, Price, Replicas, Timestamp};
use flyball_perf::serving::steady::RequestShape;
use std::sync::Arc;

/// When scenarios begin: Monday, 5 January 2026, 00:00 UTC. Policies with a calendar see it.
const START: Timestamp = Timestamp::from_millis(1_767_571_200_000);

type Find<'a> = &'a dyn Fn(&str) -> Result<Trace, String>;

pub(super) fn setup(form: &Form, traces: Find<'_>) -> Result<Setup, ScenarioProblems> {
    let mut problems = ScenarioProblems::default();
    let pools = form.pools.iter().filter_map(|p| pool(p, &mut problems)).collect();
    let models = form.models.iter().enumerate();
    let models = models.filter_map(|(n, m)| model(form, n, m, traces, &mut problems)).collect();
    let faults = form.faults.iter().filter_map(|f| fault(form, f)).collect();
    let given = &form.metrics;
    let or = |given: Option<f64>, default: Seconds| given.map_or(default, Seconds);
    let metrics = MetricsSetup {
        every: or(given.every_seconds, MetricsSetup::DEFAULT.every),
        delay: or(given.delay_seconds, MetricsSetup::DEFAULT.delay),
        window: or(given.window_seconds, MetricsSetup::DEFAULT.window),
        max_age: or(given.max_age_seconds, MetricsSetup::DEFAULT.max_age),
    };
    let setup = Setup {
        seed: form.seed,
        start: START,
        length: Seconds(form.length_seconds),
        scored_from: Seconds(form.scored_from_seconds),
        models,
        pools,
        metrics,
        faults,
        grace: Seconds(form.grace_seconds),
        victim: match form.victim {
            VictimForm::Youngest => Victim::Youngest,
            VictimForm::Random => Victim::Random,
        },
        habits: Habits::IDEAL,
    };
    if problems.0.is_empty() { Ok(setup) } else { Err(problems) }
}

fn pool(form: &PoolForm, problems: &mut ScenarioProblems) -> Option<PoolSetup> {
    let place = format!("pool {}", form.name);
    let prices = form.usd_cents_per_gpu_hour.iter().filter_map(|(how, cents)| {
        let amount = Money::from_micros(i64::from(*cents) * 10_000, Currency::USD);
        Some((purchase(*how), Price::per_gpu_hour(amount).ok()?))
    });
    Some(PoolSetup {
        id: named(form.name.parse(), &place, problems)?,
        accelerator: named(form.accelerator.parse(), &place, problems)?,
        gpus_per_node: form.gpus_per_node,
        nodes: form.nodes.iter().map(|(how, count)| (purchase(*how), *count)).collect(),
        can_grow: form.can_grow,
        limit: form.limit_gpus.map(Gpus::new),
        stock: form.stock.iter().map(|s| (Seconds(s.from_seconds), s.nodes)).collect(),
        node_supply: length(form.node_supply.as_ref()),
        idle_node: Seconds(form.idle_node_seconds),
        prices: prices.collect(),
    })
}

fn model(
    form: &Form,
    number: usize,
    model: &ModelForm,
    traces: Find<'_>,
    problems: &mut ScenarioProblems,
) -> Option<ModelSetup> {
    let place = format!("model {}", model.name);
    let id = named(model.name.parse(), &place, problems)?;
    let objectives = Objectives {
        first_token: model.objectives.first_token_ms.map(Micros::from_millis),
        between_tokens: model.objectives.between_tokens_ms.map(Micros::from_millis),
        attainment_per_million: (model.objectives.attainment_percent * 1e4).round() as u32,
    };
    let trace = match traffic(&model.traffic, form.seed, number, traces) {
        Ok(trace) => trace,
        Err(problem) => {
            problems.add(format!("{place}: {problem}"));
            return None;
        }
    };
    // What a replica is told to carry is known from before anything went wrong.
    let shape = shape(&trace);
    let trace = shifted(trace, form);
    let variants = model.variants.iter();
    let variants =
        variants.filter_map(|v| variant(form, v, &shape, &objectives, &place, problems)).collect();
    Some(ModelSetup {
        id,
        objectives,
        bounds: ScalingBounds {
            min: Replicas::new(model.replicas.min),
            max: Replicas::new(model.replicas.max),
            may_sleep: model.replicas.may_sleep,
        },
        variants,
        trace: Arc::new(trace),
        hold: Seconds(model.hold_seconds),
        admit: model.admit,
    })
}

fn variant(
    form: &Form,
    variant: &VariantForm,
    shape: &RequestShape,
    objectives: &Objectives,
    model: &str,
    problems: &mut ScenarioProblems,
) -> Option<VariantSetup> {
    let place = format!("{model}, variant {}", variant.name);
    let speed = match (&variant.linear, &variant.modelled) {
        (Some(linear), _) => Ok(speed::linear(linear)),
        (None, Some(modelled)) => speed::modelled(modelled, shape),
        (None, None) => Err("it needs linear or modelled".to_owned()),
    };
    let speed = match speed {
        Ok(speed) => speed,
        Err(problem) => {
            problems.add(format!("{place}: {problem}"));
            return None;
        }
    };
    Some(VariantSetup {
        name: named(variant.name.parse::<VariantName>(), &place, problems)?,
        pool: form.pools.iter().position(|pool| pool.name == variant.pool)?,
        gpus_per_replica: variant.gpus,
        capacity: speed::capacity(&speed, shape, objectives),
        paces: speed::paces(&speed, shape, objectives),
        predicted: variant.modelled.as_ref().map(speed::parts),
        cold_start: start_parts(&variant.cold_start),
        speed,
        purchase: purchase(variant.purchase),
        initial: variant.initial,
    })
}

fn traffic(
    form: &TrafficForm,
    seed: u64,
    number: usize,
    traces: Find<'_>,
) -> Result<Trace, String> {
    if let Some(name) = &form.replay {
        return traces(name);
    }
    let tokens = |form: Option<TokensForm>| {
        let TokensForm { mean, variation } = form.ok_or("lengths are missing")?;
        Ok::<_, String>(StageTokens { mean, variation })
    };
    let stage = |stage: &super::form::StageForm| TrafficStage {
        length: Seconds(stage.seconds),
        rates: (stage.rps, stage.to_rps.unwrap_or(stage.rps)),
    };
    let stages = Stages {
        stages: form.stages.iter().map(stage).collect(),
        spacing: match form.spacing {
            SpacingForm::Even => Spacing::Even,
            SpacingForm::Poisson => Spacing::Poisson,
        },
        prompt: tokens(form.prompt)?,
        output: tokens(form.output)?,
        impatient: form.impatient.map(|one| (one.share, Seconds(one.seconds))),
    };
    Ok(stages.trace(seed, number as u64))
}

/// What the requests of a trace look like together.
pub(super) fn shape(trace: &Trace) -> RequestShape {
    let count = trace.requests.len().max(1) as f64;
    let mut prompts: Vec<f64> = trace.requests.iter().map(|r| f64::from(r.prompt)).collect();
    prompts.sort_by(f64::total_cmp);
    let input = (prompts.iter().sum::<f64>() / count).max(1.0);
    let output = trace.requests.iter().map(|r| f64::from(r.output)).sum::<f64>() / count;
    let squares = prompts.iter().map(|prompt| (prompt - input).powi(2)).sum::<f64>() / count;
    let p95 = prompts.get((count * 0.95) as usize).copied().unwrap_or(input);
    RequestShape {
        input,
        output: output.max(1.0),
        input_variation: squares / (input * input),
        input_p95: p95 / input,
    }
}

/// The requests of a trace as they are where prompts or answers change their length.
fn shifted(mut trace: Trace, form: &Form) -> Trace {
    for fault in form.faults.iter().filter(|fault| fault.kind == KindForm::ShapeShift) {
        let end = fault.for_seconds.map_or(f64::INFINITY, |long| fault.at_seconds + long);
        let longer = |tokens: u32, factor: Option<f64>| match factor {
            Some(factor) => (f64::from(tokens) * factor).round().max(1.0) as u32,
            None => tokens,
        };
        for request in &mut trace.requests {
            if (fault.at_seconds..end).contains(&request.at.get()) {
                request.prompt = longer(request.prompt, fault.prompt_factor);
                request.output = longer(request.output, fault.output_factor);
            }
        }
    }
    trace
}

/// What breaks in the world itself; what comes in another shape is in the traffic.
fn fault(form: &Form, fault: &FaultForm) -> Option<Fault> {
    let at = Seconds(fault.at_seconds);
    let during = at..fault.for_seconds.map_or(fault.kind.ends(at), |long| at + Seconds(long));
    let pool = form.pools.iter().position(|pool| Some(&pool.name) == fault.pool.as_ref());
    let (pool, nodes) = (pool.unwrap_or(0), fault.nodes.unwrap_or(0));
    Some(match fault.kind {
        KindForm::StockOut => Fault::StockOut { pool, during },
        KindForm::Reclaim => {
            let notice = Seconds(fault.notice_seconds.unwrap_or(0.0));
            Fault::Reclaim { pool, at, nodes, notice }
        }
        KindForm::NodeLoss => Fault::NodeLoss { pool, at, nodes },
        KindForm::BadStarts => Fault::BadStarts { pool, during },
        KindForm::StaleMetrics => Fault::StaleMetrics { during },
        KindForm::MissingMetrics => Fault::MissingMetrics { during },
        KindForm::NotANumber => Fault::NotANumber { during },
        KindForm::ClockJump => Fault::ClockJump { at, by: fault.by_seconds.unwrap_or(0.0) },
        KindForm::ToldCapacity => {
            let stated = fault.factor.map_or(StatedCapacity::Nothing, StatedCapacity::Times);
            Fault::StatedCapacity { during, stated }
        }
        KindForm::EngineSlows => {
            let (factor, replicas) = (fault.factor.unwrap_or(1.0), fault.replicas);
            Fault::EngineSlows { during, factor, replicas }
        }
        KindForm::NoGateway => Fault::NoGateway { during },
        KindForm::OperatorRestart => Fault::OperatorRestart { at },
        KindForm::ShapeShift => return None,
    })
}

impl KindForm {
    /// When it ends if nobody says how long it lasts.
    pub(super) const fn ends(self, at: Seconds) -> Seconds {
        match self {
            Self::ToldCapacity | Self::EngineSlows | Self::ShapeShift | Self::NoGateway => {
                Seconds(f64::INFINITY)
            }
            _ => at,
        }
    }
}

fn start_parts(form: &ColdStartForm) -> StartParts {
    StartParts {
        image: length(form.image.as_ref()),
        weights: length(form.weights.as_ref()),
        warm_up: length(form.warm_up.as_ref()),
    }
}

fn length(form: Option<&LengthForm>) -> ColdStart {
    let Some(form) = form else { return ColdStart::Constant(Seconds::ZERO) };
    match (form.seconds, form.median_seconds, form.p99_seconds, &form.measured_seconds) {
        (_, Some(median), Some(p99), _) => {
            ColdStart::LogNormal { median: Seconds(median), p99: Seconds(p99) }
        }
        (_, _, _, Some(all)) => ColdStart::measured(all.iter().copied().map(Seconds).collect()),
        (seconds, ..) => ColdStart::Constant(Seconds(seconds.unwrap_or(0.0))),
    }
}

const fn purchase(form: PurchaseForm) -> Purchase {
    match form {
        PurchaseForm::Reserved => Purchase::Reserved,
        PurchaseForm::OnDemand => Purchase::OnDemand,
        PurchaseForm::Spot => Purchase::Spot,
    }
}

fn named<T, E: std::fmt::Display>(
    name: Result<T, E>,
    place: &str,
    problems: &mut ScenarioProblems,
) -> Option<T> {
    name.map_err(|error| problems.add(format!("{place}: {error}"))).ok()
}
