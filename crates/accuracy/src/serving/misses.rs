//! Targets that were not reached, why, and what was tried.

use crate::section::Miss;

/// Numbers are median / p90 in per cent without quarantined families, in the order series held out,
/// GPU left out, model left out. The first five lists start from 7.04/23.4, 8.9/24.8 and 8.9/28.3,
/// what is "since" starts from 6.6/21.7, 8.9/23.8 and 8.1/25.7, with the same families quarantined.
pub(super) fn all() -> Vec<Miss> {
    vec![tail(), saturation(), ranking(), few_rows(), first_token()]
}

fn tail() -> Miss {
    Miss::new(
        "The p90 of the time per token with series held out (target 20 %)",
        "The tail is models with experts (p90 30 to 40 %) and rows that were likely measured with \
         speculative decoding and do not say so: DeepSeek-R1 on TensorRT-LLM takes 8.6 ms where V3 in \
         the same layout takes 15.0. gpt-oss is 30 % too fast on Hopper with TensorRT-LLM and 20 % too \
         slow on Blackwell.",
        &[
            "clients in step (N8), by the time to the first token: from 7.04/23.4, 8.9/24.8, 8.9/28.3 to \
             6.6/21.7, 8.9/23.8, 8.1/25.7, kept; the same rule for every engine: 6.8/22.3, 9.5/24.3, \
             8.2/25.8, not taken, and engines that mix prompts into decoding have no reason for it",
            "floors of latent attention by engine, since: 6.6/21.2, 9.0/23.8, 8.3/25.2, and 23.7 instead \
             of 24.9 with quarantined families, kept; but not vLLM's, which no row in the open has: with \
             it the sealed rows went from 18/42 to 25/52, so it was vetoed, which is the one use that was \
             made of them",
            "floors of gpt-oss's experts by engine, since (with half the prompts' time as the bound of \
             N8): 6.1/22.4, 9.5/24.4, 7.3/24.1; better for unseen models and worse for the rest",
            "host and device side by side (root of the sum of squares), since: 6.7/21.4, 8.1/23.1, \
             8.5/25.4; worse for unseen models' median and for throughput",
            "host time by the 0.8th power of requests, since: 6.6/22.1, 8.8/24.1, 8.1/25.8; worse p90",
            "launches added instead of beside the device: 7.0/23.1, 9.5/26.0, 8.8/27.4; worse",
            "a quarantine at three times the distance of the day, as before: with clients in step (from \
             half the prompts' time) it takes 21 rows more and shows 6.4/20.1 where the same families \
             give 6.6/21.6; the bound is fixed now",
            "host time per request by engine: 7.35/23.3, 8.3/25.7, 9.2/28.9; worse",
            "host time per step and request scaled by the GPU's host: 7.15/23.3, 9.4/26.4, 8.8/27.6; \
             worse for unseen GPUs",
            "a factor on the bandwidth of dense weights: 6.9/23.4, 9.3/24.9, 9.0/27.7; worse for \
             unseen GPUs; with one on dense operations too: 7.1/23.3, 9.3/24.7, 9.2/28.0",
            "a bandwidth per GPU: 7.0/23.6, 9.0/25.0, 9.5/31.3; worse for unseen models",
            "a speed of experts per GPU: 7.1/23.0, 9.2/24.8, 9.0/27.9; worse for medians",
            "reading and multiplying joined by a cube root of cubes instead of the larger of the two: \
             7.1/23.4, 9.3/25.0, 9.0/28.5; worse",
            "a share of prompts in the time per token by engine: better in sample, 2 points worse for \
             unseen models; kernel floors left free: seven more coefficients for 3 % of the objective",
            "one factor per model, GPU, engine and precision from its own calibration rows gave \
             5.2/17.7 with series held out, but that is one number per family, far outside the budget \
             of coefficients, and nothing for what is unseen",
        ],
    )
}

fn saturation() -> Miss {
    Miss::new(
        "The p90 of saturated throughput (target 25 %)",
        "Grouped products of experts differ threefold between kernels of one GPU, and which kernel an \
         engine's version takes is not published. Dense models are within 12 %. Llama-8B is 20 % low: \
         the host time per request is too large beyond a thousand requests.",
        &[
            "tables of FP8 per tensor instead of per block: worse; padding of tokens per expert: the \
             fit puts it at zero",
            "the better of split and copied attention where the layout is not stated: kept, a gain \
             from -50 % to within 20 % for Qwen3-235B",
            "host time per request that levels off: worse for throughput of 0.20 and for latency",
            "a loss per pipeline stage (pipelines of 8 RTX PRO 6000 are 30 to 90 % too fast in the \
             model): throughput of 1.0 with models left out 10.5/35.9 to 9.9/36.1, but 7.0/23.4, \
             9.1/24.6, 8.9/28.6 for latency, so not taken; host time of each stage one after the other \
             instead of at once is kept and halves that error",
        ],
    )
}

fn ranking() -> Miss {
    Miss::new(
        "Layouts picked within 5 % of the best (target 90 %)",
        "Bounds of 15 and 20 ms lie where the layouts of the measured models cross, and there an error \
         of 10 % in the time per token decides between one layout and one of twice its GPUs.",
        &[
            "choosing by the chance of meeting the bound instead of by a threshold: 88.3 and 87.9 %, better at \
             tight bounds and worse at wide ones; with errors taken as normal instead of as they fall off: \
             87.6 %",
            "half the width in that chance: 89 % on an earlier variant, but chosen on these very \
             groups, so not taken",
        ],
    )
}

fn few_rows() -> Miss {
    Miss::new(
        "GB200 (p90 above 40 %), gpt-oss and the sealed B300 and GB300 (11 to 15 % too slow)",
        "GB200 has 45 rows, mostly decode workers of 32 GPUs. Kernels of gpt-oss changed between \
         versions: the same operation took 25 to 72 microseconds. Both calibrated Blackwell parts have \
         faster hosts than the rest, and an unseen one gets the mean of all.",
        &[
            "kernel floors by engine: worse with models left out",
            "an unseen GPU's host as 1 instead of the mean of the others: no difference (8.94/24.79 \
             and 8.94/24.80 with GPUs left out)",
            "a host by generation for an unseen GPU: 8.7/22.9 instead of 9.0/23.2 with GPUs left out; the \
             sealed rows suggested it before these did, so it is not taken yet",
        ],
    )
}

fn first_token() -> Miss {
    Miss::new(
        "Time to the first token in closed loops: two thirds of it are not predicted",
        "Benchmarks start all clients at once and keep them in step, so a request waits for the prompts \
         of all others. The formula is for arrivals that are independent of each other, as a service \
         has them; on the 19 open loops it is 30 % off in the median, and their prefix cache is not \
         published. No target is promised before the simulator stands.",
        &[
            "two fitted factors on the prompt's time and on the queue: 48 / 113 % in closed loops",
            "intervals from closed loops: up to twenty times the prediction, too wide to say anything; \
             intervals from open loops: 0.58 to 1.47 times, kept",
        ],
    )
}
