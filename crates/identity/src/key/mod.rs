//! Keys of Flyball's own form: `sk-fly-<id>_<secret>_<checksum>`.
//!
//! `id` is ten letters and digits that may be shown and logged. `secret` is 256 random bits as 43 letters and digits: no
//! other character, so that a double click takes all of it and a scanner finds it (`sk-fly-[0-9A-Za-z]{10}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}`).
//! The checksum is the CRC-32 of everything before it: a key that was typed or cut wrongly costs no hash and no lookup.
//!
//! Only the SHA-256 of the whole key is stored. A plain hash is enough, because nobody can try 2^256 secrets; a slow one
//! would let strangers keep a gateway busy.

mod base62;
mod read;
mod table;

pub use read::{KeyRefusal, PresentedKey};
pub use table::KeyTable;

use ring::digest;
use std::fmt;

/// How every key begins.
pub(crate) const PREFIX: &str = "sk-fly-";
/// Characters of the public part.
const ID: usize = 10;
/// Characters of 256 bits: 62^43 is 1.7 % more than 2^256.
const SECRET: usize = 43;
/// Characters of 32 bits.
const CHECKSUM: usize = 6;
/// Characters before the last separator, which the checksum is of.
const CHECKED: usize = PREFIX.len() + ID + 1 + SECRET;
/// Characters of a key.
const LENGTH: usize = CHECKED + 1 + CHECKSUM;
/// Random bytes of a key: those of the secret, and eight for the id.
const RANDOM: usize = 32 + 8;

/// SHA-256 of a whole key, which is all that may be stored of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash(pub [u8; 32]);

/// A key that was just made. Its text is shown to its owner once and stored nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct NewKey(String);

impl NewKey {
    /// Random bytes that a key needs, from the operating system's generator.
    pub const RANDOM_BYTES: usize = RANDOM;

    /// The key of these random bytes.
    pub fn make(random: &[u8; RANDOM]) -> Self {
        let (secret, id) = random.split_at(32);
        let mut text = String::with_capacity(LENGTH);
        text.push_str(PREFIX);
        base62::push(&mut text, id, ID);
        text.push('_');
        base62::push(&mut text, secret, SECRET);
        let checksum = crc32fast::hash(text.as_bytes());
        text.push('_');
        base62::push(&mut text, &checksum.to_be_bytes(), CHECKSUM);
        Self(text)
    }

    /// The public part, which may be shown and logged.
    pub fn id(&self) -> &str {
        &self.0[PREFIX.len()..PREFIX.len() + ID]
    }

    /// What is stored.
    pub fn hash(&self) -> KeyHash {
        KeyHash::of(self.0.as_bytes())
    }

    /// The whole key, for its owner and nobody else.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for NewKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NewKey({})", self.id())
    }
}

impl KeyHash {
    /// Of the bytes as they were sent.
    pub fn of(key: &[u8]) -> Self {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest::digest(&digest::SHA256, key).as_ref());
        Self(hash)
    }

    /// 64 small hexadecimal digits, as a Tenant stores them.
    pub fn to_hex(self) -> String {
        use fmt::Write as _;
        self.0.iter().fold(String::with_capacity(64), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Enough to tell two apart in a log.
        let [a, b, c, d, ..] = self.0;
        write!(f, "KeyHash({a:02x}{b:02x}{c:02x}{d:02x}..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Counted up from 0, by hand in another language: the form does not change unseen.
    const KNOWN: &str = "sk-fly-l1UyNnS4W7_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf_2Owe3k";

    fn counted() -> [u8; RANDOM] {
        std::array::from_fn(|index| index as u8)
    }

    #[test]
    fn the_form_is_the_published_one() {
        let key = NewKey::make(&counted());
        assert_eq!(key.expose(), KNOWN);
        assert_eq!(key.expose().len(), LENGTH);
        assert_eq!(
            key.hash().to_hex(),
            "cf0fa17a9db31daf7767554c8d29fb685cb569140cfc8378ec252b3576d479b4"
        );
    }

    #[test]
    fn nothing_of_the_secret_is_shown_by_accident() {
        let key = NewKey::make(&counted());
        let secret = &key.expose()[CHECKED - SECRET..];
        let presented = PresentedKey::read(key.expose().as_bytes()).unwrap();
        let shown = format!("{key:?} {presented:?} {:?}", key.hash());
        // No four characters of it, wherever they begin.
        for part in secret.as_bytes().windows(4) {
            let part = std::str::from_utf8(part).unwrap();
            assert!(!shown.contains(part), "{shown} has {part}");
        }
    }

    #[test]
    fn extremes_have_the_same_length_and_are_read() {
        for random in [[0; RANDOM], [0xff; RANDOM]] {
            let key = NewKey::make(&random);
            assert_eq!(key.expose().len(), LENGTH);
            assert!(PresentedKey::read(key.expose().as_bytes()).is_ok());
        }
    }

    proptest! {
        #[test]
        fn what_is_made_is_read_and_no_two_are_alike(a: [u8; 32], b: [u8; 32], id: [u8; 8]) {
            let of = |secret: [u8; 32]| {
                let mut random = [0; RANDOM];
                random[..32].copy_from_slice(&secret);
                random[32..].copy_from_slice(&id);
                NewKey::make(&random)
            };
            let (first, second) = (of(a), of(b));
            let read = PresentedKey::read(first.expose().as_bytes()).unwrap();
            prop_assert_eq!(read.id(), first.id());
            prop_assert_eq!(read.hash(), first.hash());
            prop_assert_eq!(a == b, first == second);
        }
    }
}
