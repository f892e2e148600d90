//! Hashes the prompt's blocks while its bytes arrive.

use super::BLOCK_BYTES;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The keys that hold a prompt, on the interface that has most.
const PARTS: usize = 3;

/// The hashes of a prompt, part by part. What they are chained with is known only when it is known
/// who asks and where the request goes.
#[derive(Clone, Debug)]
pub struct Blocks {
    parts: [Part; PARTS],
    /// The bytes of the block that is not whole yet.
    carry: Box<[u8; BLOCK_BYTES]>,
    carried: usize,
}

/// What one key holds.
#[derive(Clone, Debug, Default)]
struct Part {
    /// One per whole block, each for itself. As many as the body's limit has KiB at most.
    hashes: Vec<u64>,
    /// Of what is left behind the last whole block.
    rest: u64,
}

impl Blocks {
    pub(super) fn new() -> Self {
        Self { parts: Default::default(), carry: Box::new([0; BLOCK_BYTES]), carried: 0 }
    }

    /// More bytes of a part. A part is fed to its end before another begins.
    pub(super) fn feed(&mut self, part: usize, mut bytes: &[u8]) {
        let hashes = &mut self.parts[part].hashes;
        if self.carried > 0 {
            let missing = (BLOCK_BYTES - self.carried).min(bytes.len());
            self.carry[self.carried..self.carried + missing].copy_from_slice(&bytes[..missing]);
            self.carried += missing;
            bytes = &bytes[missing..];
            if self.carried < BLOCK_BYTES {
                return;
            }
            hashes.push(xxh3_64(&self.carry[..]));
        }
        let (blocks, rest) = bytes.as_chunks::<BLOCK_BYTES>();
        hashes.extend(blocks.iter().map(|block| xxh3_64(block)));
        self.carry[..rest.len()].copy_from_slice(rest);
        self.carried = rest.len();
    }

    /// The part has ended.
    pub(super) fn end(&mut self, part: usize) {
        self.parts[part].rest = xxh3_64(&self.carry[..self.carried]);
        self.carried = 0;
    }

    /// Chains all of it. Two prompts share a hash only if everything before the block's end is
    /// equal, so the rest of a part goes into the hashes of the parts behind it. The second is the
    /// hash of the whole.
    pub fn chain(&self, model: &str, cache_salt: Option<&str>) -> (Vec<u64>, u64) {
        let mut chained = Vec::with_capacity(self.parts.iter().map(|p| p.hashes.len()).sum());
        let mut link = xxh3_64(model.as_bytes());
        if let Some(salt) = cache_salt {
            link = xxh3_64_with_seed(salt.as_bytes(), link);
        }
        for part in &self.parts {
            for hash in &part.hashes {
                link = xxh3_64_with_seed(&hash.to_le_bytes(), link);
                chained.push(link);
            }
            link = xxh3_64_with_seed(&part.rest.to_le_bytes(), !link);
        }
        (chained, link)
    }
}
