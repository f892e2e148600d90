//! Parts and prices as JSON shows them. Units are in the names, as everywhere outside `core`.

use flyball_core::units::Price;
use flyball_perf::catalog::{Catalog, Offer, PriceKind};
use flyball_perf::hardware::{Accelerator, Link, MeasuredSpeed};
use schemars::JsonSchema;
use serde::Serialize;

/// A kind of accelerator.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PartView {
    /// Stable name.
    pub(crate) id: String,
    /// Other names it is found by.
    pub(crate) aliases: Vec<String>,
    /// Empty if unknown, as are architecture and form.
    pub(crate) vendor: String,
    pub(crate) architecture: String,
    pub(crate) form: String,
    /// First sold; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) year: Option<u16>,
    /// As advertised.
    pub(crate) memory_bytes: u64,
    /// As the device shows it.
    pub(crate) usable_memory_bytes: u64,
    pub(crate) bandwidth_bytes_per_second: f64,
    pub(crate) peak: PeakView,
    /// The link between the accelerators of one domain.
    pub(crate) scale_up: LinkView,
    /// How many accelerators the scale-up link joins.
    pub(crate) scale_up_domain: u32,
    /// Accelerators per host.
    pub(crate) node_gpus: u32,
    /// The network between hosts.
    pub(crate) scale_out: LinkView,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tdp_watts: Option<u32>,
    /// Measured efficiency; absent if not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) measured: Option<MeasuredView>,
    /// The lowest price of each way of buying. One of low confidence only if there is no other.
    pub(crate) cheapest: Vec<PriceView>,
    pub(crate) notes: String,
    /// Where the numbers come from.
    pub(crate) source: String,
}

/// Dense peaks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PeakView {
    /// BF16 or FP16.
    pub(crate) half_flops: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fp8_flops: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fp4_flops: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LinkView {
    pub(crate) name: String,
    /// Per direction and accelerator.
    pub(crate) bytes_per_second: f64,
}

/// How much of the datasheet was reached, as fractions of the dense peak.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MeasuredView {
    /// Matrix products, by format.
    pub(crate) gemm: Vec<GemmView>,
    /// Of the peak bandwidth, in the thin matrix products of decoding.
    pub(crate) decode_bandwidth_fraction: f64,
    /// What the smallest matrix product takes.
    pub(crate) small_gemm_seconds: f64,
    /// All-reduce within a host, by number of accelerators.
    pub(crate) all_reduce: Vec<AllReduceView>,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GemmView {
    /// bf16, fp8 or fp4.
    pub(crate) format: &'static str,
    /// The best one in a hundred shapes.
    pub(crate) p99_fraction: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) median_fraction: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AllReduceView {
    pub(crate) gpus: u32,
    /// For an empty message.
    pub(crate) nccl_seconds: f64,
    pub(crate) nccl_bus_bytes_per_second: f64,
    /// For an empty message with an engine's own kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) custom_seconds: Option<f64>,
}

/// One price.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PriceView {
    /// Id of the accelerator.
    pub(crate) accelerator: String,
    pub(crate) provider: String,
    /// What is ordered; `any` if the price is the same for all.
    pub(crate) sku: String,
    pub(crate) gpus_per_sku: u32,
    /// Where the price holds, in the words of the source; may be empty.
    pub(crate) region: String,
    /// on-demand, spot, reserved-1y, reserved-3y or short-reservation.
    pub(crate) purchase: &'static str,
    /// For one accelerator and one hour; the median where it varies.
    pub(crate) usd_per_gpu_hour: f64,
    /// The lowest, where it varies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usd_min: Option<f64>,
    /// The highest, where it varies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usd_max: Option<f64>,
    /// Date of the price.
    pub(crate) as_of: String,
    pub(crate) source: String,
    /// high, medium or low.
    pub(crate) confidence: &'static str,
    pub(crate) note: String,
}

impl PartView {
    pub(crate) fn new(catalog: &Catalog, part: &Accelerator) -> PartView {
        let cheapest = PriceKind::ALL
            .into_iter()
            .filter_map(|purchase| catalog.cheapest(&part.id, None, purchase))
            .map(PriceView::from)
            .collect();
        PartView {
            id: part.id.to_string(),
            aliases: part.aliases.clone(),
            vendor: part.vendor.clone(),
            architecture: part.architecture.clone(),
            form: part.form.clone(),
            year: Some(part.year).filter(|year| *year != 0),
            memory_bytes: part.memory.get(),
            usable_memory_bytes: part.usable_memory.get(),
            bandwidth_bytes_per_second: part.bandwidth,
            peak: PeakView {
                half_flops: part.peak.half,
                fp8_flops: part.peak.fp8,
                fp4_flops: part.peak.fp4,
            },
            scale_up: LinkView::from(&part.scale_up),
            scale_up_domain: part.scale_up_domain.get(),
            node_gpus: part.node_gpus.get(),
            scale_out: LinkView::from(&part.scale_out),
            tdp_watts: part.tdp_watts,
            measured: part.measured.as_ref().map(MeasuredView::from),
            cheapest,
            notes: part.notes.clone(),
            source: part.source.clone(),
        }
    }
}

impl From<&Link> for LinkView {
    fn from(link: &Link) -> LinkView {
        LinkView { name: link.name.clone(), bytes_per_second: link.bandwidth }
    }
}

impl From<&MeasuredSpeed> for MeasuredView {
    fn from(measured: &MeasuredSpeed) -> MeasuredView {
        let formats = [
            ("bf16", Some(measured.half_gemm), Some(measured.half_gemm_median)),
            ("fp8", measured.fp8_gemm, measured.fp8_gemm_median),
            ("fp4", measured.fp4_gemm, measured.fp4_gemm_median),
        ];
        let gemm = formats.into_iter().filter_map(|(format, best, median_fraction)| {
            Some(GemmView { format, p99_fraction: best?, median_fraction })
        });
        let all_reduce = measured.all_reduce.iter().map(|group| AllReduceView {
            gpus: group.gpus,
            nccl_seconds: group.nccl_alpha,
            nccl_bus_bytes_per_second: group.nccl_bus_bandwidth,
            custom_seconds: group.custom_alpha,
        });
        MeasuredView {
            gemm: gemm.collect(),
            decode_bandwidth_fraction: measured.decode_bandwidth,
            small_gemm_seconds: measured.small_gemm_seconds,
            all_reduce: all_reduce.collect(),
        }
    }
}

impl From<&Offer> for PriceView {
    fn from(offer: &Offer) -> PriceView {
        PriceView {
            accelerator: offer.accelerator.to_string(),
            provider: offer.provider.clone(),
            sku: offer.sku.clone(),
            gpus_per_sku: offer.gpus_per_sku.get(),
            region: offer.region.clone(),
            purchase: offer.purchase.name(),
            usd_per_gpu_hour: dollars(offer.price),
            usd_min: offer.low.map(dollars),
            usd_max: offer.high.map(dollars),
            as_of: offer.as_of.to_string(),
            source: offer.source.clone(),
            confidence: offer.confidence.name(),
            note: offer.note.clone(),
        }
    }
}

/// For display only; sums stay in integers.
fn dollars(price: Price) -> f64 {
    price.amount().micros() as f64 / 1e6
}
