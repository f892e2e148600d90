//! The engine's command line for the chosen plan.

use flyball_engines::PlannedReplica;
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
            .hint("remove --emit to see why each layout was rejected"));
    };
    // Engines narrow 16-bit weights to FP8 as they load them; anything smaller is made beforehand.
    if let Some(dtype) = model.requantised.filter(|dtype| *dtype != Dtype::Fp8) {
        let what = format!("an engine cannot make {dtype} weights as it loads {}", model.name);
        return Err(Failure::new(Exit::No, what)
            .hint(format!("set --model to a checkpoint in {dtype} and remove --dtype")));
    }
    let (command, options_file) = (engine.facts().launch.plan)(&planned(model, first, load));
    Ok(EngineCommand {
        engine: engine.name(),
        accelerator_count: first.layout.gpus().get(),
        replicas: first.replicas.get(),
        command,
        options_file,
    })
}

/// One replica, as its engine's table writes it.
fn planned<'a>(model: &'a Model, choice: &ServeChoice, load: &LoadView) -> PlannedReplica<'a> {
    let layout = &choice.layout;
    // Room for requests four times as long as the mean; a shorter limit saves nothing.
    let tokens_needed = (load.shape.input + load.shape.output) * 4.0;
    let longest = match model.architecture.max_context {
        0 => tokens_needed,
        most => tokens_needed.min(f64::from(most)),
    };
    // Half as many again as planned, so that a burst is not held back; never more than fit.
    let sequences = (choice.at.running / choice.at.slots).min(choice.at.running * 1.5 + 8.0).ceil();
    PlannedReplica {
        model: &model.reference,
        tensor: layout.tensor,
        pipeline: layout.pipeline,
        attention_copies: layout.attention_copies,
        expert_ranks: if layout.whole_experts { layout.abreast() } else { 1 },
        longest: longest.ceil() as u64,
        step_tokens: choice.chunk,
        sequences: sequences as u64,
        fp8_weights: model.requantised == Some(Dtype::Fp8),
        fp8_cache: model.cache == Dtype::Fp8,
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
