//! Changes a few places of a body and leaves the rest as the very bytes that came.
//!
//! Nothing is parsed and nothing is copied but what is put in: the new pieces are slices of the old
//! ones. The places are those that `scan` marked, so they are known to be whole values at the top.

use crate::scan::Marks;
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;

/// Changes that are to be made to one body. At most one of each kind.
#[derive(Debug)]
pub(crate) struct Edits<'a> {
    marks: &'a Marks,
    /// Places that do not overlap, in no order, and what stands there afterwards.
    list: Vec<(Range<usize>, Bytes)>,
}

impl<'a> Edits<'a> {
    /// None yet, of a body with these marks.
    pub(crate) const fn new(marks: &'a Marks) -> Self {
        Self { marks, list: Vec::new() }
    }

    /// `model` says this.
    pub(crate) fn model(&mut self, name: &str) {
        self.list.push((self.marks.model.clone(), quoted(name).into()));
    }

    /// `cache_salt` says this, whatever it said before.
    pub(crate) fn cache_salt(&mut self, salt: &str) {
        self.member(self.marks.cache_salt.clone(), "cache_salt", quoted(salt));
    }

    /// This key says how long an answer may be, of a body in which it says nothing. Of two equal keys engines take the
    /// last, and that is the one whose `null` is replaced.
    pub(crate) fn most_output(&mut self, key: &str, tokens: u64) {
        self.member(self.marks.no_output.clone(), key, tokens.to_string());
    }

    /// The last event of the stream says how many tokens it came to, of a body that does not ask for that.
    pub(crate) fn include_usage(&mut self) {
        let fresh = || r#"{"include_usage":true}"#.to_owned();
        let (place, with) = self.marks.stream_options.clone().unzip();
        self.member(place, "stream_options", with.unwrap_or_else(fresh));
    }

    /// A member has this value: in the place of its value, or as the first member of all if there is none yet.
    fn member(&mut self, place: Option<Range<usize>>, key: &str, value: String) {
        let open = self.marks.open;
        self.list.push(match place {
            Some(place) => (place, value.into()),
            None => (open..open, format!(r#""{key}":{value},"#).into()),
        });
    }

    /// The body with these changes.
    pub(crate) fn on(mut self, pieces: &Arc<[Bytes]>) -> Arc<[Bytes]> {
        if self.list.is_empty() {
            return Arc::clone(pieces);
        }
        self.list.sort_unstable_by_key(|(place, _)| place.start);
        let mut made = Vec::with_capacity(pieces.len() + 2 * self.list.len());
        let mut rest = Rest { pieces, begins: 0, at: 0 };
        for (place, with) in self.list {
            rest.move_to(place.start, |unchanged| made.push(unchanged));
            made.push(with);
            rest.move_to(place.end, drop);
        }
        rest.move_to(usize::MAX, |unchanged| made.push(unchanged));
        made.into()
    }
}

/// What of a body was not gone through yet.
struct Rest<'a> {
    pieces: &'a [Bytes],
    /// Where in the body the first piece begins.
    begins: usize,
    /// Up to where everything was.
    at: usize,
}

impl Rest<'_> {
    /// Goes up to a place, or to the end, and hands over what it passes.
    fn move_to(&mut self, place: usize, mut passed: impl FnMut(Bytes)) {
        while let [piece, behind @ ..] = self.pieces {
            let ends = self.begins + piece.len();
            let to = place.min(ends);
            if self.at < to {
                passed(piece.slice(self.at - self.begins..to - self.begins));
                self.at = to;
            }
            if place < ends {
                return;
            }
            (self.pieces, self.begins) = (behind, ends);
        }
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::{ScanLimits, Scanner};
    use crate::surface::Surface;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    fn pieces(body: &str, cuts: &[usize]) -> Arc<[Bytes]> {
        let body = Bytes::copy_from_slice(body.as_bytes());
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (body.len() + 1)).collect();
        cuts.sort_unstable();
        cuts.push(body.len());
        let mut from = 0;
        let cut = |to: usize| body.slice(std::mem::replace(&mut from, to)..to);
        cuts.into_iter().map(cut).collect()
    }

