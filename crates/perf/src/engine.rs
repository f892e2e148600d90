//! The serving engines that the model knows.

use std::fmt;

/// A serving engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Engine {
    Vllm,
    Sglang,
    TensorRtLlm,
}

impl Engine {
    pub const ALL: [Self; 3] = [Self::Vllm, Self::Sglang, Self::TensorRtLlm];

    /// The word used on the command line and in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
            Self::TensorRtLlm => "trtllm",
        }
    }

    /// The engine of that name, if there is one.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|engine| engine.name() == name)
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
