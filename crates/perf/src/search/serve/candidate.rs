//! Judging one layout of a service: the best chunk size, as many replicas as the load needs.

use super::bound::{BoundBy, Rule};
use super::question::{Knowledge, ServeObjective, ServeQuestion, Targets};
use crate::evidence::{Evidence, Spread};
use crate::hardware::Kernels;
use crate::layout::ServingLayout;
use crate::memory::serving::{Budget, ReplicaMemory as InMemory, ServingMemory};
use crate::memory::{Fit, FitAnswer};
use crate::search::money::{PurchaseOrder, usd};
use crate::search::part::{OfferedPart, Ranged};
use crate::search::rejection::Latency;
use crate::search::{Rejection, layouts};
use crate::serving::batch::Batch;
use crate::serving::chunk::{self, CHUNKS};
use crate::serving::fold::ServingReplica;
use crate::serving::steady::{self, EngineLimits, Operating};
use crate::serving::step::StepModel;
use flyball_core::units::{Gpus, Replicas};
use std::cmp::Ordering;

/// Above this share of a step, a layout is bound by its links and not worth its accelerators.
const LINK_BOUND: f64 = 0.5;
/// So much beyond its capacity a replica shows what it runs into.
const BEYOND: f64 = 1.01;
/// Prices closer than this are equal: they move by more from week to week.
const NEAR: f64 = 0.02;
/// Pipelines that were measured are up to so many times slower than the model says (docs/accuracy.md: 30 to 90 %
/// on eight RTX PRO 6000), so answers with stages are that much less sure on the slow side.
const STAGES: f64 = 1.9;
/// More replicas than this are a mistake in the question.
const MOST_REPLICAS: f64 = 1e5;

/// One way to serve the load.
#[derive(Clone, Debug)]
pub struct ServeChoice {
    /// Index into the question's parts.
    pub part: usize,
    pub layout: ServingLayout,
    /// Prompt tokens per step.
    pub chunk: u32,
    pub replicas: Replicas,
    pub order: Option<PurchaseOrder>,
    pub gpus: Gpus,
    pub memory: ServingMemory,
    /// One replica at its share of the load.
    pub at: Operating,
    pub itl_p95: Ranged,
    pub ttft_p95: Ranged,
    /// Mean time per token at its share of the load, and of a replica that carries all it can.
    pub tpot: Ranged,
    pub tpot_full: Ranged,
    /// Capacity of one replica within the objectives, in requests per second.
    pub capacity: Ranged,
    /// Dollars per million output tokens at this load.
    pub usd_per_million: Option<f64>,
    pub evidence: Evidence,
    /// What a replica runs into first.
    pub bound: BoundBy,
}

impl ServeChoice {
    /// Share of the capacity in use.
    pub fn load(&self) -> f64 {
        self.at.rate / self.capacity.point
    }

    fn usd_per_hour(&self) -> f64 {
        self.order.map_or(f64::INFINITY, |order| order.usd_per_hour())
    }

    /// What it is ranked by: of a part that nobody has measured, what it costs at the low end of its interval, so that
    /// it wins only where it would win there too.
    fn usd_to_rank(&self) -> f64 {
        match self.evidence {
            Evidence::DatasheetOnly => {
                self.usd_per_hour() * self.capacity.point / self.capacity.low
            }
            _ => self.usd_per_hour(),
        }
    }

    /// Output tokens per dollar with every replica full.
    fn tokens_per_dollar(&self, output: f64) -> f64 {
        let replicas = f64::from(self.replicas.get());
        self.capacity.point * output * replicas * 3_600.0 / self.usd_to_rank()
    }
}

