//! What is trained on, and with which framework.

use crate::precision::Math;

/// One training run, apart from how it is spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainingSetup {
    /// Tokens of one sequence.
    pub sequence: f64,
    /// Sequences of one step, over all copies.
    pub global_batch: f64,
    /// What the linear layers multiply in. Attention and the output layer stay in 16 bit.
    pub math: Math,
    pub framework: Framework,
    pub recipe: Recipe,
    /// Only small matrices beside the frozen ones are trained.
    pub lora: bool,
}

impl TrainingSetup {
    /// With what the framework does today.
    pub const fn new(framework: Framework, sequence: f64, global_batch: f64, math: Math) -> Self {
        Self { sequence, global_batch, math, framework, recipe: framework.recipe(), lora: false }
    }
}

/// What runs the training, as far as its kernels have been compared with measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Framework {
    /// Megatron-LM, Megatron Core, NeMo.
    Megatron,
    /// PyTorch FSDP2 with `torch.compile`, such as torchtitan.
    Fsdp,
    /// PyTorch FSDP as MosaicML's llm-foundry uses it.
    Foundry,
    OneFlow,
    /// Anything else: the mean of the others.
    Other,
}

impl Framework {
    pub const ALL: [Self; 5] =
        [Self::Megatron, Self::Fsdp, Self::Foundry, Self::OneFlow, Self::Other];

    /// The word used on the command line and among the coefficients.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Megatron => "megatron",
            Self::Fsdp => "fsdp",
            Self::Foundry => "foundry",
            Self::OneFlow => "oneflow",
            Self::Other => "other",
        }
    }

    /// The framework of that name, if there is one.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|framework| framework.name() == name)
    }

    /// What it does today.
    pub const fn recipe(self) -> Recipe {
        let torch = matches!(self, Self::Fsdp | Self::Foundry);
        Recipe {
            fused_attention: true,
            ampere_attention: torch,
            early_stop: torch,
            selective: match self {
                Self::Fsdp => Selective::EverySecondProduct,
                _ => Selective::Attention,
            },
            overlap: true,
            wide_gradients: true,
            compiled: matches!(self, Self::Fsdp),
            compiled_loss: false,
            asynchronous_tensor: false,
        }
    }
}

/// What a framework, a version or a setting does differently from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// Scores stay on the chip (FlashAttention and its like). Without that they are written out,
    /// which was usual before 2022.
    pub fused_attention: bool,
    /// Attention kernels with the instructions of Ampere (FlashAttention-2), which later tensor
    /// cores run below their peak.
    pub ampere_attention: bool,
    /// Recomputation of a layer stops where the last saved tensor is reached, which is before the
    /// down projection (PyTorch's non-reentrant checkpointing).
    pub early_stop: bool,
    pub selective: Selective,
    /// Gradients are summed while others are still being computed.
    pub overlap: bool,
    /// Gradients are summed in FP32 and weights sent in 16 bit, 6 bytes per weight; without that
    /// one all-reduce in 16 bit, 4 bytes.
    pub wide_gradients: bool,
    /// Layers are compiled, so that fewer copies of activations are alive at once.
    pub compiled: bool,
    /// The loss is compiled too, so that logits are not kept in three forms.
    pub compiled_loss: bool,
    /// Gathers of tensor parallelism are cut up and overlapped, so that fewer are alive at once.
    pub asynchronous_tensor: bool,
}

/// What [`super::Recompute::Selective`] means to a framework.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selective {
    /// The core of attention, which fused kernels do anyway.
    Attention,
    /// Every second matrix product.
    EverySecondProduct,
    /// Every second layer.
    EverySecondLayer,
}
