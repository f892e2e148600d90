//! What is known about an engine.

/// What is known about an engine. Facts carry their version or source where they are not true of all.
#[derive(Debug)]
pub struct EngineFacts {
    /// The word on the command line and in files.
    pub name: &'static str,
    /// The word in a `ModelService`.
    pub kind: &'static str,
    /// As its authors write it.
    pub title: &'static str,
    /// Words in an image or in arguments that give it away.
    pub words: &'static [&'static str],
    /// The port that it answers on where `--port` does not say another.
    pub port: u16,
    /// Path that says whether it serves.
    pub health: &'static str,
    /// Path of its Prometheus metrics.
    pub metrics: &'static str,
    /// What the names of its metrics begin with.
    pub prefix: &'static str,
    /// Its metrics by what they count. Several names of one series are those of several versions.
    pub series: &'static [(&'static str, Series)],
    /// Whether time per token is counted over all tokens, so that these are the output tokens.
    pub paces_all_tokens: bool,
    /// Whether it shows how full its cache is.
    pub shows_cache: bool,
    pub launch: LaunchFlags,
    /// What it does with its requests when it is told to end.
    pub shutdown: Shutdown,
    /// Whether its processes share memory beyond the 64 MiB that Kubernetes gives.
    pub shares_memory: bool,
    /// How long, in seconds, cancelled requests may still count as running before the engine is known to ignore
    /// cancellation.
    pub cancel_seconds: u32,
    /// Interfaces on which it keeps caches of different `cache_salt` apart.
    pub salts: &'static [Interface],
    /// Whether checkpoints in 8 and 4 bits that say nothing of their cache are served with one in 8 bits.
    pub narrows_cache: bool,
    /// How it is made to continue an answer that broke off.
    pub continues: Continue,
    /// Where it says how many tokens a prompt and its answer may have together, and under which key of the entries of the
    /// list there. None where it does not say, or refuses no request because its answer might be longer.
    pub context: Option<(&'static str, &'static str)>,
    pub defects: &'static [Defect],
}

/// What a metric counts or shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Series {
    /// Tokens of prompts.
    PromptTokens,
    /// Those of them that its cache had.
    CachedTokens,
    /// Tokens written.
    OutputTokens,
    /// Requests answered.
    Answered,
    /// Tokens after a first one.
    PacedTokens,
    /// Seconds that these took.
    PacedSeconds,
    /// Requests in flight that it works on.
    Running,
    /// Requests in its queue.
    Waiting,
    /// Share of the cache in use.
    CacheUsed,
    /// Tokens that the cache holds.
    CacheTokens,
    /// The same as labels: blocks, and tokens of each.
    CacheBlocks,
}

/// How its command line is written and read.
#[derive(Debug)]
pub struct LaunchFlags {
    /// Flags or words behind which the model stands.
    pub model: &'static [&'static str],
    /// Flags behind which the names stand by which clients may ask for it; without one, that is the model itself. None
    /// where any name will do.
    pub served: &'static [&'static str],
    /// Flags that set the tensor-parallel size.
    pub tensor: &'static [&'static str],
    /// The flag that sets the prompt tokens of a step.
    pub step_tokens: Option<&'static str>,
    /// Flags after which a model is served otherwise than it was published, so that nothing can be predicted.
    pub alters: &'static [&'static str],
    /// Whether a published name of a model is enough; `false` where it names files.
    pub takes_names: bool,
    /// Whether a served name may have a colon.
    pub takes_colons: bool,
    /// Writes the command line of a replica that Flyball starts.
    pub write: fn(&LaunchRequest<'_>) -> CommandLine,
    /// Writes that of a replica as `flyball plan` has it, and the lines of the file of options that goes with it.
    pub plan: fn(&PlannedReplica<'_>) -> (Vec<String>, Vec<String>),
}

/// What a replica is started with.
#[derive(Clone, Copy, Debug)]
pub struct LaunchRequest<'a> {
    pub model: &'a str,
    /// At least one.
    pub names: &'a [String],
    pub gpus: u32,
    pub port: i32,
    pub drain_seconds: i32,
}

/// A replica as it is planned.
#[derive(Clone, Copy, Debug)]
pub struct PlannedReplica<'a> {
    pub model: &'a str,
    pub tensor: u32,
    pub pipeline: u32,
    /// Copies of the attention, which share the experts.
    pub attention_copies: u32,
    /// Ranks that each hold whole experts; one where experts are split.
    pub expert_ranks: u32,
    /// Tokens of the longest request.
    pub longest: u64,
    /// Prompt tokens of a step.
    pub step_tokens: u32,
    /// Requests at once.
    pub sequences: u64,
    /// Whether weights are narrowed to FP8 as they are loaded.
    pub fp8_weights: bool,
    pub fp8_cache: bool,
}

/// A program and its arguments. Without a program, the image's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    pub command: Vec<String>,
    pub args: Vec<String>,
}

/// What an engine does with its requests when it is told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// It finishes them, for as many seconds as this flag says; without it, streams stall.
    Flag(&'static str),
    /// It finishes them, however long that takes.
    Finishes,
    /// It cuts them.
    Cuts,
}

/// An interface of the OpenAI and Anthropic kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Interface {
    Chat,
    Completions,
    Responses,
    Messages,
    Embeddings,
}

/// How an engine is made to continue an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continue {
    /// With these fields beside the last message.
    Fields(&'static [(&'static str, bool)]),
    /// By itself, if the last message is the assistant's.
    ByItself,
    /// Not at all.
    Never,
}

/// Something that is wrong in some versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defect {
    /// Versions, as people say it.
    pub versions: &'static str,
    pub what: &'static str,
    /// What Flyball does about it.
    pub remedy: &'static str,
}

impl EngineFacts {
    /// The names of a series, newest first.
    pub fn names(&self, series: Series) -> impl Iterator<Item = &'static str> {
        self.series.iter().filter(move |(_, known)| *known == series).map(|(name, _)| *name)
    }
}

/// Words of a command line.
#[derive(Debug, Default)]
pub(crate) struct Words(pub(crate) Vec<String>);

impl Words {
    pub(crate) fn of(words: &[&str]) -> Self {
        Self(words.iter().map(|word| (*word).to_owned()).collect())
    }

    pub(crate) fn flag(&mut self, name: &str, value: impl ToString) {
        self.0.extend([name.to_owned(), value.to_string()]);
    }

    pub(crate) fn above_one(&mut self, name: &str, degree: u32) {
        if degree > 1 {
            self.flag(name, degree);
        }
    }

    pub(crate) fn when(&mut self, there: bool, name: &str) {
        if there {
            self.0.push(name.to_owned());
        }
    }

    pub(crate) fn option(&mut self, there: bool, name: &str, value: &str) {
        if there {
            self.flag(name, value);
        }
    }
}

impl CommandLine {
    pub(crate) fn of(command: &[&str], args: &[&str]) -> Self {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Self { command: owned(command), args: owned(args) }
    }
}
