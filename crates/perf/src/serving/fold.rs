//! From a replica to what a step needs: all that does not depend on the batch.

use super::factors::Factors;
use super::floors;
use super::step::{CacheTimes, Collective, ExpertRoofline, Roofline, StepModel};
use crate::architecture::{Architecture, Attention};
use crate::coefficients::{CoefficientError, Coefficients};
use crate::engine::Engine;
use crate::hardware::{Accelerator, Kernels};
use crate::layout::ServingLayout;
use crate::precision::Dtype;

/// What a collective reaches of the link's bandwidth, from the measured all-reduces of large
/// messages (445 of 450 GB/s on paper, of which protocol and copies take a quarter).
const LINK_REACHED: f64 = 0.75;
/// The same over PCIe where nobody has measured it, for pairs and for more: the better of the two
/// measured hosts (RTX PRO 6000: 39 and 25 of 64 GB/s).
const PCIE_REACHED: [f64; 2] = [0.6, 0.4];
/// Beyond some size an all-reduce takes two passes and a second start.
const TWO_PASS_START: f64 = 8e-6;
/// What decode attention reaches of the 16-bit peak when it is bound by operations (latent
/// attention scores hundreds of values per cached one).
const DECODE_SCORING: f64 = 0.5;

/// What is asked about: a model on accelerators, in a layout, with an engine.
#[derive(Clone, Copy, Debug)]
pub struct ServingReplica<'a> {
    pub model: &'a Architecture,
    pub accelerator: &'a Accelerator,
    pub layout: ServingLayout,
    pub engine: Engine,
    /// Format of the cache.
    pub cache: Dtype,
}

impl StepModel {
    /// Folds all that does not depend on the batch.
    pub fn new(
        replica: &ServingReplica<'_>,
        kernels: &Kernels,
        coefficients: &Coefficients,
    ) -> Result<Self, CoefficientError> {
        let factors = Factors::of(coefficients, replica.engine, replica.accelerator.id.as_str())?;
        Ok(Uncalibrated::new(replica, kernels).with(&factors))
    }
}

/// A replica as the kernel tables alone describe it. Calibration only scales its parts, so that a
/// fit may try thousands of coefficients on one of these.
#[derive(Clone, Debug)]
pub struct Uncalibrated {
    model: StepModel,
    layers: f64,
}

impl Uncalibrated {
    /// Folds all that depends neither on the batch nor on calibration.
    pub fn new(replica: &ServingReplica<'_>, kernels: &Kernels) -> Self {
        let ServingReplica { model, accelerator, layout, .. } = *replica;
        let tensor = f64::from(layout.tensor);
        let parameters = model.parameters();
        let stored = &model.stored;
        let head = if parameters.head == 0 { parameters.embedding } else { parameters.head };
        let reading = |dtype: Dtype| accelerator.bandwidth * kernels.weights_at(dtype);
        let multiplying = |dtype: Dtype| kernels.flops(accelerator, stored.math(dtype));
        let parts = [
            (parameters.attention, stored.attention),
            (parameters.dense, stored.dense),
            (parameters.shared_experts, stored.shared_experts),
        ];
        // Router and norms are read by every rank, but they are small; the head is split.
        let wide =
            (head + parameters.router) as f64 * stored.rest.bytes() / reading(stored.narrowest());
        let read = |(count, dtype): (u64, Dtype)| count as f64 * dtype.bytes() / reading(dtype);
        let multiply = |(count, dtype): (u64, Dtype)| 2.0 * count as f64 / multiplying(dtype);
        let dense = Roofline {
            read: (parts.map(read).iter().sum::<f64>() + wide) / tensor,
            per_token: parts.map(multiply).iter().sum::<f64>() / tensor,
            overlaps: kernels.gemm_overlaps,
        };
        let step = StepModel {
            copies: f64::from(layout.attention_copies),
            stages: f64::from(layout.pipeline),
            dense,
            head_per_request: 2.0 * head as f64 / multiplying(stored.rest) / tensor,
            experts: experts(replica, kernels),
            cache: cache_times(replica, kernels),
            pair: pair_flops(&model.attention) * attending(model)
                / (tensor * accelerator.peak.half * kernels.attention),
            collective: collective(replica, kernels),
            floors: floors::seconds(model, kernels, replica.engine),
            per_step: 0.0,
            per_request: 0.0,
            launch: 0.0,
        };
        Self { model: step, layers: f64::from(model.layers.total()) }
    }

    /// The same with calibration.
    pub fn with(&self, factors: &Factors) -> StepModel {
        let mut step = self.model.clone();
        if let Some(experts) = &mut step.experts {
            experts.read_all /= factors.expert_bandwidth;
            experts.per_token /= factors.expert_flops;
        }
        step.cache.read /= factors.cache_bandwidth;
        step.cache.state /= factors.cache_bandwidth;
        step.collective = step.collective.scaled(factors.collectives);
        step.floors *= factors.floors * factors.host;
        step.per_step = factors.step_seconds;
        step.per_request = factors.request_seconds;
        step.launch = self.layers * factors.launch_seconds * factors.host;
        step
    }
}

/// Layers that keep a cache.
fn attending(model: &Architecture) -> f64 {
    f64::from(model.layers.full + model.layers.sliding)
}

