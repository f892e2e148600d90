//! How long a prompt is before an engine has counted it, and how much of it is work.
//!
//! Bytes tell roughly; what engines say in `usage` tells how roughly. A picture is a number of tokens
//! that its bytes say nothing about. What a cache has is no work, so that an agent's tenth turn costs
//! a tenth of its length: first as the memory of prompts hopes, then as engines say.

use crate::scan::{BLOCK_BYTES, Scanned};
use crate::sse::Usage;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Bytes of English text per token, for prompts that nobody has counted.
pub(crate) const BYTES_PER_TOKEN: u64 = 4;

/// Tokens of a picture before an engine has counted one: between 256 (Gemma 3) and 4,096 (Pixtral),
/// about that of a page at Qwen2.5-VL and of a large picture at OpenAI.
const MEDIUM: u64 = 1_024;

/// What a first count is weighed against: a prompt of 64 KiB, and four pictures.
const FIRST_BYTES: u64 = 64 << 10;
const FIRST_MEDIA: u64 = 4;

/// Between these, whatever engines say: a token has between 1 and 16 bytes, a picture between 16 and
/// 64 Ki tokens.
const OF_TEXT: [u64; 2] = [1 << 16, 1 << 20];
const OF_MEDIUM: [u64; 2] = [16, 64 << 10];

/// What prompts come to before any was counted, per thousand: twice as much is that of text with two bytes to a token, such
/// as code or another script.
const FIRST_AT_MOST: u64 = 2_000;

/// Between these the learned one stays: a prompt is never taken for shorter than it is thought to be, and of one that is
/// eight times longer a hash or a key was most.
const AT_MOST: [u64; 2] = [1_050, 8_000];

/// Tokens that a chat template puts around any prompt, whatever its bytes: so many at least, and at most.
const FRAME: [u64; 2] = [32, 4_096];

/// Prompts of so many tokens tell how large that is. Of longer ones it is a small part.
const SHORT: u64 = 256;

/// Each count takes a 32nd from the weight of those before.
const FADE: u64 = 32;

/// A prompt, before an engine has counted it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prompt {
    /// Bytes that engines read as text.
    pub(crate) text_bytes: u64,
    /// Pictures, sounds and files.
    pub(crate) media: u64,
    pub(crate) tokens: u64,
    /// Those of them that no cache is thought to have.
    pub(crate) uncached: u64,
}

/// What a request took of its engine, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Took {
    pub(super) input: u64,
    /// Those of them that had to be read.
    pub(super) read: u64,
    pub(super) output: u64,
}

/// How many tokens the prompts of a model have, learned from what its engines count.
#[derive(Debug)]
pub(crate) struct Scale {
    /// Tokens of a MiB of text.
    of_text: AtomicU64,
    /// The most that a prompt came to lately, per thousand tokens that it was thought to have.
    at_most: AtomicU64,
    /// The most that a template lately put around a short one.
    frame: AtomicU64,
    /// Tokens of a picture.
    of_medium: AtomicU64,
    /// Whether engines were heard to say how much was cached. vLLM says so only where something was,
    /// so that its silence means "nothing" from then on, and "not known" before.
    reports_cached: AtomicBool,
    counted: Mutex<Counted>,
}

/// What engines have counted, the latest most.
#[derive(Debug)]
struct Counted {
    text: [u64; 2],
    media: [u64; 2],
}

/// Prompt tokens that had to be read, as a sum that only grows.
#[derive(Debug)]
pub(super) struct Uncached {
    sum: u64,
    /// Of those that ended: what was thought, and what it was.
    thought: u64,
    was: u64,
}

impl Default for Scale {
    fn default() -> Self {
        let text = [FIRST_BYTES, FIRST_BYTES / BYTES_PER_TOKEN];
        Self {
            of_text: AtomicU64::new((1 << 20) / BYTES_PER_TOKEN),
            at_most: AtomicU64::new(FIRST_AT_MOST),
            frame: AtomicU64::new(FRAME[0]),
            of_medium: AtomicU64::new(MEDIUM),
            reports_cached: AtomicBool::new(false),
            counted: Mutex::new(Counted { text, media: [FIRST_MEDIA, FIRST_MEDIA * MEDIUM] }),
        }
    }
}

impl Scale {
    /// A prompt of which so many leading blocks were seen before.
    pub(crate) fn prompt(&self, scanned: &Scanned, known_blocks: u32) -> Prompt {
        let text_bytes = scanned.prompt_bytes.saturating_sub(scanned.media_bytes);
        let tokens = self.text(text_bytes).saturating_add(self.media(scanned.media)).max(1);
        let known = u64::from(known_blocks) * u64::from(self.block_tokens(scanned));
        // The last token is read even if all are cached: its answer begins there.
        let uncached = tokens.saturating_sub(known).max(1);
        Prompt { text_bytes, media: scanned.media, tokens, uncached }
    }

    /// What a prompt that is thought to have so many tokens seldom exceeds.
    pub(crate) fn at_most(&self, tokens: u64) -> u64 {
        let frame = self.frame.load(Relaxed);
        tokens.saturating_mul(self.at_most.load(Relaxed)).div_ceil(1_000).saturating_add(frame)
    }

