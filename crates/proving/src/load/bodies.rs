//! Chat requests of a given size, no two alike.
//!
//! The text is made once; each request gets a number of its own at the start of its prompt, so that
//! nothing that caches by content can answer two of them with one effort.

use bytes::Bytes;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Different texts; each is as long as a body. 16 of 400 KB are 6 MB.
const TEXTS: usize = 16;

/// What requests of one run say.
#[derive(Clone, Debug)]
pub struct Bodies {
    path: String,
    host: String,
    opening: String,
    streams: bool,
    rests: Vec<Bytes>,
}

/// One request, in two parts so that the long one is never copied.
#[derive(Clone, Debug)]
pub struct Message {
    /// The head, and the start of the body up to the request's own number.
    pub start: Vec<u8>,
    /// The rest of the body.
    pub rest: Bytes,
    /// Whether it asks for a stream.
    pub streams: bool,
}

impl Bodies {
    /// Bodies of about so many bytes, in plain words, with quotes and line ends as JSON has them.
    pub fn new(plan: &super::LoadPlan) -> Self {
        let opening = format!(
            r#"{{"model":"{}","stream":{},"max_tokens":{},"messages":[{{"role":"user","content":""#,
            plan.model, plan.stream, plan.max_tokens
        );
        let closing = r#""}]}"#;
        let room = plan.body_bytes.saturating_sub(opening.len() + closing.len() + NUMBER);
        let rests = (0..TEXTS).map(|index| {
            let mut text = words(plan.seed.wrapping_add(index as u64), room);
            text.push_str(closing);
            Bytes::from(text)
        });
        Self {
            path: plan.path.clone(),
            host: plan.target.first().map(ToString::to_string).unwrap_or_default(),
            opening,
            streams: plan.stream,
            rests: rests.collect(),
        }
    }

    /// The `number`-th request.
    pub fn message(&self, number: u64) -> Message {
        let rest = &self.rests[number as usize % TEXTS];
        let length = self.opening.len() + NUMBER + rest.len();
        let start = format!(
            "POST {} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             authorization: Bearer proving\r\nx-request-id: proving-{number:016x}\r\n\
             content-length: {length}\r\n\r\n{}{number:016x} ",
            self.path, self.host, self.opening
        );
        Message { start: start.into_bytes(), rest: rest.clone(), streams: self.streams }
    }
}

/// Sixteen digits and a space.
const NUMBER: usize = 17;

fn words(seed: u64, room: usize) -> String {
    const WORDS: [&str; 12] = [
        "carry",
        "the",
        "water",
        "over",
        "a",
        "hill",
        "\\n",
        "before",
        "\\\"noon\\\"",
        "and",
        "rest",
        "there",
    ];
    let mut chance = Pcg64Mcg::seed_from_u64(seed);
    let mut text = String::with_capacity(room);
    loop {
        let word = WORDS[chance.random_range(0..WORDS.len())];
        if text.len() + word.len() + 1 > room {
            break;
        }
        text.push_str(word);
        text.push(' ');
    }
    text.extend(std::iter::repeat_n('x', room - text.len()));
    text
}

#[cfg(test)]
mod tests {
    use super::super::LoadPlan;
    use super::*;
    use clap::Parser;

    #[test]
    fn a_body_is_valid_json_of_the_asked_size_and_no_two_are_alike() {
        for size in [1_024usize, 400_000] {
            let text = format!("load --target 127.0.0.1:1 --body-bytes {size} --stream");
            let plan = LoadPlan::parse_from(text.split(' '));
            let bodies = Bodies::new(&plan);
            let whole = |number| {
                let message = bodies.message(number);
                let start = String::from_utf8(message.start).unwrap();
                let (head, start) = start.split_once("\r\n\r\n").unwrap();
                let body = format!("{start}{}", std::str::from_utf8(&message.rest).unwrap());
                assert!(head.contains(&format!("content-length: {}", body.len())), "{head}");
                body
            };
            let body = whole(5);
            assert_eq!(body.len(), size);
            let json: serde_json::Value = serde_json::from_str(&body).unwrap();
            assert_eq!(json["stream"], true);
            assert_ne!(body, whole(5 + TEXTS as u64));
        }
    }
}
