//! What one caller's requests say.

use super::plan::{CallerPlan, CallersPlan, PlannedTokens};
use crate::load::{Habit, Message};
use bytes::Bytes;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::VecDeque;
use std::time::Duration;

/// Bytes that count as a token, for the gateway and for emulated engines.
const BYTES_PER_TOKEN: usize = 4;

/// Text that prompts are cut from. The longest prompt is 64 KB; where in a megabyte it begins makes
/// no two alike, and a number before it makes sure.
const POOL_BYTES: usize = 1 << 20;

/// Letters that need no escape in JSON, 64 of them so that six bits choose one.
const LETTERS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .";

/// Text for all callers of a run.
#[derive(Clone, Debug)]
pub(super) struct Pool(Bytes);

impl Pool {
    pub(super) fn new(seed: u64) -> Self {
        let mut chance = Pcg64Mcg::seed_from_u64(seed);
        let letter = |_| LETTERS[chance.random_range(0..LETTERS.len())];
        Self((0..POOL_BYTES).map(letter).collect())
    }
}

/// One caller's requests, in order.
#[derive(Debug)]
pub(super) struct Prompts {
    caller: CallerPlan,
    path: String,
    pool: Pool,
    seed: u64,
    chance: Pcg64Mcg,
    number: u64,
    talks: VecDeque<Talk>,
}

/// One request, and what it asks for.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) message: Message,
    pub(super) habit: Habit,
    pub(super) prompt_tokens: u32,
    pub(super) output_tokens: u32,
    pub(super) session: Option<u64>,
}

/// A conversation.
#[derive(Clone, Copy, Debug)]
struct Talk {
    id: u64,
    first_tokens: u32,
    turn: u32,
}

impl Prompts {
    /// Of the `index`-th caller.
    pub(super) fn new(plan: &CallersPlan, index: usize, pool: &Pool) -> Option<Self> {
        let caller = plan.callers.get(index)?.clone();
        let seed = mixed(plan.seed ^ ((index as u64 + 1) << 40));
        Some(Self {
            caller,
            path: plan.path.clone(),
            pool: pool.clone(),
            seed,
            chance: Pcg64Mcg::seed_from_u64(seed),
            number: 0,
            talks: VecDeque::new(),
        })
    }

    /// The next request; none when the caller has sent all of its.
    pub(super) fn next(&mut self) -> Option<Request> {
        let number = self.number;
        if self.caller.requests.is_some_and(|most| number >= most) {
            return None;
        }
        self.number += 1;
        let (id, tokens) = match (self.caller.conversations, self.caller.distinct) {
            (Some(_), _) => self.turn(),
            (None, Some(distinct)) => {
                let id = mixed(self.seed ^ (number % distinct.max(1)));
                let PlannedTokens(from, to) = self.caller.prompt_tokens;
                (id, from + (id % u64::from(to - from + 1)) as u32)
            }
            (None, None) => {
                let tokens = draw(&mut self.chance, self.caller.prompt_tokens);
                (mixed(self.seed ^ number), tokens)
            }
        };
        let output_tokens = match self.caller.distinct {
            // A request that comes again asks for the same.
            Some(_) => self.caller.output_tokens.0,
            None => draw(&mut self.chance, self.caller.output_tokens),
        };
        let streams = self.chance.random::<f64>() < self.caller.streams;
        let habit = self.habit(streams);
        let session = self.caller.sessions.as_ref().map(|sessions| number % sessions.count);
        let content = self.content(id, tokens);
        let message = self.message(number, &content, output_tokens, streams, session);
        Some(Request { message, habit, prompt_tokens: tokens, output_tokens, session })
    }

    /// The next turn of the conversation that waited longest.
    fn turn(&mut self) -> (u64, u32) {
        let Some(conversations) = self.caller.conversations else { return (0, 1) };
        while self.talks.len() < conversations.open {
            let talk = self.new_talk();
            // Spread over their turns from the start, or the first minutes would be all beginnings.
            let turn = self.chance.random_range(0..conversations.turns);
            self.talks.push_back(Talk { turn, ..talk });
        }
        let mut talk = match self.talks.pop_front() {
            Some(talk) if talk.turn < conversations.turns => talk,
            _ => self.new_talk(),
        };
        let tokens = talk.first_tokens + talk.turn * conversations.grow_tokens;
        talk.turn += 1;
        self.talks.push_back(talk);
        (talk.id, tokens)
    }

