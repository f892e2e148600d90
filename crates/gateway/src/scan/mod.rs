//! Reads what the gateway must know out of a JSON body while its bytes arrive.
//!
//! No tree is built and nothing is written anew: the bytes that came are the bytes that go on. It
//! knows the grammar of an object at the top, brackets and strings below it, and a few guarded keys.
//! Of those, each may stand once and in plain spelling, because engines take the last of two equal
//! keys and read `"m\u006fdel"` as `"model"` (reliability.md T-19). It knows no tokens, no network
//! and no clock.
//!
//! `scanner` walks the grammar, `windows` goes through long values 64 bytes at a time, `media` finds
//! pictures among them, `keys` says what a guarded value must be, `plain` which keys leave an answer
//! plain text, `steering` which steer an engine, `blocks` hashes the prompt. It also marks the few places
//! at which the gateway may change a body; `edit` does that.
//!
//! Start at [`Scanner`].

mod blocks;
mod keys;
mod media;
mod plain;
mod scanner;
mod steering;
mod windows;

#[cfg(test)]
mod guarded;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

pub use blocks::Blocks;
pub use scanner::Scanner;
pub use steering::{STEERING, Steers};

use std::ops::Range;

/// Bytes of prompt text in one block of affinity: about 256 tokens of English.
pub const BLOCK_BYTES: usize = 1024;

/// What a body may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanLimits {
    /// Bytes of the whole body.
    pub body_bytes: usize,
    /// Objects and arrays inside each other; at most 64.
    pub depth: u32,
    /// Bytes of a guarded value, such as a model's name.
    pub value_bytes: usize,
}

impl ScanLimits {
    /// Bodies of 32 MiB: two million tokens of text, with room for a few pictures. Nobody nests a
    /// request 64 deep. Model names are paths of at most a few hundred bytes.
    pub const DEFAULT: Self = Self { body_bytes: 32 << 20, depth: 64, value_bytes: 512 };
}

/// What a body says, as far as the gateway needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// The model that is asked for.
    pub model: String,
    /// Whether the answer comes as a stream.
    pub stream: bool,
    /// Whether the stream's last event tells the tokens used (`stream_options.include_usage`).
    pub include_usage: bool,
    /// The most tokens that one answer may have, if said (`max_tokens`, `max_completion_tokens`,
    /// `max_output_tokens`; the least of those said).
    pub max_tokens: Option<u64>,
    /// The same of those that engines of this interface go by; the greatest of those said. An answer is never longer.
    pub most_output: Option<u64>,
    /// How many answers (`n`, `best_of`; the greater of those said).
    pub answers: Option<u64>,
    /// A salt that the caller sets for prefix caches.
    pub cache_salt: Option<String>,
    /// Whether a temperature of 0 is said: the same request would get the same answer again.
    pub greedy: bool,
    /// Whether a `seed` is said.
    pub seeded: bool,
    /// A hash of what `user` says, or else `prompt_cache_key`, as it is written.
    pub session: Option<u64>,
    /// Whether it asks for the service tier `flex`: it may wait until nobody else wants anything.
    pub flex: bool,
    /// What it says that steers an engine.
    pub steers: Steers,
    /// Places in the body at which it may be changed.
    pub marks: Marks,
    /// Whether nothing is said that shapes the answer in a way that another engine could not go on
    /// with: no tools, no schema, nothing unknown.
    pub plain: bool,
    /// Prompts of a completion, each of which gets answers of its own; 0 in other interfaces, where there is one.
    pub prompts: u64,
    /// Bytes of the values that hold the prompt.
    pub prompt_bytes: u64,
    /// Pictures, sounds and files among them.
    pub media: u64,
    /// Bytes of these.
    pub media_bytes: u64,
    /// Hashes of the prompt's leading blocks of [`BLOCK_BYTES`], each over everything before its
    /// end and the model and salt too. The blocks of the prompt's keys follow each other in the
    /// order of [`crate::Surface::prompt_keys`], whatever their order in the body.
    pub prefixes: Vec<u64>,
    /// A hash of the whole prompt, with the model and the salt.
    pub whole: u64,
}

/// Places in a body, in bytes from its beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Right behind the first bracket. A member follows, because `model` must stand.
    pub open: usize,
    /// The value of `model`, with its quotes.
    pub model: Range<usize>,
    /// The value of `cache_salt`, if that key stands, whatever it says.
    pub cache_salt: Option<Range<usize>>,
    /// The `null` of the key that says how long an answer may be ([`crate::Surface::output_key`]), if it stands there.
    pub no_output: Option<Range<usize>>,
    /// The value of `stream_options`, if that key stands and asks for no usage, and what it says if it does.
    pub stream_options: Option<(Range<usize>, String)>,
}

/// Why a body is refused. All of them are the client's to mend.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScanError {
    /// More bytes than allowed.
    #[error("the body is longer than {limit} bytes")]
    TooLong {
        /// The bytes allowed.
        limit: usize,
    },
    /// Nested deeper than allowed.
    #[error("the body nests deeper than {limit} levels")]
    TooDeep {
        /// The levels allowed.
        limit: u32,
    },
    /// A guarded key stands twice.
    #[error("`{key}` appears more than once; engines would use the last, so send it once")]
    Twice {
        /// Which.
        key: &'static str,
    },
    /// A key at the top is spelled with escapes.
    #[error("a key at byte {at} contains an escape sequence; write it without")]
    Escaped {
        /// Where it begins.
        at: usize,
    },
    /// A guarded key has a value of the wrong kind or beyond its limit.
    #[error("`{key}` must be {expected}")]
    Wrong {
        /// Which.
        key: &'static str,
        /// What it must be.
        expected: &'static str,
    },
    /// A key stands that steers the engine, and its model does not pass it on.
    #[error(
        "`{key}` steers the engine and can affect other requests; remove it, or ask the \
         administrator of this gateway to allow it for the model (`engine_keys`)"
    )]
    Steers {
        /// Which.
        key: &'static str,
    },
    /// No model is named.
    #[error("`model` is missing")]
    NoModel,
    /// Not a JSON object.
    #[error("the body is not a JSON object: {what} at byte {at}")]
    NotJson {
        /// What is wrong.
        what: &'static str,
        /// Where.
        at: usize,
    },
}