/// Better first; of two that are nearly equal, the one with more and smaller replicas, of which one can be lost
/// more easily; then the cheaper, then the faster.
pub(super) fn better(
    objective: &ServeObjective,
    output: f64,
    a: &ServeChoice,
    b: &ServeChoice,
) -> Ordering {
    let by = match objective {
        ServeObjective::Cheapest => near(a.usd_to_rank(), b.usd_to_rank()),
        ServeObjective::Fastest { .. } => near(a.ttft_p95.point, b.ttft_p95.point)
            .then(a.usd_to_rank().total_cmp(&b.usd_to_rank())),
        ServeObjective::FewestGpus => a.gpus.cmp(&b.gpus),
        ServeObjective::TokensPerDollar => {
            near(b.tokens_per_dollar(output), a.tokens_per_dollar(output))
        }
    };
    by.then(b.replicas.cmp(&a.replicas))
        .then(a.usd_to_rank().total_cmp(&b.usd_to_rank()))
        .then(a.gpus.cmp(&b.gpus))
        .then(a.ttft_p95.point.total_cmp(&b.ttft_p95.point))
        .then(a.itl_p95.point.total_cmp(&b.itl_p95.point))
        .then(b.chunk.cmp(&a.chunk))
}

/// Compares in steps, so that what is nearly equal is equal and the order stays one.
fn near(a: f64, b: f64) -> Ordering {
    let step = |value: f64| (value.ln() / NEAR).round();
    step(a).total_cmp(&step(b))
}

/// The best a layout can do, or why it can do nothing.
pub(super) fn best(
    question: &ServeQuestion<'_>,
    knowledge: &Knowledge,
    part: &OfferedPart<'_>,
    kernels: &Kernels,
    layout: ServingLayout,
) -> Result<ServeChoice, Rejection> {
    let gpus = layout.gpus().get();
    if gpus > question.most_gpus {
        return Err(Rejection::TooMany { gpus, most: question.most_gpus });
    }
    if let Some(reason) = layouts::indivisible(question.model, &layout) {
        return Err(reason);
    }
    // A part without any price is there because it was named: whoever names it may own it. It ranks last.
    let sold = !part.offers.is_empty() && question.objective != ServeObjective::FewestGpus;
    if sold && part.offer(gpus).is_none() {
        return Err(Rejection::NoPrice);
    }
    // Ampere and later run 8- and 4-bit weights, if need be as storage only; earlier parts have no
    // kernels for them.
    let narrow = question.model.stored.narrowest();
    if narrow.bytes() <= 1.0
        && ["Volta", "Turing"].contains(&part.accelerator.architecture.as_str())
    {
        return Err(Rejection::Format { what: format!("kernels for {narrow} weights") });
    }
    fits(question, part, layout)?;
    let replica = ServingReplica {
        model: question.model,
        accelerator: part.accelerator,
        layout,
        engine: question.engine,
        cache: question.cache,
    };
    let step = StepModel::new(&replica, kernels, &knowledge.coefficients)
        .expect("tests make a model for every engine and part");
    link_bound(&step, question, part, layout)?;
    let moe = question.model.feed_forward.experts.is_some();
    let evidence =
        knowledge.intervals.evidence(question.model, part.accelerator.id.as_str(), question.engine);
    let slower = if layout.pipeline > 1 { STAGES } else { 1.0 };
    let later = |spread: Spread| Spread { high: spread.high * slower, ..spread };
    let saturation = knowledge.intervals.saturation(evidence, moe);
    let spreads = Spreads {
        itl: later(knowledge.intervals.tpot(evidence, moe)),
        ttft: later(knowledge.intervals.ttft(evidence, moe)),
        capacity: Spread { low: saturation.low / slower, ..saturation },
    };
    let size = |chunk| sized(question, part, layout, &step, chunk, &spreads, evidence);
    let [first, others @ ..] = CHUNKS;
    let mut best = size(first);
    for one in others.map(size) {
        best = match (best, one) {
            (Err(_), Ok(one)) => Ok(one),
            // What came closest is the reason to give.
            (Err(a), Err(b)) => Err(if b.by_closeness(&a).is_lt() { b } else { a }),
            (Ok(best), Ok(one)) => {
                let output = question.shape.output;
                match better(&question.objective, output, &one, &best) {
                    Ordering::Less => Ok(one),
                    _ => Ok(best),
                }
            }
            (best, Err(_)) => best,
        };
    }
    best
}

struct Spreads {
    itl: Spread,
    ttft: Spread,
    capacity: Spread,
}