    fn new_talk(&mut self) -> Talk {
        let first_tokens = draw(&mut self.chance, self.caller.prompt_tokens);
        Talk { id: self.chance.random(), first_tokens, turn: 0 }
    }

    fn habit(&mut self, streams: bool) -> Habit {
        let cancels = self.caller.cancels;
        let share = self.chance.random::<f64>();
        let within = self.chance.random_range(0..=cancels.within_ms.max(1));
        let after_events = self.chance.random_range(1..=16);
        match share {
            _ if share < cancels.early => Habit::Leaves { after: Duration::from_millis(within) },
            _ if share < cancels.early + cancels.late && streams => Habit::Cancels { after_events },
            // Who gets its answer whole has nothing to count; it leaves some time later.
            _ if share < cancels.early + cancels.late => {
                Habit::Leaves { after: Duration::from_millis(3 * within) }
            }
            _ => Habit::Plain,
        }
    }

    /// What all of the caller's begin with, a number of its own, and text that is its own too.
    fn content(&self, id: u64, tokens: u32) -> Vec<u8> {
        let bytes = tokens as usize * BYTES_PER_TOKEN;
        let pool = &self.pool.0;
        let mut content = Vec::with_capacity(bytes);
        let shared = self.caller.conversations.map_or(0, |some| some.shared_tokens) as usize;
        let from = (self.seed % (POOL_BYTES as u64 / 2)) as usize;
        content.extend_from_slice(&pool[from..from + (shared * BYTES_PER_TOKEN).min(bytes)]);
        content.extend_from_slice(format!("{id:016x} ").as_bytes());
        while content.len() < bytes {
            let from = (id % (POOL_BYTES as u64 / 2)) as usize;
            let take = (bytes - content.len()).min(POOL_BYTES / 2);
            content.extend_from_slice(&pool[from..from + take]);
        }
        content.truncate(bytes);
        content
    }

