use super::*;
use crate::architecture::Architecture;
use crate::catalog::Catalog;
use crate::precision::Math;
use proptest::prelude::*;
use std::sync::LazyLock;

fn model(name: &str) -> Architecture {
    Architecture::from_config(&crate::models::config(name).unwrap()).unwrap()
}

fn hardware(name: &str) -> TrainingHardware {
    let catalog = Catalog::builtin();
    TrainingHardware::of(catalog.accelerator(name).unwrap(), &catalog.accelerators).unwrap()
}

/// Read once: the properties below ask for it a thousand times.
static H100: LazyLock<TrainingHardware> = LazyLock::new(|| hardware("h100"));
static MIXTRAL: LazyLock<TrainingModel> = LazyLock::new(|| trained("mixtral-8x7b", &H100));
static LLAMA: LazyLock<TrainingModel> = LazyLock::new(|| trained("llama-3.1-70b", &H100));

fn trained(name: &str, hardware: &TrainingHardware) -> TrainingModel {
    TrainingModel::new(&model(name), hardware, &TrainingCoefficients::builtin())
}

const LAYOUT: TrainingLayout = TrainingLayout {
    tensor: 8,
    pipeline: 4,
    interleave: 2,
    data: 16,
    sharding: Sharding::OptimizerOnly,
    sequence_parallel: true,
    ..TrainingLayout::ONE
};

const fn run(framework: Framework) -> TrainingSetup {
    TrainingSetup::new(framework, 8192.0, 512.0, Math::Half)
}

#[test]
fn one_accelerator_computes_and_sends_nothing() {
    let parts = trained("llama-3.1-8b", &hardware("h100")).step(
        &TrainingLayout::ONE,
        &TrainingSetup { global_batch: 1.0, ..run(Framework::Megatron) },
    );
    for sent in [parts.tensor, parts.expert, parts.bubble, parts.stage_transfers, parts.data] {
        assert_eq!(sent, 0.0);
    }
    let found = TrainingCoefficients::builtin().frameworks[0];
    // Three passes of 2 * 6.979e9 weights * 8192 tokens at a share of 989e12 * 0.89.
    let linear = 3.0 * 2.0 * 6_979_321_856.0 * 8192.0 / (989e12 * 0.89 * found.linear_efficiency);
    assert!((parts.linear / linear - 1.0).abs() < 1e-12, "{parts:?}");
    // 3.5 forwards of 4 * 32 layers * 4096 * 4096 pairs * 8192 tokens, at a share of the same.
    let attention = 3.5 * 4.0 * 32.0 * 4096.0 * 4096.0 * 8192.0;
    let rate = 989e12 * 0.89 * found.attention_efficiency;
    assert!((parts.attention / (attention / rate) - 1.0).abs() < 1e-12, "{parts:?}");
    // 24 bytes for each of 8.03e9 weights at 0.8 of 3.35 TB/s.
    assert!((parts.optimizer / (24.0 * 8.03e9 / 2.68e12) - 1.0).abs() < 1e-3, "{parts:?}");
}

#[test]
fn parts_add_up_to_the_whole() {
    let parts = MIXTRAL.step(&TrainingLayout { expert: 8, ..LAYOUT }, &run(Framework::Megatron));
    let shares: f64 = parts.named().iter().map(|(_, part)| parts.share_of(*part)).sum();
    assert!((shares - 1.0).abs() < 1e-12);
    assert!(parts.named().iter().all(|(_, seconds)| *seconds > 0.0), "{parts:?}");
}

#[test]
fn an_unknown_framework_lies_between_the_known_ones() {
    let model = &*LLAMA;
    let seconds = |framework: Framework| {
        let parts = model.step(&LAYOUT, &run(framework));
        parts.linear
    };
    let known = Framework::ALL.map(seconds);
    let other = seconds(Framework::Other);
    assert!(known.iter().any(|one| *one < other) && known.iter().any(|one| *one > other));
}

