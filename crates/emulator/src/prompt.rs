//! What a prompt is to an engine without a tokenizer: a number of tokens, and names of its blocks.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Bytes that count as one token; about what English has with the tokenizers of today.
pub const BYTES_PER_TOKEN: usize = 4;

/// A prompt that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    /// Tokens, at least one.
    pub tokens: u32,
    /// Names of its full blocks. Each depends on all bytes before it, so that prompts which begin
    /// alike, and only these, begin with the same names.
    pub names: Vec<u64>,
    /// Depends on every byte and on the salt.
    pub hash: u64,
    /// Depends on every byte, and can be carried on.
    pub parsed: ParsedPrompt,
}

/// A hash of a text that more text can be added to: a polynomial, so that where texts are cut makes
/// no difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParsedPrompt(pub(crate) u64);

impl ParsedPrompt {
    /// Adds text.
    pub(crate) fn add(&mut self, text: &[u8]) {
        // One more than the byte, so that a zero counts too. Eight at once, because one waits for
        // the other otherwise.
        let (eights, rest) = text.as_chunks::<8>();
        for eight in eights {
            let sum = eight.iter().zip(POWERS).fold(0_u64, |sum, (byte, power)| {
                sum.wrapping_add((u64::from(*byte) + 1).wrapping_mul(power))
            });
            self.0 = self.0.wrapping_mul(power(8)).wrapping_add(sum);
        }
        for byte in rest {
            self.0 = self.0.wrapping_mul(BASE).wrapping_add(u64::from(*byte) + 1);
        }
    }
}

/// Odd, and with bits all over: the one of PCG's generators.
const BASE: u64 = 6_364_136_223_846_793_005;

const fn power(exponent: u32) -> u64 {
    BASE.wrapping_pow(exponent)
}

/// What the first of eight bytes is worth, the second, and so on.
const POWERS: [u64; 8] =
    [power(7), power(6), power(5), power(4), power(3), power(2), power(1), power(0)];

/// Reads a prompt piece by piece. Where the pieces are cut makes no difference.
#[derive(Clone, Debug)]
pub struct Reader {
    block_bytes: usize,
    names: Vec<u64>,
    /// The name of the last full block, or what the salt makes of nothing.
    chain: u64,
    /// Bytes after the last full block.
    rest: Vec<u8>,
    parsed: ParsedPrompt,
}

impl Reader {
    /// Nothing read yet. Prompts with different salts share no names.
    pub fn new(block_tokens: u32, salt: &str) -> Self {
        let block_bytes = (block_tokens as usize).max(1) * BYTES_PER_TOKEN;
        let chain = xxh3_64_with_seed(salt.as_bytes(), 0);
        let rest = Vec::with_capacity(block_bytes);
        Self { block_bytes, names: Vec::new(), chain, rest, parsed: ParsedPrompt::default() }
    }

    /// The next bytes.
    pub fn push(&mut self, mut bytes: &[u8]) {
        self.parsed.add(bytes);
        if !self.rest.is_empty() {
            let missing = (self.block_bytes - self.rest.len()).min(bytes.len());
            self.rest.extend_from_slice(&bytes[..missing]);
            bytes = &bytes[missing..];
            if self.rest.len() == self.block_bytes {
                self.chain = xxh3_64_with_seed(&self.rest, self.chain);
                self.names.push(self.chain);
                self.rest.clear();
            }
        }
        let blocks = bytes.chunks_exact(self.block_bytes);
        self.rest.extend_from_slice(blocks.remainder());
        for block in blocks {
            self.chain = xxh3_64_with_seed(block, self.chain);
            self.names.push(self.chain);
        }
    }

    /// Tokens that were read so far, at least one.
    pub fn tokens(&self) -> u32 {
        let bytes = self.names.len() * self.block_bytes + self.rest.len();
        u32::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u32::MAX).max(1)
    }

    /// All was read.
    pub fn finish(self) -> Prompt {
        let tokens = self.tokens();
        let hash = xxh3_64_with_seed(&self.rest, self.chain);
        Prompt { tokens, names: self.names, hash, parsed: self.parsed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &[u8], salt: &str) -> Prompt {
        let mut reader = Reader::new(16, salt);
        reader.push(text);
        reader.finish()
    }

    #[test]
    fn four_bytes_are_a_token_and_sixteen_tokens_a_block() {
        assert_eq!(read(b"", "").tokens, 1);
        assert_eq!(read(&[b'x'; 5], "").tokens, 2);
        let prompt = read(&[b'x'; 130], "");
        assert_eq!((prompt.tokens, prompt.names.len()), (33, 2));
        assert_ne!(prompt.names[0], prompt.names[1], "equal bytes after different beginnings");
    }

    #[test]
    fn another_salt_shares_nothing() {
        let (one, other) = (read(&[b'x'; 128], "one"), read(&[b'x'; 128], "other"));
        assert!(one.names.iter().all(|name| !other.names.contains(name)));
    }

    proptest! {
        #[test]
        fn where_pieces_are_cut_makes_no_difference(
            text in proptest::collection::vec(any::<u8>(), 0..600),
            cuts in proptest::collection::vec(0_usize..600, 0..8),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.sort_unstable();
            let mut reader = Reader::new(16, "");
            let mut from = 0;
            for cut in cuts {
                reader.push(&text[from..cut]);
                from = cut;
            }
            reader.push(&text[from..]);
            prop_assert_eq!(reader.finish(), read(&text, ""));
        }

        #[test]
        fn prompts_share_names_as_far_as_they_share_blocks(
            text in proptest::collection::vec(any::<u8>(), 64..600),
            at in 0_usize..600,
        ) {
            let mut other = text.clone();
            let at = at % text.len();
            other[at] ^= 1;
            let (one, other) = (read(&text, ""), read(&other, ""));
            let alike = one.names.iter().zip(&other.names).take_while(|(a, b)| a == b).count();
            prop_assert_eq!(alike, (at / 64).min(one.names.len()));
            prop_assert_ne!(one.hash, other.hash);
        }
    }
}
