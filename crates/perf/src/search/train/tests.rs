use super::changes::changes;
use super::{Reliability, Size, TrainPlan, TrainQuestion, train};
use crate::architecture::Architecture;
use crate::catalog::{Catalog, PriceKind};
use crate::evidence::Intervals;
use crate::precision::Math;
use crate::search::part::OfferedPart;
use crate::training::{Framework, TrainingCoefficients};

fn model(name: &str) -> Architecture {
    Architecture::from_config(&crate::models::config(name).unwrap()).unwrap()
}

fn question<'a>(
    model: &'a Architecture,
    parts: &'a [OfferedPart<'a>],
    catalog: &'a Catalog,
    size: Size,
) -> TrainQuestion<'a> {
    TrainQuestion {
        model,
        tokens: 1e12,
        sequence: 8192.0,
        global_batch: 512.0,
        math: Math::Half,
        framework: Framework::Megatron,
        parts,
        all: &catalog.accelerators,
        size,
        confidence: 0.8,
        most_gpus: 4096,
        reliability: Reliability::default(),
    }
}

fn plan(name: &str, size: Size, names: &[&str]) -> TrainPlan {
    let (model, catalog) = (model(name), Catalog::builtin());
    let parts: Vec<OfferedPart<'_>> = names
        .iter()
        .map(|name| {
            let accelerator = catalog.accelerator(name).unwrap();
            OfferedPart::priced(&catalog, accelerator, None, PriceKind::OnDemand)
        })
        .collect();
    let question = question(&model, &parts, &catalog, size);
    train(&question, &TrainingCoefficients::builtin(), &Intervals::builtin(), &mut |_| {})
}

#[test]
fn any_number_of_accelerators_is_planned_with_a_batch_that_divides() {
    for gpus in [6, 96, 120, 512] {
        let plan = plan("llama-3.1-8b", Size::Gpus(gpus), &["h100"]);
        let first = &plan.ranked[0];
        let at_once = f64::from(first.layout.data * first.layout.micro_batch);
        assert_eq!(first.global_batch % at_once, 0.0, "{gpus}: {first:?}");
        assert!((first.global_batch / 512.0 - 1.0).abs() < 0.34);
        for turning in plan.ranked.iter().filter(|choice| choice.layout.interleave > 1) {
            let layout = &turning.layout;
            let round = f64::from(layout.data * layout.micro_batch * layout.pipeline);
            assert_eq!(turning.global_batch % round, 0.0, "{gpus}: {layout}");
        }
    }
    let odd = plan("llama-3.1-8b", Size::Gpus(96), &["h100"]);
    let class = odd.rejected.iter().find(|class| class.reason.word() == "indivisible").unwrap();
    assert!(class.reason.to_string().contains("do not divide by"), "{}", class.reason);
}

#[test]
fn layers_need_not_divide_by_the_stages() {
    for (name, layers) in [("deepseek-v3", 61), ("qwen3-235b-a22b", 94)] {
        let plan = plan(name, Size::Gpus(2048), &["h100"]);
        let uneven =
            plan.ranked.iter().find(|choice| layers % choice.layout.pipeline != 0).unwrap();
        assert!(uneven.mfu < 0.6, "{name}: {uneven:?}");
        assert!(plan.ranked.iter().all(|choice| choice.layout.pipeline <= layers));
    }
}

#[test]
fn a_part_without_a_price_is_out_for_its_price_where_money_decides() {
    let (model, catalog) = (model("llama-3.1-8b"), Catalog::builtin());
    let free =
        [OfferedPart { accelerator: catalog.accelerator("h100").unwrap(), offers: Vec::new() }];
    for size in [Size::Deadline(86_400.0), Size::Budget(1e6)] {
        let question = question(&model, &free, &catalog, size);
        let plan =
            train(&question, &TrainingCoefficients::builtin(), &Intervals::builtin(), &mut |_| {});
        assert!(plan.ranked.is_empty());
        assert_eq!(plan.rejected[0].reason.word(), "price");
    }
}

#[test]
fn evidence_of_training_is_by_framework_and_part() {
    let evidence = |part: &str| {
        let plan = plan("llama-3.1-8b", Size::Gpus(64), &[part]);
        plan.ranked[0].evidence.to_string()
    };
    assert_eq!(evidence("h100"), "same GPU");
    assert_eq!(evidence("h200"), "other GPU");
    // Nobody has measured the part with less memory; its chip is that of the one with more.
    assert_eq!(evidence("a100-40gb"), "other GPU");
    assert_eq!(evidence("mi300x"), "datasheet");
}

#[test]
fn what_would_change_the_answer_is_asked_one_at_a_time() {
    let (model, catalog) = (model("llama-3.1-8b"), Catalog::builtin());
    let accelerator = catalog.accelerator("h100").unwrap();
    let parts = [OfferedPart::priced(&catalog, accelerator, None, PriceKind::OnDemand)];
    let changes_of = |size: Size| {
        let question = question(&model, &parts, &catalog, size);
        let coefficients = TrainingCoefficients::builtin();
        changes(&question, &[0], &coefficients, &Intervals::builtin(), &mut |_| {})
    };
    let words: Vec<&str> = changes_of(Size::Gpus(64)).iter().map(|change| change.what).collect();
    assert_eq!(words, ["FP8", "twice the GPUs", "half the GPUs", "sequences twice as long"]);
    let twice = &changes_of(Size::Gpus(64))[1];
    assert_eq!(twice.first.as_ref().unwrap().gpus.get(), 128);
    assert!(changes_of(Size::Gpus(1)).iter().all(|change| change.what != "half the GPUs"));
    assert!(changes_of(Size::Budget(100.0)).iter().all(|change| change.first.is_none()));
}
