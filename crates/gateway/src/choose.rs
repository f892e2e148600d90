//! Asks routing for an engine, with what this gateway knows.

use crate::fleet::{Endpoint, Millis, Model};
use crate::scan::{BLOCK_BYTES, Scanned};
use flyball_core::units::Tokens;
use flyball_routing::{Ask, Availability, Weights, Why};
use std::cell::RefCell;
use std::sync::Arc;

/// Bytes of English text per token, for prompts that nobody has counted.
pub(crate) const BYTES_PER_TOKEN: u64 = 4;

/// Tokens of an answer, if nobody said the most: about the mean of chat traffic in the Azure traces
/// (211 to 300).
const USUAL_OUTPUT: u64 = 256;

/// An engine for a request.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) endpoint: Arc<Endpoint>,
    /// Leading blocks that it hopefully has cached; `None` if it was chosen by load.
    pub(crate) hoped_blocks: Option<u32>,
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
    SCRATCH.with_borrow_mut(|scratch| {
        let mut attempt = |careful: bool| {
            let usable = |e: &Endpoint| {
                e.is_open() && !tried.contains(&e.slot) && (!careful || e.breaker.allows(now))
            };
            scratch.clear();
            scratch.extend(model.endpoints.iter().map(|e| view(e, usable(e))));
            let chosen = ask(model, scanned, key, scratch)?;
            (!careful || chosen.endpoint.breaker.claim(now)).then_some(chosen)
        };
        // The second careful one is for a race lost in `claim`.
        attempt(true).or_else(|| attempt(true)).or_else(|| attempt(false))
    })
}

thread_local! {
    /// Filled anew for each choice, so that its memory is taken once.
    static SCRATCH: RefCell<Vec<flyball_routing::Endpoint>> = const { RefCell::new(Vec::new()) };
}

fn ask(
    model: &Model,
    scanned: &Scanned,
    key: u64,
    views: &[flyball_routing::Endpoint],
) -> Option<Chosen> {
    let (prompt, output) = tokens_of(scanned);
    let ask = Ask {
        prefixes: &scanned.prefixes,
        block_tokens: (BLOCK_BYTES as u64 / BYTES_PER_TOKEN) as u32,
        seen_blocks: None,
        prompt: Tokens::new(prompt),
        expected_output: Tokens::new(output),
        key,
    };
    let choice = flyball_routing::choose(views, &ask, &Weights::DEFAULT)?;
    let hoped_blocks = match choice.why {
        Why::Affinity { blocks } => Some(blocks),
        Why::Overload | Why::LeastLoad => None,
    };
    Some(Chosen { endpoint: Arc::clone(&model.endpoints[choice.endpoint]), hoped_blocks })
}

fn view(endpoint: &Endpoint, usable: bool) -> flyball_routing::Endpoint {
    let (unread, held) = endpoint.load();
    flyball_routing::Endpoint {
        key: endpoint.key,
        availability: if usable { Availability::Serving } else { Availability::Unhealthy },
        unread: Tokens::new(unread),
        held: Tokens::new(held),
        sent_since: Tokens::new(0),
        cached_blocks: 0,
        speed_per_thousand: 1_000,
    }
}