#[test]
fn recomputing_everything_costs_up_to_a_third() {
    let model = &*LLAMA;
    let full = TrainingLayout { recompute: Recompute::Full, ..LAYOUT };
    let without = model.step(&LAYOUT, &run(Framework::Megatron)).linear;
    assert!(
        (model.step(&full, &run(Framework::Megatron)).linear / without - 4.0 / 3.0).abs() < 1e-9
    );
    // PyTorch stops before the down projection, which is 0.27 of a layer here.
    let early = model.step(&full, &run(Framework::Fsdp)).linear
        / model.step(&LAYOUT, &run(Framework::Fsdp)).linear;
    assert!((1.2..1.3).contains(&early), "{early}");
}

#[test]
fn every_framework_is_found_by_its_name() {
    for framework in Framework::ALL {
        assert_eq!(Framework::named(framework.name()), Some(framework));
    }
}

#[test]
fn experts_of_a_matrix_that_spans_domains_never_save_time() {
    // Found by the property below: half an accelerator per domain made links give time back.
    let layout = TrainingLayout { tensor: 16, expert: 2, ..TrainingLayout::ONE };
    let better = TrainingHardware { bus: 2.0 * H100.bus, ..*H100 };
    let seconds = |model: &TrainingModel| model.step(&layout, &run(Framework::Megatron)).total();
    assert!(seconds(&MIXTRAL.on(&better)) <= seconds(&MIXTRAL));
}

fn layouts() -> impl Strategy<Value = TrainingLayout> {
    let degree = |most: u32| (0..=most).prop_map(|power| 1_u32 << power);
    let sharding = prop_oneof![
        Just(Sharding::Replicated),
        Just(Sharding::OptimizerOnly),
        Just(Sharding::Gradients),
        Just(Sharding::Full)
    ];
    let recompute =
        prop_oneof![Just(Recompute::None), Just(Recompute::Selective), Just(Recompute::Full)];
    (degree(4), degree(3), degree(1), degree(2), degree(6), degree(3), sharding, recompute)
        .prop_map(|(tensor, pipeline, interleave, context, data, expert, sharding, recompute)| {
            TrainingLayout {
                tensor,
                pipeline,
                interleave: if pipeline > 1 { interleave } else { 1 },
                context,
                data,
                expert,
                micro_batch: 1,
                sharding,
                recompute,
                sequence_parallel: tensor > 1,
            }
        })
}

proptest! {
    /// Better hardware is never slower, in any respect.
    #[test]
    fn more_of_anything_is_never_slower(layout in layouts(), which in 0..6_usize, times in 1.0..4.0f64) {
        let mut better = *H100;
        let fields = [&mut better.half, &mut better.fp8, &mut better.memory, &mut better.bus,
            &mut better.network, &mut better.fp4];
        *fields[which] *= times;
        let run = TrainingSetup { math: Math::Fp8, ..run(Framework::Megatron) };
        let before = MIXTRAL.step(&layout, &run).total();
        let after = MIXTRAL.on(&better).step(&layout, &run).total();
        prop_assert!(after <= before * (1.0 + 1e-12), "{before} {after}");
    }

    #[test]
    fn what_is_not_split_costs_nothing(layout in layouts()) {
        let parts = MIXTRAL.step(&layout, &run(Framework::Megatron));
        prop_assert_eq!(layout.tensor == 1, parts.tensor == 0.0);
        prop_assert_eq!(layout.expert == 1, parts.expert == 0.0);
        prop_assert_eq!(layout.pipeline == 1, parts.bubble == 0.0);
        prop_assert_eq!(layout.pipeline == 1, parts.stage_transfers == 0.0);
        prop_assert!(parts.total().is_finite() && parts.total() > 0.0);
    }

    #[test]
    fn more_micro_batches_leave_a_smaller_bubble(times in 2.0..16.0f64) {
        let model = &*LLAMA;
        let share = |global_batch: f64| {
            let parts = model.step(&LAYOUT, &TrainingSetup { global_batch, ..run(Framework::Megatron) });
            parts.share_of(parts.bubble)
        };
        prop_assert!(share(512.0 * times) < share(512.0));
    }
}
