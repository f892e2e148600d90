//! The framework's settings for the chosen plan.

use flyball_perf::search::train::{TrainChoice, TrainPlan, TrainQuestion};
use flyball_perf::training::{Framework, Recompute, Sharding, TrainingLayout};
use schemars::JsonSchema;
use serde::Serialize;

use crate::output::document::{Block, Document};
use crate::output::{Answer, Detail, Exit, Failure};

/// How to start the run.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TrainingCommand {
    framework: &'static str,
    hosts: u32,
    gpus_per_host: u32,
    /// Lines to paste: a launch command, and for FSDP a settings file after it.
    lines: Vec<String>,
}

/// How to start the first choice of the plan.
pub(super) fn command(
    question: &TrainQuestion<'_>,
    plan: &TrainPlan,
    precision: &str,
) -> Result<TrainingCommand, Failure> {
    let Some(first) = plan.ranked.first() else {
        return Err(Failure::new(Exit::No, "no layout of this run is possible")
            .hint("leave --emit away to see why each was rejected"));
    };
    let host = question.parts[first.part].accelerator.node_gpus.get().min(first.gpus.get());
    let hosts = first.gpus.get().div_ceil(host);
    let lines = match question.framework {
        Framework::Megatron => megatron(question, first, precision, hosts, host),
        _ => fsdp(question, &first.layout, precision, hosts, host),
    };
    let framework = question.framework.name();
    Ok(TrainingCommand { framework, hosts, gpus_per_host: host, lines })
}

/// Arguments of Megatron-LM's pretrain script. The model's own shape comes from its recipe.
fn megatron(
    question: &TrainQuestion<'_>,
    choice: &TrainChoice,
    precision: &str,
    hosts: u32,
    host: u32,
) -> Vec<String> {
    let layout = &choice.layout;
    let layers = question.model.layers.total();
    let mut words = vec![
        format!("torchrun --nnodes {hosts} --nproc-per-node {host} pretrain_gpt.py"),
        format!("--tensor-model-parallel-size {}", layout.tensor),
        format!("--pipeline-model-parallel-size {}", layout.pipeline),
    ];
    if layout.interleave > 1 {
        let chunk = layers / layout.pipeline / layout.interleave;
        words.push(format!("--num-layers-per-virtual-pipeline-stage {chunk}"));
    }
    if layout.context > 1 {
        words.push(format!("--context-parallel-size {}", layout.context));
    }
    if layout.expert > 1 {
        words.push(format!("--expert-model-parallel-size {}", layout.expert));
    }
    if layout.sequence_parallel {
        words.push("--sequence-parallel".to_owned());
    }
    words.push(format!("--micro-batch-size {}", layout.micro_batch));
    words.push(format!("--global-batch-size {:.0}", question.global_batch));
    words.push(format!("--seq-length {:.0}", question.sequence));
    words.push("--bf16".to_owned());
    match precision {
        "fp8" => words.push("--fp8-format hybrid".to_owned()),
        "fp4" => words.push("--fp4-format e2m1".to_owned()),
        _ => {}
    }
    if layout.sharding == Sharding::OptimizerOnly {
        words.push(
            "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather".to_owned(),
        );
    }
    match layout.recompute {
        Recompute::None => {}
        Recompute::Selective => words.push("--recompute-granularity selective".to_owned()),
        Recompute::Full => words.push(
            "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1"
                .to_owned(),
        ),
    }
    let last = words.len() - 1;
    let indented = |(index, word): (usize, String)| {
        let indent = if index == 0 { "" } else { "  " };
        let more = if index == last { "" } else { " \\" };
        format!("{indent}{word}{more}")
    };
    words.into_iter().enumerate().map(indented).collect()
}

/// Settings of torchtitan, which shards with FSDP2.
fn fsdp(
    question: &TrainQuestion<'_>,
    layout: &TrainingLayout,
    precision: &str,
    hosts: u32,
    host: u32,
) -> Vec<String> {
    let recompute = match layout.recompute {
        Recompute::None => "none",
        Recompute::Selective => "selective",
        Recompute::Full => "full",
    };
    let mut lines = vec![
        format!(
            "torchrun --nnodes {hosts} --nproc-per-node {host} -m torchtitan.train \
             --job.config_file plan.toml"
        ),
        String::new(),
        "# plan.toml".to_owned(),
        "[training]".to_owned(),
        format!("local_batch_size = {}", layout.micro_batch),
        format!("global_batch_size = {:.0}", question.global_batch),
        format!("seq_len = {:.0}", question.sequence),
        String::new(),
        "[parallelism]".to_owned(),
        format!("data_parallel_shard_degree = {}", layout.data),
        format!("tensor_parallel_degree = {}", layout.tensor),
        format!("pipeline_parallel_degree = {}", layout.pipeline),
        format!("context_parallel_degree = {}", layout.context),
        format!("expert_parallel_degree = {}", layout.expert),
        String::new(),
        "[activation_checkpoint]".to_owned(),
        format!("mode = \"{recompute}\""),
        String::new(),
        "[compile]".to_owned(),
        "enable = true".to_owned(),
    ];
    if precision == "fp8" {
        lines.extend([
            String::new(),
            "[quantize.linear.float8]".to_owned(),
            "enable_fsdp_float8_all_gather = true".to_owned(),
        ]);
    }
    lines
}

impl Answer for TrainingCommand {
    const KIND: &'static str = "TrainingCommand";

    /// Nothing but the lines, so that they can be pasted.
    fn view(&self, _: Detail) -> Document {
        let mut document = Document::new();
        for line in &self.lines {
            document.push(if line.is_empty() { Block::Gap } else { Block::Line(line.clone()) });
        }
        document
    }
}
