//! How much of prompts was in prompts before: what a cache without end would save.

use super::Trace;
use crate::seconds::Seconds;
use flyball_core::quantile::median;

/// What one request shares with those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shared {
    /// Blocks at the start of the prompt that an earlier request had.
    pub blocks: u32,
    /// How long ago the last request with all of them came.
    pub ago: Seconds,
}

/// What a trace shares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reuse {
    /// Share of all blocks that a cache without end has seen.
    pub hit_share: f64,
    /// Share of the requests that share anything.
    pub request_share: f64,
    /// Mean shared blocks of those that do.
    pub depth: f64,
    /// The time since the last use of what is shared, in the median.
    pub ago: Seconds,
}

/// What each request shares, in order of arrival.
pub fn shared(trace: &Trace) -> Vec<Shared> {
    let mut names = trace.blocks.clone();
    names.sort_unstable();
    names.dedup();
    // Who had the block last, by place of the name; a number past all requests if nobody.
    let mut last = vec![u32::MAX; names.len()];
    let place = |name: &u64| names.binary_search(name).ok();
    let requests = trace.requests.iter().enumerate();
    let share = requests.map(|(number, request)| {
        let blocks = trace.blocks_of(request);
        let mut found = Shared::default();
        let mut leading = true;
        for place in blocks.iter().filter_map(place) {
            let before = std::mem::replace(&mut last[place], number as u32);
            leading &= before != u32::MAX && before != number as u32;
            if leading {
                found.blocks += 1;
                found.ago = request.at - trace.requests[before as usize].at;
            }
        }
        found
    });
    share.collect()
}

impl Reuse {
    /// Nothing if the trace names no blocks.
    pub fn of(trace: &Trace) -> Option<Self> {
        if trace.blocks.is_empty() {
            return None;
        }
        let shared = shared(trace);
        let mut sharing: Vec<Shared> = shared.iter().filter(|s| s.blocks > 0).copied().collect();
        let hits: f64 = sharing.iter().map(|shared| f64::from(shared.blocks)).sum();
        sharing.sort_by_key(|shared| shared.ago);
        Some(Self {
            hit_share: hits / trace.blocks.len() as f64,
            request_share: sharing.len() as f64 / trace.requests.len().max(1) as f64,
            depth: hits / sharing.len().max(1) as f64,
            ago: median(&sharing).map_or(Seconds::ZERO, |shared| shared.ago),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::Request;

    #[test]
    fn only_leading_blocks_of_earlier_requests_count() {
        let mut trace = Trace { block_tokens: 16, ..Trace::default() };
        for (at, names) in [(0.0, &[1, 2, 3][..]), (5.0, &[1, 2, 9]), (7.0, &[8, 3]), (9.0, &[1])] {
            let begin = trace.blocks.len() as u32;
            trace.blocks.extend(names);
            let blocks = begin..trace.blocks.len() as u32;
            let at = Seconds(at);
            trace.requests.push(Request { at, prompt: 9, output: 1, blocks, patience: None });
        }
        let found = shared(&trace);
        assert_eq!(found.iter().map(|s| s.blocks).collect::<Vec<_>>(), [0, 2, 0, 1]);
        assert_eq!((found[1].ago, found[3].ago), (Seconds(5.0), Seconds(4.0)));
        let reuse = Reuse::of(&trace).unwrap();
        // By hand: 3 of 9 blocks, 2 of 4 requests, 1.5 blocks each.
        assert!((reuse.hit_share - 3.0 / 9.0).abs() < 1e-12);
        assert_eq!((reuse.request_share, reuse.depth), (0.5, 1.5));
        assert_eq!(Reuse::of(&Trace::default()), None);
    }
}
