//! A line that comes in pieces.

/// The bytes kept of one line. Ten thousand streams that each hold as much are 640 MB, but engines
/// send a line whole, and only what is cut in two is kept.
const LINE_BYTES: usize = 64 << 10;
/// Of those, the bytes at the line's beginning: its field and its `type` stand there, its `usage`
/// at the end.
const HEAD_BYTES: usize = 1 << 10;
/// What stays allocated between two lines.
const IDLE_BYTES: usize = 4 << 10;

/// The beginning and the end of a line.
#[derive(Debug, Default)]
pub(super) struct PartialLine {
    bytes: Vec<u8>,
    cut: bool,
}

impl PartialLine {
    pub(super) const fn new() -> Self {
        Self { bytes: Vec::new(), cut: false }
    }

    pub(super) fn push(&mut self, mut more: &[u8]) {
        if self.bytes.len() + more.len() > LINE_BYTES {
            self.cut = true;
            let head = HEAD_BYTES.saturating_sub(self.bytes.len()).min(more.len());
            self.bytes.extend_from_slice(&more[..head]);
            let room = LINE_BYTES - HEAD_BYTES;
            more = &more[head.max(more.len().saturating_sub(room))..];
            // At most half of the room is moved, so that small pieces do not move all of it often.
            let stay = (room - more.len()).min(room / 2).min(self.bytes.len() - HEAD_BYTES);
            let gone_to = self.bytes.len() - stay;
            self.bytes.drain(HEAD_BYTES..gone_to);
        }
        self.bytes.extend_from_slice(more);
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether the middle is missing.
    pub(super) const fn is_cut(&self) -> bool {
        self.cut
    }

    pub(super) fn clear(&mut self) {
        self.cut = false;
        self.bytes.clear();
        if self.bytes.capacity() > IDLE_BYTES {
            self.bytes = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_and_the_end_of_a_long_line_stay() {
        for step in [1, 7, 1000, 40_000, 100_000, 300_000] {
            let line: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
            let mut partial = PartialLine::new();
            for piece in line.chunks(step) {
                partial.push(piece);
                assert!(partial.bytes().len() <= LINE_BYTES);
            }
            assert!(partial.is_cut());
            assert_eq!(partial.bytes()[..HEAD_BYTES], line[..HEAD_BYTES]);
            let tail = (LINE_BYTES - HEAD_BYTES) / 2;
            assert!(partial.bytes().len() >= HEAD_BYTES + tail, "{step}");
            assert!(partial.bytes().ends_with(&line[line.len() - tail..]), "{step}");
        }
    }

    #[test]
    fn a_short_line_stays_whole() {
        let mut partial = PartialLine::new();
        partial.push(b"data: ");
        partial.push(&[b'x'; LINE_BYTES - 6]);
        assert!(!partial.is_cut());
        assert_eq!(partial.bytes().len(), LINE_BYTES);
        partial.clear();
        assert!(partial.bytes().is_empty());
    }
}
