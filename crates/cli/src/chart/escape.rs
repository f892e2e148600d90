//! Text inside markup: nothing that a user names can become a tag.

use std::borrow::Cow;

/// For text and for values of attributes, in HTML and in SVG. Control characters are not allowed
/// in XML at all, so they become blanks.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(|c: char| c.is_control() || "&<>\"'".contains(c)) {
        return Cow::Borrowed(text);
    }
    let mut result = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => result.push_str("&amp;"),
            '<' => result.push_str("&lt;"),
            '>' => result.push_str("&gt;"),
            '"' => result.push_str("&quot;"),
            '\'' => result.push_str("&#39;"),
            c if c.is_control() => result.push(' '),
            c => result.push(c),
        }
    }
    Cow::Owned(result)
}

#[cfg(test)]
#[test]
fn markup_becomes_text() {
    assert_eq!(escape("<script>&\"'"), "&lt;script&gt;&amp;&quot;&#39;");
    assert_eq!(escape("a\u{0}\nb"), "a  b");
    assert_eq!(escape("plain ±"), "plain ±");
}
