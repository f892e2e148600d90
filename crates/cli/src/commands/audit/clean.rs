//! What may be shown of a text that somebody else wrote: never a key, never a hash.
//!
//! Names and ids are checked where they are read. This is for everything that has no form of its own, and for whoever puts a
//! key where a name belongs.

/// In place of what is not shown.
pub(super) const HIDDEN: &str = "[hidden]";

/// How a key of Flyball's begins.
const KEY: &str = "sk-fly-";

/// Letters and digits without a break that may be a hash (64) or the secret of a key (43), and are no word.
const LONG_RUN: usize = 40;

/// Characters of a text; what is longer is cut.
const LONGEST: usize = 512;

/// Names of the API server and words of a gateway's log.
pub(super) fn text(text: &str) -> String {
    shown(text, true)
}

/// Name of a user. Some identity providers name people by hashes, and two of them must not look like one: only what is a
/// key by its form is hidden.
pub(super) fn user(text: &str) -> String {
    shown(text, false)
}

/// Name of a key as the schema has it, or that there is none that may be shown.
pub(super) fn key_name(name: &str) -> String {
    let bytes = name.as_bytes();
    let inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    let ends = bytes.first().into_iter().chain(bytes.last()).all(|byte| *byte != b'-');
    let fits = (1..=63).contains(&bytes.len()) && ends && bytes.iter().all(inner);
    if fits { text(name) } else { HIDDEN.to_owned() }
}

/// Public part of a key, if it is one.
pub(super) fn key_id(id: &str) -> Option<String> {
    let fits = id.len() == 10 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    fits.then(|| id.to_owned())
}

/// Name of a field, if it may be one.
pub(super) fn field(name: &str) -> String {
    let fits = name.len() < LONG_RUN && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if fits && !name.is_empty() { name.to_owned() } else { HIDDEN.to_owned() }
}

/// A moment, written anew: what is none is not shown.
pub(super) fn moment(text: &str) -> String {
    text.parse::<jiff::Timestamp>().map_or_else(|_| HIDDEN.to_owned(), |at| at.to_string())
}

fn shown(text: &str, runs: bool) -> String {
    let mut clean = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c: char| !is_of_key(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        if word.is_empty() {
            clean.push(if is_strange(first) { ' ' } else { first });
            rest = &rest[first.len_utf8()..];
            continue;
        }
        push_word(&mut clean, word, runs);
        rest = after;
    }
    if clean.chars().count() > LONGEST {
        clean = clean.chars().take(LONGEST).chain(['…']).collect();
    }
    clean
}

fn push_word(clean: &mut String, word: &str, runs: bool) {
    let lower = word.to_ascii_lowercase();
    let (word, has_key) = match lower.find(KEY) {
        Some(at) => (&word[..at], true),
        None => (word, false),
    };
    let mut parts = word.split_inclusive(['-', '_']);
    let long = |part: &str| runs && part.trim_end_matches(['-', '_']).len() >= LONG_RUN;
    if parts.any(long) {
        clean.push_str(HIDDEN);
    } else {
        clean.push_str(word);
    }
    if has_key {
        clean.push_str(HIDDEN);
    }
}

fn is_of_key(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

/// What a terminal could take for an order, and what turns the direction of a line.
fn is_strange(c: char) -> bool {
    let turns =
        matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns
}

#[cfg(test)]
mod tests {
    use super::*;

    const CANARY: &str = "sk-fly-k3J9xQ2mZa_0123456789012345678901234567890123456789012_abc123";

    #[test]
    fn keys_and_hashes_are_hidden_wherever_they_stand() {
        let hash = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";
        for secret in [CANARY, &CANARY.to_uppercase(), hash, &CANARY[18..61]] {
            for around in
                [format!("a {secret} b"), format!("a ({secret}) b"), format!("x-{secret}")]
            {
                let shown = text(&around);
                assert!(shown.contains(HIDDEN) && !shown.contains(&secret[20..40]), "{shown}");
            }
        }
        assert_eq!(user(&format!("oidc:{hash}")), format!("oidc:{hash}"));
        assert_eq!(user(CANARY), HIDDEN);
    }

    #[test]
    fn names_and_words_stay_as_they_are() {
        for plain in [
            "system:serviceaccount:flyball-system:flyball-operator",
            "jörg@example.com",
            "key k3J9xQ2mZa of ml/org/search",
            "+ml/search ~ml/other",
            "a-name-that-is-long-and-has-many-parts-and-is-still-a-name",
        ] {
            assert_eq!(text(plain), plain);
        }
        assert_eq!(text("a\u{1b}[31m\nb\u{202e}c"), "a [31m b c");
        assert_eq!(text(&"é ".repeat(1_000)).chars().count(), LONGEST + 1);
    }

    #[test]
    fn what_has_a_form_is_held_to_it() {
        assert_eq!(key_name("app-2"), "app-2");
        for wrong in ["", "-a", "a-", "App", CANARY, &"a".repeat(64), "a b"] {
            assert_eq!(key_name(wrong), HIDDEN, "{wrong}");
        }
        assert_eq!(key_id("k3J9xQ2mZa").as_deref(), Some("k3J9xQ2mZa"));
        assert_eq!(key_id(CANARY), None);
        assert_eq!(field("budgets"), "budgets");
        assert_eq!(field(CANARY), HIDDEN);
        assert_eq!(moment("2027-02-16T20:00:00Z"), "2027-02-16T20:00:00Z");
        assert_eq!(moment(CANARY), HIDDEN);
    }
}
