//! Entries in a file: two bytes of length, four of checksum, and the entry.

use flyball_resources::usage::UsageEntry;

/// Bytes before an entry.
pub(crate) const HEAD: usize = 6;

/// Appends an entry with its head. One that is longer than any entry can be is left out.
pub(crate) fn append(into: &mut Vec<u8>, entry: &UsageEntry<'_>) {
    let start = into.len();
    into.extend_from_slice(&[0; HEAD]);
    entry.encode(into);
    let Ok(length) = u16::try_from(into.len() - start - HEAD) else {
        into.truncate(start);
        return;
    };
    let checksum = checksum(length, &into[start + HEAD..]);
    into[start..start + 2].copy_from_slice(&length.to_le_bytes());
    into[start + 2..start + HEAD].copy_from_slice(&checksum.to_le_bytes());
}

/// The entries of a file, up to the first that is not whole: what follows it cannot be found.
#[derive(Clone, Debug)]
pub(crate) struct Frames<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Frames<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes up to the end of the last entry that was whole.
    pub(crate) fn whole(&self) -> usize {
        self.at
    }

    fn frame(&self) -> Option<&'a [u8]> {
        let rest = self.bytes.get(self.at..)?;
        let (head, rest) = rest.split_first_chunk::<HEAD>()?;
        let length = u16::from_le_bytes([head[0], head[1]]);
        let bytes = rest.get(..usize::from(length))?;
        let sum = u32::from_le_bytes([head[2], head[3], head[4], head[5]]);
        (sum == checksum(length, bytes)).then_some(bytes)
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = UsageEntry<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.frame()?;
        // A whole entry of a newer version ends the file as a torn one does: it is not skipped, because money would go.
        let entry = UsageEntry::decode(bytes).ok()?;
        self.at += HEAD + bytes.len();
        Some(entry)
    }
}

/// The length is in it, so that zeros are no entry of no bytes.
fn checksum(length: u16, bytes: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new_with_initial(u32::from(length) ^ 0x464c_5942);
    sum.update(bytes);
    sum.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flyball_resources::usage::{UsageOpen, UsageRecord};

    fn three() -> Vec<u8> {
        let mut bytes = Vec::new();
        for request in 1..=3 {
            append(&mut bytes, &UsageEntry::Open(UsageOpen { request, ..Default::default() }));
        }
        bytes
    }

    #[test]
    fn a_tail_torn_anywhere_leaves_the_entries_before_it() {
        let bytes = three();
        let one = bytes.len() / 3;
        for end in 0..bytes.len() {
            let mut frames = Frames::new(&bytes[..end]);
            assert_eq!(frames.by_ref().count(), end / one, "cut at {end}");
            assert_eq!(frames.whole(), end / one * one);
        }
    }

    #[test]
    fn a_byte_that_changed_anywhere_ends_the_file_there() {
        let bytes = three();
        let one = bytes.len() / 3;
        for place in 0..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[place] ^= 1;
            assert_eq!(Frames::new(&wrong).count(), place / one, "changed at {place}");
        }
    }

    #[test]
    fn zeros_which_a_file_has_after_a_power_failure_are_no_entries() {
        let mut bytes = three();
        bytes.extend([0; 4_096]);
        assert_eq!(Frames::new(&bytes).count(), 3);
    }

    #[test]
    fn the_longest_entry_fits() {
        let long = "x".repeat(5_000);
        let mut record =
            UsageRecord { currency: &long, list_pico: Some(i64::MIN), ..Default::default() };
        record.parties.tenant = &long;
        record.parties.key = &long;
        record.parties.model = &long;
        record.parties.variant = &long;
        let mut bytes = Vec::new();
        append(&mut bytes, &UsageEntry::Close(record));
        assert_eq!(Frames::new(&bytes).count(), 1);
    }
}
