//! `flyball emulate`: engines without a GPU, until somebody presses Ctrl-C.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use clap::Args;
use clap::builder::BoolishValueParser;
use flyball_emulator::speed::{self, EmulatorLimits, Parts};
use flyball_emulator::{
    Emulator, EmulatorSettings, EventShape, Faults, RunningEmulator, StartError,
};
use flyball_engines::Engine;
use flyball_simulator::cluster::Speed;
use schemars::JsonSchema;
use serde::Serialize;

use super::plan::whole;
use crate::catalog::{self, CatalogArgs};
use crate::model::{FormatArgs, Model, engines};
use crate::output::document::{Block, Column, Document, Row, Table};
use crate::output::{Answer, Detail, Exit, Failure, FailureCode, Printer, plural};

/// Run engines without a GPU, with a real engine's timing
///
/// The engines serve OpenAI's and Anthropic's API, for tests: batching, a finite cache, prefix reuse, preemption,
/// aborts and vLLM's metrics, as predicted for a model on an accelerator. Responses have the length of max_tokens and
/// no meaning. Faults are set at the start, or later by POST to /emulator/faults.
#[derive(Debug, Args)]
pub(crate) struct EmulateArgs {
    /// Folder of a checkpoint, its config.json, or a name from flyball explain FLY-603
    #[arg(long, value_name = "MODEL", env = "FLYBALL_EMULATE_MODEL", hide_env_values = true)]
    #[arg(default_value = "llama-3.1-8b")]
    model: String,

    /// Model names in requests; the name of the model if not set
    #[arg(long, value_name = "NAME", value_delimiter = ',', env = "FLYBALL_EMULATE_SERVED_NAME")]
    #[arg(hide_env_values = true)]
    served_name: Vec<String>,

    /// Engine whose metrics are exposed; the timing is vLLM's
    #[arg(long, value_name = "NAME", env = "FLYBALL_EMULATE_ENGINE", hide_env_values = true)]
    #[arg(default_value = Engine::Vllm.name())]
    #[arg(value_parser = engines(Engine::ALL))]
    engine: Engine,

    /// Accelerator whose timing is predicted
    #[arg(long, value_name = "NAME", env = "FLYBALL_EMULATE_GPU", hide_env_values = true)]
    #[arg(default_value = "h100-sxm-80gb")]
    gpu: String,

    /// GPUs per engine: its tensor-parallel size
    #[arg(
        long,
        alias = "tensor",
        value_name = "N",
        env = "FLYBALL_EMULATE_TP",
        hide_env_values = true
    )]
    #[arg(default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    tp: u32,

    /// Engines in this process, each on a port of its own
    #[arg(long, value_name = "N", env = "FLYBALL_EMULATE_ENGINES", hide_env_values = true)]
    #[arg(default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    engines: u16,

    /// Port of the first engine; the others use the next ports; 0 for any free port
    #[arg(long, value_name = "PORT", env = "FLYBALL_EMULATE_PORT", hide_env_values = true)]
    #[arg(default_value_t = 8000)]
    port: u16,

    /// Port of the first engine's KV cache events, as in vLLM; the others use the next ports
    #[arg(long, value_name = "PORT", env = "FLYBALL_EMULATE_KV_EVENTS", hide_env_values = true)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    kv_events: Option<u16>,

    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", env = "FLYBALL_EMULATE_HOST", hide_env_values = true)]
    #[arg(default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,

    /// Speed relative to real time
    #[arg(long, value_name = "X", env = "FLYBALL_EMULATE_SPEED_UP", hide_env_values = true)]
    #[arg(default_value_t = 1.0)]
    speed_up: f64,

    /// Maximum concurrent requests of one engine
    #[arg(long, value_name = "N", env = "FLYBALL_EMULATE_MAX_RUNNING", hide_env_values = true)]
    #[arg(default_value_t = 256, value_parser = whole, allow_hyphen_values = true)]
    max_running: u32,

    /// Maximum tokens per step
    #[arg(
        long,
        value_name = "TOKENS",
        env = "FLYBALL_EMULATE_STEP_TOKENS",
        hide_env_values = true
    )]
    #[arg(default_value_t = 8192, value_parser = whole, allow_hyphen_values = true)]
    step_tokens: u32,

    /// Tokens in the KV cache of one engine; what fits in memory if not set
    #[arg(long, value_name = "TOKENS", env = "FLYBALL_EMULATE_CACHE_TOKENS")]
    #[arg(hide_env_values = true, value_parser = whole, allow_hyphen_values = true)]
    cache_tokens: Option<u32>,

    /// Output tokens of a request without a limit
    #[arg(long, value_name = "TOKENS", env = "FLYBALL_EMULATE_ANSWER_TOKENS")]
    #[arg(hide_env_values = true, default_value_t = 128)]
    #[arg(value_parser = whole, allow_hyphen_values = true)]
    answer_tokens: u32,

    /// Tokens per stream event, except the first; as vLLM's flag of this name
    #[arg(long, value_name = "TOKENS", env = "FLYBALL_EMULATE_STREAM_INTERVAL")]
    #[arg(hide_env_values = true, default_value_t = 1)]
    #[arg(value_parser = whole, allow_hyphen_values = true)]
    stream_interval: u32,

    /// Random seed of the faults
    #[arg(long, value_name = "N", env = "FLYBALL_EMULATE_SEED", hide_env_values = true)]
    #[arg(default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    faults: FaultArgs,

    #[command(flatten)]
    formats: FormatArgs,

    #[command(flatten)]
    catalog: CatalogArgs,
}

