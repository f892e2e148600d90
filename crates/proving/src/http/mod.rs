//! As much of HTTP/1.1 as a bare upstream, a load generator and tests need: heads, lengths and chunks, and one question on
//! a connection of its own.
//!
//! Not for anybody else: it trusts its peer far more than a server on a network may.

mod exchange;

pub use exchange::{WholeAnswer, get, post, send, whole};

use memchr::memmem;

/// Bytes of a head; nobody here writes longer ones.
pub const HEAD_BYTES: usize = 16 << 10;
const HEADERS: usize = 64;

/// How long a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// So many bytes.
    Length(u64),
    /// In chunks.
    Chunked,
    /// Until the connection closes.
    Close,
}

/// What a head said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Bytes of the head, with the empty line.
    pub bytes: usize,
    /// Status of an answer; 0 in a request.
    pub status: u16,
    /// How long the body is.
    pub framing: Framing,
    /// The other side closes after this.
    pub closes: bool,
}

/// A head that is no HTTP.
#[derive(Debug, thiserror::Error)]
#[error("not an HTTP head: {0}")]
pub struct BadHead(String);

/// The head of an answer, once it is whole.
pub fn answer_head(bytes: &[u8]) -> Result<Option<Head>, BadHead> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut answer = httparse::Response::new(&mut headers);
    match answer.parse(bytes).map_err(|error| BadHead(error.to_string()))? {
        httparse::Status::Partial => Ok(None),
        httparse::Status::Complete(length) => {
            let status = answer.code.unwrap_or(0);
            let (framing, closes) = framing(answer.headers, Framing::Close)?;
            Ok(Some(Head { bytes: length, status, framing, closes }))
        }
    }
}

/// The head of a request, once it is whole, with its method and path.
pub fn request_head(bytes: &[u8]) -> Result<Option<(Head, &str, &str)>, BadHead> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes).map_err(|error| BadHead(error.to_string()))? {
        httparse::Status::Partial => Ok(None),
        httparse::Status::Complete(length) => {
            let (framing, closes) = framing(request.headers, Framing::Length(0))?;
            let head = Head { bytes: length, status: 0, framing, closes };
            let (method, path) = (request.method.unwrap_or(""), request.path.unwrap_or(""));
            Ok(Some((head, method, path)))
        }
    }
}

/// The value of a header in a whole head of an answer. The name is in small letters.
pub fn header_of<'a>(head: &'a [u8], name: &str) -> Option<&'a str> {
    let text = std::str::from_utf8(head).ok()?;
    let lines = text.split("\r\n").skip(1).filter_map(|line| line.split_once(':'));
    lines.filter(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
}

