//! One engine on paper.

use super::ShadowArrival;
use super::cache::Cache;
use super::learner::LearningRates;
use crate::endpoint::{Availability, Endpoint};
use flyball_core::units::Tokens;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// What an engine would have had to do.
#[derive(Clone, Debug)]
pub(super) struct Engine {
    pub(super) key: u64,
    pub(super) open: bool,
    pub(super) cache: Cache,
    /// When everything that it was given is read.
    free_at: f64,
    /// Prompts that it has yet to read, in the order of their ends: until when, and the tokens that
    /// the choice thought it would read.
    unread: VecDeque<(f64, u64)>,
    unread_tokens: u64,
    /// Requests that it has, whatever comes first on top.
    held: BinaryHeap<Reverse<Held>>,
    held_tokens: u64,
    running_tokens: u64,
}

/// What a request holds, and until when in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    until: u64,
    /// As the gateway counts it: the prompt and the most that may be answered.
    counted: u64,
    /// In the cache, on average: the prompt and half of a usual answer.
    running: u64,
}

/// What came of giving a request to an engine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Given {
    pub(super) first_seconds: f64,
    pub(super) cached: u64,
}

impl Engine {
    pub(super) fn new(key: u64, blocks: usize) -> Self {
        Self {
            key,
            open: true,
            cache: Cache::new(blocks),
            free_at: 0.0,
            unread: VecDeque::new(),
            unread_tokens: 0,
            held: BinaryHeap::new(),
            held_tokens: 0,
            running_tokens: 0,
        }
    }

    /// Lets go of what is over by now.
    pub(super) fn pass(&mut self, now: f64) {
        while self.unread.front().is_some_and(|(until, _)| *until <= now) {
            self.forget_unread();
        }
        while self.held.peek().is_some_and(|Reverse(held)| held.until <= micros(now)) {
            self.forget_held();
        }
    }

    /// As a gateway would see it.
    pub(super) fn view(&self, rates: &LearningRates) -> Endpoint {
        let used = self.running_tokens as f64 * 1e3 / rates.cache_tokens.max(1.0);
        Endpoint {
            key: self.key,
            availability: if self.open { Availability::Serving } else { Availability::Unhealthy },
            unread: Tokens::new(self.unread_tokens),
            held: Tokens::new(self.held_tokens),
            kv_used_per_thousand: used.min(1e3) as u32,
            cached_blocks: 0,
            speed_per_thousand: 1_000,
        }
    }

    /// Gives it a request of which the choice thought it would read `hoped_to_read` tokens. At most
    /// `most` are under way.
    pub(super) fn give(
        &mut self,
        now: f64,
        arrival: &ShadowArrival<'_>,
        hoped_to_read: u64,
        rates: &LearningRates,
        most: usize,
    ) -> Given {
        let prompt = arrival.prompt.get();
        let answer = (arrival.output.get() as f64).min(rates.output_tokens);
        let answer_blocks = answer / f64::from(arrival.block_tokens.max(1));
        let found =
            self.cache.read(arrival.prefixes, arrival.key, answer_blocks.round() as u64) as u64;
        // The last token of a prompt is always computed.
        let cached = (found * u64::from(arrival.block_tokens)).min(prompt.saturating_sub(1));
        self.free_at = self.free_at.max(now) + rates.reading(prompt - cached);
        if self.held.len() >= most {
            self.forget_held();
        }
        if self.unread.len() >= most {
            self.forget_unread();
        }
        self.unread.push_back((self.free_at, hoped_to_read));
        self.unread_tokens += hoped_to_read;
        let held = Held {
            until: micros(self.free_at + answer * rates.per_output_token),
            counted: prompt.saturating_add(arrival.output.get()),
            running: prompt.saturating_add(answer as u64 / 2),
        };
        self.held.push(Reverse(held));
        self.held_tokens = self.held_tokens.saturating_add(held.counted);
        self.running_tokens = self.running_tokens.saturating_add(held.running);
        Given { first_seconds: self.free_at - now, cached }
    }

    fn forget_unread(&mut self) {
        if let Some((_, tokens)) = self.unread.pop_front() {
            self.unread_tokens -= tokens;
        }
    }

    fn forget_held(&mut self) {
        if let Some(Reverse(held)) = self.held.pop() {
            self.held_tokens = self.held_tokens.saturating_sub(held.counted);
            self.running_tokens = self.running_tokens.saturating_sub(held.running);
        }
    }
}

fn micros(seconds: f64) -> u64 {
    (seconds * 1e6) as u64
}