/// What goes wrong from the start.
#[derive(Debug, Args)]
#[command(next_help_heading = "Faults")]
struct FaultArgs {
    /// Accept connections and never answer
    #[arg(long, env = "FLYBALL_EMULATE_HANG", hide_env_values = true)]
    #[arg(value_parser = BoolishValueParser::new())]
    hang: bool,

    /// Break streams after this many tokens
    #[arg(long, value_name = "TOKENS", env = "FLYBALL_EMULATE_TRUNCATE", hide_env_values = true)]
    truncate: Option<u32>,

    /// Send garbage after this many tokens
    #[arg(long, value_name = "TOKENS", env = "FLYBALL_EMULATE_GARBAGE", hide_env_values = true)]
    garbage: Option<u32>,

    /// Send only comments after this many tokens
    #[arg(long, value_name = "TOKENS", env = "FLYBALL_EMULATE_STALL", hide_env_values = true)]
    stall: Option<u32>,

    /// Share of requests that hang, truncate, garbage and stall affect
    #[arg(long, value_name = "SHARE", env = "FLYBALL_EMULATE_FAULT_SHARE", hide_env_values = true)]
    #[arg(default_value_t = 1.0)]
    fault_share: f64,

    /// Seconds until the engine is healthy
    #[arg(
        long,
        value_name = "SECONDS",
        env = "FLYBALL_EMULATE_SLOW_START",
        hide_env_values = true
    )]
    #[arg(default_value_t = 0.0)]
    slow_start: f64,

    /// Share of requests that get 500
    #[arg(long, value_name = "SHARE", env = "FLYBALL_EMULATE_ERRORS", hide_env_values = true)]
    #[arg(default_value_t = 0.0)]
    errors: f64,

    /// Exit when a prompt has at least this many tokens
    #[arg(long, value_name = "TOKENS", env = "FLYBALL_EMULATE_DIE_AT_PROMPT_TOKENS")]
    #[arg(hide_env_values = true)]
    die_at_prompt_tokens: Option<u32>,

    /// Speed relative to the prediction
    #[arg(long, value_name = "X", env = "FLYBALL_EMULATE_SPEED", hide_env_values = true)]
    #[arg(default_value_t = 1.0)]
    speed: f64,

    /// Keep working for clients that disconnected
    #[arg(long, env = "FLYBALL_EMULATE_IGNORE_ABORTS", hide_env_values = true)]
    #[arg(value_parser = BoolishValueParser::new())]
    ignore_aborts: bool,
}

impl FaultArgs {
    fn faults(&self) -> Faults {
        Faults {
            share: self.fault_share,
            hang: self.hang,
            truncate_after_tokens: self.truncate,
            garbage_after_tokens: self.garbage,
            stall_after_tokens: self.stall,
            slow_start_seconds: self.slow_start,
            error_chance: self.errors,
            die_at_prompt_tokens: self.die_at_prompt_tokens,
            ignore_aborts: self.ignore_aborts,
            speed: self.speed,
            ..Faults::default()
        }
    }
}

/// The engines that run now.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Emulation {
    /// Model names in requests.
    models: Vec<String>,
    accelerator: String,
    tensor_parallel: u32,
    /// Tokens that the cache of one engine holds.
    cache_tokens: u64,
    speed_up: f64,
    engines: Vec<EngineView>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct EngineView {
    url: String,
}

