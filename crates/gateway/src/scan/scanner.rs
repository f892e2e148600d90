//! The grammar of the object at the top.

use super::blocks::Blocks;
use super::keys::{BodyFields, Guarded};
use super::media::{Found, Media};
use super::plain::is_plain;
use super::steering::{self, STEERING};
use super::windows::{Stuck, Walk};
use super::{ScanError, ScanLimits, Scanned, Steers};
use crate::surface::Surface;

/// Bytes of a key that are kept. The longest guarded one has 21; what is longer is none of them.
const KEY_BYTES: usize = 64;

/// Reads a body piece by piece.
#[derive(Debug)]
pub struct Scanner {
    surface: Surface,
    limits: ScanLimits,
    state: State,
    /// Where in the body the current piece begins.
    at: usize,
    key: Name,
    /// One bit per guarded key: those of [`Guarded`], then those of the prompt.
    seen: u32,
    /// The same of keys that steer.
    steering: Steers,
    sink: Sink,
    /// Right behind the first bracket.
    open: usize,
    /// Where the current value begins.
    value_begins: usize,
    /// The guarded value that is being read; at most `value_bytes` and its quotes.
    value: Vec<u8>,
    fields: BodyFields,
    prompt_bytes: u64,
    /// Brackets that open an array, in the prompts of a completion.
    arrays: u64,
    media: Media,
    /// All of the prompt's.
    found: Found,
    blocks: Blocks,
    /// A key stands there that may shape the answer.
    shaped: bool,
    /// Once refused, always refused.
    refused: Option<ScanError>,
}

impl Scanner {
    /// For a body of this interface.
    pub fn new(surface: Surface, limits: ScanLimits) -> Self {
        Self {
            surface,
            limits: ScanLimits { depth: limits.depth.min(64), ..limits },
            state: State::Start,
            at: 0,
            key: Name { bytes: [0; KEY_BYTES], len: 0, begins: 0 },
            seen: 0,
            steering: Steers::default(),
            sink: Sink::Nothing,
            open: 0,
            value_begins: 0,
            value: Vec::new(),
            fields: BodyFields::default(),
            prompt_bytes: 0,
            arrays: 0,
            media: Media::default(),
            found: Found::default(),
            blocks: Blocks::new(),
            shaped: false,
            refused: None,
        }
    }

    /// The next piece of the body.
    pub fn feed(&mut self, piece: &[u8]) -> Result<(), ScanError> {
        if let Some(refused) = &self.refused {
            return Err(refused.clone());
        }
        self.walk(piece).inspect_err(|refused| self.refused = Some(refused.clone()))
    }

    /// The body has ended. Its prefixes are chained with the model and salt that it says.
    pub fn finish(self) -> Result<Scanned, ScanError> {
        let (mut scanned, blocks) = self.end()?;
        let chained = blocks.chain(&scanned.model, scanned.cache_salt.as_deref());
        (scanned.prefixes, scanned.whole) = chained;
        Ok(scanned)
    }

    /// The same without prefixes, for who knows better what to chain them with.
    pub fn end(self) -> Result<(Scanned, Blocks), ScanError> {
        let prompts = self.prompts();
        if let Some(refused) = self.refused {
            return Err(refused);
        }
        if self.state != State::End {
            return Err(ScanError::NotJson { what: "it ends too early", at: self.at });
        }
        let plain = !self.shaped;
        let surface = self.surface;
        let scanned = self.fields.into_scanned(surface, self.open, self.prompt_bytes, plain)?;
        let Found { count: media, bytes: media_bytes, .. } = self.found;
        Ok((Scanned { prompts, media, media_bytes, ..scanned }, self.blocks))
    }

    /// Prompts of a completion: texts, or lists of numbers of tokens, which may be in a list themselves.
    fn prompts(&self) -> u64 {
        match (self.surface, self.found.strings) {
            (Surface::Completions, 0) => self.arrays.saturating_sub(1).max(1),
            (Surface::Completions, texts) => texts,
            _ => 0,
        }
    }

    fn walk(&mut self, piece: &[u8]) -> Result<(), ScanError> {
        let limit = self.limits.body_bytes;
        if piece.len() > limit - self.at {
            return Err(ScanError::TooLong { limit });
        }
        let mut next = 0;
        while next < piece.len() {
            next = match self.state {
                State::Key => self.in_key(piece, next)?,
                State::Scalar => self.in_scalar(piece, next)?,
                State::Deep(walk) => self.in_depth(piece, next, walk)?,
                _ => self.between(piece, next)?,
            };
        }
        self.at += piece.len();
        Ok(())
    }

