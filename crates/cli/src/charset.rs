//! Which characters the terminal can show.

use std::borrow::Cow;
use std::env;

/// What may be drawn. Files that we write are always UTF-8; only a terminal may be older.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charset {
    Utf8,
    Ascii,
}

impl Charset {
    /// As the locale says: the first of LC_ALL, LC_CTYPE and LANG that is set decides.
    pub(crate) fn of_locale() -> Charset {
        Charset::named(["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(env::var_os).map(
            // A name that is not even text names no character set.
            |value| value.into_string().unwrap_or_default(),
        ))
    }

    fn named(mut values: impl Iterator<Item = String>) -> Charset {
        let name = values.find(|value| !value.is_empty()).unwrap_or_default();
        let name: String = name.chars().filter(|c| *c != '-').collect();
        if name.to_ascii_lowercase().contains("utf8") { Charset::Utf8 } else { Charset::Ascii }
    }

    /// The text as it may be shown: one line, and our own symbols in words of ASCII if need be.
    /// Letters of names stay as they are: a wrong letter on an old terminal says more than none.
    pub(crate) fn fold(self, text: &str) -> Cow<'_, str> {
        let strange = |c: char| c.is_control() || (self == Charset::Ascii && ascii(c).is_some());
        if !text.contains(strange) {
            return Cow::Borrowed(text);
        }
        let mut folded = String::with_capacity(text.len());
        for c in text.chars() {
            match ascii(c) {
                _ if c.is_control() => folded.push(' '),
                Some(word) if self == Charset::Ascii => folded.push_str(word),
                _ => folded.push(c),
            }
        }
        Cow::Owned(folded)
    }
}

/// The symbols that commands use, in ASCII.
fn ascii(symbol: char) -> Option<&'static str> {
    Some(match symbol {
        '±' => "+-",
        '×' | '✗' => "x",
        '≤' => "<=",
        '≥' => ">=",
        '≈' => "~",
        '–' | '—' | '−' => "-",
        '…' => "...",
        '▁' => "_",
        '▂' => ".",
        '▃' => "-",
        '▄' => ":",
        '▅' => "=",
        '▆' => "+",
        '▇' => "*",
        '█' => "#",
        '→' => "->",
        '·' | '•' => "*",
        'µ' | 'μ' => "u",
        '€' => "EUR",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_that_is_set_decides() {
        let named = |values: &[&str]| Charset::named(values.iter().map(ToString::to_string));
        assert_eq!(named(&["", "de_DE.UTF-8"]), Charset::Utf8);
        assert_eq!(named(&["C.utf8"]), Charset::Utf8);
        assert_eq!(named(&["C", "de_DE.UTF-8"]), Charset::Ascii);
        assert_eq!(named(&[]), Charset::Ascii);
    }

    #[test]
    fn symbols_become_ascii_and_control_characters_never_pass() {
        assert_eq!(Charset::Ascii.fold("430 ms ±70 – 東京"), "430 ms +-70 - 東京");
        assert_eq!(Charset::Utf8.fold("430 ms ±70"), "430 ms ±70");
        assert_eq!(Charset::Utf8.fold("a\n\u{1b}[31mb"), "a  [31mb");
    }
}
