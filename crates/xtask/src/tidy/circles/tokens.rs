//! What of the code says who names whom: words and signs, without attributes and without tests.

/// A word or a sign, and its line counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    pub(super) line: usize,
}

/// One name that a `use` brings in. A glob is called `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Use<'a> {
    /// As it is called here.
    pub(super) name: &'a str,
    /// The words of its path as they are written.
    pub(super) path: Vec<&'a str>,
    pub(super) line: usize,
}

impl Token<'_> {
    /// Whether it can be the name of something.
    pub(super) fn is_name(&self) -> bool {
        self.text.starts_with(|first: char| first.is_alphabetic() || first == '_')
    }
}

/// The tokens of code that has no comments and no contents of literals any more.
pub(super) fn tokens(code: &str) -> Vec<Token<'_>> {
    without_tests(&split(code))
}

/// The place after the bracket that closes the one at `open`.
pub(super) fn closed(all: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0_usize;
    for (place, token) in all.iter().enumerate().skip(open) {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return place + 1;
        }
    }
    all.len()
}

/// Reads the tree of a `use` from `at` on, below the path `before`. Returns the place after it.
pub(super) fn use_tree<'a>(
    all: &[Token<'a>],
    mut at: usize,
    before: &[&'a str],
    found: &mut Vec<Use<'a>>,
) -> usize {
    let text = |at: usize| all.get(at).map_or("", |token| token.text);
    let mut path = before.to_vec();
    while let Some(Token { text: word, line }) = all.get(at).copied() {
        at += 1;
        match word {
            "::" => continue,
            "{" => {
                while at < all.len() && text(at) != "}" {
                    at = use_tree(all, at, &path, found);
                    at += usize::from(text(at) == ",");
                }
                return at + 1;
            }
            "*" => {
                found.push(Use { name: word, path, line });
                return at;
            }
            "self" if !path.is_empty() => {}
            _ => path.push(word),
        }
        if text(at) == "::" {
            continue;
        }
        let mut name = path.last().copied().unwrap_or(word);
        if text(at) == "as" {
            name = text(at + 1);
            at += 2;
        }
        found.push(Use { name, path, line });
        return at;
    }
    at
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn split(code: &str) -> Vec<Token<'_>> {
    let word = |text: &str| text.find(|c| !is_word(c)).unwrap_or(text.len());
    let (mut found, mut line, mut rest) = (Vec::new(), 1, code);
    while let Some(first) = rest.chars().next() {
        let length = match first {
            c if is_word(c) => word(rest),
            // A lifetime or a label; neither is a path.
            '\'' => 1 + word(&rest[1..]),
            ':' if rest.starts_with("::") => 2,
            _ => first.len_utf8(),
        };
        let (text, after) = rest.split_at(length);
        if first == '\n' {
            line += 1;
        } else if !first.is_whitespace() && first != '\'' {
            found.push(Token { text, line });
        }
        rest = after;
    }
    found
}

fn without_tests<'a>(all: &[Token<'a>]) -> Vec<Token<'a>> {
    let (mut rest, mut at) = (Vec::new(), 0);
    while at < all.len() {
        match attribute(all, at) {
            Some(end) if is_test(&all[at..end]) => at = item(all, end),
            Some(end) => at = end,
            None => {
                rest.push(all[at]);
                at += 1;
            }
        }
    }
    rest
}

/// The place after the attribute that begins here, if one does.
fn attribute(all: &[Token<'_>], at: usize) -> Option<usize> {
    let text = |at: usize| all.get(at).map_or("", |token| token.text);
    match (text(at), text(at + 1), text(at + 2)) {
        ("#", "[", _) => Some(closed(all, at + 1)),
        ("#", "!", "[") => Some(closed(all, at + 2)),
        _ => None,
    }
}

fn is_test(attribute: &[Token<'_>]) -> bool {
    let text: String = attribute.iter().map(|token| token.text).collect();
    let starts = ["#[test]", "#[tokio::test", "#[cfg(test)]", "#[cfg(all(test,"];
    starts.iter().any(|start| text.starts_with(start))
}

/// The place after the item, field or arm that begins here, maybe with more attributes.
fn item(all: &[Token<'_>], mut at: usize) -> usize {
    while let Some(end) = attribute(all, at) {
        at = end;
    }
    let before = ["pub", "(", ")", "crate", "super", "in", "async", "const", "unsafe", "extern"];
    let kind = all[at..].iter().map(|token| token.text).find(|text| !before.contains(text));
    let kind = kind.unwrap_or_default();
    // Their generics have commas; a field and an arm end at one.
    let kinds = ["fn", "impl", "struct", "enum", "mod", "trait", "type", "static", "macro_rules"];
    let is_item = kind == "use" || kinds.contains(&kind);
    while at < all.len() {
        match all[at].text {
            "(" | "[" => at = closed(all, at),
            "{" if kind == "use" => at = closed(all, at),
            "{" => return closed(all, at),
            ";" => return at + 1,
            "," if !is_item => return at + 1,
            ")" | "]" | "}" => return at,
            _ => at += 1,
        }
    }
    at
}
