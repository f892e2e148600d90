//! How many prompt tokens a step of an engine holds.

use flyball_perf::memory::serving::Budget;
use flyball_perf::serving::capacity::{self, Wanted};
use flyball_perf::serving::chunk;
use flyball_perf::serving::steady::Shape;
use flyball_resources::model_service::{Engine, EngineKind, Variant};
use flyball_resources::{ModelService, Pool};

/// The flag that sets it, if the engine has one.
pub(crate) const fn flag(kind: EngineKind) -> Option<&'static str> {
    match kind {
        EngineKind::Vllm => Some("--max-num-batched-tokens"),
        EngineKind::Sglang => Some("--chunked-prefill-size"),
        EngineKind::LlamaCpp => None,
    }
}

/// What the owner sets it to, if he does.
pub(crate) fn stated(engine: &Engine) -> Option<u32> {
    let flag = flag(engine.kind)?;
    let mut words = engine.args.iter();
    let word = words.find_map(|word| word.strip_prefix(flag).map(str::to_owned))?;
    match word.strip_prefix('=') {
        Some(number) => number.parse().ok(),
        None => words.next()?.parse().ok(),
    }
}

/// What it is; nothing where Flyball chooses it.
pub(super) fn of(variant: &Variant) -> Option<u32> {
    match &variant.engine {
        Some(engine) if engine.command.is_empty() => stated(engine),
        _ => Some(Budget::default().batched_tokens),
    }
}

/// What Flyball sets it to where it starts the engine: the most that lets a token come in time beside a prompt.
/// Nothing where that is not known, or where somebody else says it.
pub(crate) fn chosen(
    service: &ModelService,
    variant: &Variant,
    pool: Option<&Pool>,
) -> Option<u32> {
    let engine = variant.engine.as_ref()?;
    flag(engine.kind)?;
    if !engine.command.is_empty() || stated(engine).is_some() {
        return None;
    }
    let between = service.spec.objectives.between_tokens_milliseconds?;
    let (model, accelerator) = (service.spec.model.as_deref()?, &pool?.spec.accelerator);
    let tensor = u32::try_from(variant.gpus_per_replica.max(1)).ok()?;
    let chat = Shape::usual(Shape::CHAT.0, Shape::CHAT.1);
    let (step, _) = capacity::predicted(&Wanted::unset(model, accelerator, tensor), &chat).ok()?;
    Some(chunk::largest(&step, f64::from(between) / 1e3))
}
