//! Which of the known interfaces a path belongs to. Nothing else of an engine is reachable.

use flyball_engines::Interface;

/// An interface that clients may use.
///
/// Engines answer on many more paths, some of which change weights without asking for a key
/// (reliability.md T-12), so this list is all that gets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Surface {
    /// `/v1/chat/completions`.
    Chat,
    /// `/v1/completions`.
    Completions,
    /// `/v1/embeddings`.
    Embeddings,
    /// `/v1/responses`.
    Responses,
    /// Anthropic's `/v1/messages`.
    Messages,
}

impl Surface {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Chat, Self::Completions, Self::Embeddings, Self::Responses, Self::Messages];

    /// The one with exactly this path.
    pub fn of(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|surface| surface.path() == path)
    }

    /// Its path, here and at the engine.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::Completions => "/v1/completions",
            Self::Embeddings => "/v1/embeddings",
            Self::Responses => "/v1/responses",
            Self::Messages => "/v1/messages",
        }
    }

    /// As tables of engines call it.
    pub(crate) const fn interface(self) -> Interface {
        match self {
            Self::Chat => Interface::Chat,
            Self::Completions => Interface::Completions,
            Self::Embeddings => Interface::Embeddings,
            Self::Responses => Interface::Responses,
            Self::Messages => Interface::Messages,
        }
    }

    /// Its name in metrics and logs: the operation names of OpenTelemetry's GenAI conventions.
    pub const fn operation(self) -> &'static str {
        match self {
            Self::Chat | Self::Responses | Self::Messages => "chat",
            Self::Completions => "text_completion",
            Self::Embeddings => "embeddings",
        }
    }

    /// The key that says how long an answer may be; `None` if there is nothing to say.
    pub const fn output_key(self) -> Option<&'static str> {
        match self {
            Self::Chat | Self::Completions | Self::Messages => Some("max_tokens"),
            Self::Responses => Some("max_output_tokens"),
            Self::Embeddings => None,
        }
    }

    /// The top-level keys that hold the prompt, in the order in which engines render them.
    pub const fn prompt_keys(self) -> &'static [&'static str] {
        match self {
            Self::Chat => &["tools", "messages"],
            Self::Messages => &["tools", "system", "messages"],
            Self::Completions => &["prompt"],
            Self::Embeddings => &["input"],
            Self::Responses => &["tools", "instructions", "input"],
        }
    }
}