    /// Everything that is neither key nor value: one byte.
    fn between(&mut self, piece: &[u8], next: usize) -> Result<usize, ScanError> {
        let byte = piece[next];
        if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
            return Ok(next + 1);
        }
        self.state = match (self.state, byte) {
            (State::Start, b'{') => {
                self.open = self.at + next + 1;
                State::FirstKey
            }
            (State::FirstKey | State::NextKey, b'"') => {
                self.key.len = 0;
                self.key.begins = self.at + next;
                State::Key
            }
            (State::FirstKey | State::AfterValue, b'}') => State::End,
            (State::Colon, b':') => State::Value,
            (State::AfterValue, b',') => State::NextKey,
            (State::Value, b'"' | b'{' | b'[') => {
                self.value_begins = self.at + next;
                self.state = State::Deep(Walk::into_value());
                return Ok(next);
            }
            (State::Value, byte) if is_scalar(byte) => {
                self.value_begins = self.at + next;
                State::Scalar
            }
            (state, _) => {
                return Err(ScanError::NotJson { what: state.complaint(), at: self.at + next });
            }
        };
        // A scalar's first byte belongs to it.
        Ok(if self.state == State::Scalar { next } else { next + 1 })
    }

    fn in_key(&mut self, piece: &[u8], from: usize) -> Result<usize, ScanError> {
        let rest = &piece[from..];
        let found = memchr::memchr2(b'"', b'\\', rest);
        self.key.extend(&rest[..found.unwrap_or(rest.len())]);
        let Some(place) = found else { return Ok(piece.len()) };
        if rest[place] == b'\\' {
            return Err(ScanError::Escaped { at: self.key.begins });
        }
        self.sink = self.key_ended()?;
        self.state = State::Colon;
        Ok(from + place + 1)
    }

    /// Says where the value goes.
    fn key_ended(&mut self) -> Result<Sink, ScanError> {
        // A key that was cut at the limit may end in half a character.
        let Some(name) = self.key.whole() else {
            self.shaped = true;
            return Ok(Sink::Nothing);
        };
        if name.iter().any(|byte| *byte < 0x20) || str::from_utf8(name).is_err() {
            let what = "a key that is not text";
            return Err(ScanError::NotJson { what, at: self.key.begins });
        }
        let prompt_keys = self.surface.prompt_keys();
        let (bit, name, sink) = if let Some(key) = Guarded::named(name) {
            (key as u32, key.name(), sink_of(key))
        } else if let Some(part) = prompt_keys.iter().position(|key| key.as_bytes() == name) {
            self.shaped |= prompt_keys[part] == "tools";
            (16 + part as u32, prompt_keys[part], Sink::Prompt(part))
        } else if let Some(place) = steering::named(name) {
            return self.steering_key(place);
        } else {
            self.shaped |= !is_plain(name);
            return Ok(Sink::Nothing);
        };
        if self.seen & 1 << bit != 0 {
            return Err(ScanError::Twice { key: name });
        }
        self.seen |= 1 << bit;
        Ok(sink)
    }

    fn steering_key(&mut self, place: usize) -> Result<Sink, ScanError> {
        if self.steering.has(place) {
            return Err(ScanError::Twice { key: STEERING[place] });
        }
        self.steering.add(place);
        // A priority is no part of what is answered; the others might be.
        self.shaped |= STEERING[place] != "priority";
        Ok(Sink::Steers(place))
    }

    fn in_scalar(&mut self, piece: &[u8], from: usize) -> Result<usize, ScanError> {
        let length = piece[from..].iter().position(|byte| !is_scalar(*byte));
        let to = length.map_or(piece.len(), |length| from + length);
        self.pour(&piece[from..to], &piece[from..to])?;
        if length.is_some() {
            self.value_ended(self.at + to)?;
        }
        Ok(to)
    }

    fn in_depth(&mut self, piece: &[u8], from: usize, mut walk: Walk) -> Result<usize, ScanError> {
        let at = (self.at, from);
        let walked = walk.on(piece, at, self.limits.depth, &mut self.media);
        let ended = walked.map_err(|stuck| match stuck {
            Stuck::TooDeep => ScanError::TooDeep { limit: self.limits.depth },
            Stuck::Mismatch(place) => {
                let what = "a bracket that closes one of the other kind";
                ScanError::NotJson { what, at: self.at + place }
            }
        })?;
        self.state = State::Deep(walk);
        let Some(end) = ended else {
            self.pour(&piece[from..], &piece[from..])?;
            return Ok(piece.len());
        };
        // Without the mark of its end, so that a longer conversation begins with all of this one.
        let grows = if piece[end - 1] == b'}' { end } else { end - 1 };
        self.pour(&piece[from..end], &piece[from..grows])?;
        self.value_ended(self.at + end)?;
        Ok(end)
    }

    /// More of the current value, and the part of that which a longer prompt would have too.
    fn pour(&mut self, bytes: &[u8], growing: &[u8]) -> Result<(), ScanError> {
        match self.sink {
            Sink::Nothing => {}
            Sink::Value(key) => {
                if self.value.len() + bytes.len() > self.limits.value_bytes + 2 {
                    return Err(key.wrong());
                }
                self.value.extend_from_slice(bytes);
            }
            Sink::Loose(_) | Sink::Steers(_) => {
                let room = (self.limits.value_bytes + 2).saturating_sub(self.value.len());
                self.value.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            Sink::Prompt(part) => {
                self.prompt_bytes += bytes.len() as u64;
                if self.surface == Surface::Completions {
                    self.arrays += memchr::memchr_iter(b'[', bytes).count() as u64;
                }
                self.blocks.feed(part, growing);
            }
        }
        Ok(())
    }

    fn value_ended(&mut self, end: usize) -> Result<(), ScanError> {
        let found = self.media.take();
        match self.sink {
            Sink::Nothing => {}
            Sink::Value(key) => {
                self.fields.take(key, &self.value, self.value_begins..end)?;
                self.value.clear();
            }
            Sink::Loose(key) => {
                let whole = end - self.value_begins == self.value.len();
                self.fields.take_loosely(key, &self.value, whole);
                self.value.clear();
            }
            Sink::Steers(place) => {
                // `null` says nothing.
                if self.value != b"null" {
                    self.fields.steers.add(place);
                }
                self.value.clear();
            }
            Sink::Prompt(part) => {
                self.found.count += found.count;
                self.found.bytes += found.bytes;
                self.found.strings += found.strings;
                self.blocks.end(part);
            }
        }
        self.sink = Sink::Nothing;
        self.state = State::AfterValue;
        Ok(())
    }
}

