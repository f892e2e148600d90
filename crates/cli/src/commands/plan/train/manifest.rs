//! The TrainingRun for the chosen plan, as YAML to apply.

use clap::Args;
use flyball_perf::search::train::{Size, TrainChoice};
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use schemars::JsonSchema;
use serde::Serialize;

use super::emit;
use crate::output::document::{Block, Document};
use crate::output::{Answer, Detail, Exit, Failure};

/// What a plan cannot know.
#[derive(Debug, Args)]
#[command(next_help_heading = "With --emit trainingrun")]
pub(super) struct ManifestArgs {
    /// Name of the TrainingRun; made of the model's if not set
    #[arg(long, value_name = "NAME", env = "FLYBALL_PLAN_NAME", hide_env_values = true)]
    #[arg(hide_short_help = true)]
    name: Option<String>,

    /// Container image that trains; required
    #[arg(long, value_name = "IMAGE", env = "FLYBALL_PLAN_IMAGE", hide_env_values = true)]
    #[arg(hide_short_help = true)]
    image: Option<String>,

    /// Pool whose prices and machines it uses; not needed if there is one
    #[arg(long, value_name = "POOL", env = "FLYBALL_PLAN_POOL", hide_env_values = true)]
    #[arg(hide_short_help = true)]
    pool: Option<String>,

    /// Kueue LocalQueue that admits it; without one it starts at once
    #[arg(long, value_name = "QUEUE", env = "FLYBALL_PLAN_QUEUE", hide_env_values = true)]
    #[arg(hide_short_help = true)]
    queue: Option<String>,

    /// PersistentVolumeClaim for checkpoints, mounted at /checkpoints
    #[arg(long, value_name = "CLAIM", env = "FLYBALL_PLAN_CLAIM", hide_env_values = true)]
    #[arg(hide_short_help = true)]
    claim: Option<String>,

    /// Program and arguments, in place of the framework's
    #[arg(last = true, value_name = "COMMAND", hide_short_help = true)]
    command: Vec<String>,
}

impl ManifestArgs {
    /// Refuses a command that would have no effect. Options may come from variables that are set for other plans.
    pub(super) fn unused(&self) -> Result<(), Failure> {
        if self.command.is_empty() {
            return Ok(());
        }
        Err(Failure::new(Exit::Usage, "a command has an effect only with --emit trainingrun")
            .hint("add --emit trainingrun, or remove what follows `--`"))
    }
}

/// A TrainingRun to apply.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TrainingRunManifest {
    /// Name of the TrainingRun.
    name: String,
    nodes: u32,
    gpus_per_node: u32,
    /// Steps of the whole run.
    steps: u64,
    /// Lines of YAML for `kubectl apply`.
    lines: Vec<String>,
}

/// The TrainingRun for a choice of the plan.
pub(super) fn manifest(
    args: &ManifestArgs,
    plan: &emit::Plan<'_>,
    (model, first): (&str, &TrainChoice),
    now: Timestamp,
) -> Result<TrainingRunManifest, Failure> {
    let Some(image) = &args.image else {
        return Err(Failure::new(Exit::Usage, "no image is given")
            .because("a TrainingRun names the container image that trains")
            .hint("add --image registry.example.com/train:1.4"));
    };
    let question = plan.question;
    let name = args.name.clone().unwrap_or_else(|| name_of(model));
    let seconds = match question.size {
        Size::Deadline(seconds) => seconds,
        // So long it takes at most, by the interval of the plan.
        _ => first.seconds.high,
    };
    let deadline = deadline(now, seconds).ok_or_else(|| {
        Failure::new(Exit::No, "the run would end after the year 9999")
            .hint("train on fewer tokens, or on more GPUs")
    })?;
    let steps = (question.tokens / (first.global_batch * question.sequence)).ceil().max(1.0) as u64;
    let command = match args.command.as_slice() {
        [] => plan.words(),
        typed => typed.to_vec(),
    };
    let mut lines = vec![
        "apiVersion: flyball.dev/v1alpha1".to_owned(),
        "kind: TrainingRun".to_owned(),
        format!("metadata: {{ name: {} }}", quoted(&name)),
        "spec:".to_owned(),
        "  mode: Act".to_owned(),
        format!("  deadline: {}", quoted(&deadline)),
        format!("  steps: {steps}"),
    ];
    lines.extend(args.pool.as_ref().map(|pool| format!("  pool: {}", quoted(pool))));
    let command: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    lines.extend([
        "  job:".to_owned(),
        format!("    image: {}", quoted(image)),
        format!("    command: [{}]", command.join(", ")),
        format!("    nodes: {}", plan.hosts),
        format!("    gpusPerNode: {}", plan.host),
    ]);
    lines.extend(args.queue.as_ref().map(|queue| format!("    queue: {}", quoted(queue))));
    let claim = |claim: &String| format!("    checkpoints: {{ claim: {} }}", quoted(claim));
    lines.extend(args.claim.as_ref().map(claim));
    Ok(TrainingRunManifest { name, nodes: plan.hosts, gpus_per_node: plan.host, steps, lines })
}

/// A JSON text is a YAML text too.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// When so many seconds have passed, to the second.
fn deadline(now: Timestamp, seconds: f64) -> Option<String> {
    let whole = (seconds.is_finite() && seconds < 1e12).then_some(seconds.ceil() as i64)?;
    let at = now.checked_add(SignedDuration::from_secs(whole)).ok()?;
    let part = i64::from(at.subsec_nanosecond());
    Some(at.checked_sub(part.nanoseconds()).ok()?.to_string())
}

/// A name of Kubernetes for a model.
fn name_of(model: &str) -> String {
    let folder = model.strip_suffix("config.json").unwrap_or(model).trim_end_matches('/');
    let last = folder.rsplit('/').next().unwrap_or_default().to_lowercase();
    let sound = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = last.chars().map(sound).take(50).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "run".to_owned() } else { name.to_owned() }
}

impl Answer for TrainingRunManifest {
    const KIND: &'static str = "TrainingRunManifest";

    /// Nothing but the lines, so that they can be applied.
    fn view(&self, _: Detail) -> Document {
        let mut document = Document::new();
        for line in &self.lines {
            document.push(Block::Line(line.clone()));
        }
        document
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_kubernetes() {
        assert_eq!(name_of("llama-3.1-8b"), "llama-3-1-8b");
        assert_eq!(name_of("models/Qwen_3/config.json"), "qwen-3");
        assert_eq!(name_of("/"), "run");
    }

    #[test]
    fn a_deadline_is_whole_seconds_from_now() {
        let now: Timestamp = "2026-11-15T14:00:00.25Z".parse().unwrap();
        assert_eq!(deadline(now, 3_600.0).as_deref(), Some("2026-11-15T15:00:00Z"));
        assert_eq!(deadline(now, f64::INFINITY), None);
    }
}