fn framing(
    headers: &[httparse::Header<'_>],
    otherwise: Framing,
) -> Result<(Framing, bool), BadHead> {
    let (mut framing, mut closes) = (otherwise, false);
    for header in headers {
        if header.name.eq_ignore_ascii_case("content-length") {
            let text = std::str::from_utf8(header.value).unwrap_or("").trim();
            let length = text.parse().map_err(|_| BadHead(format!("length {text:?}")))?;
            framing = Framing::Length(length);
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            framing = Framing::Chunked;
        } else if header.name.eq_ignore_ascii_case("connection") {
            closes = header.value.eq_ignore_ascii_case(b"close");
        }
    }
    Ok((framing, closes || framing == Framing::Close))
}

/// Reads a body piece by piece, whatever its framing, and says what of each piece is content.
#[derive(Clone, Debug)]
pub struct BodyReader {
    state: State,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Length(u64),
    Close,
    /// In the line that says how long a chunk is; digits so far.
    Size {
        line: Vec<u8>,
    },
    Data(u64),
    /// Line end after a chunk: bytes left.
    DataEnd(u8),
    /// In the lines after the last chunk: bytes of the line so far.
    Trailer(usize),
    Done,
}

impl BodyReader {
    /// For a body with this framing.
    pub fn new(framing: Framing) -> Self {
        let state = match framing {
            Framing::Length(0) => State::Done,
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::Size { line: Vec::new() },
            Framing::Close => State::Close,
        };
        Self { state }
    }

    /// The body is whole.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// The connection closed. True if that is how the body may end.
    pub fn closed(&self) -> bool {
        matches!(self.state, State::Done | State::Close)
    }

    /// Takes the next bytes; gives content to `content` and returns how many bytes were used.
    pub fn feed(&mut self, bytes: &[u8], mut content: impl FnMut(&[u8])) -> Result<usize, BadHead> {
        let mut used = 0;
        while used < bytes.len() && !self.is_done() {
            let rest = &bytes[used..];
            used += match &mut self.state {
                State::Done => 0,
                State::Close => {
                    content(rest);
                    rest.len()
                }
                State::Length(left) | State::Data(left) => {
                    let take = rest.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    content(&rest[..take]);
                    *left -= take as u64;
                    if *left == 0 {
                        self.state = match self.state {
                            State::Data(_) => State::DataEnd(2),
                            _ => State::Done,
                        };
                    }
                    take
                }
                State::DataEnd(left) => {
                    *left -= 1;
                    if *left == 0 {
                        self.state = State::Size { line: Vec::new() };
                    }
                    1
                }
                State::Size { line } => {
                    let (byte, line) = (rest[0], std::mem::take(line));
                    self.state = size_line(line, byte)?;
                    1
                }
                State::Trailer(length) => {
                    match rest[0] {
                        b'\n' if *length == 0 => self.state = State::Done,
                        b'\n' => *length = 0,
                        b'\r' => {}
                        _ => *length += 1,
                    }
                    1
                }
            };
        }
        Ok(used)
    }
}

fn size_line(mut line: Vec<u8>, byte: u8) -> Result<State, BadHead> {
    if byte != b'\n' {
        if line.len() > 64 {
            return Err(BadHead("the length of a chunk is longer than 64 digits".to_owned()));
        }
        line.push(byte);
        return Ok(State::Size { line });
    }
    let text = String::from_utf8_lossy(&line);
    let digits = text.split(';').next().unwrap_or("").trim();
    match u64::from_str_radix(digits, 16) {
        Ok(0) => Ok(State::Trailer(0)),
        Ok(size) => Ok(State::Data(size)),
        Err(_) => Err(BadHead(format!("chunk of length {digits:?}"))),
    }
}

/// Finds a needle in pieces that may be cut anywhere.
#[derive(Clone, Debug)]
pub struct Finder {
    needle: memmem::Finder<'static>,
    /// The end of what was seen, one byte shorter than the needle.
    tail: Vec<u8>,
    /// How often it was found.
    pub count: u64,
}

impl Finder {
    /// For this needle.
    pub fn new(needle: &'static [u8]) -> Self {
        Self { needle: memmem::Finder::new(needle), tail: Vec::new(), count: 0 }
    }

    /// Forgets what was seen.
    pub fn reset(&mut self) {
        self.tail.clear();
        self.count = 0;
    }

    /// Takes the next piece.
    pub fn feed(&mut self, piece: &[u8]) {
        let overlap = self.needle.needle().len() - 1;
        let start = &piece[..piece.len().min(overlap)];
        let across = self.tail.len();
        self.tail.extend_from_slice(start);
        if across > 0 {
            self.count += self.needle.find_iter(&self.tail).count() as u64;
        } else if piece.len() <= overlap {
            self.count += self.needle.find_iter(start).count() as u64;
        }
        if piece.len() > overlap {
            // With a tail, what lies wholly inside `start` cannot hold the needle: it is shorter.
            self.count += self.needle.find_iter(piece).count() as u64;
            self.tail.clear();
            self.tail.extend_from_slice(&piece[piece.len() - overlap..]);
        } else {
            let keep = self.tail.len().saturating_sub(overlap);
            self.tail.drain(..keep);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn heads_say_status_length_and_closing() {
        let head = answer_head(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").unwrap();
        let head = head.unwrap();
        assert_eq!((head.bytes, head.status, head.framing), (38, 200, Framing::Length(5)));
        assert!(!head.closes);
        assert!(answer_head(b"HTTP/1.1 200 OK\r\nConte").unwrap().is_none());
        assert!(answer_head(b"garbage\r\n\r\n").is_err());
        let text = b"POST /v1 HTTP/1.1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
        let (head, method, path) = request_head(text).unwrap().unwrap();
        assert_eq!((method, path, head.framing), ("POST", "/v1", Framing::Chunked));
        assert!(head.closes);
    }

    #[test]
    fn a_header_is_found_whatever_its_letters() {
        let head = b"HTTP/1.1 429 Busy\r\nX-Flyball-Reason: queue_full\r\nretry-after: 2\r\n\r\n";
        assert_eq!(header_of(head, "x-flyball-reason"), Some("queue_full"));
        assert_eq!(header_of(head, "retry-after"), Some("2"));
        assert_eq!(header_of(head, "reason"), None);
    }

    proptest! {
        #[test]
        fn chunks_are_read_alike_however_they_are_cut(
            parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..6),
            cut in 1usize..50,
        ) {
            let mut wire = Vec::new();
            for part in &parts {
                wire.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
                wire.extend_from_slice(part);
                wire.extend_from_slice(b"\r\n");
            }
            wire.extend_from_slice(b"0\r\n\r\n");
            let whole = wire.len();
            wire.extend_from_slice(b"HTTP/1.1");
            let (mut reader, mut read, mut used) =
                (BodyReader::new(Framing::Chunked), Vec::new(), 0);
            for piece in wire.chunks(cut) {
                used += reader.feed(piece, |content| read.extend_from_slice(content)).unwrap();
            }
            prop_assert!(reader.is_done());
            prop_assert_eq!(used, whole);
            prop_assert_eq!(read, parts.concat());
        }

        #[test]
        fn a_needle_is_counted_once_however_the_text_is_cut(
            words in prop::collection::vec(prop::sample::select(vec!["[DONE]", "x", "[DO", "NE]", "["]), 0..20),
            cut in 1usize..30,
        ) {
            let text = words.concat();
            let mut finder = Finder::new(b"[DONE]");
            for piece in text.as_bytes().chunks(cut) {
                finder.feed(piece);
            }
            prop_assert_eq!(finder.count, text.matches("[DONE]").count() as u64);
        }
    }
}