/// Starts the engines, says where they are, and waits for Ctrl-C.
pub(crate) async fn run(args: &EmulateArgs, printer: &Printer) -> Result<Exit, Failure> {
    let model = Model::load(&args.model, &args.formats)?;
    let catalog = args.catalog.load()?;
    let accelerator = catalog::accelerator(&catalog, &args.gpu, "flyball emulate --gpu")?;
    let parts =
        Parts { model: &model.architecture, cache: model.cache, accelerator, tensor: args.tp };
    let limits = EmulatorLimits {
        max_running: args.max_running,
        step_tokens: args.step_tokens,
        cache_tokens: args.cache_tokens,
    };
    let speed = speed::predicted(&parts, &limits).map_err(|unfit| {
        let what = format!("{} cannot run on {} x {}", args.model, args.tp, args.gpu);
        Failure::new(Exit::No, what)
            .because(unfit.to_string())
            .hint(format!("flyball fit {} shows where it can", args.model))
            .code(FailureCode::ReplicaCapacity)
    })?;
    let models = match args.served_name.as_slice() {
        [] => vec![model.name.clone()],
        names => names.to_vec(),
    };
    let running = start(args, &models, &speed)?;
    let view = |one: &RunningEmulator| EngineView { url: format!("http://{}", one.address) };
    let settings = &speed.settings;
    let answer = Emulation {
        models,
        accelerator: accelerator.id.to_string(),
        tensor_parallel: args.tp,
        cache_tokens: u64::from(settings.blocks) * u64::from(settings.block_tokens),
        speed_up: args.speed_up,
        engines: running.iter().map(view).collect(),
    };
    printer.answer(&answer);
    // Ctrl-C ends the command from outside, and the engines at once with it.
    terminated().await?;
    futures::future::join_all(running.into_iter().map(RunningEmulator::stop)).await;
    Ok(Exit::Yes)
}

/// Waits for what a cluster sends before it takes a pod away. Who is process 1 of a container and
/// does not ask for it never gets it.
async fn terminated() -> Result<(), Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut signal = signal(SignalKind::terminate()).map_err(|error| {
        Failure::new(Exit::Usage, "cannot listen for signals").because(error.to_string())
    })?;
    signal.recv().await;
    Ok(())
}

fn start(
    args: &EmulateArgs,
    models: &[String],
    speed: &Speed,
) -> Result<Vec<RunningEmulator>, Failure> {
    let one = |index: u16| {
        let next = if args.port == 0 { 0 } else { index };
        let port = args.port.checked_add(next).ok_or_else(|| {
            let what = format!(
                "{} do not fit above port {}",
                plural(args.engines.into(), "engine"),
                args.port
            );
            Failure::new(Exit::Usage, what).hint("flyball emulate --port 8000")
        })?;
        let settings = EmulatorSettings {
            listen: SocketAddr::new(args.host, port),
            engine: args.engine,
            models: models.to_vec(),
            speed_up: args.speed_up,
            stream_interval: args.stream_interval,
            answer_tokens: args.answer_tokens,
            seed: args.seed.wrapping_add(index.into()),
            faults: args.faults.faults(),
            kv_events: args.kv_events.map(|port| (port.saturating_add(index), EventShape::Map)),
            ..EmulatorSettings::new(speed.clone())
        };
        Emulator::start(settings).map_err(|error| match error {
            StartError::Settings(problems) => {
                Failure::new(Exit::Usage, "the engine cannot be started so")
                    .because(problems.join("; "))
                    .hint("flyball emulate --help describes each flag")
            }
            StartError::Listen { address, error } => Failure::new(Exit::Usage, "cannot listen")
                .at(address.to_string())
                .because(error.to_string())
                .hint("take another port with --port, or end what has this one"),
            StartError::Thread(error) => Failure::new(Exit::Usage, "cannot start a thread")
                .because(error.to_string())
                .hint("start fewer with --engines"),
        })
    };
    (0..args.engines).map(one).collect()
}

impl Answer for Emulation {
    const KIND: &'static str = "Emulation";

    fn view(&self, _: Detail) -> Document {
        let mut table = Table::new(vec![Column::left("ENGINE")]);
        table.rows.extend(self.engines.iter().map(|one| Row::new([one.url.clone()])));
        let mut document = Document::new();
        document.push(Block::Facts(vec![
            ("Model".to_owned(), self.models.join(", ")),
            ("Timing".to_owned(), self.timing()),
            ("Cache".to_owned(), format!("{} tokens", self.cache_tokens)),
        ]));
        document.push(Block::Gap);
        document.push(Block::Table(table));
        document.push(Block::Gap);
        let count = plural(self.engines.len(), "engine");
        document.push(Block::Line(format!("{count} ready; Ctrl-C ends them")));
        document
    }
}

impl Emulation {
    fn timing(&self) -> String {
        let Self { accelerator, tensor_parallel, speed_up, .. } = self;
        match *speed_up {
            1.0 => format!("{accelerator} TP{tensor_parallel}"),
            times => format!("{accelerator} TP{tensor_parallel}, {times} times as fast"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{answer_json, conforms};

    #[test]
    fn json_has_the_shape_of_its_schema() {
        let answer = Emulation {
            models: vec!["llama-3.1-8b".to_owned()],
            accelerator: "h100-sxm-80gb".to_owned(),
            tensor_parallel: 1,
            cache_tokens: 400_000,
            speed_up: 1.0,
            engines: vec![EngineView { url: "http://127.0.0.1:8000".to_owned() }],
        };
        conforms("emulation", &answer_json(&answer));
        assert!(answer.timing().ends_with("TP1"));
    }
}
