//! What an engine has to read, and how fast it reads.
//!
//! Of a stream, the first token tells that its prompt was read. A whole answer tells nothing until
//! its end; its prompt is taken to be read after the time that this takes at the learned speed.

use crate::invariants::{GatewayInvariant, give_back};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How long an engine may be busy with what it was given to read, before more is kept back. While it
/// reads, whoever comes next waits behind all of it; a quarter of a second is less than most targets
/// for the first token.
const AHEAD: Duration = Duration::from_millis(250);

/// The same for batch: whoever comes next waits behind that too, and it is not worth a wait that anybody feels.
const BATCH_AHEAD: Duration = Duration::from_millis(20);

/// After a prompt of somebody else an engine gets no batch prompt for so many times as long as it takes to read that: who
/// comes in a burst waits for those before it already, and should not wait for batch too. It is a multiple, so that an
/// engine which is half idle is so for batch too, however fast it is and however often prompts come.
const QUIET: u64 = 3;

/// A batch prompt that takes longer is not finished if somebody comes.
const BATCH_LONG: Duration = Duration::from_millis(100);

/// Prompts that are let through whatever their length: one that is read and one behind it, so that
/// the engine never waits for us.
const PROMPTS: u32 = 2;

/// Tokens that may be unread while the speed is not known.
const UNKNOWN_TOKENS: u64 = 8_192;

/// Prompts shorter than this say little about the speed of reading.
const TELLING_TOKENS: u64 = 256;

/// What an engine has to read.
#[derive(Debug)]
pub(super) struct Reading {
    /// Microseconds are counted from here. Not from the first use of a clock: whoever took an
    /// instant shortly before that would have all times up to it taken for one.
    began: Instant,
    tokens: AtomicU64,
    prompts: AtomicU32,
    /// When the prompts of whole answers will be read, in microseconds.
    whole_until: AtomicU64,
    /// Tokens per second; 0 if unknown.
    speed: AtomicU64,
    /// Until then batch is not read, in microseconds.
    quiet_until: AtomicU64,
}

impl Default for Reading {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            tokens: AtomicU64::default(),
            prompts: AtomicU32::default(),
            whole_until: AtomicU64::default(),
            speed: AtomicU64::default(),
            quiet_until: AtomicU64::default(),
        }
    }
}

impl Reading {
    /// A stream's prompt is to be read. Returns all that is then to be read.
    pub(super) fn begin(&self, tokens: u64) -> u64 {
        self.prompts.fetch_add(1, Relaxed);
        self.tokens.fetch_add(tokens, Relaxed) + tokens
    }

    /// It was read, or never will be.
    pub(super) fn end(&self, tokens: u64) {
        give_back!(self.prompts, 1, GatewayInvariant::Unread);
        give_back!(self.tokens, tokens, GatewayInvariant::Unread);
    }

    /// A prompt is to be read whose end nobody will tell.
    pub(super) fn begin_whole(&self, tokens: u64, now: Instant) {
        let speed = self.speed.load(Relaxed);
        if speed == 0 {
            return;
        }
        // Twice the learned speed: that is a mean with waiting in it, and to hold back for nothing
        // is worse than to be late by a little.
        let takes = tokens.saturating_mul(500_000) / speed;
        let now = self.micros(now);
        // Two threads may both write: one of two prompts is then not counted.
        let until = self.whole_until.load(Relaxed).max(now) + takes;
        self.whole_until.store(until, Relaxed);
    }

    /// So many tokens were read in so long.
    pub(super) fn learn(&self, tokens: u64, took: Duration) {
        if tokens < TELLING_TOKENS {
            return;
        }
        let sample = tokens.saturating_mul(1_000_000) / (took.as_micros() as u64).max(1);
        let before = self.speed.load(Relaxed);
        // Up fast and down slowly: short prompts and full batches make it look slower than it is.
        let after = match before {
            0 => sample,
            _ if sample > before => before + (sample - before) / 4,
            _ => before - (before - sample) / 32,
        };
        self.speed.store(after.max(1), Relaxed);
    }

    /// Tokens that are not read.
    pub(super) fn tokens(&self, now: Instant) -> u64 {
        let whole = self.whole_until.load(Relaxed).saturating_sub(self.micros(now));
        let whole = whole.saturating_mul(self.speed.load(Relaxed)) / 500_000;
        self.tokens.load(Relaxed) + whole
    }

