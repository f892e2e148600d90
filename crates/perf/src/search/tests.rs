use super::layouts;
use super::serve::{
    Knowledge, OfferedPart, ServeObjective, ServePlan, ServeQuestion, Targets, serve,
};
use super::train::{Reliability, Size, TrainPlan, TrainQuestion, train};
use crate::architecture::Architecture;
use crate::catalog::{Catalog, PriceKind};
use crate::engine::Engine;
use crate::evidence::Intervals;
use crate::precision::{Dtype, Math};
use crate::serving::steady::RequestShape;
use crate::training::{Framework, TrainingCoefficients};

fn model(name: &str) -> Architecture {
    Architecture::from_config(&crate::models::config(name).unwrap()).unwrap()
}

fn parts<'a>(catalog: &'a Catalog, names: &[&str]) -> Vec<OfferedPart<'a>> {
    let part = |name: &&str| {
        let accelerator = catalog.accelerator(name).unwrap();
        OfferedPart::priced(catalog, accelerator, None, PriceKind::OnDemand)
    };
    names.iter().map(part).collect()
}

fn question<'a>(model: &'a Architecture, parts: &'a [OfferedPart<'a>]) -> ServeQuestion<'a> {
    ServeQuestion {
        model,
        engine: Engine::Vllm,
        cache: Dtype::Bf16,
        shape: RequestShape::uniform(1500.0, 300.0),
        rate: 12.0,
        targets: Targets { ttft_p95: Some(0.5), itl_p95: Some(0.04), tpot: None },
        parts,
        objective: ServeObjective::Cheapest,
        spare: 0,
        most_load: 1.0,
        fewest_replicas: 1,
        most_gpus: 64,
        sequences: 256,
    }
}

fn plan(name: &str, names: &[&str], change: impl Fn(&mut ServeQuestion<'_>)) -> ServePlan {
    let (model, catalog) = (model(name), Catalog::builtin());
    let parts = parts(&catalog, names);
    let mut question = question(&model, &parts);
    change(&mut question);
    serve(&question, &Knowledge::builtin())
}

#[test]
fn the_cheapest_comes_first_and_stays_inside_the_targets() {
    let plan = plan("qwen3-32b-fp8", &["h100", "h200", "l40s", "b200"], |_| {});
    let first = &plan.ranked[0];
    assert!(first.itl_p95.high <= 0.04 && first.ttft_p95.point <= 0.5, "{first:?}");
    let dollars: Vec<f64> =
        plan.ranked.iter().map(|choice| choice.order.unwrap().usd_per_hour()).collect();
    assert!(dollars.is_sorted(), "{dollars:?}");
    assert!(first.load() <= 1.001, "{}", first.load());
}

#[test]
fn what_cannot_hold_the_weights_says_how_much_is_missing() {
    let plan = plan("qwen3-32b", &["l4"], |_| {});
    let one = plan.rejected.iter().find(|one| one.layout.gpus().get() == 1).unwrap();
    assert_eq!(one.reason.word(), "memory");
    assert!(one.reason.to_string().starts_with("needs 6"), "{}", one.reason);
}

#[test]
fn eight_over_pcie_is_refused_for_its_link() {
    let plan = plan("llama-3.1-70b", &["l40s"], |_| {});
    let eight = plan.rejected.iter().find(|one| one.layout.tensor == 8).unwrap();
    assert_eq!(eight.reason.word(), "link", "{}", eight.reason);
}

#[test]
fn more_load_never_costs_less() {
    let cost = |rate: f64| {
        let plan = plan("llama-3.1-8b", &["h100", "l40s"], |question| question.rate = rate);
        plan.ranked[0].order.unwrap().usd_per_hour()
    };
    let costs = [1.0, 5.0, 20.0, 80.0, 320.0].map(cost);
    assert!(costs.is_sorted(), "{costs:?}");
}

#[test]
fn a_budget_for_speed_is_kept_and_used() {
    let budget = 60.0;
    let plan = plan("llama-3.1-8b", &["h100", "h200"], |question| {
        question.objective = ServeObjective::Fastest { usd_per_hour: budget };
    });
    let dollars = |choice: &super::serve::ServeChoice| choice.order.unwrap().usd_per_hour();
    assert!(plan.ranked.iter().all(|choice| dollars(choice) <= budget));
    assert!(dollars(&plan.ranked[0]) > budget / 2.0, "{:?}", plan.ranked[0]);
}

#[test]
fn layouts_that_do_not_divide_are_named() {
    let catalog = Catalog::builtin();
    let h100 = catalog.accelerator("h100").unwrap();
    let phi = model("phi-4");
    let refused: Vec<String> = layouts::serving(&phi, h100)
        .iter()
        .filter_map(|layout| layouts::indivisible(&phi, layout))
        .map(|reason| reason.to_string())
        .collect();
    assert!(refused.is_empty(), "40 heads divide by 8: {refused:?}");
    let odd = model("yi-34b");
    assert!(layouts::indivisible(&odd, &crate::layout::ServingLayout::tensor(16)).is_some());
}

fn training(size: Size, names: &[&str]) -> TrainPlan {
    let (model, catalog) = (model("llama-3.1-8b"), Catalog::builtin());
    let parts = parts(&catalog, names);
    let question = TrainQuestion {
        model: &model,
        tokens: 1e12,
        sequence: 8192.0,
        global_batch: 512.0,
        math: Math::Half,
        framework: Framework::Megatron,
        parts: &parts,
        all: &catalog.accelerators,
        size,
        confidence: 0.8,
        most_gpus: 4096,
        reliability: Reliability::default(),
    };
    train(&question, &TrainingCoefficients::builtin(), &Intervals::builtin(), &mut |_| {})
}

#[test]
fn a_run_of_given_size_is_ranked_by_its_end() {
    let plan = training(Size::Gpus(512), &["h100", "a100-sxm-80gb"]);
    let ends: Vec<f64> = plan.ranked.iter().map(|choice| choice.seconds.high).collect();
    assert!(ends.is_sorted() && !ends.is_empty());
    let first = &plan.ranked[0];
    assert_eq!(first.gpus.get(), 512);
    // Published runs of this size reach between 35 and 55 %.
    assert!((0.3..0.6).contains(&first.mfu), "{}", first.mfu);
    assert!(first.hfu >= first.mfu);
}

#[test]
fn a_deadline_is_kept_by_four_in_five_for_the_least_money() {
    let deadline = 20.0 * 86_400.0;
    let plan = training(Size::Deadline(deadline), &["h100"]);
    assert!(plan.ranked.iter().all(|choice| choice.confidence.is_some_and(|share| share >= 0.8)));
    assert!(plan.ranked.iter().any(|choice| choice.seconds.high > deadline));
    let dollars: Vec<f64> = plan.ranked.iter().map(|choice| choice.usd.unwrap().high).collect();
    assert!(dollars.is_sorted());
    assert!(plan.rejected.iter().any(|class| class.reason.word() == "deadline"));
}

#[test]
fn a_budget_that_buys_nothing_says_so() {
    let plan = training(Size::Budget(10.0), &["h100"]);
    assert!(plan.ranked.is_empty());
    assert!(plan.rejected.iter().any(|class| class.reason.word() == "budget"));
}
