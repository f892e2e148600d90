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
    /// Steps between two checkpoints that lose the least time.
    save_interval_steps: u64,
    /// Lines to paste: a launch command, and for FSDP a settings file after it.
    lines: Vec<String>,
}

/// The first choice of the plan.
pub(super) fn chosen<'a>(
    question: &'a TrainQuestion<'a>,
    plan: &'a TrainPlan,
    precision: &'a str,
) -> Result<(Plan<'a>, &'a TrainChoice), Failure> {
    let Some(first) = plan.ranked.first() else {
        return Err(Failure::new(Exit::No, "no layout of this run is possible")
            .hint("remove --emit to see why each was rejected"));
    };
    let host = question.parts[first.part].accelerator.node_gpus.get().min(first.gpus.get());
    let plan = Plan {
        question,
        layout: &first.layout,
        batch: first.global_batch,
        precision,
        hosts: first.gpus.get().div_ceil(host),
        host,
        save_every: (first.save_interval / first.step_seconds.point).round().max(1.0) as u64,
    };
    Ok((plan, first))
}

/// How to start the first choice of the plan.
pub(super) fn command(
    question: &TrainQuestion<'_>,
    plan: &TrainPlan,
    precision: &str,
) -> Result<TrainingCommand, Failure> {
    let (plan, _) = chosen(question, plan, precision)?;
    let lines = match question.framework {
        Framework::Megatron => continued(plan.megatron()),
        _ => plan.fsdp(),
    };
    Ok(TrainingCommand {
        framework: question.framework.name(),
        hosts: plan.hosts,
        gpus_per_host: plan.host,
        save_interval_steps: plan.save_every,
        lines,
    })
}

/// What the settings are written from.
pub(super) struct Plan<'a> {
    pub(super) question: &'a TrainQuestion<'a>,
    layout: &'a TrainingLayout,
    /// Sequences of one step.
    batch: f64,
    precision: &'a str,
    pub(super) hosts: u32,
    /// Accelerators of one host.
    pub(super) host: u32,
    /// Steps between two checkpoints.
    save_every: u64,
}

