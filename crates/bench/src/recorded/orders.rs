//! The same requests in other orders, so that no law is judged on the one order that it may have been made for. Pure.

use flyball_simulator::seconds::Seconds;
use flyball_simulator::traffic::{Request, Trace};

/// A silence that ends a burst, in seconds.
const SILENCE: f64 = 20.0;
/// Hours that a shuffle lasts: the first, and two after it in other orders.
const PASSES: u64 = 3;
/// Copies of steady traffic: worlds of one or two replicas flatter wrong laws.
const COPIES: usize = 6;

/// Every burst with the silence after it, in an order of its own, three times over.
pub(super) fn shuffled(trace: &Trace, seed: u64) -> Trace {
    let bursts = bursts(&trace.requests);
    let (mut requests, mut begins) = (Vec::new(), 0.0);
    for pass in 0..PASSES {
        for place in order(bursts.len(), seed * PASSES + pass) {
            let (burst, length) = &bursts[place];
            let first = burst[0].at.get();
            requests.extend(burst.iter().map(|one| moved(one, begins - first)));
            begins += length;
        }
    }
    Trace { requests, gaps: Vec::new(), ..trace.clone() }
}

/// Six copies on top of each other, each begun a sixth later and carried on from the front.
pub(super) fn shifted(trace: &Trace) -> Trace {
    let length = trace.requests.last().map_or(0.0, |last| last.at.get());
    let mut requests: Vec<Request> = Vec::new();
    for copy in 0..COPIES {
        let by = length * copy as f64 / COPIES as f64;
        let around = |one: &Request| {
            let at = one.at.get() + by;
            Request { at: Seconds(if at > length { at - length } else { at }), ..one.clone() }
        };
        requests.extend(trace.requests.iter().map(around));
    }
    requests.sort_by(|a, b| a.at.get().total_cmp(&b.at.get()));
    Trace { requests, gaps: Vec::new(), ..trace.clone() }
}

/// The same requests at a constant rate, at random, as from many users who know nothing of each other.
pub(super) fn even(trace: &Trace, rate: f64, count: usize) -> Trace {
    let (mut at, mut state) = (0.0, 1);
    let one = |request: &Request| {
        at -= (1.0 - unit(&mut state)).ln() / rate;
        Request { at: Seconds(at), ..request.clone() }
    };
    let requests = trace.requests.iter().cycle().take(count).map(one).collect();
    Trace { requests, gaps: Vec::new(), ..trace.clone() }
}

/// Each burst, and how long it lasts with the silence after it.
fn bursts(requests: &[Request]) -> Vec<(&[Request], f64)> {
    let mut cuts = vec![0];
    let silent = |pair: &[Request]| pair[1].at.get() - pair[0].at.get() >= SILENCE;
    cuts.extend(
        requests.windows(2).enumerate().filter(|(_, pair)| silent(pair)).map(|(n, _)| n + 1),
    );
    cuts.push(requests.len());
    let pairs = cuts.windows(2).filter(|pair| pair[0] < pair[1]);
    let burst = |pair: &[usize]| {
        let burst = &requests[pair[0]..pair[1]];
        let ends =
            requests.get(pair[1]).map_or(burst[burst.len() - 1].at.get() + SILENCE, |n| n.at.get());
        (burst, ends - burst[0].at.get())
    };
    pairs.map(burst).collect()
}

/// Fisher and Yates.
fn order(count: usize, seed: u64) -> Vec<usize> {
    let mut all: Vec<usize> = (0..count).collect();
    let mut state = seed.wrapping_add(1);
    for last in (1..count).rev() {
        let other = (unit(&mut state) * (last + 1) as f64) as usize;
        all.swap(last, other.min(last));
    }
    all
}

fn moved(one: &Request, by: f64) -> Request {
    Request { at: Seconds(one.at.get() + by), ..one.clone() }
}

/// SplitMix64, from 0 to 1.
fn unit(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(times: &[f64]) -> Trace {
        let one = |(n, at): (usize, &f64)| Request {
            at: Seconds(*at),
            prompt: n as u32 + 1,
            output: 1,
            blocks: 0..0,
            patience: None,
        };
        Trace { requests: times.iter().enumerate().map(one).collect(), ..Trace::default() }
    }

    #[test]
    fn a_shuffle_has_every_request_in_each_pass_and_bursts_stay_whole() {
        let original = trace(&[0.0, 1.0, 50.0, 52.0, 100.0, 101.0, 160.0]);
        let shuffled = shuffled(&original, 3);
        let mut prompts: Vec<u32> = shuffled.requests.iter().map(|one| one.prompt).collect();
        assert_eq!(prompts.len(), 21);
        let pairs = shuffled.requests.windows(2);
        let together = pairs.filter(|pair| pair[0].prompt == 3 && pair[1].prompt == 4);
        assert!(together.clone().count() == 3);
        assert!(
            together
                .into_iter()
                .all(|pair| (pair[1].at.get() - pair[0].at.get() - 2.0).abs() < 1e-9)
        );
        prompts.sort_unstable();
        assert_eq!(prompts[..3], [1, 1, 1]);
        assert!(shuffled.requests.is_sorted_by(|a, b| a.at.get() <= b.at.get()));
        let other = super::shuffled(&original, 4);
        assert_ne!(shuffled.requests, other.requests);
    }

    #[test]
    fn shifted_copies_are_six_times_as_much_in_the_same_time() {
        let shifted = shifted(&trace(&[0.0, 1.0, 2.0, 3.0, 6.0]));
        assert_eq!(shifted.requests.len(), 30);
        assert!(shifted.requests.iter().all(|one| (0.0..=6.0).contains(&one.at.get())));
        assert!(shifted.requests.is_sorted_by(|a, b| a.at.get() <= b.at.get()));
    }

    #[test]
    fn an_even_trace_has_its_rate() {
        let even = even(&trace(&[0.0, 1.0]), 4.0, 4_000);
        let last = even.requests[3_999].at.get();
        assert!((last - 1_000.0).abs() < 50.0, "{last}");
    }
}
