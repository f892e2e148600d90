//! Reading Rust source as far as the rules need it: what is code, and where things end.
//!
//! A scanner over text and not a syntax tree, because rules must also see inside macro calls
//! (`proptest! { … }` holds whole functions that a parser returns as opaque tokens), must count
//! lines, and must not fail on a file that does not parse yet.

use std::ops::Range;

/// The text with comments and the contents of literals blanked; length and lines are kept.
pub(super) fn code_only(text: &str) -> String {
    let mut scanner = Scanner { bytes: text.as_bytes(), at: 0, code: Vec::new() };
    while scanner.at < scanner.bytes.len() {
        scanner.step();
    }
    // Only whole characters are copied or blanked byte by byte, so this loses nothing.
    String::from_utf8_lossy(&scanner.code).into_owned()
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    code: Vec<u8>,
}

impl Scanner<'_> {
    fn step(&mut self) {
        let rest = &self.bytes[self.at..];
        match rest[0] {
            b'/' if rest.starts_with(b"//") => self.blank(until(rest, b'\n')),
            b'/' if rest.starts_with(b"/*") => self.blank(block_comment(rest)),
            b'"' => self.blank(quoted(rest, b'"')),
            b'\'' => match char_literal(rest) {
                Some(length) => self.blank(length),
                None => self.copy(1), // a lifetime or a label
            },
            byte if is_word(byte) => {
                let word = rest.iter().take_while(|byte| is_word(**byte)).count();
                let is_prefix = matches!(&rest[..word], b"r" | b"br" | b"cr");
                self.copy(word);
                if let Some(length) = raw_string(&rest[word..]).filter(|_| is_prefix) {
                    self.blank(length);
                }
            }
            _ => self.copy(1),
        }
    }

    fn copy(&mut self, length: usize) {
        self.code.extend_from_slice(&self.bytes[self.at..self.at + length]);
        self.at += length;
    }

    fn blank(&mut self, length: usize) {
        let end = (self.at + length).min(self.bytes.len());
        let keep_lines = |byte: &u8| if *byte == b'\n' { b'\n' } else { b' ' };
        self.code.extend(self.bytes[self.at..end].iter().map(keep_lines));
        self.at = end;
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn until(bytes: &[u8], end: u8) -> usize {
    bytes.iter().position(|byte| *byte == end).unwrap_or(bytes.len())
}

fn block_comment(bytes: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    at
}

fn quoted(bytes: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < bytes.len() && bytes[at] != quote {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

fn char_literal(bytes: &[u8]) -> Option<usize> {
    if bytes.get(1) == Some(&b'\\') {
        return Some(quoted(bytes, b'\''));
    }
    // One character of one to four bytes, then the closing quote; anything else is a lifetime.
    let width = match bytes.get(1)? {
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. => 2,
        _ => 1,
    };
    (bytes.get(1 + width) == Some(&b'\'')).then_some(width + 2)
}

fn raw_string(bytes: &[u8]) -> Option<usize> {
    let hashes = bytes.iter().take_while(|byte| **byte == b'#').count();
    let body = bytes.get(hashes).filter(|byte| **byte == b'"').map(|_| hashes + 1)?;
    let close = [&b"\""[..], &b"#".repeat(hashes)].concat();
    let length = bytes[body..].windows(close.len()).position(|window| window == close);
    Some(length.map_or(bytes.len(), |length| body + length + close.len()))
}

/// Each word of the code with the byte at which it starts.
pub(super) fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let start = code.as_ptr() as usize;
    code.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| !word.is_empty())
        .map(move |word| (word.as_ptr() as usize - start, word))
}

/// The line, counted from 1, of a byte.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// A function with a body: its name and its bytes from `fn` to the closing brace.
pub(super) struct Function<'a> {
    pub(super) name: &'a str,
    pub(super) bytes: Range<usize>,
}

/// Every function with a body, also those in macro calls and inside other functions.
pub(super) fn functions(code: &str) -> Vec<Function<'_>> {
    let mut found = Vec::new();
    let mut words = words(code).peekable();
    while let Some((start, word)) = words.next() {
        let Some((name_at, name)) = words.peek().copied().filter(|_| word == "fn") else {
            continue;
        };
        // `fn(u8) -> u8` is a type; only blanks stand between `fn` and a function's name.
        let named = code[start + 2..name_at].chars().all(char::is_whitespace);
        if let Some(body) = body_after(code, name_at).filter(|_| named) {
            found.push(Function { name, bytes: start..body });
        }
    }
    found
}

