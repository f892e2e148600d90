//! Where the targets were not reached, why, and what was tried.

use crate::section::Miss;

pub(super) fn misses() -> Vec<Miss> {
    vec![
        Miss::new(
            "models with experts, left out and sealed",
            "13 development rows, 12 of them in one suite; recomputation, overlap and the host are \
             not published. gpt-oss-120b is predicted 30 to 56 % too fast (BF16, width 2880, \
             attention sinks), Qwen3-30B on racks 20 to 43 % too slow (graphs, a faster host)",
            &[
                "a constant per layer with experts: 19 / 40 on development rows",
                "a cost per expert on its accelerator: 14 / 37, kept",
                "recomputing just enough to fit where the row is silent: 7 / 34 on development \
                 rows; seen only after the sealed score, so not adopted",
                "ignoring gpt-oss's window: no change",
            ],
        ),
        Miss::new(
            "dense models on GB300, sealed",
            "about 11 % too slow, and on the nine rows of megatron-bridge-25.11 constant utilisation \
             is closer (6.9 against 14.5): the measured GEMM fractions do not explain its gain over \
             GB200; its softmax units are twice as fast and its power is higher",
            &[
                "its own measured GEMM fractions and bus bandwidth: in use, and not enough",
                "a factor for faster softmax: no development row is on this part, so nothing but \
                 sealed rows could have chosen it; left out",
            ],
        ),
        Miss::new(
            "MosaicML on H100 with the suite left out",
            "10 % too fast up to 4k tokens; micro-batches of one or two and nearly full memory lose \
             another 10 to 20 % to allocator retries, which are not modelled",
            &[
                "a fitted factor per family of accelerators: this suite gets worse (9.7)",
                "the median GEMM fraction instead of the best: 12.4 / 26.8 pooled",
            ],
        ),
        Miss::new(
            "DLPerf on V100",
            "tensor parallelism of 16 and 32 over one shared port, micro-batches not published, and \
             OneFlow overlaps where the old Megatron does not",
            &[
                "overlap for OneFlow: the same p90",
                "a fitted share of the network's line rate: kept",
            ],
        ),
        Miss::new(
            "torchtitan at 32k and 65k tokens",
            "the published points are not smooth, and the imbalance of causal attention between \
             context-parallel ranks is not modelled",
            &[
                "without the factor for FlashAttention-2 on Hopper: 7.0 / 22.3 pooled",
                "recomputing every second product for free: 6.8 / 16.3 pooled, but it is not free",
            ],
        ),
        Miss::new(
            "meta-llama3",
            "12 % too fast, worse than constant utilisation: interleaving and the convention of the \
             published TFLOP/s are not stated (R6, R9)",
            &[
                "gathering weights for each micro-batch with a pipeline: 8.6 / 18.3 pooled",
                "keeping gathered weights for the step: kept",
            ],
        ),
        Miss::new(
            "fine-tuning with NeMo",
            "six rows; constant utilisation is closer (3.4 against 5.3)",
            &[
                "adapters as 2 % of the weights in gradients and optimizer: in use",
                "no gradients of frozen weights, two passes instead of three: in use",
            ],
        ),
    ]
}
