//! The model a question is about: a checkpoint's folder, a `config.json`, or a name we ship.

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use flyball_perf::architecture::{Architecture, Stored};
use flyball_perf::engine::Engine;
use flyball_perf::models;
use flyball_perf::precision::Dtype;
use schemars::JsonSchema;
use serde::Serialize;

use crate::output::{Exit, Failure, FailureCode, plural};

#[derive(Debug, Args)]
pub(crate) struct FormatArgs {
    /// Number format of the weights, if it differs from the checkpoint
    #[arg(long, value_name = "FORMAT", env = "FLYBALL_DTYPE", hide_env_values = true)]
    #[arg(value_parser = formats(&["bf16", "fp16", "fp8", "nvfp4", "int4"]))]
    dtype: Option<Dtype>,

    /// Number format of the KV cache, if it differs from the checkpoint
    #[arg(long, value_name = "FORMAT", env = "FLYBALL_CACHE_DTYPE", hide_env_values = true)]
    #[arg(value_parser = formats(&["bf16", "fp8"]))]
    cache_dtype: Option<Dtype>,
}

/// A flag that names an engine.
pub(crate) fn engines<const N: usize>(known: [Engine; N]) -> impl TypedValueParser<Value = Engine> {
    PossibleValuesParser::new(known.map(Engine::name))
        .map(|name| Engine::named(&name).expect("only names of engines come through"))
}

fn formats(names: &'static [&'static str]) -> impl TypedValueParser<Value = Dtype> {
    PossibleValuesParser::new(names.iter().copied())
        .map(|name| Dtype::named(&name).expect("only names of formats come through"))
}

/// A model that was understood.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) name: String,
    pub(crate) architecture: Architecture,
    /// Format of the cache.
    pub(crate) cache: Dtype,
    /// How an engine is told which model: the path or the published name.
    pub(crate) reference: String,
    /// The format that was asked for, if it is not the checkpoint's.
    pub(crate) requantised: Option<Dtype>,
}

/// What a model is, for answers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ModelView {
    /// As it was given.
    name: String,
    /// `model_type` of its text part.
    family: String,
    /// All weights.
    parameters: u64,
    /// Weights that one token passes through.
    active_parameters: u64,
    /// Bytes of all weights in the formats they are stored in.
    weight_bytes: u64,
    /// Narrowest format of the layers' matrices.
    dtype: &'static str,
    /// Format of the cache.
    cache_dtype: &'static str,
    /// Bytes of cache for one more token of a long sequence.
    cache_bytes_per_token: u64,
    /// Longest sequence it was made for.
    max_context: u32,
}

impl Model {
    pub(crate) fn load(given: &str, formats: &FormatArgs) -> Result<Model, Failure> {
        let path = Path::new(given);
        let mut model = if path.exists() { from_path(path, given)? } else { from_name(given)? };
        if let Some(dtype) = formats.dtype {
            model.requantised =
                Some(dtype).filter(|dtype| *dtype != model.architecture.stored.narrowest());
            model.architecture.stored = stored(dtype, model.architecture.stored.cache);
        }
        model.cache =
            formats.cache_dtype.or(model.architecture.stored.cache).unwrap_or(Dtype::Bf16);
        Ok(model)
    }

    /// The format of the cache where neither checkpoint nor flags say one: checkpoints in 8 and 4 bits that NVIDIA
    /// makes for TensorRT-LLM ask for 8 bits, and the rows that its speed was calibrated on ran so. Whether that
    /// had to be assumed.
    pub(crate) fn cache_of_engine(&mut self, engine: Engine, formats: &FormatArgs) -> bool {
        let stored = &self.architecture.stored;
        let open = formats.cache_dtype.is_none() && stored.cache.is_none();
        let narrow = matches!(stored.narrowest(), Dtype::Fp8 | Dtype::Nvfp4 | Dtype::Mxfp4);
        let assumed = open && narrow && engine.facts().narrows_cache;
        if assumed {
            self.cache = Dtype::Fp8;
        }
        assumed
    }

    pub(crate) fn view(&self) -> ModelView {
        let parameters = self.architecture.parameters();
        ModelView {
            name: self.name.clone(),
            family: self.architecture.family.clone(),
            parameters: parameters.total(),
            active_parameters: parameters.active(),
            weight_bytes: self.architecture.weight_bytes() as u64,
            dtype: self.architecture.stored.narrowest().name(),
            cache_dtype: self.cache.name(),
            cache_bytes_per_token: self.architecture.cache_bytes_per_token(self.cache) as u64,
            max_context: self.architecture.max_context,
        }
    }
}

