use super::*;
use crate::architecture::Architecture;
use crate::layout::ServingLayout;
use crate::precision::{Dtype, Math};
use crate::training::{Framework, Recipe, Recompute, Sharding, TrainingLayout, TrainingSetup};
use proptest::prelude::*;
use serving::{Budget, ReplicaMemory};
use std::sync::LazyLock;
use training::training;

fn model(name: &str) -> Architecture {
    Architecture::from_config(&crate::models::config(name).unwrap()).unwrap()
}

static LLAMA: LazyLock<Architecture> = LazyLock::new(|| model("llama-3.1-70b"));
static MIXTRAL: LazyLock<Architecture> = LazyLock::new(|| model("mixtral-8x7b"));

const H100: Bytes = Bytes::new(85_040_000_000);

fn gib(bytes: Bytes) -> f64 {
    bytes.get() as f64 / GIB
}

#[test]
fn llama_on_four_parts_holds_what_its_users_see() {
    let replica = ReplicaMemory::new(&LLAMA, ServingLayout::tensor(4), Budget::default());
    let held = replica.memory(H100, 4096.0);
    // 70.55e9 weights of two bytes over four parts; norms are on all of them.
    assert!((gib(held.weights) - 70.55e9 * 2.0 / 4.0 / GIB).abs() < 0.01, "{held:?}");
    // 2 * 80 layers * 2 heads * 128 * 2 bytes = 80 KiB per token.
    assert_eq!(replica.request_bytes(1.0), 81_920.0);
    assert!((475_000..480_000).contains(&held.cache_tokens.point().get()), "{held:?}");
    assert!(held.cache_tokens.low() < held.cache_tokens.point());
    assert!(held.cache_tokens.high() > held.cache_tokens.point());
}

#[test]
fn the_parts_of_a_replica_add_up_to_its_share() {
    for tensor in [4, 8] {
        let layout = ServingLayout::tensor(tensor);
        let held = ReplicaMemory::new(&LLAMA, layout, Budget::default()).memory(H100, 4096.0);
        let parts = [held.weights, held.positions, held.runtime, held.activations, held.cache];
        let sum = parts.iter().map(|part| part.get()).sum::<u64>() as f64;
        assert!((sum - 0.9 * H100.get() as f64).abs() < 5.0);
    }
}

#[test]
fn what_is_split_over_more_parts_than_it_has_heads_is_copied() {
    let bytes = |tensor| {
        ReplicaMemory::new(&LLAMA, ServingLayout::tensor(tensor), Budget::default())
            .request_bytes(1.0)
    };
    assert_eq!(bytes(8), bytes(16));
    let deepseek = model("deepseek-v3");
    let latent =
        |layout| ReplicaMemory::new(&deepseek, layout, Budget::default()).request_bytes(1.0);
    assert_eq!(latent(ServingLayout::tensor(8)), latent(ServingLayout::ONE));
}

#[test]
fn one_accelerator_holds_all_weights_as_stored() {
    for name in ["llama-3.1-8b", "deepseek-v3", "qwen3.5-397b-a17b"] {
        let model = model(name);
        let replica = ReplicaMemory::new(&model, ServingLayout::ONE, Budget::default());
        let parts: u64 = replica.weights().iter().map(|(_, part)| part.get()).sum();
        let stored = model.weight_bytes() + 2.0 * model.encoder.unwrap_or(0) as f64;
        assert!((parts as f64 / stored - 1.0).abs() < 1e-9, "{name}: {parts} {stored}");
    }
}

/// 2,880 becomes 3,072 along the hidden size and 2,944 along the width; split in eight, 360 becomes 384.
#[test]
fn experts_in_four_bits_are_padded_to_what_kernels_take() {
    let model = model("gpt-oss-120b");
    let experts = |layout| {
        let weights = ReplicaMemory::new(&model, layout, Budget::default()).weights();
        let (_, experts) = weights.into_iter().find(|(name, _)| *name == "experts").unwrap();
        experts.get() as f64
    };
    let bare = model.parameters().routed_experts as f64 * model.stored.routed_experts.bytes();
    let (whole, eighth) = (experts(ServingLayout::ONE), experts(ServingLayout::tensor(8)));
    assert!((whole / bare - 3072.0 * 2944.0 / (2880.0 * 2880.0)).abs() < 1e-6, "{whole} {bare}");
    assert!((eighth * 8.0 / bare - 3072.0 * 384.0 / (2880.0 * 360.0)).abs() < 1e-6, "{eighth}");
}

/// Weights alone are more than nine tenths of an H200, so no request is held, whatever else is needed.
#[test]
fn what_holds_no_request_at_its_share_does_not_fit() {
    let model = model("llama-3.1-70b");
    let replica = ReplicaMemory::new(&model, ServingLayout::ONE, Budget::default());
    let h200 = Bytes::new(150_109_106_995);
    assert_eq!(replica.fits(h200, 8192.0).fit, Fit::Tight);
    assert_eq!(replica.fits_at_its_share(h200, 8192.0).fit, Fit::DoesNotFit);
}