fn fits(
    question: &ServeQuestion<'_>,
    part: &OfferedPart<'_>,
    layout: ServingLayout,
) -> Result<(), Rejection> {
    let usable = part.accelerator.usable_memory;
    // A long request must fit too, as far as the model goes.
    let long = question.shape.input * question.shape.input_p95 + question.shape.output;
    let longest = match question.model.max_context {
        0 => long,
        most => long.min(f64::from(most)),
    };
    let answer = in_memory(question, layout, CHUNKS[0]).fits(usable, longest);
    match answer {
        FitAnswer { fit: Fit::Fits, .. } => Ok(()),
        FitAnswer { fit: Fit::Tight, most, .. } => Err(Rejection::Tight { needed: most, usable }),
        FitAnswer { least, .. } => Err(Rejection::Memory { needed: least, usable }),
    }
}

fn in_memory<'a>(question: &ServeQuestion<'a>, layout: ServingLayout, chunk: u32) -> InMemory<'a> {
    let budget = Budget {
        batched_tokens: chunk,
        sequences: question.sequences,
        cache: Some(question.cache),
        ..Budget::default()
    };
    InMemory::new(question.model, layout, budget)
}

/// Refuses a layout whose accelerators mostly wait for each other in a step with a prompt.
fn link_bound(
    step: &StepModel,
    question: &ServeQuestion<'_>,
    part: &OfferedPart<'_>,
    layout: ServingLayout,
) -> Result<(), Rejection> {
    let context = question.shape.input + question.shape.output / 2.0;
    let batch = Batch::decoding(16.0, context).with_prompt(2048.0, question.shape.input);
    let parts = step.parts(&batch);
    let share = parts.collectives / parts.total();
    if share <= LINK_BOUND {
        return Ok(());
    }
    let link = part.accelerator.link_among(layout.abreast()).name;
    Err(Rejection::Link { layout: layout.to_string(), link, share })
}

/// The layout with this chunk size, with as many replicas as the load needs.
fn sized(
    question: &ServeQuestion<'_>,
    part: &OfferedPart<'_>,
    layout: ServingLayout,
    step: &StepModel,
    chunk: u32,
    spreads: &Spreads,
    evidence: Evidence,
) -> Result<ServeChoice, Rejection> {
    let shape = &question.shape;
    let context = shape.input + shape.output;
    let usable = part.accelerator.usable_memory;
    let memory = in_memory(question, layout, chunk).memory(usable, context);
    let limits = EngineLimits {
        chunk: f64::from(chunk),
        copies: f64::from(layout.attention_copies),
        sequences: f64::from(question.sequences),
        cache_tokens: memory.cache_tokens.low().get() as f64,
        output_held: 1.0,
    };
    if let Some(target) = question.targets.tpot {
        whole_step_inside(step, question, &limits, chunk, target)?;
    }
    let rule = Rule {
        targets: question.targets,
        first_token: spreads.ttft,
        between_tokens: spreads.itl,
        limits: &limits,
        shape,
    };
    let inside = |at: &Operating| rule.broken(at).is_none();
    let Some(most) = steady::most_running(step, shape, &limits, inside) else {
        let idle = steady::operating(step, shape, &limits, 0.1);
        return Err(too_late(&question.targets, &idle, spreads));
    };
    let replicas = replicas_for(question, part, layout, most.rate)?;
    let share = question.rate / f64::from(replicas.get());
    let at = steady::at_rate(step, shape, &limits, share.min(most.rate)).unwrap_or(most);
    let gpus = Gpus::for_replicas(layout.gpus(), replicas);
    let order = part.offer(layout.gpus().get()).and_then(|offer| PurchaseOrder::of(offer, gpus));
    if let (ServeObjective::Fastest { usd_per_hour }, Some(order)) = (question.objective, order)
        && order.usd_per_hour() > usd_per_hour
    {
        return Err(Rejection::OverBudget { usd: order.usd_per_hour(), budget: usd_per_hour });
    }
    let tokens_per_hour = question.rate * shape.output * 3_600.0;
    let beyond = steady::operating(step, shape, &limits, BEYOND * most.running);
    Ok(ServeChoice {
        part: 0,
        layout,
        chunk,
        replicas,
        order,
        gpus,
        memory,
        at,
        itl_p95: Ranged {
            low: at.itl_p95(spreads.itl.low),
            point: at.itl_p95(1.0),
            high: at.itl_p95(spreads.itl.high),
        },
        ttft_p95: Ranged::new(at.ttft_p95, spreads.ttft),
        tpot: Ranged::new(at.tpot, spreads.itl),
        tpot_full: Ranged::new(most.tpot, spreads.itl),
        capacity: Ranged::new(most.rate, spreads.capacity),
        usd_per_million: order.map(|order| order.usd_per_hour() * 1e6 / tokens_per_hour),
        evidence,
        // What holds it where no rule does are prompts, which cannot be replaced faster.
        bound: rule.broken(&beyond).unwrap_or(BoundBy::Prompts),
    })
}

