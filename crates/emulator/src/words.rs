//! Answers: one word a token, the same for the same prompt.

use crate::prompt::ParsedPrompt;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Letters only, so that none needs an escape in JSON.
const WORDS: [&str; 64] = [
    " the", " of", " and", " a", " to", " in", " is", " you", " that", " it", " he", " was",
    " for", " on", " are", " as", " with", " his", " they", " at", " be", " this", " have",
    " from", " or", " one", " had", " by", " word", " but", " not", " what", " all", " were",
    " we", " when", " your", " can", " said", " there", " use", " an", " each", " which", " she",
    " do", " how", " their", " if", " will", " up", " other", " about", " out", " many", " then",
    " them", " these", " so", " some", " her", " would", " make", " like",
];

/// Says the words that follow a text. Each depends on all bytes before it and on nothing else, as
/// with a real model at temperature 0: whoever is given the text so far goes on as if nothing had
/// happened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Voice {
    parsed: ParsedPrompt,
}

impl Voice {
    /// After this text.
    pub(crate) const fn after(parsed: ParsedPrompt) -> Self {
        Self { parsed }
    }

    /// The next word.
    pub(crate) fn word(&mut self) -> &'static str {
        let word = WORDS[(xxh3_64_with_seed(&self.parsed.0.to_le_bytes(), 0) % 64) as usize];
        self.parsed.add(word.as_bytes());
        word
    }

    /// The next so many words.
    pub(crate) fn text(mut self, tokens: u32) -> String {
        (0..tokens).map(|_| self.word()).collect()
    }
}

/// A length between the two, drawn by prompt and seed.
pub(crate) fn length(prompt: u64, seed: u64, least: u32, most: u32) -> u32 {
    let least = least.clamp(1, most.max(1));
    let span = u64::from(most.max(1) - least) + 1;
    least + (xxh3_64_with_seed(&seed.to_le_bytes(), prompt) % span) as u32
}

/// A vector of length one.
pub(crate) fn vector(prompt: u64, dimensions: u32) -> Vec<f32> {
    let draw = |index: u32| {
        let bits = xxh3_64_with_seed(&index.to_le_bytes(), !prompt);
        // The upper half as a number between -1 and 1.
        (bits >> 32) as f32 / 2_f32.powi(31) - 1.0
    };
    let mut vector: Vec<f32> = (0..dimensions).map(draw).collect();
    let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
    vector.iter_mut().for_each(|x| *x /= norm);
    vector
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_need_no_escape() {
        assert!(WORDS.iter().all(|word| word.bytes().all(|b| b == b' ' || b.is_ascii_lowercase())));
    }

    #[test]
    fn whoever_is_given_the_text_so_far_goes_on() {
        let after = |text: &str| {
            let mut parsed = ParsedPrompt::default();
            parsed.add(text.as_bytes());
            Voice::after(parsed)
        };
        let whole = after("once upon").text(50);
        for cut in [0, 1, 7, 49] {
            let begun = after("once upon").text(cut);
            let rest = after(&format!("once upon{begun}")).text(50 - cut);
            assert_eq!(format!("{begun}{rest}"), whole, "{cut}");
        }
        assert_ne!(after("once upom").text(50), whole);
        let different: std::collections::BTreeSet<&str> = whole.split(' ').collect();
        assert!(different.len() > 20, "{whole}");
    }

    #[test]
    fn lengths_stay_inside_and_vary_with_the_seed() {
        let lengths: Vec<u32> = (0..50).map(|seed| length(7, seed, 10, 20)).collect();
        assert!(lengths.iter().all(|length| (10..=20).contains(length)));
        assert!(lengths.iter().any(|length| *length != lengths[0]));
        assert_eq!(length(7, 1, 30, 20), 20);
        assert_eq!(length(7, 1, 0, 0), 1);
    }

    #[test]
    fn vectors_have_length_one() {
        let norm: f32 = vector(3, 384).iter().map(|x| x * x).sum();
        assert!((norm - 1.0).abs() < 1e-5);
    }
}
