//! Finds pictures, sounds and files inside a prompt. Engines do not read their bytes as text: a picture
//! of a megabyte is about a thousand tokens and not 350,000.
//!
//! A string is one if the string before it, its key, says so and it looks like one. The key is asked
//! because a text that begins with `data:` is text to an engine, whoever wrote it.

/// Bytes of a string by which it is told what it is.
const HEAD: usize = 32;

/// The shortest file that stands there without `data:`. What is shorter costs little either way.
const SHORTEST: usize = 64;

/// Keys whose value is a medium, in the words of OpenAI and Anthropic.
const NAMES: [&[u8]; 5] = [b"url", b"data", b"image_url", b"file_data", b"file_url"];

/// What was found in one value so far.
#[derive(Debug, Default)]
pub(super) struct Media {
    /// Where the current string begins, in bytes from the body's beginning.
    begins: usize,
    /// Its first bytes; what stands behind a shorter string is there too.
    head: [u8; HEAD],
    len: usize,
    /// Whether the string before was such a key.
    is_named: bool,
    found: Found,
}

/// Media of a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) count: u64,
    /// Of their strings.
    pub(super) bytes: u64,
    /// All strings, of whatever kind.
    pub(super) strings: u64,
}

impl Media {
    /// A string begins here with these bytes, as far as they have come.
    pub(super) fn begin(&mut self, at: usize, bytes: &[u8]) {
        (self.begins, self.len) = (at, 0);
        self.found.strings += 1;
        self.more(bytes);
    }

    /// More bytes of the string have come.
    pub(super) fn more(&mut self, bytes: &[u8]) {
        let taken = bytes.len().min(HEAD - self.len);
        self.head[self.len..self.len + taken].copy_from_slice(&bytes[..taken]);
        self.len += taken;
    }

    /// The string ends before this place.
    pub(super) fn end(&mut self, at: usize) {
        let length = at.saturating_sub(self.begins);
        let head = &self.head[..self.len.min(length)];
        if self.is_named && is_medium(head, length) {
            self.found.count += 1;
            self.found.bytes += length as u64;
        }
        self.is_named = length <= HEAD && NAMES.contains(&head);
    }

    /// The value has ended: what was found in it.
    pub(super) fn take(&mut self) -> Found {
        self.is_named = false;
        std::mem::take(&mut self.found)
    }
}

fn is_medium(head: &[u8], length: usize) -> bool {
    let of_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=-_".contains(byte);
    let is_address = (head.starts_with(b"data:") || head.starts_with(b"http"))
        && head.iter().all(u8::is_ascii_graphic);
    is_address || (length >= SHORTEST && head.iter().all(of_base64))
}
