use super::batch::{Batch, StepTime};
use super::fold::ServingReplica;
use super::step::StepModel;
use crate::architecture::Architecture;
use crate::catalog::Catalog;
use crate::coefficients::Coefficients;
use crate::engine::Engine;
use crate::hardware::{Accelerator, Kernels};
use crate::layout::ServingLayout;
use crate::precision::Dtype;
use proptest::prelude::*;

fn model(name: &str) -> Architecture {
    Architecture::from_config(&crate::models::config(name).unwrap()).unwrap()
}

fn ready(model: &Architecture, accelerator: &Accelerator, layout: ServingLayout) -> StepModel {
    let replica =
        ServingReplica { model, accelerator, layout, engine: Engine::Vllm, cache: Dtype::Bf16 };
    StepModel::new(&replica, &accelerator.kernels_or_assumed(), &Coefficients::serving()).unwrap()
}

fn part(name: &str) -> Accelerator {
    Catalog::builtin().accelerator(name).unwrap().clone()
}

#[test]
fn decoding_a_small_model_takes_about_as_long_as_reading_it() {
    let step = ready(&model("llama-3.1-8b"), &part("h100"), ServingLayout::ONE);
    let one = step.seconds(&Batch::decoding(1.0, 1000.0));
    // 15 GB at 0.89 of 3.35 TB/s are 5.0 ms; kernels' floors and the engine add some.
    assert!((0.005..0.009).contains(&one), "{one}");
    let parts = step.parts(&Batch::decoding(1.0, 1000.0));
    assert!(parts.dense > 0.6 * parts.total(), "{parts:?}");
}

#[test]
fn what_kernels_do_not_hide_is_added() {
    let (llama, part) = (model("llama-3.1-8b"), part("rtx-pro-6000"));
    let replica = ServingReplica {
        model: &llama,
        accelerator: &part,
        layout: ServingLayout::ONE,
        engine: Engine::Vllm,
        cache: Dtype::Bf16,
    };
    let plain = part.kernels_or_assumed();
    let parts = |kernels: &Kernels, batch: &Batch| {
        StepModel::new(&replica, kernels, &Coefficients::serving()).unwrap().parts(batch)
    };
    // So many rows that reading (what one row takes) and multiplying (in proportion) take as long.
    let one = parts(&plain, &Batch::decoding(1.0, 0.0)).dense;
    let rows = 1e6 * one / parts(&plain, &Batch::decoding(1e6, 0.0)).dense;
    let joined = Kernels { gemm_overlaps: false, ..plain.clone() };
    let dense = parts(&joined, &Batch::decoding(rows, 0.0)).dense;
    assert!((dense / one - 2.0_f64.sqrt()).abs() < 1e-9, "{}", dense / one);
    // Four query heads share a cached one: three more readings of a tenth each.
    let again = Kernels { mixed_rereads: 0.1, ..plain.clone() };
    let decoding = Batch::decoding(64.0, 1000.0);
    let mixed = decoding.with_prompt(100.0, 100.0);
    let cache = |kernels: &Kernels, batch: &Batch| parts(kernels, batch).cache;
    assert!((cache(&again, &mixed) / cache(&plain, &mixed) - 1.3).abs() < 1e-9);
    assert_eq!(cache(&again, &decoding), cache(&plain, &decoding));
}

#[test]
fn one_accelerator_exchanges_nothing() {
    let step = ready(&model("qwen3-32b"), &part("h100"), ServingLayout::ONE);
    assert_eq!(step.parts(&Batch::decoding(8.0, 1000.0)).collectives, 0.0);
}

#[test]
fn splitting_over_pcie_drowns_in_all_reduces() {
    let llama = model("llama-3.1-70b");
    let prompt = Batch::decoding(16.0, 2000.0).with_prompt(2048.0, 2048.0);
    let share = |name: &str| {
        let parts = ready(&llama, &part(name), ServingLayout::tensor(8)).parts(&prompt);
        parts.collectives / parts.total()
    };
    assert!(share("l40s") > 0.9, "{}", share("l40s"));
    assert!(share("h100") < 0.4, "{}", share("h100"));
}

#[test]
fn few_tokens_touch_few_experts() {
    let step = ready(&model("qwen3-235b-a22b-fp8"), &part("h200"), ServingLayout::tensor(4));
    let experts = |n: f64| step.parts(&Batch::decoding(n, 100.0)).experts;
    assert!(experts(64.0) > 8.0 * experts(1.0));
    assert!(experts(1e4) < 40.0 * experts(64.0));
}

proptest! {
    /// A larger batch is never faster; a longer context neither.
    #[test]
    fn steps_never_fall_as_work_grows(
        n in 1.0..500.0f64, context in 10.0..20_000.0f64, prompt in 0.0..8000.0f64, more in 1.0..3.0f64,
        which in 0..4usize, tensor in 0..4u32,
    ) {
        let name = ["llama-3.1-8b", "deepseek-v3", "gpt-oss-120b", "qwen3.5-397b-a17b"][which];
        let step = ready(&model(name), &part("b200"), ServingLayout::tensor(1 << tensor));
        let here = step.seconds(&Batch::decoding(n, context).with_prompt(prompt, 4000.0));
        let larger = step.seconds(&Batch::decoding(n * more, context).with_prompt(prompt, 4000.0));
        let longer = step.seconds(&Batch::decoding(n, context * more).with_prompt(prompt * more, 4000.0));
        prop_assert!(larger >= here && longer >= here);
    }

    /// Up to the next bend, halfway between two contexts takes half the time between theirs.
    #[test]
    fn time_is_straight_up_to_the_next_bend(
        n in 1.0..500.0f64, context in 10.0..20_000.0f64, share in 0.01..1.0f64, which in 0..4usize,
    ) {
        let name = ["llama-3.1-8b", "deepseek-v3.2", "gpt-oss-120b", "qwen3.5-397b-a17b"][which];
        let step = ready(&model(name), &part("h200"), ServingLayout::tensor(8));
        let batch = Batch::decoding(n, context);
        let far = (step.straight_until(&batch) - batch.cached).min(1e9) * share;
        prop_assert!(far > 0.0);
        let at = |more: f64| step.seconds(&Batch { cached: batch.cached + more, ..batch });
        let middle = (at(0.0) + at(far)) / 2.0;
        prop_assert!((at(far / 2.0) - middle).abs() <= 1e-12 * middle);
    }

    /// More bandwidth and more operations per second are never slower.
    #[test]
    fn better_hardware_is_never_slower(n in 1.0..500.0f64, prompt in 0.0..8000.0f64, by in 1.0..3.0f64) {
        let model = model("llama-3.1-70b");
        let plain = part("h100");
        let mut better = plain.clone();
        better.bandwidth *= by;
        better.peak.half *= by;
        better.scale_up.bandwidth *= by;
        let batch = Batch::decoding(n, 2000.0).with_prompt(prompt, 2000.0);
        let layout = ServingLayout::tensor(4);
        prop_assert!(ready(&model, &better, layout).seconds(&batch)
            <= ready(&model, &plain, layout).seconds(&batch));
    }
}
