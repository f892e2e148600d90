//! How many prompt tokens a step of an engine holds.

use super::drain::kind_of;
use super::facts::Workload;
use flyball_engines::Engine;
use flyball_perf::memory::serving::Budget;
use flyball_perf::serving::capacity::{self, CapacityQuestion};
use flyball_perf::serving::chunk;
use flyball_perf::serving::steady::RequestShape;
use flyball_resources::model_service::{EngineSpec, VariantSpec};
use flyball_resources::{ModelService, Pool};

/// What the owner sets it to, if he does.
pub(crate) fn stated(engine: &EngineSpec) -> Option<u32> {
    of_args(engine.kind, &engine.args)
}

fn of_args(kind: Engine, args: &[String]) -> Option<u32> {
    let flag = kind.facts().launch.step_tokens?;
    let mut words = args.iter();
    let word = words.find_map(|word| word.strip_prefix(flag).map(str::to_owned))?;
    match word.strip_prefix('=') {
        Some(number) => number.parse().ok(),
        None => words.next()?.parse().ok(),
    }
}

/// What it is; nothing where Flyball chooses it. Of a workload that others made, its arguments say it.
pub(super) fn of(variant: &VariantSpec, workload: Option<&Workload>) -> Option<u32> {
    let usual = Budget::default().batched_tokens;
    match &variant.engine {
        Some(engine) if engine.command.is_empty() => stated(engine),
        Some(_) => Some(usual),
        None => {
            let of = |workload: &Workload| of_args(kind_of(workload)?, &workload.args);
            Some(workload.and_then(of).unwrap_or(usual))
        }
    }
}

/// What Flyball sets it to where it starts the engine: the most that lets a token come in time beside a prompt.
/// Nothing where that is not known, or where somebody else says it.
pub(crate) fn chosen(
    service: &ModelService,
    variant: &VariantSpec,
    pool: Option<&Pool>,
) -> Option<u32> {
    let engine = variant.engine.as_ref()?;
    engine.kind.facts().launch.step_tokens?;
    if !engine.command.is_empty() || stated(engine).is_some() {
        return None;
    }
    let between = service.spec.objectives.between_tokens_milliseconds?;
    let (model, accelerator) = (service.spec.model.as_deref()?, &pool?.spec.accelerator);
    let tensor = u32::try_from(variant.gpus_per_replica.max(1)).ok()?;
    let chat = RequestShape::usual(RequestShape::CHAT.0, RequestShape::CHAT.1);
    let (step, _) =
        capacity::predicted(&CapacityQuestion::unset(model, accelerator, tensor), &chat).ok()?;
    Some(chunk::largest(&step, f64::from(between) / 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_arguments_of_a_workload_that_others_made_say_it() {
        let adopted = json!({ "name": "x", "targetRef": { "kind": "Deployment", "name": "m" } });
        let adopted: VariantSpec = serde_json::from_value(adopted).unwrap();
        let usual = Some(Budget::default().batched_tokens);
        let of = |image: &str, args: &[&str]| {
            let args = args.iter().map(|arg| (*arg).to_owned()).collect();
            super::of(
                &adopted,
                Some(&Workload { image: image.to_owned(), args, ..Workload::default() }),
            )
        };
        assert_eq!(of("vllm/vllm-openai:v0.32.0", &["--max-num-batched-tokens=512"]), Some(512));
        let sglang = ["python3", "-m", "sglang.launch_server", "--chunked-prefill-size", "4096"];
        assert_eq!(of("r/own:1", &sglang), Some(4096));
        assert_eq!(of("vllm/vllm-openai:v0.32.0", &["--model", "m"]), usual);
        assert_eq!(of("r/own:1", &["--max-num-batched-tokens=512"]), usual, "of an unknown engine");
        assert_eq!(super::of(&adopted, None), usual);
    }
}
