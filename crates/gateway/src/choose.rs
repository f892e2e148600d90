//! Asks routing for an engine, with what this gateway knows.

use crate::fleet::{Endpoint, Millis, Model};
use crate::scan::{BLOCK_BYTES, Scanned};
use flyball_core::units::Tokens;
use flyball_routing::{Ask, Availability, Seen, Weights, Why};
use std::cell::RefCell;
use std::sync::Arc;

/// Bytes of English text per token, for prompts that nobody has counted.
pub(crate) const BYTES_PER_TOKEN: u64 = 4;

/// Tokens of an answer, if nobody said the most: about the mean of chat traffic in the Azure traces
/// (211 to 300).
const USUAL_OUTPUT: u64 = 256;

/// Prefixes that a thread remembers, in half a megabyte: 3,000 prompts of 12,000 tokens.
const REMEMBERED: usize = 65_536;

/// A new prompt moves the mean by one part in so many.
const PATIENCE: u64 = 64;

/// Tokens of a usual prompt before any was seen: about the mean of chat traffic in the Azure traces.
const FIRST_USUAL: u64 = 1_024;

/// An engine for a request.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) endpoint: Arc<Endpoint>,
    /// Leading blocks that it hopefully has cached; `None` if it was chosen by load.
    pub(crate) hoped_blocks: Option<u32>,
    /// Prompt tokens that it then has to read.
    pub(crate) to_read: u64,
}

/// The tokens that a request is taken to have: prompt and answer.
pub(crate) fn tokens_of(scanned: &Scanned) -> (u64, u64) {
    let prompt = (scanned.prompt_bytes / BYTES_PER_TOKEN).max(1);
    let most = scanned.max_tokens.unwrap_or(USUAL_OUTPUT);
    (prompt, most.saturating_mul(scanned.answers.unwrap_or(1)).min(1 << 20))
}

/// The engine for a request, other than those tried before; `None` if there is none.
///
/// If breakers keep everything closed, they are not asked: trying is better than refusing.
pub(crate) fn choose(
    model: &Model,
    scanned: &Scanned,
    key: u64,
    tried: &[u32],
    now: Millis,
) -> Option<Chosen> {
    MEMORY.with_borrow_mut(|memory| {
        let (prompt, _) = tokens_of(scanned);
        let ask = Ask {
            prefixes: &scanned.prefixes,
            block_tokens: (BLOCK_BYTES as u64 / BYTES_PER_TOKEN) as u32,
            past: memory.seen.look(&scanned.prefixes, model.endpoints.len()),
            prompt: Tokens::new(prompt),
            key,
        };
        let usual = memory.usual(prompt);
        let attempt = |careful: bool| {
            let usable = |e: &Endpoint| {
                e.is_open() && !tried.contains(&e.slot) && (!careful || e.breaker.allows(now))
            };
            let view = |place: usize| {
                let endpoint = &model.endpoints[place];
                view(endpoint, usable(endpoint), usual)
            };
            let choice = flyball_routing::choose(&model.ring, view, &ask, &Weights::DEFAULT)?;
            let endpoint = &model.endpoints[choice.endpoint];
            (!careful || endpoint.breaker.claim(now)).then_some(choice)
        };
        // The second careful one is for a race lost in `claim`.
        let choice = attempt(true).or_else(|| attempt(true)).or_else(|| attempt(false))?;
        let endpoint = Arc::clone(&model.endpoints[choice.endpoint]);
        memory.seen.sent(&scanned.prefixes, endpoint.key);
        let hoped_blocks = match choice.why {
            Why::Affinity { blocks } => Some(blocks),
            Why::Overload | Why::LeastLoad => None,
        };
        Some(Chosen { endpoint, hoped_blocks, to_read: choice.to_read.get() })
    })
}

/// What a thread remembers. Threads tell each other nothing, like gateways: prompts have homes.
struct Memory {
    seen: Seen,
    /// Tokens of a usual prompt, times [`PATIENCE`].
    prompts: u64,
}

thread_local! {
    static MEMORY: RefCell<Memory> = RefCell::new(Memory {
        seen: Seen::new(REMEMBERED),
        prompts: FIRST_USUAL * PATIENCE,
    });
}

impl Memory {
    /// Takes in a prompt, and says what is usual.
    const fn usual(&mut self, prompt: u64) -> u64 {
        let usual = self.prompts / PATIENCE;
        self.prompts = (self.prompts - usual).saturating_add(prompt);
        usual
    }
}

fn view(endpoint: &Endpoint, usable: bool, usual: u64) -> flyball_routing::Endpoint {
    let (unread, held) = endpoint.load(usual);
    flyball_routing::Endpoint {
        key: endpoint.key,
        availability: if usable { Availability::Serving } else { Availability::Unhealthy },
        unread: Tokens::new(unread),
        held: Tokens::new(held),
        kv_used_per_thousand: endpoint.kv_used_per_thousand(),
        cached_blocks: 0,
        speed_per_thousand: 1_000,
    }
}