/// The end of the first `{ … }` that follows, unless a `;` ends the item before.
fn body_after(code: &str, from: usize) -> Option<usize> {
    let mut depth = 0_i32;
    for (offset, byte) in code.as_bytes()[from..].iter().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b'{' if depth == 0 => return Some(closing_brace(code, from + offset)),
            // The end of the item, or of what it stands in: it has no body.
            b';' | b'}' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// The byte after the brace that closes the one at `open`.
fn closing_brace(code: &str, open: usize) -> usize {
    let mut depth = 0_i32;
    for (offset, byte) in code.as_bytes()[open..].iter().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return open + offset + 1;
        }
    }
    code.len()
}

/// The bytes of each item with a body that exists only under `#[cfg(test)]`.
///
/// `#[cfg(test)] mod tests;` has no body here; its file is known by its name.
pub(super) fn test_items(code: &str) -> Vec<Range<usize>> {
    let mark = "#[cfg(test)]";
    let marks = code.match_indices(mark);
    marks.filter_map(|(at, _)| Some(at..body_after(code, at + mark.len())?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_lines_kept() {
        let text = "a // b\n/* c /* d */ e */ f \"g\\\"\nh\" i 'j' '\\'' 'k é 'é' r#\"l \" m\"# n";
        let code = code_only(text);
        assert_eq!(code.len(), text.len());
        assert_eq!(code.lines().count(), text.lines().count());
        let left: Vec<_> = words(&code).map(|(_, word)| word).collect();
        assert_eq!(left, ["a", "f", "i", "k", "é", "r", "n"]);
    }

    #[test]
    fn functions_are_found_in_macros_and_bodies_but_not_in_types_or_traits() {
        let text = "trait T { fn no_body(x: [u8; 3]); }\n\
                    const P: fn(u8) -> u8 = f;\n\
                    m! { fn one() { fn two() {\n} } }\n\
                    fn three<'a>(x: &'a str) -> Vec<char> where T: Copy {\n vec!['{']\n}\n";
        let code = code_only(text);
        let lines = |f: &Function<'_>| {
            (f.name.to_owned(), line_of(&code, f.bytes.start), line_of(&code, f.bytes.end))
        };
        let found: Vec<_> = functions(&code).iter().map(lines).collect();
        let expected = [("one", 3, 4), ("two", 3, 4), ("three", 5, 7)];
        assert_eq!(found, expected.map(|(name, from, to)| (name.to_owned(), from, to)));
    }

    #[test]
    fn only_test_items_with_a_body_count_as_tests() {
        assert_eq!(test_items("struct A {\n #[cfg(test)]\n b: u8,\n}\nfn c() {}"), []);
        let text = "#[cfg(test)]\nmod tests;\nfn a() {}\n\
                    #[cfg(test)]\n#[expect(x)]\nmod inline {\n fn b() {}\n}\nfn c() {}\n";
        let code = code_only(text);
        let found = test_items(&code);
        assert_eq!(found.len(), 1);
        assert_eq!(line_of(&code, found[0].start)..line_of(&code, found[0].end), 4..8);
    }

    #[derive(Default)]
    struct Parsed(Vec<String>);

    impl<'ast> syn::visit::Visit<'ast> for Parsed {
        fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
            self.0.push(item.sig.ident.to_string());
            syn::visit::visit_item_fn(self, item);
        }

        fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
            self.0.push(item.sig.ident.to_string());
            syn::visit::visit_impl_item_fn(self, item);
        }
    }

    #[test]
    fn the_scanner_finds_every_function_that_a_parser_finds_in_our_own_code() {
        let tree = super::super::Tree::load(&crate::checkout::root().unwrap()).unwrap();
        for (path, text) in tree.texts_ending(".rs") {
            let mut parsed = Parsed::default();
            syn::visit::visit_file(&mut parsed, &syn::parse_file(text).unwrap());
            let code = code_only(text);
            let mut scanned: Vec<_> = functions(&code).iter().map(|f| f.name).collect();
            for name in parsed.0 {
                let at = scanned.iter().position(|found| *found == name);
                scanned.remove(at.unwrap_or_else(|| panic!("{path}: fn {name} was not found")));
            }
        }
    }
}