    fn marks(pieces: &[Bytes]) -> Marks {
        let mut scanner = Scanner::new(Surface::Chat, ScanLimits::DEFAULT);
        pieces.iter().for_each(|piece| scanner.feed(piece).unwrap());
        scanner.finish().unwrap().marks
    }

    fn text(pieces: &[Bytes]) -> String {
        String::from_utf8(pieces.concat()).unwrap()
    }

    #[test]
    fn what_is_not_changed_stays_as_it_is_written() {
        let body = "\n{ \"a\" : 1.50,\"model\":\"m\" ,\"cache_salt\": null }\n";
        let pieces = pieces(body, &[3, 20, 21]);
        let marks = marks(&pieces);
        let mut edits = Edits::new(&marks);
        edits.cache_salt("s");
        edits.model("o\"n");
        let expected = "\n{ \"a\" : 1.50,\"model\":\"o\\\"n\" ,\"cache_salt\": \"s\" }\n";
        assert_eq!(text(&edits.on(&pieces)), expected);
        assert_eq!(text(&Edits::new(&marks).on(&pieces)), body);
    }

    #[test]
    fn a_missing_salt_stands_first() {
        let pieces = pieces(r#" { "model":"m"}"#, &[]);
        let marks = marks(&pieces);
        let mut edits = Edits::new(&marks);
        edits.cache_salt("s");
        assert_eq!(text(&edits.on(&pieces)), r#" {"cache_salt":"s", "model":"m"}"#);
    }

    #[test]
    fn how_long_an_answer_may_be_is_said_once() {
        for (body, expected) in [
            (r#"{"model":"m"}"#, r#"{"max_tokens":9,"model":"m"}"#),
            (r#"{"max_tokens": null ,"model":"m"}"#, r#"{"max_tokens": 9 ,"model":"m"}"#),
        ] {
            let pieces = pieces(body, &[4, 17]);
            let marks = marks(&pieces);
            let mut edits = Edits::new(&marks);
            edits.most_output("max_tokens", 9);
            assert_eq!(text(&edits.on(&pieces)), expected);
        }
    }

    fn member() -> impl Strategy<Value = (String, Value)> {
        let key = prop_oneof![
            2 => Just("cache_salt".to_owned()),
            3 => "x[a-z]{0,6}",
        ];
        let value = prop_oneof![
            Just(Value::Null),
            "[ -~é\n]{0,30}".prop_map(Value::from),
            Just(json!({"model": "not me", "cache_salt": [1, "{"]})),
        ];
        (key, value)
            .prop_filter("not a salt", |(key, value)| key != "cache_salt" || !value.is_object())
    }

    proptest! {
        #[test]
        fn only_the_changed_members_differ_wherever_the_pieces_are_cut(
            members in vec(member(), 0..6),
            place: usize,
            cuts in vec(any::<usize>(), 0..10),
            space in proptest::sample::select(vec!["", " ", "\r\n "]),
            model in proptest::option::of("[ -~é]{0,20}"),
            salt in proptest::option::of("[0-9a-f]{1,32}"),
        ) {
            let mut members: Map<String, Value> = members.into_iter().collect();
            members.remove("model");
            let mut written: Vec<String> =
                members.iter().map(|(key, value)| format!("{space}{}:{space}{value}{space}", Value::from(key.as_str()))).collect();
            members.insert("model".to_owned(), "m".into());
            written.insert(place % (written.len() + 1), format!("{space}\"model\":{space}\"m\""));
            let body = format!("{space}{{{}}}{space}", written.join(","));
            let pieces = pieces(&body, &cuts);
            let marks = marks(&pieces);
            let mut edits = Edits::new(&marks);
            if let Some(model) = &model {
                edits.model(model);
                members.insert("model".to_owned(), model.as_str().into());
            }
            if let Some(salt) = &salt {
                edits.cache_salt(salt);
                members.insert("cache_salt".to_owned(), salt.as_str().into());
            }
            let made = text(&edits.on(&pieces));
            prop_assert_eq!(serde_json::from_str::<Value>(&made).unwrap(), Value::from(members));
            // A reader that takes the first of two keys reads the same.
            let salts = made.matches("\"cache_salt\":").count();
            prop_assert!(salts <= 1 + body.matches("not me").count(), "{}", made);
        }
    }
}
