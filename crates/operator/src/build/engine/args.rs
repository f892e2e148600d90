//! What an engine is told on its command line.
//!
//! A flag that an engine does not know ends it at the start, so none is written from memory: `cargo xtask
//! engines arguments` holds these lists against the engines' own parsers. The oldest releases that take
//! them: vLLM 0.18 (`--shutdown-timeout`), SGLang 0.5, any llama-server with `--hf-repo`.

use crate::observe::chunk;
use flyball_resources::model_service::{EngineKind, EngineSpec, VariantSpec};
use flyball_resources::{ModelService, Pool};

/// A program and its arguments. Without a program, the image's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandLine {
    pub(super) command: Vec<String>,
    pub(super) args: Vec<String>,
}

/// Who names a program of their own gives all of its arguments.
pub(super) fn command_line(
    service: &ModelService,
    variant: &VariantSpec,
    engine: &EngineSpec,
    pool: Option<&Pool>,
) -> CommandLine {
    if !engine.command.is_empty() {
        return CommandLine { command: engine.command.clone(), args: engine.args.clone() };
    }
    let asked = Asked {
        model: service.spec.model.as_deref().unwrap_or_default(),
        names: &service.public_names(),
        gpus: variant.gpus_per_replica.max(1).to_string(),
        port: engine.port.to_string(),
        drain: engine.drain_seconds.to_string(),
    };
    let (command, own): (&[&str], Vec<&str>) = match engine.kind {
        EngineKind::Vllm => (&[], asked.of_vllm()),
        // Its images start a shell.
        EngineKind::Sglang => (&["python3", "-m", "sglang.launch_server"], asked.of_sglang()),
        EngineKind::LlamaCpp => (&[], asked.of_llama()),
    };
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let mut args: Vec<String> = owned(&own);
    let chosen = chunk::flag(engine.kind).zip(chunk::chosen(service, variant, pool));
    args.extend(
        chosen.into_iter().flat_map(|(flag, tokens)| [flag.to_owned(), tokens.to_string()]),
    );
    args.extend(engine.args.iter().cloned());
    CommandLine { command: owned(command), args }
}

struct Asked<'a> {
    model: &'a str,
    names: &'a [String],
    gpus: String,
    port: String,
    drain: String,
}

impl Asked<'_> {
    /// For `vllm serve`, which wants the model first and every name as an argument of its own.
    fn of_vllm(&self) -> Vec<&str> {
        let mut args = vec![self.model, "--served-model-name"];
        args.extend(self.names.iter().map(String::as_str));
        args.extend(["--port", &self.port]);
        args.extend(["--tensor-parallel-size", &self.gpus]);
        args.extend(["--shutdown-timeout", &self.drain]);
        args
    }

    /// It takes one name, and answers to any.
    fn of_sglang(&self) -> Vec<&str> {
        let mut args = vec!["--model-path", self.model, "--served-model-name", &self.names[0]];
        args.extend(["--host", "0.0.0.0", "--port", &self.port]);
        args.extend(["--tp-size", &self.gpus, "--enable-metrics"]);
        args
    }

    /// A file, or a repository of Hugging Face. It answers to any name.
    fn of_llama(&self) -> Vec<&str> {
        let is_file = self.model.starts_with(['/', '.']) || self.model.ends_with(".gguf");
        let mut args = vec![if is_file { "--model" } else { "--hf-repo" }, self.model];
        args.extend(["--alias", &self.names[0]]);
        args.extend(["--host", "0.0.0.0", "--port", &self.port, "--metrics"]);
        args
    }
}
