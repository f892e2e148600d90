//! Ids of files and batches: the time first, so that a listing by name is one by time.

use flyball_core::units::Timestamp;
use std::fmt::Write as _;

/// Random bytes of an id. With the microsecond before them nobody meets another's.
const RANDOM: usize = 8;

/// Characters behind the prefix: 14 hexadecimal digits of microseconds last until the year 4253.
const DIGITS: usize = 14 + 2 * RANDOM;

/// What an id is made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewId {
    pub(crate) at: Timestamp,
    pub(crate) random: [u8; RANDOM],
}

impl NewId {
    /// Of a file.
    pub(crate) fn file(self) -> String {
        self.with("file-")
    }

    /// Of a batch.
    pub(crate) fn batch(self) -> String {
        self.with("batch_")
    }

    fn with(self, prefix: &str) -> String {
        let mut text = format!("{prefix}{:014x}", self.at.as_micros());
        for byte in self.random {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        text
    }
}

/// Whether a text has the form of an id with this prefix. Nothing else becomes part of a path.
pub(crate) fn is_id(text: &str, prefix: &str) -> bool {
    let hexadecimal = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    text.strip_prefix(prefix)
        .is_some_and(|rest| rest.len() == DIGITS && rest.bytes().all(hexadecimal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_in_the_order_of_their_times_and_nothing_else_is_one() {
        let at =
            |micros| NewId { at: Timestamp::from_micros(micros), random: [0xfe; RANDOM] }.file();
        assert!(at(1_800_000_000_000_000) < at(1_800_000_000_000_001));
        assert!(is_id(&at(5), "file-"));
        for wrong in ["file-", "file-../x", "batch_00", &at(5).to_uppercase(), &at(5)[1..]] {
            assert!(!is_id(wrong, "file-"), "{wrong}");
        }
    }
}
