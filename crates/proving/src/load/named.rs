//! The model that an answer names, without reading the answer as JSON.

use memchr::memmem;

/// The first `"model":"…"` in the first kilobytes of an answer.
#[derive(Debug, Default)]
pub(super) struct Named {
    seen: Vec<u8>,
    name: Option<String>,
}

/// Engines name the model before or right behind the text; no answer of a test is longer.
const MOST_BYTES: usize = 16 << 10;

const KEY: &[u8] = b"\"model\":\"";

impl Named {
    pub(super) fn reset(&mut self) {
        self.seen.clear();
        self.name = None;
    }

    /// Takes the next piece.
    pub(super) fn feed(&mut self, content: &[u8]) {
        if self.name.is_some() || self.seen.len() >= MOST_BYTES {
            return;
        }
        // The key may have begun at the end of what was seen.
        let from = self.seen.len().saturating_sub(KEY.len() + 256);
        self.seen.extend_from_slice(content);
        let Some(at) = memmem::find(&self.seen[from..], KEY) else { return };
        let rest = &self.seen[from + at + KEY.len()..];
        if let Some(end) = memchr::memchr(b'"', rest) {
            self.name = Some(String::from_utf8_lossy(&rest[..end]).into_owned());
        }
    }

    pub(super) fn take(&mut self) -> Option<String> {
        self.name.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_is_found_wherever_pieces_are_cut() {
        let text = br#"data: {"id":"a","model":"team/one","choices":[]} data: {"model":"other"}"#;
        for size in 1..text.len() {
            let mut named = Named::default();
            text.chunks(size).for_each(|piece| named.feed(piece));
            assert_eq!(named.take().as_deref(), Some("team/one"), "{size}");
        }
    }
}