    fn message(
        &self,
        number: u64,
        content: &[u8],
        output_tokens: u32,
        streams: bool,
        session: Option<u64>,
    ) -> Message {
        let caller = &self.caller;
        let mut more = String::new();
        for (name, value) in &caller.fields {
            more.push_str(&format!("{}:{value},", serde_json::Value::from(name.as_str())));
        }
        let mut headers = String::new();
        for (name, value) in &caller.headers {
            headers.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(key) = &caller.key {
            headers.push_str(&format!("authorization: Bearer {key}\r\n"));
        }
        let header = caller.sessions.as_ref().and_then(|sessions| sessions.header.as_deref());
        match (session, header) {
            (Some(session), Some(header)) => {
                headers.push_str(&format!("{header}: session-{session}\r\n"));
            }
            (Some(session), None) => more.push_str(&format!(r#""user":"session-{session}","#)),
            (None, _) => {}
        }
        let opening = format!(
            r#"{{"model":"{}","stream":{streams},"max_tokens":{output_tokens},{more}"messages":[{{"role":"user","content":""#,
            caller.model
        );
        let closing = r#""}]}"#;
        let length = opening.len() + content.len() + closing.len();
        let mut start = format!(
            "POST {} HTTP/1.1\r\nhost: callers\r\ncontent-type: application/json\r\n{headers}\
             x-request-id: {}-{number:08x}\r\ncontent-length: {length}\r\n\r\n{opening}",
            self.path, caller.name
        )
        .into_bytes();
        start.extend_from_slice(content);
        Message { start, rest: Bytes::from_static(closing.as_bytes()), streams }
    }
}

fn draw(chance: &mut Pcg64Mcg, PlannedTokens(from, to): PlannedTokens) -> u32 {
    chance.random_range(from..=to)
}

/// SplitMix64's mixing (Steele, Lea and Flood 2014).
const fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn prompts(caller: &Value) -> Prompts {
        let mut all = json!({"name": "one", "model": "m", "rate": 1, "output_tokens": [5, 5]});
        for (key, value) in caller.as_object().unwrap() {
            all[key] = value.clone();
        }
        let plan = json!({"targets": ["127.0.0.1:1"], "seconds": 1, "callers": [all]});
        let plan: CallersPlan = serde_json::from_value(plan).unwrap();
        assert_eq!(plan.problems(), Vec::<String>::new());
        Prompts::new(&plan, 0, &Pool::new(1)).unwrap()
    }

    /// Head, body and the prompt's text.
    fn read(request: &Request) -> (String, Value, String) {
        let start = String::from_utf8(request.message.start.clone()).unwrap();
        let (head, start) = start.split_once("\r\n\r\n").unwrap();
        let body = format!("{start}{}", std::str::from_utf8(&request.message.rest).unwrap());
        assert!(head.contains(&format!("content-length: {}", body.len())), "{head}");
        let body: Value = serde_json::from_str(&body).unwrap();
        let text = body["messages"][0]["content"].as_str().unwrap().to_owned();
        assert_eq!(text.len(), 4 * request.prompt_tokens as usize);
        (head.to_owned(), body, text)
    }

    #[test]
    fn a_request_carries_key_session_and_fields() {
        let mut prompts = prompts(&json!({"prompt_tokens": [10, 20], "key": "secret",
            "sessions": {"count": 2}, "fields": {"temperature": 0}, "requests": 3}));
        let users: Vec<Value> = std::iter::from_fn(|| prompts.next())
            .map(|request| {
                let (head, body, _) = read(&request);
                assert!(head.contains("authorization: Bearer secret"), "{head}");
                assert_eq!(body["temperature"], 0);
                body["user"].clone()
            })
            .collect();
        assert_eq!(users, ["session-0", "session-1", "session-0"]);
    }

    #[test]
    fn turns_begin_as_the_turn_before_and_others_do_not() {
        let mut prompts = prompts(&json!({"prompt_tokens": [50, 90], "conversations":
            {"open": 1, "turns": 3, "grow_tokens": 20, "shared_tokens": 10}}));
        let texts: Vec<String> = (0..40).map(|_| read(&prompts.next().unwrap()).2).collect();
        let grown = texts.windows(2).filter(|pair| pair[1].starts_with(&pair[0])).count();
        // Two of three steps go on with a conversation, the third begins one.
        assert!((24..=28).contains(&grown), "{grown}");
        for pair in texts.windows(2).filter(|pair| !pair[1].starts_with(&pair[0])) {
            let alike = pair[0].bytes().zip(pair[1].bytes()).take_while(|(a, b)| a == b).count();
            assert!((40..44).contains(&alike), "{alike}");
        }
    }

    #[test]
    fn unique_prompts_begin_differently_and_distinct_ones_come_again() {
        let mut unique = prompts(&json!({"prompt_tokens": [16_000, 16_000]}));
        let (one, other) = (unique.next().unwrap(), unique.next().unwrap());
        assert_ne!(read(&one).2[..64], read(&other).2[..64]);
        let mut same = prompts(&json!({"prompt_tokens": [10, 90], "distinct": 2}));
        let bodies: Vec<Value> = (0..4).map(|_| read(&same.next().unwrap()).1).collect();
        assert_eq!((&bodies[0], &bodies[1]), (&bodies[2], &bodies[3]));
        assert_ne!(bodies[0], bodies[1]);
    }

    #[test]
    fn as_many_hang_up_as_the_plan_says() {
        let mut prompts = prompts(&json!({"prompt_tokens": [1, 1], "streams": 0.5,
            "cancels": {"early": 0.25, "within_ms": 100, "late": 0.25}}));
        let habits: Vec<Habit> = (0..2_000).map(|_| prompts.next().unwrap().habit).collect();
        let plain = habits.iter().filter(|habit| **habit == Habit::Plain).count();
        assert!((900..1_100).contains(&plain), "{plain}");
    }
}
