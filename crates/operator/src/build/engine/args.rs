//! The command line of an engine, as its table writes it and its owner adds to it.
//!
//! A flag that an engine does not know ends it at the start, so none is written from memory: `cargo xtask
//! engines arguments` holds these lists against the engines' own parsers. The oldest releases that take
//! them: vLLM 0.18 (`--shutdown-timeout`), SGLang 0.5, any llama-server with `--hf-repo`.

use crate::observe::chunk;
use flyball_engines::{CommandLine, LaunchRequest};
use flyball_resources::model_service::{EngineSpec, VariantSpec};
use flyball_resources::{ModelService, Pool};

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
    let request = LaunchRequest {
        model: service.spec.model.as_deref().unwrap_or_default(),
        names: &service.public_names(),
        gpus: u32::try_from(variant.gpus_per_replica).unwrap_or(0).max(1),
        port: engine.port,
        drain_seconds: engine.drain_seconds,
    };
    let launch = &engine.kind.facts().launch;
    let mut line = (launch.write)(&request);
    let chosen = launch.step_tokens.zip(chunk::chosen(service, variant, pool));
    line.args.extend(
        chosen.into_iter().flat_map(|(flag, tokens)| [flag.to_owned(), tokens.to_string()]),
    );
    line.args.extend(engine.args.iter().cloned());
    line
}
