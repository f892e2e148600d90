//! What engines are like, learned from what they do.

/// What an engine is like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LearningRates {
    /// Seconds that a prompt takes whatever its length.
    pub per_prompt: f64,
    /// Seconds that one more prompt token takes.
    pub per_prompt_token: f64,
    /// Seconds that a token of an answer takes.
    pub per_output_token: f64,
    /// Tokens of a usual answer.
    pub output_tokens: f64,
    /// Tokens that the cache holds.
    pub cache_tokens: f64,
    /// Tokens of a block.
    pub block_tokens: f64,
    /// Whether the times were measured; guesses otherwise.
    pub timed: bool,
    /// Whether the cache was measured; a guess otherwise.
    pub sized: bool,
}

/// Learns `Rates`. Everything is a sum in which older things count less.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Learner {
    /// Weight, tokens, seconds, and their products.
    reads: Reads,
    answers: f64,
    answer_tokens: f64,
    answer_seconds: f64,
    /// Tokens that requests held and shares that engines reported at the same time.
    held: f64,
    used: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Reads {
    count: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

/// A new sample makes older ones count less by one part in so many: the last few thousand requests
/// count, so that a changed engine is known within minutes.
const PATIENCE: f64 = 2_048.0;

/// Prompts whose reading was measured before anything is scored.
const FEWEST: f64 = 32.0;

/// Prompts whose lengths differ by this part of their mean (as a standard deviation) count as much as
/// the thought that reading takes nothing but tokens. In Mooncake's trace it is above 1.
const ALIKE: f64 = 0.25;

/// Shares of a cache that were reported, in sum, before its size is believed: 20 reports of 5 %, or
/// 100 of 1 %, which engines tell in thousandths.
const USED: f64 = 1.0;

impl LearningRates {
    /// Before anything was measured: 20,000 prompt tokens a second and a million in the cache, about
    /// an 8B model on one H100; answers as in the Azure traces.
    pub const GUESS: Self = Self {
        per_prompt: 0.02,
        per_prompt_token: 5e-5,
        per_output_token: 0.02,
        output_tokens: 256.0,
        cache_tokens: 1e6,
        block_tokens: 256.0,
        timed: false,
        sized: false,
    };

    /// Seconds to read so many tokens.
    pub fn reading(&self, tokens: u64) -> f64 {
        self.per_prompt + self.per_prompt_token * tokens as f64
    }
}

impl Learner {
    /// An engine read so many prompt tokens in so many seconds in which it had this to read.
    pub(super) fn read(&mut self, tokens: u64, seconds: f64) {
        let (x, reads) = (tokens as f64, &mut self.reads);
        for (sum, one) in [
            (&mut reads.count, 1.0),
            (&mut reads.x, x),
            (&mut reads.y, seconds),
            (&mut reads.xx, x * x),
            (&mut reads.xy, x * seconds),
        ] {
            add(sum, one);
        }
    }

    /// An answer of so many tokens took so long from its first to its last.
    pub(super) fn answered(&mut self, tokens: u64, seconds: f64) {
        add(&mut self.answers, 1.0);
        add(&mut self.answer_tokens, tokens as f64);
        add(&mut self.answer_seconds, seconds);
    }

    /// An engine reported this share of its cache as used while requests held so many tokens.
    pub(super) fn reported(&mut self, held: u64, share: f64) {
        add(&mut self.held, held as f64);
        add(&mut self.used, share);
    }

    /// What is known by now.
    pub(super) fn rates(&self, block_tokens: u32) -> LearningRates {
        let mut rates =
            LearningRates { block_tokens: f64::from(block_tokens), ..LearningRates::GUESS };
        if self.reads.count >= FEWEST {
            (rates.per_prompt, rates.per_prompt_token) = self.reads.line();
            rates.timed = true;
        }
        if self.answers >= 1.0 && self.answer_tokens > 0.0 {
            rates.output_tokens = self.answer_tokens / self.answers;
            rates.per_output_token = self.answer_seconds / self.answer_tokens;
        }
        if self.used >= USED && self.held > 0.0 {
            rates.cache_tokens = self.held / self.used;
            rates.sized = true;
        }
        rates
    }
}

impl Reads {
    /// The line of least squares, pulled towards the one through zero where prompts are so alike that
    /// they do not tell what a token takes from what a prompt takes. Neither part is below zero.
    ///
    /// The pull matters: a policy that finds all beginnings leaves the same few new tokens to read each
    /// time, and if misses seemed to cost nothing, every other policy would seem as good.
    fn line(&self) -> (f64, f64) {
        if self.x <= 0.0 {
            return (self.y / self.count, 0.0);
        }
        let (mean, through_zero) = (self.x / self.count, self.y / self.x);
        let spread = (self.xx / self.count - mean * mean).max(0.0);
        let both = self.xy / self.count - mean * self.y / self.count;
        let pull = (ALIKE * mean).powi(2);
        let slope = ((both + pull * through_zero) / (spread + pull)).max(0.0);
        let start = (self.y - slope * self.x) / self.count;
        if start < 0.0 { (0.0, through_zero) } else { (start, slope) }
    }
}

fn add(sum: &mut f64, one: f64) {
    *sum += one - *sum / PATIENCE;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_again_and_nothing_is_known_too_early() {
        let mut learner = Learner::default();
        for number in 0..31 {
            learner.read(number * 100, 0.03 + number as f64 * 100.0 * 4e-5);
        }
        assert!(!learner.rates(256).timed);
        for number in 0..200 {
            learner.read(number * 100, 0.03 + number as f64 * 100.0 * 4e-5);
        }
        let rates = learner.rates(256);
        for (tokens, seconds) in [(0, 0.03), (10_000, 0.43), (20_000, 0.83)] {
            assert!((rates.reading(tokens) - seconds).abs() < 0.03, "{rates:?}");
        }
    }

    #[test]
    fn prompts_of_one_length_give_a_rate_and_no_nonsense() {
        let mut learner = Learner::default();
        (0..40).for_each(|_| learner.read(1_000, 0.5));
        let rates = learner.rates(256);
        assert!((rates.reading(1_000) - 0.5).abs() < 1e-6, "{rates:?}");
        let mut nothing = Learner::default();
        (0..40).for_each(|_| nothing.read(0, 0.01));
        assert!((nothing.rates(256).reading(0) - 0.01).abs() < 1e-9);
    }

    #[test]
    fn prompts_that_are_nearly_alike_are_not_thought_to_cost_the_same_whatever_their_length() {
        let mut learner = Learner::default();
        // By chance the longer ones were read a little faster.
        for number in 0..200 {
            let longer = number % 2;
            learner.read(2_000 + longer * 100, 0.060 - longer as f64 * 0.001);
        }
        let rates = learner.rates(256);
        assert!(rates.reading(10_000) > 0.2, "{rates:?}");
    }

    #[test]
    fn a_cache_is_as_large_as_what_is_held_over_the_share_of_it() {
        let mut learner = Learner::default();
        (0..30).for_each(|_| learner.reported(50_000, 0.025));
        assert!(!learner.rates(256).sized, "a sum of 0.75");
        (0..30).for_each(|_| learner.reported(70_000, 0.035));
        let rates = learner.rates(256);
        assert!(rates.sized && (rates.cache_tokens - 2e6).abs() < 1.0, "{rates:?}");
    }

    #[test]
    fn what_changed_is_known_after_a_few_thousand_requests() {
        let mut learner = Learner::default();
        (0..5_000).for_each(|number| learner.read(number % 8 * 1_000, 1.0));
        (0..8_000).for_each(|number| learner.read(number % 8 * 1_000, 2.0));
        assert!((learner.rates(256).reading(3_500) - 2.0).abs() < 0.05);
    }
}
