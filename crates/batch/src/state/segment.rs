//! Results of some lines, in one object.
//!
//! A line of it is the line's number, `o` for output or `e` for error, and what belongs into that file.

use super::{BatchKey, StateError};
use bytes::Bytes;
use flyball_ledger::store::Store;
use std::fmt::Write as _;

/// What the name of a segment says. They are read in the order of their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SegmentName {
    pub(crate) path: String,
    pub(crate) completed: u64,
    pub(crate) failed: u64,
}

/// Results that are not in the store yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Segment {
    text: String,
    completed: u64,
    failed: u64,
}

impl Segment {
    pub(crate) fn push(&mut self, index: u32, is_success: bool, line: &str) {
        let kind = if is_success { 'o' } else { 'e' };
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "{index} {kind} {line}");
        *if is_success { &mut self.completed } else { &mut self.failed } += 1;
    }

    pub(crate) const fn lines(&self) -> u64 {
        self.completed + self.failed
    }

    pub(crate) const fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Its name and what is in it. No other worker and no other segment has this name.
    pub(crate) fn object(self, key: &BatchKey, epoch: u32, number: u32) -> (SegmentName, Bytes) {
        let (completed, failed) = (self.completed, self.failed);
        let path = format!("{}{epoch:08}-{number:08}-{completed}-{failed}", key.segments());
        (SegmentName { path, completed, failed }, self.text.into())
    }
}

/// All segments of a batch, by their names.
pub(crate) async fn listed<S: Store>(
    store: &S,
    key: &BatchKey,
) -> Result<Vec<SegmentName>, StateError> {
    let listed = store.list(&key.segments()).await?;
    listed.into_iter().map(|object| name(object.path)).collect()
}

fn name(path: String) -> Result<SegmentName, StateError> {
    let mut counts = path.rsplit('-').map(|digits| digits.parse().ok());
    match (counts.next().flatten(), counts.next().flatten()) {
        (Some(failed), Some(completed)) => Ok(SegmentName { path, completed, failed }),
        _ => Err(StateError::damaged(&path, "its name has no counts")),
    }
}

/// A line of a segment: its number, whether it is output, and the line itself.
pub(crate) fn lines<'a>(
    path: &'a str,
    bytes: &'a [u8],
) -> impl Iterator<Item = Result<(u32, bool, &'a str), StateError>> {
    let damaged = move || StateError::damaged(path, "a line is not one of results");
    let text = std::str::from_utf8(bytes).map_err(|_| damaged());
    let (text, wrong) = match text {
        Ok(text) => (text, None),
        Err(error) => ("", Some(Err(error))),
    };
    wrong.into_iter().chain(text.lines().map(move |line| {
        let mut parts = line.splitn(3, ' ');
        let (index, kind, rest) = (parts.next(), parts.next(), parts.next());
        let index = index.and_then(|digits| digits.parse().ok());
        match (index, kind, rest) {
            (Some(index), Some(kind @ ("o" | "e")), Some(rest)) => Ok((index, kind == "o", rest)),
            _ => Err(damaged()),
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_damage_is_an_error() {
        let mut segment = Segment::default();
        segment.push(7, true, r#"{"a": "b c"}"#);
        segment.push(0, false, "{}");
        assert_eq!(segment.lines(), 2);
        let key = BatchKey { tenant: "t".to_owned(), id: "b".to_owned() };
        let (found, bytes) = segment.object(&key, 3, 1);
        assert_eq!(name(found.path.clone()).unwrap(), found);
        assert_eq!((found.completed, found.failed), (1, 1));
        let read: Vec<_> = lines(&found.path, &bytes).map(Result::unwrap).collect();
        assert_eq!(read, [(7, true, r#"{"a": "b c"}"#), (0, false, "{}")]);
        for wrong in ["x o {}", "1 p {}", "1 o", "\u{0}"] {
            assert!(lines("p", wrong.as_bytes()).next().unwrap().is_err(), "{wrong}");
        }
        assert!(lines("p", &[0xff]).next().unwrap().is_err());
    }
}
