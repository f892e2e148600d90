//! Answers: one word a token, the same for the same prompt.

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

/// The word of a token of the answer to a prompt.
pub(crate) fn word(prompt: u64, token: u32) -> &'static str {
    WORDS[(xxh3_64_with_seed(&token.to_le_bytes(), prompt) % 64) as usize]
}

/// The first so many words.
pub(crate) fn text(prompt: u64, tokens: u32) -> String {
    (0..tokens).map(|token| word(prompt, token)).collect()
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