    /// Whether it may be given more to read.
    pub(super) fn has_room(&self, now: Instant) -> bool {
        let few = self.prompts.load(Relaxed) < PROMPTS
            && self.whole_until.load(Relaxed) <= self.micros(now);
        few || self.tokens(now) < self.tokens_in(AHEAD)
    }

    /// Whether it may be given a batch request to read: if it reads nothing else, or too little to feel.
    pub(super) fn has_room_for_batch(&self, now: Instant) -> bool {
        let unread = self.tokens(now);
        let is_quiet = self.quiet_until.load(Relaxed) <= self.micros(now);
        is_quiet && (unread == 0 || unread < self.tokens_in(BATCH_AHEAD))
    }

    /// Somebody came with so many tokens to read who is not batch.
    pub(super) fn come(&self, tokens: u64, now: Instant) {
        let speed = self.speed.load(Relaxed);
        let quiet = tokens.saturating_mul(QUIET * 1_000_000).checked_div(speed).unwrap_or(0);
        let quiet = quiet.min(AHEAD.as_micros() as u64);
        self.quiet_until.fetch_max(self.micros(now) + quiet, Relaxed);
    }

    /// Whether so many tokens are more than batch should keep others waiting for.
    pub(super) fn is_long(&self, tokens: u64) -> bool {
        tokens > self.tokens_in(BATCH_LONG)
    }

    /// What it reads in so long; if its speed is not known, the part that this is of what may be ahead.
    fn tokens_in(&self, time: Duration) -> u64 {
        let (speed, time) = (self.speed.load(Relaxed), time.as_millis() as u64);
        match speed {
            0 => UNKNOWN_TOKENS * time / AHEAD.as_millis() as u64,
            _ => speed * time / 1_000,
        }
    }

    fn micros(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.began).as_micros() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_is_read_where_nothing_else_is_or_too_little_to_feel() {
        let (reading, now) = (Reading::default(), Instant::now());
        assert!(reading.has_room_for_batch(now));
        reading.begin(100_000);
        assert!(!reading.has_room_for_batch(now) && reading.has_room(now));
        reading.end(100_000);
        // 20,000 a second: 400 in 20 ms.
        reading.learn(2_000, Duration::from_millis(100));
        reading.begin(300);
        assert!(reading.has_room_for_batch(now));
        reading.begin(100);
        assert!(!reading.has_room_for_batch(now));
        reading.end(400);
        // Somebody else's prompt takes 20 ms: others come with it.
        reading.come(400, now);
        let after = |millis| reading.has_room_for_batch(now + Duration::from_millis(millis));
        assert!(!after(0) && !after(59) && after(61));
        reading.come(1_000_000, now);
        assert!(!after(200) && after(251), "not for ever");
        assert!(reading.is_long(2_001) && !reading.is_long(2_000));
    }

    #[test]
    fn two_prompts_of_any_length_and_a_quarter_second_of_short_ones() {
        let (reading, now) = (Reading::default(), Instant::now());
        reading.learn(10_000, Duration::from_secs(1));
        assert!(reading.has_room(now));
        reading.begin(50_000);
        assert!(reading.has_room(now));
        reading.begin(50_000);
        assert!(!reading.has_room(now));
        (0..2).for_each(|_| reading.end(50_000));
        let short = (0..100).take_while(|_| {
            let room = reading.has_room(now);
            reading.begin(100);
            room
        });
        assert_eq!(short.count(), 25);
    }

    #[test]
    fn whole_answers_are_read_by_the_clock() {
        let (reading, now) = (Reading::default(), Instant::now());
        reading.begin_whole(10_000, now);
        assert_eq!(reading.tokens(now), 0, "the speed is not known");
        reading.learn(10_000, Duration::from_secs(1));
        reading.begin_whole(10_000, now);
        assert!((9_990..=10_000).contains(&reading.tokens(now)), "{}", reading.tokens(now));
        assert!(!reading.has_room(now));
        assert_eq!(reading.tokens(now + Duration::from_millis(500)), 0);
        assert!(reading.has_room(now + Duration::from_millis(500)));
    }

    #[test]
    fn speed_follows_the_best_it_has_shown() {
        let reading = Reading::default();
        for _ in 0..20 {
            reading.learn(20_000, Duration::from_secs(1));
        }
        for _ in 0..8 {
            reading.learn(1_000, Duration::from_secs(1));
        }
        let speed = reading.speed.load(Relaxed);
        assert!((14_000..20_000).contains(&speed), "{speed}");
        reading.learn(100, Duration::from_secs(1));
        assert_eq!(reading.speed.load(Relaxed), speed);
    }
}
