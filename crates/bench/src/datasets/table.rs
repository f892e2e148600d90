//! One row per file.

/// A file that figures rest on and that is not shipped.
pub(super) struct Dataset {
    /// Its path below the folder of shared data.
    pub(super) file: &'static str,
    /// The public repository and path that it comes from.
    pub(super) source: &'static str,
    pub(super) licence: &'static str,
    pub(super) make: &'static str,
    pub(super) used_by: &'static str,
    /// Of its content; see `hash.rs`.
    pub(super) sha256: &'static str,
}

const AZURE: &str = "CC-BY-4.0";
const MOONCAKE: &str = "Apache-2.0";
const PACK: &str = "`gzip` the file";
const RUNS: &str = "github.com/casys-kaist/LLMServingSim, its recorded runs of vLLM 0.19";
const RUNS_LICENCE: &str = "MIT";
const RUNS_MAKE: &str =
    "requests.jsonl and meta.json as they are published, in a folder of this name";
const TRUTH: &str =
    "`cargo xtask bench backtest --only truth`: sim.vllm_tpot_err_pct, sim.vllm_ttft_err_pct";

pub(super) const DATASETS: &[Dataset] = &[
    Dataset {
        file: "traces/azure_llm_2023_conv.csv.gz",
        source: "github.com/Azure/AzurePublicDataset, data/AzureLLMInferenceTrace_conv.csv",
        licence: AZURE,
        make: PACK,
        used_by: "`cargo xtask bench recorded`, `cargo xtask bench backtest --only speed,drills`, \
            `cargo xtask bench gateway --only emulator`, `cargo xtask bench cost`",
        sha256: "2f1e5b666d4e3055fdbba98598ce2ec307767b9064e03e2fa46676dbcc7d0bf8",
    },
    Dataset {
        file: "traces/azure_llm_2023_code.csv.gz",
        source: "github.com/Azure/AzurePublicDataset, data/AzureLLMInferenceTrace_code.csv",
        licence: AZURE,
        make: PACK,
        used_by: "`cargo xtask bench recorded`, `cargo xtask bench backtest --only drills`, `cargo xtask bench cost`",
        sha256: "54e9a6d2a4bd06ba1e060304b900abbc74cbea53de96506e60fe5bb4f2277fb6",
    },
    Dataset {
        file: "traces/mooncake_conversation.jsonl.gz",
        source: "github.com/kvcache-ai/Mooncake, FAST25-release/traces/conversation_trace.jsonl",
        licence: MOONCAKE,
        make: PACK,
        used_by: "`cargo xtask bench recorded`, `cargo xtask bench gateway --only affinity,regret`, \
                  `cargo xtask bench cost`",
        sha256: "b8cbb061a85206d729d91cdc2981f43c9e0d99209dce588d3af5f7934408b9df",
    },
    Dataset {
        file: "traces/mooncake_synthetic.jsonl.gz",
        source: "github.com/kvcache-ai/Mooncake, FAST25-release/traces/synthetic_trace.jsonl",
        licence: MOONCAKE,
        make: PACK,
        used_by: "`cargo xtask bench recorded`",
        sha256: "bd070915a98fc0ed264d7cfef2ce746002eb3076a695ec31ba2674c0111ec131",
    },
    Dataset {
        file: "traces/servegen_rates.tar.gz",
        source: "github.com/alibaba/ServeGen, data/*/*/chunk-*-trace.csv",
        licence: MOONCAKE,
        make: "`tar --create --gzip` of the 422 rate files, with paths from below its folder data",
        used_by: "`cargo xtask bench backtest --only speed,cells,pool`, `cargo xtask bench cost`",
        sha256: "594d2e6e03588b75a2e612fc9560464478ac6b892930a8dfe426c3e9394fc4ee",
    },
    Dataset {
        file: "traces/servegen_lengths.csv",
        source: "github.com/alibaba/ServeGen, data/*/*/chunk-*-dataset.json",
        licence: MOONCAKE,
        make: "quantiles of prompt and output tokens per model, over those of its length files that can be had (55 of 422 \
            are absent from the repository). The script that computed them is not published, so this file cannot be made again to the \
            letter: figures of cells and pool cannot be repeated exactly, only with quantiles of your own",
        used_by: "`cargo xtask bench backtest --only cells,pool`",
        sha256: "53479b234de41edc1e07f167cc4198512e8eb5a0dcad0f507e1811d1ba9e67a8",
    },
    Dataset {
        file: "traces/spot_availability.tar.gz",
        source: "github.com/skypilot-org/spot-traces, availability and preemption",
        licence: "none stated (artefact of a paper at NSDI 2024)",
        make: "`tar --create --gzip` of the 34 files, with their paths in the repository",
        used_by: "`cargo xtask bench training`, `flyball backtest train`",
        sha256: "043ef278a41ffc39219422d644878153b80616c8b964ee728f43bad459fcfb30",
    },
    Dataset {
        file: "data/spot_aws_us_daily.csv.gz",
        source: "github.com/skypilot-org/skypilot-catalog, every commit of catalogs/v5/aws, v6/aws and v7/aws",
        licence: "none stated (prices from a public interface)",
        make: "daily means, weighted by time, of 10 GPU instances in three US regions. The script is not published",
        used_by: "`cargo xtask bench training`, `flyball backtest train`",
        sha256: "d9d3072698d75d875ca07bcb575ebc9f1b58b2d6d38d308dc1b094c247d9576d",
    },
    Dataset {
        file: "data/vllm_runs/RTX4090_Llama-3.1-8B/requests.jsonl",
        source: RUNS,
        licence: RUNS_LICENCE,
        make: RUNS_MAKE,
        used_by: TRUTH,
        sha256: "5a6f2a0b09d5eb84bd75b30ed625d883c22b4bcc0a839cd1128ae42f74ecc90d",
    },
    Dataset {
        file: "data/vllm_runs/RTXPRO6000_Llama-3.1-8B/requests.jsonl",
        source: RUNS,
        licence: RUNS_LICENCE,
        make: RUNS_MAKE,
        used_by: TRUTH,
        sha256: "0175b31b0ddc02b97eb6da1410dc80fc5900b8785c988e90cacee1021d644682",
    },
    Dataset {
        file: "data/vllm_runs/RTXPRO6000_Qwen3-30B-A3B-Instruct-2507/requests.jsonl",
        source: RUNS,
        licence: RUNS_LICENCE,
        make: RUNS_MAKE,
        used_by: TRUTH,
        sha256: "bde98fa878f59f1b3b8b8f9b3b09f8e1ae36be6a8f56040b9a80a97d00a7dc7b",
    },
    Dataset {
        file: "data/vllm_runs/RTXPRO6000_Qwen3-32B/requests.jsonl",
        source: RUNS,
        licence: RUNS_LICENCE,
        make: RUNS_MAKE,
        used_by: TRUTH,
        sha256: "7751686bb9f927f5cd39adf901b2d0755b8f1a1182561c3df5446c927f95342f",
    },
];
