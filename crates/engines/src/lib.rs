//! What Flyball knows about each serving engine: one enum, and one table per engine.
//!
//! Planner, operator, gateway, emulator, checks and documents read these tables and know no engine by name. To add an
//! engine, write its table beside the others and name it in [`Engine`]; CONTRIBUTING.md has the steps.
//!
//! `facts` says what a table has; `vllm`, `sglang`, `llama_cpp` and `tensorrt_llm` are the tables; `words` reads
//! command lines. Pure.

mod facts;
mod llama_cpp;
mod sglang;
mod tensorrt_llm;
mod vllm;
mod words;

pub use facts::{
    CommandLine, Continue, Defect, EngineFacts, Interface, LaunchFlags, LaunchRequest,
    PlannedReplica, Series, Shutdown,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// A serving engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Engine {
    /// vLLM, and everything that speaks like it, as `flyball emulate` does.
    #[default]
    Vllm,
    Sglang,
    /// llama.cpp's llama-server.
    LlamaCpp,
    /// TensorRT-LLM's trtllm-serve.
    TensorRtLlm,
}

impl Engine {
    pub const ALL: [Self; 4] = [Self::Vllm, Self::Sglang, Self::LlamaCpp, Self::TensorRtLlm];

    /// The words used on the command line and in files.
    pub const NAMES: [&str; Self::ALL.len()] = {
        let mut names = [""; Self::ALL.len()];
        let mut place = 0;
        while place < names.len() {
            names[place] = Self::ALL[place].name();
            place += 1;
        }
        names
    };

    /// Its table.
    pub const fn facts(self) -> &'static EngineFacts {
        match self {
            Self::Vllm => &vllm::FACTS,
            Self::Sglang => &sglang::FACTS,
            Self::LlamaCpp => &llama_cpp::FACTS,
            Self::TensorRtLlm => &tensorrt_llm::FACTS,
        }
    }

    /// The word used on the command line and in files.
    pub const fn name(self) -> &'static str {
        self.facts().name
    }

    /// The engine of that name, if there is one.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|engine| engine.name() == name)
    }

    /// The engine of that word in a `ModelService`.
    pub fn of_kind(kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|engine| engine.facts().kind == kind)
    }

    /// What a metric of this name counts or shows, and whose it is.
    pub fn of_series(name: &str) -> Option<(Self, Series)> {
        Self::ALL.into_iter().find_map(|engine| {
            let known = engine.facts().series.iter().find(|(known, _)| *known == name);
            known.map(|(_, series)| (engine, *series))
        })
    }

    /// The engine that a container runs, by its image and arguments.
    pub fn of_container(image: &str, args: &[String]) -> Option<Self> {
        let last = image.rsplit('/').next().unwrap_or_default();
        let mentions = |word: &str| {
            image.contains(&format!("{word}/"))
                || last.contains(word)
                || args.iter().any(|arg| arg.contains(word))
        };
        Self::ALL.into_iter().find(|engine| engine.facts().words.iter().any(|word| mentions(word)))
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// By its name.
impl Serialize for Engine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Engine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::named(&name).ok_or_else(|| serde::de::Error::unknown_variant(&name, &Self::NAMES))
    }
}

#[cfg(test)]
mod tests;
