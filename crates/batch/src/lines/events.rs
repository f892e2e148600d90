//! Events of a stream, cut out of its bytes.

/// Bytes of one event. A response comes whole in its last one.
const MAX_EVENT_BYTES: usize = 64 << 20;

/// What has come of a stream and is not read yet.
#[derive(Debug, Default)]
pub(super) struct Events {
    bytes: Vec<u8>,
    read: usize,
}

impl Events {
    /// More bytes. False if an event is longer than any.
    pub(super) fn push(&mut self, more: &[u8]) -> bool {
        self.bytes.drain(..std::mem::take(&mut self.read));
        self.bytes.extend_from_slice(more);
        self.bytes.len() <= MAX_EVENT_BYTES
    }

    /// The data of the next event that has any. All engines put it into one line.
    pub(super) fn next(&mut self) -> Option<&[u8]> {
        loop {
            let rest = &self.bytes[self.read..];
            let end = memchr::memchr(b'\n', rest)?;
            let (from, to) = (self.read, self.read + end);
            self.read = to + 1;
            // Comments, names of events and empty lines say nothing here.
            if self.bytes[from..to].starts_with(b"data:") {
                return Some(self.bytes[from + 5..to].trim_ascii());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_found_wherever_the_stream_is_cut() {
        let text = b": wait\n\nevent: x\ndata: {\"a\":1}\r\n\r\ndata:[DONE]\n\n";
        for cut in 0..text.len() {
            let mut events = Events::default();
            let mut found = Vec::new();
            for piece in [&text[..cut], &text[cut..]] {
                assert!(events.push(piece));
                while let Some(data) = events.next() {
                    found.push(String::from_utf8(data.to_vec()).unwrap());
                }
            }
            assert_eq!(found, ["{\"a\":1}", "[DONE]"], "{cut}");
        }
    }
}