    /// Tokens in a block of a prompt: those of its text, and fewer where much of it is pictures.
    pub(crate) fn block_tokens(&self, scanned: &Scanned) -> u32 {
        let block = BLOCK_BYTES as u64;
        let tokens = match scanned.media {
            0 => self.text(block),
            media => {
                let text = self.text(scanned.prompt_bytes.saturating_sub(scanned.media_bytes));
                let all = text.saturating_add(self.media(media));
                all.saturating_mul(block) / scanned.prompt_bytes.max(block)
            }
        };
        u32::try_from(tokens.max(1)).unwrap_or(u32::MAX)
    }

    /// What a request took that has ended, of which its engine was thought to have to read so much.
    pub(super) fn took(&self, prompt: &Prompt, to_read: u64, usage: Usage) -> Took {
        let to_read = to_read.min(prompt.tokens);
        let output = usage.output;
        if usage.input == 0 {
            return Took { input: prompt.tokens, read: to_read, output };
        }
        self.learn(prompt, usage.input);
        self.learn_at_most(prompt, usage.input);
        if usage.cached.is_some() {
            self.reports_cached.store(true, Relaxed);
        }
        let input = usage.input;
        let read = match usage.cached {
            Some(cached) => input.saturating_sub(cached),
            None if self.reports_cached.load(Relaxed) => input,
            None => input.saturating_mul(to_read) / prompt.tokens.max(1),
        };
        Took { input, read, output }
    }

    fn text(&self, bytes: u64) -> u64 {
        bytes.saturating_mul(self.of_text.load(Relaxed)) >> 20
    }

    fn media(&self, count: u64) -> u64 {
        count.saturating_mul(self.of_medium.load(Relaxed))
    }

    /// What a template puts around a short prompt would look like many times its length, and that of a long one be paid.
    fn learn_at_most(&self, prompt: &Prompt, input: u64) {
        let frame = self.frame.load(Relaxed);
        if prompt.tokens <= SHORT {
            let is = most_lately(frame, input.saturating_sub(prompt.tokens));
            self.frame.store(is.clamp(FRAME[0], FRAME[1]), Relaxed);
            return;
        }
        let beyond_frame = input.saturating_sub(frame).min(1 << 32);
        let is = beyond_frame.saturating_mul(1_000) / prompt.tokens;
        let is = most_lately(self.at_most.load(Relaxed), is);
        self.at_most.store(is.clamp(AT_MOST[0], AT_MOST[1]), Relaxed);
    }

    /// An engine has counted a prompt.
    fn learn(&self, prompt: &Prompt, input: u64) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let input = input.min(1 << 32);
        if prompt.media == 0 {
            let [bytes, tokens] = counted.text.faded([prompt.text_bytes, input]);
            let of_text = (tokens << 20) / bytes.max(1);
            self.of_text.store(of_text.clamp(OF_TEXT[0], OF_TEXT[1]), Relaxed);
        } else {
            let rest = input.saturating_sub(self.text(prompt.text_bytes));
            let [media, tokens] = counted.media.faded([prompt.media, rest]);
            let of_medium = tokens / media.max(1);
            self.of_medium.store(of_medium.clamp(OF_MEDIUM[0], OF_MEDIUM[1]), Relaxed);
        }
    }
}

impl Uncached {
    /// Thought and truth may differ by so much before the rest is not believed: a memory of prompts
    /// that outlives all caches hopes for too much, and one that is new for too little.
    const MOST: u64 = 16;

    /// What a first request that ends is weighed against, in tokens.
    const FIRST: u64 = 8_192;

    pub(super) const fn new() -> Self {
        Self { sum: 0, thought: Self::FIRST, was: Self::FIRST }
    }

    /// A prompt came. It counts as those did that ended, and not for more than its length.
    pub(super) fn arrive(&mut self, prompt: &Prompt) {
        let was = self.was.clamp(self.thought / Self::MOST, self.thought * Self::MOST);
        let work = prompt.uncached.min(1 << 32).saturating_mul(was) / self.thought.max(1);
        self.sum = self.sum.saturating_add(work.min(prompt.tokens));
    }

    /// A request has ended whose engine had to read so much.
    pub(super) fn ended(&mut self, prompt: &Prompt, read: u64) {
        let mut both = [self.thought, self.was];
        [self.thought, self.was] =
            both.faded([prompt.uncached.min(1 << 32), read.min(1 << 32)]).map(|sum| sum.max(1));
    }

    pub(super) const fn sum(&self) -> u64 {
        self.sum
    }
}

/// The longest counts for long: each shorter one takes a 64th of the difference.
fn most_lately(known: u64, is: u64) -> u64 {
    is.max(known - known.saturating_sub(is).div_ceil(64).min(known))
}

/// Two sums whose ratio is what counts.
trait Fades {
    fn faded(&mut self, more: Self) -> Self;
}

