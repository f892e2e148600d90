//! Reads a key that a caller shows.

use super::{CHECKED, CHECKSUM, ID, KeyHash, LENGTH, PREFIX, SECRET, base62};
use std::fmt;

/// A key that has the form of one. Nobody knows yet whether it is somebody's.
#[derive(Clone, Copy)]
pub struct PresentedKey<'a> {
    id: &'a str,
    whole: &'a [u8],
}

/// Why something is not a key. It says nothing of what was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyRefusal {
    /// It does not begin as one.
    #[error("the key does not begin with sk-fly-")]
    Prefix,
    /// It is cut, or has something behind it.
    #[error("the key does not have {LENGTH} characters")]
    Length,
    /// A character is none of a key, or a separator is not in its place.
    #[error("the key has a character that no key has in this place")]
    Character,
    /// It was typed or copied wrongly, or made up.
    #[error("the checksum of the key is wrong")]
    Checksum,
}

impl<'a> PresentedKey<'a> {
    /// Reads the bytes of a header. The checksum is looked at before anything is hashed.
    pub fn read(shown: &'a [u8]) -> Result<Self, KeyRefusal> {
        let rest = shown.strip_prefix(PREFIX.as_bytes()).ok_or(KeyRefusal::Prefix)?;
        if shown.len() != LENGTH {
            return Err(KeyRefusal::Length);
        }
        let (id, rest) = rest.split_at(ID);
        let (secret, checksum) = rest.split_at(1 + SECRET);
        let parted = secret[0] == b'_' && checksum[0] == b'_';
        let digits = |part: &[u8]| part.iter().all(u8::is_ascii_alphanumeric);
        if !parted || ![id, &secret[1..], &checksum[1..]].into_iter().all(digits) {
            return Err(KeyRefusal::Character);
        }
        let stated = base62::value(&shown[LENGTH - CHECKSUM..]);
        if stated != Some(crc32fast::hash(&shown[..CHECKED])) {
            return Err(KeyRefusal::Checksum);
        }
        let id = std::str::from_utf8(id).map_err(|_| KeyRefusal::Character)?;
        Ok(Self { id, whole: shown })
    }

    /// The public part, which may be shown and logged. It says nothing about who sent it before the hash is found.
    pub const fn id(&self) -> &'a str {
        self.id
    }

    /// By which its owner is found.
    pub fn hash(&self) -> KeyHash {
        KeyHash::of(self.whole)
    }
}

impl fmt::Debug for PresentedKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PresentedKey({})", self.id)
    }
}
