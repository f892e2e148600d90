//! Lines and events of a stream.

use super::event_fields::{Counts, EventFields, last_usage, mentions_error, mentions_usage};
use super::finish::{Ending, Finish, incomplete_reason};
use super::partial_line::PartialLine;
use super::{Progress, SseError, SseProgress};
use crate::surface::Surface;

/// The longest name of a field that is let through. Those in use have five bytes at most.
const FIELD_BYTES: usize = 32;
/// The byte order mark, which a stream may begin with.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Watches a stream of events (SSE).
#[derive(Debug)]
pub struct Watcher {
    surface: Surface,
    seen: SseProgress,
    counts: Counts,
    ending: Ending,
    /// No line has ended yet.
    at_start: bool,
    /// The last byte was a carriage return; a line feed that follows belongs to it.
    after_return: bool,
    /// Bytes of the current line that came with earlier pieces, and what is kept of them.
    line_bytes: usize,
    partial: PartialLine,
    event: Event,
    /// Once broken, always broken.
    broken: Option<SseError>,
}

impl Watcher {
    /// The longest line: the tool call of a large file fits, an endless one does not.
    pub const LINE_BYTES: usize = 1 << 20;

    /// For an answer of this interface.
    pub fn new(surface: Surface) -> Self {
        Self {
            surface,
            seen: SseProgress::default(),
            counts: Counts::default(),
            ending: Ending::default(),
            at_start: true,
            after_return: false,
            line_bytes: 0,
            partial: PartialLine::new(),
            event: Event::default(),
            broken: None,
        }
    }

    /// The next piece of the answer.
    pub fn feed(&mut self, piece: &[u8]) -> Result<Progress, SseError> {
        if let Some(broken) = self.broken {
            return Err(broken);
        }
        let before = self.seen.events;
        if let Err(broken) = self.walk(piece) {
            self.broken = Some(broken);
            return Err(broken);
        }
        Ok(Progress {
            events: u32::try_from(self.seen.events - before).unwrap_or(u32::MAX),
            between_events: self.line_bytes == 0 && !self.event.begun,
        })
    }

    /// What was seen so far.
    pub const fn seen(&self) -> &SseProgress {
        &self.seen
    }

    fn walk(&mut self, mut rest: &[u8]) -> Result<(), SseError> {
        while !rest.is_empty() {
            if std::mem::take(&mut self.after_return) && rest[0] == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let Some(end) = memchr::memchr3(b'\n', b'\r', 0, rest) else {
                return self.keep(rest);
            };
            if rest[end] == 0 {
                return Err(SseError::Garbage);
            }
            self.line_ended(&rest[..end])?;
            self.after_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
        }
        Ok(())
    }

    /// The piece ends within a line.
    fn keep(&mut self, part: &[u8]) -> Result<(), SseError> {
        self.grow_to(self.line_bytes + part.len())?;
        self.line_bytes += part.len();
        self.partial.push(part);
        // Garbage may never have a line's end.
        if self.at_start && MARK.starts_with(self.partial.bytes()) {
            return Ok(());
        }
        let line = without_mark(self.partial.bytes(), self.at_start);
        if line.len() > FIELD_BYTES { field(line).map(drop) } else { begins_well(line) }
    }

    fn grow_to(&self, bytes: usize) -> Result<(), SseError> {
        match bytes <= Self::LINE_BYTES {
            true => Ok(()),
            false => Err(SseError::LineTooLong { limit: Self::LINE_BYTES }),
        }
    }

    fn line_ended(&mut self, end: &[u8]) -> Result<(), SseError> {
        self.grow_to(self.line_bytes + end.len())?;
        if self.line_bytes == 0 {
            self.line(end, false)?;
        } else {
            self.partial.push(end);
            let mut partial = std::mem::take(&mut self.partial);
            let taken = self.line(partial.bytes(), partial.is_cut());
            partial.clear();
            self.partial = partial;
            self.line_bytes = 0;
            taken?;
        }
        self.at_start = false;
        Ok(())
    }