impl Fades for [u64; 2] {
    fn faded(&mut self, more: Self) -> Self {
        *self = [0, 1].map(|place| self[place] - self[place] / FADE + more[place]);
        *self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scanned(prompt_bytes: u64, media: u64, media_bytes: u64) -> Scanned {
        Scanned { prompt_bytes, media, media_bytes, ..Scanned::default() }
    }

    fn usage(input: u64, cached: Option<u64>) -> Usage {
        Usage { input, cached, output: 10 }
    }

    /// Engines count so many prompts as so many tokens.
    fn learn(scale: &Scale, prompt: &Prompt, times: usize, tokens: u64) {
        for _ in 0..times {
            scale.took(prompt, 0, usage(tokens, None));
        }
    }

    #[test]
    fn a_picture_is_a_thousand_tokens_until_engines_say_otherwise() {
        let scale = Scale::default();
        let with_picture = scanned(1_000_400, 1, 1_000_000);
        assert_eq!(scale.prompt(&with_picture, 0).tokens, 100 + MEDIUM);
        let prompt = scale.prompt(&with_picture, 0);
        learn(&scale, &prompt, 200, 356);
        let now = scale.prompt(&with_picture, 0).tokens;
        assert!(now.abs_diff(356) < 20, "{now}");
        assert_eq!(scale.prompt(&scanned(4_000, 0, 0), 0).tokens, 1_000, "text is as it was");
        // However much was seen before, a block of pictures is worth few tokens.
        let block = scale.block_tokens(&with_picture);
        assert_eq!((block, scale.block_tokens(&scanned(4_000, 0, 0))), (1, 256));
    }

    #[test]
    fn text_is_counted_as_engines_count_it_and_none_can_make_it_absurd() {
        let scale = Scale::default();
        let body = scanned(9_000, 0, 0);
        let prompt = scale.prompt(&body, 0);
        assert_eq!(prompt.tokens, 2_250);
        learn(&scale, &prompt, 200, 3_000);
        let now = scale.prompt(&body, 0).tokens;
        assert!(now.abs_diff(3_000) < 30, "{now}");
        learn(&scale, &prompt, 500, u64::MAX);
        assert_eq!(scale.prompt(&body, 0).tokens, 9_000);
        learn(&scale, &prompt, 2_000, 1);
        assert_eq!(scale.prompt(&body, 0).tokens, 562);
    }

    #[test]
    fn what_a_template_puts_around_short_prompts_is_not_multiplied_for_long_ones() {
        let scale = Scale::default();
        let short = scale.prompt(&scanned(32, 0, 0), 0);
        learn(&scale, &short, 200, 108);
        let most = scale.at_most(short.tokens);
        assert!((108..150).contains(&most), "{most}");
        assert!(scale.at_most(10_000) < 21_000, "{}", scale.at_most(10_000));
        // What long ones come to is learned, and fades.
        let long = Prompt { text_bytes: 40_000, media: 0, tokens: 10_000, uncached: 10_000 };
        learn(&scale, &long, 1, 30_000);
        assert!((29_000..31_000).contains(&scale.at_most(10_000)), "{}", scale.at_most(10_000));
        learn(&scale, &long, 1_000, 10_000);
        assert!(scale.at_most(10_000) < 11_000, "{}", scale.at_most(10_000));
    }

    #[test]
    fn what_was_cached_is_as_engines_say_and_as_hoped_where_they_do_not() {
        let scale = Scale::default();
        let prompt = scale.prompt(&scanned(4_000, 0, 0), 3);
        assert_eq!((prompt.tokens, prompt.uncached), (1_000, 1_000 - 3 * 256));
        let read = |usage| scale.took(&prompt, 250, usage).read;
        assert_eq!(read(Usage::default()), 250, "nothing is told");
        assert_eq!(read(usage(2_000, None)), 500, "the length is told: a quarter of it");
        assert_eq!(read(usage(1_000, Some(900))), 100);
        // It says how much was cached, so that silence is "nothing" from now on.
        assert_eq!(read(usage(1_000, None)), 1_000);
        assert_eq!(read(usage(1_000, Some(5_000))), 0);
    }

    #[test]
    fn the_sum_of_work_follows_what_engines_had_to_read() {
        let mut uncached = Uncached::new();
        let prompt = Prompt { text_bytes: 40_000, media: 0, tokens: 10_000, uncached: 1_000 };
        uncached.arrive(&prompt);
        assert_eq!(uncached.sum(), 1_000, "a tenth was not seen before");
        // Caches are smaller than the memory of prompts: half of what was hoped for is gone.
        (0..300).for_each(|_| uncached.ended(&prompt, 5_000));
        let before = uncached.sum();
        uncached.arrive(&prompt);
        assert!((uncached.sum() - before).abs_diff(5_000) < 10);
        (0..300).for_each(|_| uncached.ended(&prompt, u64::MAX));
        let before = uncached.sum();
        uncached.arrive(&prompt);
        assert_eq!(uncached.sum() - before, 10_000, "never more than its length");
        (0..3_000).for_each(|_| uncached.ended(&prompt, 0));
        let before = uncached.sum();
        uncached.arrive(&prompt);
        assert_eq!(uncached.sum() - before, 1_000 / Uncached::MOST);
    }
}