impl ModelView {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn has_experts(&self) -> bool {
        self.active_parameters < self.parameters
    }

    /// `Qwen3-32B   32.8 B, fp8, 34.2 GB weights, 256 KiB cache per token`.
    pub(crate) fn sentence(&self) -> String {
        let billions = |count: u64| format!("{:.1} B", count as f64 / 1e9);
        let active = match self.active_parameters * 2 < self.parameters {
            true => format!(" ({} active)", billions(self.active_parameters)),
            false => String::new(),
        };
        format!(
            "{}: {}{active}, {}, {:.1} GB weights, {:.0} KiB {} cache per token",
            self.name,
            billions(self.parameters),
            self.dtype,
            self.weight_bytes as f64 / 1e9,
            self.cache_bytes_per_token as f64 / 1024.0,
            self.cache_dtype,
        )
    }
}

fn stored(dtype: Dtype, cache: Option<Dtype>) -> Stored {
    let stored = match dtype {
        Dtype::Fp8 | Dtype::Nvfp4 => Stored::quantised(dtype, true),
        Dtype::Int4 | Dtype::Mxfp4 | Dtype::Int8 => Stored::quantised(dtype, false),
        Dtype::Bf16 | Dtype::Fp16 | Dtype::Fp32 => Stored::uniform(dtype),
    };
    Stored { cache, ..stored }
}

fn from_path(path: &Path, given: &str) -> Result<Model, Failure> {
    let file = if path.is_dir() { path.join("config.json") } else { path.to_path_buf() };
    let config = read(&file)?;
    let beside: PathBuf = file.with_file_name("hf_quant_config.json");
    let recipe = if beside.exists() { Some(read(&beside)?) } else { None };
    let architecture = Architecture::from_files(&config, recipe.as_deref())
        .map_err(|error| not_understood(&file.display().to_string(), &error.problems))?;
    let named = match path.file_name() {
        Some(name) if path.is_dir() => name.to_string_lossy().into_owned(),
        _ => given.to_owned(),
    };
    Ok(Model {
        name: named,
        architecture,
        cache: Dtype::Bf16,
        reference: given.to_owned(),
        requantised: None,
    })
}

fn from_name(given: &str) -> Result<Model, Failure> {
    let found = models::find(given).ok_or_else(|| unknown(given))?;
    let architecture = Architecture::from_config(&found.config())
        .map_err(|error| not_understood(given, &error.problems))?;
    // An ending that asks for what the checkpoint is stored in anyway changes nothing.
    let requantised = match found.requantised() {
        Some(dtype) => Architecture::from_config(found.known.config)
            .is_ok_and(|published| published.stored.narrowest() != dtype)
            .then_some(dtype),
        None => None,
    };
    let (name, cache, reference) = (given.to_owned(), Dtype::Bf16, found.reference);
    Ok(Model { name, architecture, cache, reference, requantised })
}

/// No file and no shipped model is called so; with the names that look like it.
pub(crate) fn unknown(given: &str) -> Failure {
    let failure = Failure::new(Exit::Usage, format!("no file or shipped model is `{given}`"))
        .code(FailureCode::UnknownModel);
    match models::nearest(given).as_slice() {
        [] => failure.hint("use a folder with a config.json; flyball models lists the names"),
        [one] => failure.hint(format!("did you mean {one}?")),
        near @ [first, ..] => failure
            .because(format!("it may be {}", near.join(", ")))
            .hint(format!("did you mean {first}?")),
    }
}

fn read(file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file).map_err(|error| {
        Failure::new(Exit::Usage, "the model's configuration cannot be read")
            .at(file.display().to_string())
            .because(error.to_string())
            .hint("use a folder that has a config.json, or the file itself")
            .code(FailureCode::UnknownModel)
    })
}

pub(crate) fn not_understood(
    place: &str,
    problems: &[flyball_perf::architecture::ConfigError],
) -> Failure {
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let count = plural(problems.len(), "fact");
    Failure::new(Exit::Unknown, format!("{count} about the model missing or not understood"))
        .at(place)
        .problems(problems)
        .hint("flyball explain FLY-604 lists the families that are modelled")
        .code(FailureCode::ModelNotUnderstood)
}