/// Why nothing is carried at all: which latency a replica misses that has next to nothing to do.
fn too_late(targets: &Targets, idle: &Operating, spreads: &Spreads) -> Rejection {
    let Targets { ttft_p95, itl_p95, tpot } = *targets;
    let between = match (itl_p95, tpot) {
        (Some(target), _) => (idle.itl_p95(spreads.itl.high), target),
        (None, Some(target)) => (idle.tpot, target),
        (None, None) => (0.0, f64::INFINITY),
    };
    let first = (idle.ttft_p95 * spreads.ttft.high, ttft_p95.unwrap_or(f64::INFINITY));
    let is_between = between.0 > between.1;
    let which = if is_between { Latency::BetweenTokens } else { Latency::FirstToken };
    let (best, target) = if is_between { between } else { first };
    Rejection::Latency { which, best, target }
}

/// Refuses a chunk whose step alone is longer than a token may take. The smallest is left, or slow parts would have
/// none.
fn whole_step_inside(
    step: &StepModel,
    question: &ServeQuestion<'_>,
    limits: &EngineLimits,
    chunk: u32,
    target: f64,
) -> Result<(), Rejection> {
    let best = chunk::seconds(step, &question.shape, limits.chunk * limits.copies);
    if best <= target || chunk == CHUNKS[0] {
        return Ok(());
    }
    Err(Rejection::Latency { which: Latency::BetweenTokens, best, target })
}

/// As few as carry the load with room to spare; with a budget for speed, as many as it buys.
fn replicas_for(
    question: &ServeQuestion<'_>,
    part: &OfferedPart<'_>,
    layout: ServingLayout,
    capacity: f64,
) -> Result<Replicas, Rejection> {
    let load = (question.rate / (capacity * question.most_load)).ceil();
    let needed = load.max(f64::from(question.fewest_replicas.max(1))) + f64::from(question.spare);
    if needed > MOST_REPLICAS {
        let gpus = needed * f64::from(layout.gpus().get());
        let most = MOST_REPLICAS as u32 * layout.gpus().get();
        return Err(Rejection::TooMany { gpus: gpus.min(4e9) as u32, most });
    }
    let needed = needed as u32;
    let ServeObjective::Fastest { usd_per_hour } = question.objective else {
        return Ok(Replicas::new(needed));
    };
    let offer = part.offer(layout.gpus().get());
    let bought = offer.map_or(needed, |offer| {
        let each = usd(offer.price.amount()) * f64::from(layout.gpus().get());
        (usd_per_hour / each) as u32
    });
    // Whole hosts may cost more than the bare accelerators; a few less then fit.
    let affordable = |replicas: &u32| {
        let gpus = Gpus::for_replicas(layout.gpus(), Replicas::new(*replicas));
        let order = offer.and_then(|offer| PurchaseOrder::of(offer, gpus));
        order.is_some_and(|order| order.usd_per_hour() <= usd_per_hour)
    };
    let most = (needed..=bought.max(needed).min(needed.saturating_mul(16))).rev().find(affordable);
    Ok(Replicas::new(most.unwrap_or(needed)))
}
