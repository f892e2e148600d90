//! The shortest time a step can take, kernel by kernel.

use crate::architecture::{Architecture, Attention};
use crate::engine::Engine;
use crate::hardware::Kernels;
use crate::precision::Dtype;

/// Seconds for the kernels of all layers when there is almost nothing to do.
pub(super) fn seconds(model: &Architecture, kernels: &Kernels, engine: Engine) -> f64 {
    let floors = &kernels.floors;
    let layers = model.layers;
    let stored = &model.stored;
    let projections = floors.gemm(stored.attention);
    let attention = match model.attention {
        Attention::Latent { indexer: Some(_), .. } => floors.sparse_attention,
        Attention::Latent { .. } => kernels.latent_floor(engine.name()),
        // Projections in and out around it.
        Attention::Grouped { .. } => floors.attention + 2.0 * projections,
    };
    let linear = floors.linear_attention + floors.linear_rest + 4.0 * projections;
    let dense = 2.0 * floors.gemm(stored.dense);
    let experts = model.feed_forward.experts.map_or(0.0, |experts| {
        let grouped = match stored.routed_experts {
            Dtype::Mxfp4 | Dtype::Nvfp4 | Dtype::Int4 => floors.experts_4bit,
            _ => floors.experts,
        };
        let shared =
            if experts.shared_width > 0 { 2.0 * floors.gemm(stored.shared_experts) } else { 0.0 };
        // The router is one more product, in 16 bits.
        f64::from(experts.layers) * (grouped + floors.gemm_half + shared)
    });
    f64::from(layers.full + layers.sliding) * attention
        + f64::from(layers.linear) * linear
        + f64::from(model.feed_forward.dense_layers) * dense
        + experts
        + f64::from(layers.total()) * floors.norms
}
