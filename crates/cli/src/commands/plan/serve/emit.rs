//! The engine's command line for the chosen plan.

use flyball_perf::engine::Engine;
use flyball_perf::precision::Dtype;
use flyball_perf::search::serve::{ServeChoice, ServePlan};
use schemars::JsonSchema;
use serde::Serialize;

use super::answer::LoadView;
use crate::model::Model;
use crate::output::document::{Block, Document};
use crate::output::{Answer, Detail, Exit, Failure};

/// How to start one replica of the plan.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EngineCommand {
    engine: &'static str,
    accelerator_count: u32,
    replicas: u32,
    /// The words of the command line.
    command: Vec<String>,
    /// Lines of a file that the command line names, if it needs one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    options_file: Vec<String>,
}

/// How to start the first choice of the plan.
pub(super) fn command(
    engine: Engine,
    model: &Model,
    plan: &ServePlan,
    load: &LoadView,
) -> Result<EngineCommand, Failure> {
    let Some(first) = plan.ranked.first() else {
        return Err(Failure::new(Exit::No, "no plan serves this load inside the targets")
            .hint("leave --emit away to see why each layout was rejected"));
    };
    // Engines narrow 16-bit weights to FP8 as they load them; anything smaller is made beforehand.
    if let Some(dtype) = model.requantised.filter(|dtype| *dtype != Dtype::Fp8) {
        let what = format!("an engine cannot make {dtype} weights as it loads {}", model.name);
        return Err(Failure::new(Exit::No, what)
            .hint(format!("give --model a checkpoint in {dtype} and leave --dtype away")));
    }
    Ok(EngineCommand {
        engine: engine.name(),
        accelerator_count: first.layout.gpus().get(),
        replicas: first.replicas.get(),
        command: words(engine, model, first, load),
        options_file: options_file(engine, model, first),
    })
}

/// The words for one replica. Names of flags as of vLLM 0.19, SGLang 0.5 and TensorRT-LLM 1.2.
fn words(engine: Engine, model: &Model, choice: &ServeChoice, load: &LoadView) -> Vec<String> {
    let layout = &choice.layout;
    // Room for requests four times as long as the mean; a shorter limit saves nothing.
    let wanted = (load.shape.input + load.shape.output) * 4.0;
    let longest = match model.architecture.max_context {
        0 => wanted,
        most => wanted.min(f64::from(most)),
    };
    let longest = longest.ceil() as u64;
    // Half as many again as planned, so that a burst is not held back; never more than fit.
    let sequences = (choice.at.running / choice.at.slots).min(choice.at.running * 1.5 + 8.0).ceil();
    let fp8_weights = model.requantised == Some(Dtype::Fp8);
    let fp8_cache = model.cache == Dtype::Fp8;
    let mut words = Words::default();
    match engine {
        Engine::Vllm => {
            words.add(&["vllm", "serve", &model.reference]);
            words.flag("--tensor-parallel-size", layout.tensor);
            words.above_one("--pipeline-parallel-size", layout.pipeline);
            words.above_one("--data-parallel-size", layout.attention_copies);
            words.when(layout.whole_experts, "--enable-expert-parallel");
            words.flag("--max-model-len", longest);
            words.flag("--max-num-batched-tokens", choice.chunk);
            words.flag("--max-num-seqs", sequences);
            words.flag("--gpu-memory-utilization", 0.9);
            words.option(fp8_cache, "--kv-cache-dtype", "fp8");
            words.option(fp8_weights, "--quantization", "fp8");
        }
        Engine::Sglang => {
            words.add(&["python", "-m", "sglang.launch_server", "--model-path", &model.reference]);
            words.flag("--tp-size", layout.tensor * layout.attention_copies);
            words.above_one("--pp-size", layout.pipeline);
            words.above_one("--dp-size", layout.attention_copies);
            words.when(layout.attention_copies > 1, "--enable-dp-attention");
            words.above_one("--ep-size", if layout.whole_experts { layout.abreast() } else { 1 });
            words.flag("--context-length", longest);
            // Shared among the copies of the attention.
            words.flag("--chunked-prefill-size", choice.chunk * layout.attention_copies);
            words.flag("--max-running-requests", sequences);
            words.flag("--mem-fraction-static", 0.9);
            words.option(fp8_cache, "--kv-cache-dtype", "fp8_e4m3");
            words.option(fp8_weights, "--quantization", "fp8");
        }
        Engine::TensorRtLlm => {
            words.add(&["trtllm-serve", &model.reference]);
            words.flag("--tp_size", layout.tensor * layout.attention_copies);
            words.above_one("--pp_size", layout.pipeline);
            words.above_one("--ep_size", if layout.whole_experts { layout.abreast() } else { 1 });
            words.flag("--max_seq_len", longest);
            words.flag("--max_num_tokens", choice.chunk);
            words.flag("--max_batch_size", sequences);
            words.flag("--kv_cache_free_gpu_memory_fraction", 0.9);
            let named = !options_file(engine, model, choice).is_empty();
            words.option(named, "--extra_llm_api_options", "options.yaml");
        }
    }
    words.0
}

/// What TensorRT-LLM takes from a file only.
fn options_file(engine: Engine, model: &Model, choice: &ServeChoice) -> Vec<String> {
    let mut lines = Vec::new();
    if engine == Engine::TensorRtLlm && choice.layout.attention_copies > 1 {
        lines.push("enable_attention_dp: true".to_owned());
    }
    if engine == Engine::TensorRtLlm && model.cache == Dtype::Fp8 {
        lines.extend(["kv_cache_config:".to_owned(), "  dtype: fp8".to_owned()]);
    }
    if engine == Engine::TensorRtLlm && model.requantised == Some(Dtype::Fp8) {
        lines.extend(["quant_config:".to_owned(), "  quant_algo: FP8".to_owned()]);
    }
    lines
}

#[derive(Default)]
struct Words(Vec<String>);

impl Words {
    fn add(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(|word| (*word).to_owned()));
    }

    fn flag(&mut self, name: &str, value: impl ToString) {
        self.0.extend([name.to_owned(), value.to_string()]);
    }

    fn above_one(&mut self, name: &str, degree: u32) {
        if degree > 1 {
            self.flag(name, degree);
        }
    }

    fn when(&mut self, there: bool, name: &str) {
        if there {
            self.0.push(name.to_owned());
        }
    }

    fn option(&mut self, there: bool, name: &str, value: &str) {
        if there {
            self.flag(name, value);
        }
    }
}

impl Answer for EngineCommand {
    const KIND: &'static str = "EngineCommand";

    /// Nothing but the command and its file, so that they can be pasted or run.
    fn view(&self, _: Detail) -> Document {
        let mut document = Document::new();
        document.push(Block::Line(self.command.join(" ")));
        if !self.options_file.is_empty() {
            document.push(Block::Gap);
            document.push(Block::Line("# options.yaml".to_owned()));
        }
        for line in &self.options_file {
            document.push(Block::Line(line.clone()));
        }
        document
    }
}