/// What the next byte may be.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// The object's bracket.
    Start,
    /// A key, or the object's end.
    FirstKey,
    /// A key.
    NextKey,
    /// More of a key.
    Key,
    /// The colon behind a key.
    Colon,
    /// The first byte of a value.
    Value,
    /// More of a number or a word.
    Scalar,
    /// More of a string, an array or an object.
    Deep(Walk),
    /// A comma, or the object's end.
    AfterValue,
    /// Nothing but white space.
    End,
}

impl State {
    const fn complaint(self) -> &'static str {
        match self {
            Self::Start => "something other than `{`",
            Self::FirstKey | Self::NextKey | Self::Key => "something other than a key",
            Self::Colon => "something other than `:`",
            Self::Value | Self::Scalar | Self::Deep(_) => "something other than a value",
            Self::AfterValue => "something other than `,` or `}`",
            Self::End => "something behind the end",
        }
    }
}

/// Where a value's bytes go.
#[derive(Clone, Copy, Debug)]
enum Sink {
    Nothing,
    Value(Guarded),
    /// It may be of any kind and length, and what is beyond the limit is left out.
    Loose(Guarded),
    /// Only whether it says anything.
    Steers(usize),
    Prompt(usize),
}

/// Where the value of a guarded key goes.
const fn sink_of(key: Guarded) -> Sink {
    match key {
        Guarded::User
        | Guarded::PromptCacheKey
        | Guarded::Temperature
        | Guarded::Seed
        | Guarded::ServiceTier => Sink::Loose(key),
        _ => Sink::Value(key),
    }
}

/// The key that is being read.
#[derive(Debug)]
struct Name {
    bytes: [u8; KEY_BYTES],
    /// Of all its bytes, kept or not.
    len: usize,
    begins: usize,
}

impl Name {
    fn extend(&mut self, more: &[u8]) {
        let length = self.len.min(KEY_BYTES);
        let taken = more.len().min(KEY_BYTES - length);
        self.bytes[length..length + taken].copy_from_slice(&more[..taken]);
        self.len += more.len();
    }

    fn whole(&self) -> Option<&[u8]> {
        self.bytes.get(..self.len)
    }
}

/// The bytes of numbers, `true`, `false` and `null`, and of what some parsers take beside them.
const fn is_scalar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}