#[test]
fn copies_of_attention_share_the_experts() {
    let deepseek = model("deepseek-v3");
    let copies = ServingLayout { attention_copies: 8, whole_experts: true, ..ServingLayout::ONE };
    let weights = |layout| {
        let budget = Budget { cache: Some(Dtype::Fp8), ..Budget::default() };
        gib(ReplicaMemory::new(&deepseek, layout, budget).memory(H100, 4096.0).weights)
    };
    let (split, copied) = (weights(ServingLayout::tensor(8)), weights(copies));
    // Seven eighths of attention, dense blocks, shared experts and tables come on top.
    assert!((10.0..15.0).contains(&(copied - split)), "{split} {copied}");
}

#[test]
fn three_answers() {
    let fit = |name: &str, tensor, context| {
        let model = model(name);
        ReplicaMemory::new(&model, ServingLayout::tensor(tensor), Budget::default())
            .fits(H100, context)
            .fit
    };
    assert_eq!(fit("llama-3.1-8b", 1, 8192.0), Fit::Fits);
    assert_eq!(fit("llama-3.1-70b", 1, 8192.0), Fit::DoesNotFit);
    assert_eq!(fit("llama-3.1-70b", 2, 16_384.0), Fit::Tight);
    assert_eq!(fit("llama-3.1-70b", 4, 8192.0), Fit::Fits);
}

const fn run(framework: Framework) -> TrainingSetup {
    TrainingSetup::new(framework, 8192.0, 512.0, Math::Half)
}

#[test]
fn megatron_counts_eighteen_bytes_per_weight() {
    let held = training(&LLAMA, &TrainingLayout::ONE, &run(Framework::Megatron));
    assert!((held.states / (18.0 * 70.55e9) - 1.0).abs() < 1e-3, "{held:?}");
    // The paper's count for one layer of a plain GPT: 34 bytes per value and five per score.
    let recipe = Recipe { fused_attention: false, ..Framework::Megatron.recipe() };
    let unfused = TrainingSetup { recipe, global_batch: 1.0, ..run(Framework::Megatron) };
    let scores = training(&LLAMA, &TrainingLayout::ONE, &unfused).activations
        - training(
            &LLAMA,
            &TrainingLayout::ONE,
            &TrainingSetup { global_batch: 1.0, ..run(Framework::Megatron) },
        )
        .activations;
    assert_eq!(scores, 80.0 * 5.0 * 64.0 * 8192.0 * 8192.0);
}

#[test]
fn recomputing_everything_keeps_two_bytes_per_value() {
    let layout = TrainingLayout { recompute: Recompute::Full, ..TrainingLayout::ONE };
    let held = training(&LLAMA, &layout, &run(Framework::Fsdp));
    assert_eq!(held.activations, 80.0 * 2.0 * 8192.0 * 8192.0);
}

fn shardings() -> impl Strategy<Value = Sharding> {
    prop_oneof![
        Just(Sharding::Replicated),
        Just(Sharding::OptimizerOnly),
        Just(Sharding::Gradients),
        Just(Sharding::Full)
    ]
}

proptest! {
    #[test]
    fn more_copies_never_hold_more_state(
        sharding in shardings(), power in 0..8_u32, pipeline in 1..4_u32, expert in 0..3_u32,
    ) {
        let at = |data| {
            let layout = TrainingLayout {
                data, pipeline, expert: 1 << expert, sharding, ..TrainingLayout::ONE
            };
            training(&MIXTRAL, &layout, &run(Framework::Fsdp)).states
        };
        prop_assert!(at(1 << (power + 1)) <= at(1 << power));
    }

    #[test]
    fn parts_of_training_add_up(sharding in shardings(), tensor in 0..4_u32, pipeline in 0..3_u32) {
        let layout = TrainingLayout {
            tensor: 1 << tensor, pipeline: 1 << pipeline, data: 8, sharding, ..TrainingLayout::ONE
        };
        let held = training(&LLAMA, &layout, &run(Framework::Megatron));
        let sum: u64 = held.named().iter().map(|(_, part)| part.get()).sum();
        prop_assert!(sum.abs_diff(held.total().get()) <= 8);
    }

    /// A longer request never turns a worse answer into a better one.
    #[test]
    fn longer_requests_never_fit_better(context in 1.0..1e6f64, tensor in 0..4_u32) {
        let replica = ReplicaMemory::new(&LLAMA, ServingLayout::tensor(1 << tensor), Budget::default());
        let fit = |context| replica.fits(H100, context).fit;
        prop_assert!(fit(context) <= fit(context * 2.0));
    }
}