/// Operations per pair of tokens in one layer while a prompt is computed.
fn pair_flops(attention: &Attention) -> f64 {
    match *attention {
        Attention::Grouped { heads, head_dim, .. } => 4.0 * f64::from(heads * head_dim),
        Attention::Latent { heads, nope_dim, rope_dim, value_dim, .. } => {
            2.0 * f64::from(heads) * f64::from(nope_dim + rope_dim + value_dim)
        }
    }
}

/// The same while decoding, where latent attention works on the latent vectors themselves.
fn decode_flops(attention: &Attention) -> f64 {
    match *attention {
        Attention::Grouped { .. } => pair_flops(attention),
        Attention::Latent { heads, kv_rank, rope_dim, .. } => {
            2.0 * f64::from(heads) * f64::from(2 * kv_rank + rope_dim)
        }
    }
}

fn experts(replica: &ServingReplica<'_>, kernels: &Kernels) -> Option<ExpertRoofline> {
    let experts = replica.model.feed_forward.experts?;
    let parameters = replica.model.parameters();
    let stored = replica.model.stored.routed_experts;
    let abreast = f64::from(replica.layout.abreast());
    let bandwidth = replica.accelerator.bandwidth * kernels.weights_at(stored);
    let flops = kernels.grouped.at(stored);
    let visited = f64::from(experts.active) / f64::from(experts.routed.max(1));
    Some(ExpertRoofline {
        read_all: parameters.routed_experts as f64 * stored.bytes() / (abreast * bandwidth),
        log_missed: (-visited).ln_1p(),
        per_token: 2.0 * parameters.visited_experts as f64 / (abreast * flops),
    })
}

fn cache_times(replica: &ServingReplica<'_>, kernels: &Kernels) -> CacheTimes {
    let ServingReplica { model, accelerator, layout, cache, .. } = *replica;
    let layers = attending(model);
    let shards = f64::from(layout.tensor.min(model.attention.cache_shards()));
    let bandwidth = accelerator.bandwidth * kernels.cache_at(cache) * shards;
    let read = layers * model.attention.cached_values() as f64 * cache.bytes() / bandwidth;
    let peak = f64::from(layout.tensor) * accelerator.peak.half * DECODE_SCORING;
    let top_k = match model.attention {
        Attention::Latent { indexer: Some(indexer), .. } => f64::from(indexer.top_k),
        _ => f64::INFINITY,
    };
    let sharing = match model.attention {
        Attention::Grouped { heads, kv_heads, .. } => f64::from(heads) / f64::from(kv_heads.max(1)),
        Attention::Latent { .. } => 1.0,
    };
    CacheTimes {
        read,
        mixed: 1.0 + kernels.mixed_rereads * (sharing - 1.0),
        score: layers * decode_flops(&model.attention) / peak,
        // Read and written in every step.
        state: 2.0 * model.state_bytes() / bandwidth,
        sliding: f64::from(model.layers.sliding) / layers.max(1.0),
        window: f64::from(model.layers.window),
        top_k,
    }
}

/// Bytes per second that a collective over so many accelerators reaches.
///
/// Measured where somebody has: eight L40S over PCIe reach 1 GB/s of the 32 on paper.
fn exchange_bandwidth(accelerator: &Accelerator, gpus: u32) -> f64 {
    let link = accelerator.link_among(gpus);
    let reached = LINK_REACHED * link.bandwidth;
    let groups = accelerator.measured.iter().flat_map(|measured| &measured.all_reduce);
    let same = groups.filter(|group| group.gpus >= gpus.clamp(2, 8)).min_by_key(|group| group.gpus);
    match same.map(|group| group.nccl_bus_bandwidth) {
        Some(bus) if gpus <= accelerator.scale_up_domain.get() => bus.min(reached),
        _ if link.name.starts_with("PCIe") => {
            link.bandwidth * if gpus <= 2 { PCIE_REACHED[0] } else { PCIE_REACHED[1] }
        }
        _ => reached,
    }
}

fn collective(replica: &ServingReplica<'_>, kernels: &Kernels) -> Collective {
    let ServingReplica { model, accelerator, layout, engine, .. } = *replica;
    let tensor = f64::from(layout.tensor);
    let copies = f64::from(layout.attention_copies);
    let per_token =
        f64::from(model.hidden) * 2.0 / exchange_bandwidth(accelerator, layout.abreast());
    let moe = model.feed_forward.experts;
    let active = moe.map_or(0.0, |experts| f64::from(experts.active));
    let moe_layers = moe.map_or(0.0, |experts| f64::from(experts.layers));
    let start = |gpus: u32| kernels.all_reduce_start(engine.name(), gpus);
    let [reduces, exchanges] =
        [layout.tensor > 1, layout.attention_copies > 1].map(|there| if there { 2.0 } else { 0.0 });
    Collective {
        reduces: reduces * f64::from(model.layers.total()),
        start: start(layout.tensor),
        one_pass: (tensor - 1.0) * per_token,
        two_pass_start: TWO_PASS_START,
        two_passes: 2.0 * (tensor - 1.0) / tensor * per_token,
        exchanges: exchanges * moe_layers,
        exchange_start: start(layout.abreast()),
        exchange_per_token: active.min(copies - 1.0) * per_token,
    }
}
