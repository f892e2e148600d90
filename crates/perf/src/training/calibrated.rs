//! Which accelerators the training model was calibrated on, by framework.

use super::Framework;

/// Framework and accelerator of every row that the coefficients were fitted on. A test of `xtask`
/// holds this against `validation/training_points.csv`.
pub const PAIRS: [(Framework, &str); 12] = [
    (Framework::Megatron, "a100-sxm-80gb"),
    (Framework::Megatron, "b200-sxm-180gb"),
    (Framework::Megatron, "gb200"),
    (Framework::Megatron, "h100-sxm-80gb"),
    (Framework::Megatron, "v100-sxm2-16gb"),
    (Framework::Fsdp, "h100-96gb-hbm2e"),
    (Framework::Fsdp, "h200-sxm-141gb"),
    (Framework::Foundry, "a100-sxm-40gb"),
    (Framework::Foundry, "a100-sxm-80gb"),
    (Framework::Foundry, "h100-sxm-80gb"),
    (Framework::OneFlow, "v100-sxm2-16gb"),
    (Framework::Other, "h100-sxm-80gb"),
];

/// Whether rows of this framework on this accelerator were among them.
pub fn on(framework: Framework, accelerator: &str) -> bool {
    PAIRS.contains(&(framework, accelerator))
}
