//! The forms of requests and answers: OpenAI's and Anthropic's.
//!
//! [`ask`] reads a body into an [`ParsedRequest`], whatever its form, with what `fields` hold. [`chat`], [`responses`] and
//! [`messages`] write answers, whole or token by token; [`embeddings`] writes vectors; [`errors`]
//! writes what went wrong in the form that the path's clients expect.
//!
//! What it does not know: connections, time, engines. Start reading at [`ask::read`].

pub(crate) mod ask;
mod chat;
pub(crate) mod embeddings;
pub(crate) mod errors;
mod fields;
mod messages;
mod responses;

use crate::words;

/// Which form a request has, and its answer gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Chat,
    Completions,
    Responses,
    Messages,
    Embeddings,
}

/// A request that was understood.
#[derive(Clone, Debug)]
pub(crate) struct ParsedRequest {
    pub(crate) model: String,
    pub(crate) prompt: crate::prompt::Prompt,
    /// Tokens that will come out, and whether these are fewer than it allows.
    pub(crate) output: u32,
    pub(crate) stops: bool,
    pub(crate) stream: bool,
    /// Whether the stream shall end with the usage.
    pub(crate) include_usage: bool,
    pub(crate) inputs: Vec<embeddings::Input>,
    pub(crate) embedding: embeddings::EmbeddingOptions,
}

/// Who answers what: the same in every piece of an answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) form: Form,
    /// The number that its identifiers are made from.
    pub(crate) id: String,
    pub(crate) model: String,
    /// Seconds since 1970.
    pub(crate) created: u64,
    /// What says all words.
    pub(crate) voice: words::Voice,
    pub(crate) output: u32,
    pub(crate) stops: bool,
    pub(crate) include_usage: bool,
}

/// What is around a token of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) before: String,
    pub(crate) after: &'static str,
    /// The number of the first token's event, where events are numbered. It stands after `after`,
    /// and then `}` and the end of the event.
    pub(crate) first: Option<u32>,
}

impl Frame {
    /// Writes the event of a token.
    pub(crate) fn write(&self, token: u32, word: &str, into: &mut Vec<u8>) {
        into.extend_from_slice(self.before.as_bytes());
        into.extend_from_slice(word.as_bytes());
        into.extend_from_slice(self.after.as_bytes());
        if let Some(first) = self.first {
            into.extend_from_slice(format!("{}}}\n\n", first + token).as_bytes());
        }
    }
}

/// What a request took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) prompt: u32,
    pub(crate) cached: u32,
    pub(crate) output: u32,
}

impl Answer {
    /// What comes before the first token of a stream.
    pub(crate) fn opening(&self, usage: Usage) -> String {
        match self.form {
            Form::Chat => chat::opening(self),
            Form::Responses => responses::opening(self),
            Form::Messages => messages::opening(self, usage),
            Form::Completions | Form::Embeddings => String::new(),
        }
    }

    /// What is around every token of a stream; made once.
    pub(crate) fn frame(&self) -> Frame {
        match self.form {
            Form::Chat => chat::frame(self),
            Form::Completions | Form::Embeddings => chat::completion_frame(self),
            Form::Responses => responses::frame(self),
            Form::Messages => messages::frame(),
        }
    }

    /// What comes after the last token of a stream.
    pub(crate) fn closing(&self, usage: Usage) -> String {
        match self.form {
            Form::Chat | Form::Completions | Form::Embeddings => chat::closing(self, usage),
            Form::Responses => responses::closing(self, usage),
            Form::Messages => messages::closing(self, usage),
        }
    }

    /// The answer in one piece.
    pub(crate) fn whole(&self, usage: Usage) -> String {
        match self.form {
            Form::Chat => chat::whole(self, usage),
            Form::Completions | Form::Embeddings => chat::completion(self, usage),
            Form::Responses => responses::whole(self, usage),
            Form::Messages => messages::whole(self, usage),
        }
    }

    fn text(&self) -> String {
        self.voice.text(self.output)
    }
}

/// One event of a stream.
fn data(value: &serde_json::Value) -> String {
    format!("data: {value}\n\n")
}

/// One event of a stream that names its events.
fn event(value: &serde_json::Value) -> String {
    let name = value["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {value}\n\n")
}