impl Plan<'_> {
    /// The words of the launch in a pod, whose environment says to torchrun how many there are and where they meet.
    pub(super) fn words(&self) -> Vec<String> {
        let of_framework = match self.question.framework {
            Framework::Megatron => self.megatron().split_off(1),
            _ => vec!["-m torchtitan.train --job.config_file plan.toml".to_owned()],
        };
        let words = of_framework.iter().flat_map(|line| line.split_whitespace());
        // Quotes are for a shell.
        let bare = words.map(|word| word.trim_matches('"').to_owned());
        std::iter::once("torchrun".to_owned()).chain(bare).collect()
    }

    /// Starts one process per accelerator. More than one host must find each other: every host runs
    /// the same line, with the name of one of them in `MASTER`.
    fn torchrun(&self) -> String {
        let meet = match self.hosts {
            1 => "",
            _ => " --rdzv-backend c10d --rdzv-endpoint $MASTER:29500",
        };
        format!("torchrun --nnodes {} --nproc-per-node {}{meet}", self.hosts, self.host)
    }

    /// Arguments of Megatron-LM's pretrain script. The model's own shape comes from its recipe.
    fn megatron(&self) -> Vec<String> {
        let layout = self.layout;
        let mut words = vec![
            self.torchrun(),
            "pretrain_gpt.py".to_owned(),
            format!("--tensor-model-parallel-size {}", layout.tensor),
            format!("--pipeline-model-parallel-size {}", layout.pipeline),
        ];
        words.extend(self.stages());
        if layout.context > 1 {
            words.push(format!("--context-parallel-size {}", layout.context));
        }
        if layout.expert > 1 {
            words.push(format!("--expert-model-parallel-size {}", layout.expert));
        }
        if self.question.model.feed_forward.experts.is_some() && layout.tensor > 1 {
            // Else each expert is cut as well, and the degrees need more accelerators.
            words.push("--expert-tensor-parallel-size 1".to_owned());
        }
        if layout.sequence_parallel {
            words.push("--sequence-parallel".to_owned());
        }
        words.push(format!("--micro-batch-size {}", layout.micro_batch));
        words.push(format!("--global-batch-size {:.0}", self.batch));
        words.push(format!("--seq-length {:.0}", self.question.sequence));
        words.push("--bf16".to_owned());
        match self.precision {
            "fp8" => words.push("--fp8-format hybrid".to_owned()),
            "fp4" => words.push("--fp4-format e2m1".to_owned()),
            _ => {}
        }
        if layout.sharding == Sharding::OptimizerOnly {
            words.push(
                "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather"
                    .to_owned(),
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
        words.push(format!("--save-interval {}", self.save_every));
        words
    }

    /// How Megatron is told to cut the layers, where halves of halves do not say it.
    fn stages(&self) -> Option<String> {
        let layers = self.question.model.layers.total();
        let groups = self.groups();
        if !layers.is_multiple_of(groups) {
            let letters = cut(layers, groups);
            return Some(format!("--pipeline-model-parallel-layout \"{letters}\""));
        }
        (self.layout.interleave > 1)
            .then(|| format!("--num-layers-per-virtual-pipeline-stage {}", layers / groups))
    }

    /// Groups of layers over all stages.
    fn groups(&self) -> u32 {
        self.layout.pipeline * self.layout.interleave
    }

    /// Settings of torchtitan, which shards with FSDP2.
    fn fsdp(&self) -> Vec<String> {
        let layout = self.layout;
        let recompute = match layout.recompute {
            Recompute::None => "none",
            Recompute::Selective => "selective",
            Recompute::Full => "full",
        };
        let mut lines = continued(vec![
            self.torchrun(),
            "-m torchtitan.train --job.config_file plan.toml".to_owned(),
        ]);
        lines.extend([String::new(), "# plan.toml".to_owned()]);
        if self.precision == "fp8" {
            lines
                .extend(section("model", ["converters = [\"quantize.linear.float8\"]".to_owned()]));
        }
        // With stages, torchtitan cuts the batch of one copy into micro-batches by itself.
        let local = match layout.pipeline {
            1 => f64::from(layout.micro_batch),
            _ => self.batch / f64::from(layout.data),
        };
        lines.extend(section(
            "training",
            [
                format!("local_batch_size = {local:.0}"),
                format!("global_batch_size = {:.0}", self.batch),
                format!("seq_len = {:.0}", self.question.sequence),
            ],
        ));
        lines.extend(section(
            "parallelism",
            [
                format!("data_parallel_shard_degree = {}", layout.data),
                format!("tensor_parallel_degree = {}", layout.tensor),
                format!("pipeline_parallel_degree = {}", layout.pipeline),
                format!("context_parallel_degree = {}", layout.context),
                format!("expert_parallel_degree = {}", layout.expert),
            ],
        ));
        lines.pop();
        lines.extend(self.schedule());
        lines.push(String::new());
        let mode = format!("mode = \"{recompute}\"");
        lines.extend(section("activation_checkpoint", [mode]));
        lines.extend(section("checkpoint", [format!("interval = {}", self.save_every)]));
        lines.extend(section("compile", ["enable = true".to_owned()]));
        if self.precision == "fp8" {
            let gathered = "enable_fsdp_float8_all_gather = true".to_owned();
            lines.extend(section("quantize.linear.float8", [gathered]));
        }
        lines.pop();
        lines
    }

    /// How torchtitan sends micro-batches through the stages, and how it cuts the layers.
    fn schedule(&self) -> Vec<String> {
        if self.layout.pipeline == 1 {
            return Vec::new();
        }
        let name = if self.layout.interleave > 1 { "Interleaved1F1B" } else { "1F1B" };
        let (layers, groups) = (self.question.model.layers.total(), self.groups());
        let group = layers.div_ceil(groups);
        // It takes the layers and what the first and last group have less, and divides by the layers
        // of a group, rounded up: the sum must come out as the number of groups.
        let less = ((groups - 1) * group + 1).saturating_sub(layers);
        vec![
            format!("pipeline_parallel_schedule = \"{name}\""),
            format!("pipeline_parallel_microbatch_size = {}", self.layout.micro_batch),
            format!("pipeline_parallel_layers_per_stage = {group}"),
            format!("pipeline_parallel_first_stage_less_layers = {}", less / 2),
            format!("pipeline_parallel_last_stage_less_layers = {}", less.div_ceil(2)),
        ]
    }
}

/// Megatron's letters for groups that differ by one layer: the embedding, layers, the loss.
fn cut(layers: u32, groups: u32) -> String {
    let few = (layers / groups) as usize;
    let longer = layers % groups;
    let many = |letters: usize, times: u32| match times {
        0 => String::new(),
        times => format!("({}|)*{times}", "t".repeat(letters)),
    };
    let last = "t".repeat(few);
    format!("E{}{}{last}L", many(few + 1, longer), many(few, groups - longer - 1))
}

/// A section of a settings file, and a gap after it.
fn section<const N: usize>(name: &str, settings: [String; N]) -> Vec<String> {
    let mut lines = vec![format!("[{name}]")];
    lines.extend(settings);
    lines.push(String::new());
    lines
}

/// One command over several lines.
fn continued(words: Vec<String>) -> Vec<String> {
    let last = words.len() - 1;
    let line = |(index, word): (usize, String)| {
        let indent = if index == 0 { "" } else { "  " };
        let more = if index == last { "" } else { " \\" };
        format!("{indent}{word}{more}")
    };
    words.into_iter().enumerate().map(line).collect()
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

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn uneven_groups_differ_by_one_layer() {
        assert_eq!(cut(7, 4), "E(tt|)*3tL");
        assert_eq!(cut(61, 16), "E(tttt|)*13(ttt|)*2tttL");
    }
}