    /// A line without its end; perhaps without its middle.
    fn line(&mut self, line: &[u8], cut: bool) -> Result<(), SseError> {
        let line = without_mark(line, self.at_start);
        if line.is_empty() {
            self.event_ended();
            return Ok(());
        }
        match field(line)? {
            (b"", _) => return Ok(()),
            (b"data", value) => self.data(value, cut),
            (b"event", name) => self.event.name(name),
            _ => {}
        }
        self.event.begun = true;
        Ok(())
    }

    fn data(&mut self, json: &[u8], cut: bool) {
        self.event.has_data = true;
        if json == b"[DONE]" {
            self.event.kind = Kind::End;
            return;
        }
        if let Some(finish) = self.ending.read(self.surface, json) {
            self.seen.finish = Some(finish);
        }
        // Few events tell anything of what is wanted here, so few are read.
        let nameless = self.event.kind == Kind::Unnamed
            && matches!(self.surface, Surface::Responses | Surface::Messages);
        let usage = mentions_usage(json);
        if !(usage || nameless || mentions_error(json)) {
            return;
        }
        let fields = if cut { None } else { EventFields::read(json) };
        let counts = match &fields {
            Some(fields) => fields.counts(),
            None if cut && usage => last_usage(json),
            None => None,
        };
        if let Some(counts) = counts {
            self.counts.add(counts);
            self.seen.usage = self.counts.usage();
        }
        if let Some(fields) = fields {
            self.event.error |= fields.is_error();
            if let Some(kind) = fields.kind.filter(|_| nameless) {
                self.event.name(kind.as_bytes());
            }
        }
        if let Some(reason) = self.event.finish.and_then(|_| incomplete_reason(json)) {
            self.event.finish = Some(Finish::of(reason));
        }
    }

    /// An empty line: what came since the last one counts now, as it does for the client.
    fn event_ended(&mut self) {
        let event = std::mem::take(&mut self.event);
        if !event.has_data {
            return;
        }
        self.seen.error |= event.error;
        self.seen.finish = event.finish.or(self.seen.finish);
        match event.kind {
            Kind::Unnamed | Kind::Other => self.seen.events += 1,
            Kind::LastWord => {
                self.seen.events += 1;
                self.seen.ended = true;
            }
            Kind::End => self.seen.ended = true,
            Kind::Ping => {}
        }
    }
}

/// What is known of the current event.
#[derive(Debug, Default)]
struct Event {
    /// A field has come.
    begun: bool,
    has_data: bool,
    kind: Kind,
    error: bool,
    /// What its name says about why the answer ended.
    finish: Option<Finish>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    /// Nothing said what it is.
    #[default]
    Unnamed,
    Other,
    /// The end mark, which carries nothing.
    End,
    /// The last event, which carries something.
    LastWord,
    /// No more progress than a comment.
    Ping,
}

impl Event {
    fn name(&mut self, name: &[u8]) {
        self.kind = match name {
            b"message_stop" => Kind::End,
            b"response.completed" => {
                self.finish = Some(Finish::Stop);
                Kind::LastWord
            }
            b"response.incomplete" => {
                self.finish = Some(Finish::Length);
                Kind::LastWord
            }
            b"response.failed" => {
                self.error = true;
                Kind::LastWord
            }
            b"error" => {
                self.error = true;
                Kind::Other
            }
            b"ping" => Kind::Ping,
            _ => Kind::Other,
        };
    }
}

fn without_mark(line: &[u8], at_start: bool) -> &[u8] {
    match at_start {
        true => line.strip_prefix(MARK).unwrap_or(line),
        false => line,
    }
}

/// Name and value. A comment has no name.
fn field(line: &[u8]) -> Result<(&[u8], &[u8]), SseError> {
    let head = &line[..line.len().min(FIELD_BYTES + 1)];
    let Some(colon) = memchr::memchr(b':', head) else {
        // A name alone is a field without a value.
        return match line {
            b"data" | b"event" | b"id" | b"retry" => Ok((line, b"")),
            _ => Err(SseError::Garbage),
        };
    };
    begins_well(&line[..colon])?;
    let value = &line[colon + 1..];
    Ok((&line[..colon], value.strip_prefix(b" ").unwrap_or(value)))
}

/// The first bytes of a line, as far as they are there.
fn begins_well(line: &[u8]) -> Result<(), SseError> {
    let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    match name.iter().all(fits) {
        true => Ok(()),
        false => Err(SseError::Garbage),
    }
}
