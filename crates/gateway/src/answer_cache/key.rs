//! What is the same request, and whose answers may be kept.

use super::ANSWER_BYTES;
use crate::scan::Scanned;
use crate::surface::Surface;
use bytes::Bytes;
use http::HeaderMap;
use http::header::CACHE_CONTROL;
use sha2::{Digest as _, Sha256};

/// Headers of a client that engines answer by.
const HEADERS: [&str; 2] = ["anthropic-version", "anthropic-beta"];

/// What is the same request: SHA-256 of all that its answer goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key([u8; 32]);

impl Key {
    /// Of these names, some headers, and the body as it came.
    pub(crate) fn of(names: [&str; 4], headers: &HeaderMap, pieces: &[Bytes]) -> Self {
        let mut hash = Sha256::new();
        let values =
            HEADERS.iter().map(|name| headers.get(*name).map_or(&[][..], |v| v.as_bytes()));
        // Each with its length before it, so that no two lists read the same.
        for part in names.iter().map(|name| name.as_bytes()).chain(values) {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        pieces.iter().for_each(|piece| hash.update(piece));
        Self(hash.finalize().into())
    }
}

/// Whether a request would get the same answer again, and its client does not forbid to keep it.
///
/// A response (of that interface) can be referred to by the next one, so it is not only its text. A
/// body that is longer than any kept answer is not worth its hash: 32 MiB would take the thread 20 ms.
pub(crate) fn may_be(
    surface: Surface,
    scanned: &Scanned,
    headers: &HeaderMap,
    pieces: &[Bytes],
) -> bool {
    let bytes: usize = pieces.iter().map(Bytes::len).sum();
    scanned.greedy
        && scanned.answers.is_none_or(|answers| answers == 1)
        && surface != Surface::Responses
        && bytes <= ANSWER_BYTES
        && !has_directive(headers, "no-store")
}

/// Whether `cache-control` says this word.
pub(super) fn has_directive(headers: &HeaderMap, word: &str) -> bool {
    let values = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .any(|directive| directive.trim().eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn with(name: &'static str, value: &'static str) -> HeaderMap {
        let name = http::HeaderName::from_static(name);
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn a_key_goes_by_everything_and_not_by_cuts() {
        let pieces = |cut: &[&'static str]| -> Vec<Bytes> {
            cut.iter().map(|piece| Bytes::from_static(piece.as_bytes())).collect()
        };
        let (names, none) = (["s", "/p", "m", ""], HeaderMap::new());
        let key = Key::of(names, &none, &pieces(&["abc"]));
        assert_eq!(key, Key::of(names, &none, &pieces(&["a", "bc"])));
        assert_eq!(key, Key::of(names, &with("accept", "x"), &pieces(&["abc"])));
        for other in [
            Key::of(names, &none, &pieces(&["abd"])),
            Key::of(names, &with("anthropic-beta", "x"), &pieces(&["abc"])),
            Key::of(["", "/p", "m", ""], &none, &pieces(&["abc"])),
            Key::of(["s", "/p", "m", "n"], &none, &pieces(&["abc"])),
            Key::of(["s", "/pm", "", ""], &none, &pieces(&["abc"])),
        ] {
            assert_ne!(key, other);
        }
    }

    #[test]
    fn only_what_would_be_the_same_again_is_kept() {
        let scanned = |greedy, answers| Scanned { greedy, answers, ..Scanned::default() };
        let may = |surface, scanned: &Scanned, headers| may_be(surface, scanned, &headers, &[]);
        let none = HeaderMap::new;
        assert!(may(Surface::Chat, &scanned(true, None), none()));
        assert!(may(Surface::Messages, &scanned(true, Some(1)), with("cache-control", "no-cache")));
        assert!(!may(Surface::Chat, &scanned(true, Some(2)), none()));
        assert!(!may(Surface::Chat, &scanned(false, None), none()));
        assert!(!may(Surface::Responses, &scanned(true, None), none()));
        let no_store = with("cache-control", "max-age=0, No-Store");
        assert!(!may(Surface::Chat, &scanned(true, None), no_store));
        let long = [Bytes::from(vec![b' '; ANSWER_BYTES + 1])];
        assert!(!may_be(Surface::Chat, &scanned(true, None), &none(), &long));
    }
}
