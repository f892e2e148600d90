//! The worlds: four recorded traces, three models, three accelerators each, three cold starts.

use std::fmt;

/// One world.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct World {
    pub(super) trace: &'static Recorded,
    pub(super) model: &'static Served,
    pub(super) gpu: &'static str,
    /// Seconds.
    pub(super) cold_start: u32,
}

/// What serves: a model on accelerators.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Engines {
    pub(super) model: &'static str,
    pub(super) tensor: u32,
    pub(super) gpu: &'static str,
}

/// A recorded trace.
#[derive(Debug, PartialEq)]
pub(super) struct Recorded {
    pub(super) name: &'static str,
    pub(super) file: &'static str,
    /// Half of it: how long that is, and when it ends by the trace's own clock.
    pub(super) half: (&'static str, &'static str),
}

/// A model, and the accelerators that it is served on.
#[derive(Debug, PartialEq)]
pub(super) struct Served {
    pub(super) name: &'static str,
    pub(super) model: &'static str,
    pub(super) tensor: u32,
    pub(super) gpus: [&'static str; 3],
}

pub(super) const TRACES: [Recorded; 4] = [
    Recorded { name: "conv", file: "azure_llm_2023_conv.csv.gz", half: ("29m", "18:45") },
    Recorded { name: "code", file: "azure_llm_2023_code.csv.gz", half: ("28m", "18:45") },
    Recorded { name: "mooncake", file: "mooncake_conversation.jsonl.gz", half: ("29m", "00:29") },
    Recorded { name: "synthetic", file: "mooncake_synthetic.jsonl.gz", half: ("8m", "00:08") },
];

/// 70B needs links between its accelerators that an L40S does not have: `plan` says so.
pub(super) const MODELS: [Served; 3] = [
    Served { name: "70b", model: "llama-3.1-70b", tensor: 4, gpus: ["h100", "a100-80gb", "h200"] },
    Served { name: "32b", model: "qwen3-32b-fp8", tensor: 1, gpus: ["h100", "a100-80gb", "l40s"] },
    Served { name: "8b", model: "llama-3.1-8b", tensor: 1, gpus: ["h100", "a100-80gb", "l40s"] },
];

pub(super) const COLD_STARTS: [u32; 3] = [5, 100, 300];

/// All of them.
pub(super) fn all() -> Vec<World> {
    let mut worlds = Vec::new();
    for trace in &TRACES {
        for model in &MODELS {
            for gpu in model.gpus {
                worlds.extend(COLD_STARTS.map(|cold_start| World {
                    trace,
                    model,
                    gpu,
                    cold_start,
                }));
            }
        }
    }
    worlds
}

impl World {
    pub(super) const fn engines(&self) -> Engines {
        Engines { model: self.model.model, tensor: self.model.tensor, gpu: self.gpu }
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} @{}", self.trace.name, self.model.name, self.gpu, self.cold_start)
    }
}
