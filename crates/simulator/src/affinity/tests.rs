//! Small worlds with one answer, and the real trace where it is.

use super::*;
use crate::seconds::Seconds;
use crate::traffic::real::shared_trace;
use crate::traffic::{Request, Trace};
use flyball_routing::{RoutingPolicy, Weights};

/// Conversations of a few turns, four blocks longer each time, after one block that all share.
fn conversations(count: u64, turns: u32) -> Trace {
    let mut trace = Trace { block_tokens: 512, ..Trace::default() };
    for turn in 0..turns {
        for number in 0..count {
            let begin = trace.blocks.len() as u32;
            let own = (0..u64::from(turn + 1) * 4).map(|block| 1 + number * 1_000 + block);
            trace.blocks.extend(std::iter::once(0).chain(own));
            let blocks = begin..trace.blocks.len() as u32;
            let at = Seconds(f64::from(turn) * 120.0 + number as f64 * 0.5);
            let prompt = blocks.len() as u32 * 512;
            trace.requests.push(Request { at, prompt, output: 50, blocks, patience: None });
        }
    }
    trace
}

fn kind() -> AffinityEngine {
    AffinityEngine::vllm("llama-3.1-8b", "h100", 1).unwrap()
}

fn setup<'a>(trace: &'a Trace, kind: &'a AffinityEngine, engines: usize) -> AffinitySetup<'a> {
    AffinitySetup { trace, faster: 1.0, kind, engines, report_every: Seconds(0.5), seed: 1 }
}

fn ours(gateways: usize, others: Others) -> Vec<Ours> {
    vec![Ours::new(16, others); gateways]
}

#[test]
fn gateways_that_know_nothing_of_each_other_find_what_one_would() {
    let (trace, kind) = (conversations(60, 4), kind());
    let setup = setup(&trace, &kind, 16);
    let infinite = infinite_hit_share(&trace);
    let one = play(&setup, &mut ours(1, Others::Reported));
    let eight = play(&setup, &mut ours(8, Others::Reported));
    assert!(one.hit_share > 0.95 * infinite, "{one:?} of {infinite}");
    assert!(eight.hit_share > 0.95 * infinite, "{eight:?} of {infinite}");
    assert_eq!((eight.refused, one.refused), (0, 0));
}

#[test]
fn chance_finds_what_all_share_and_one_engine_finds_all() {
    let (trace, kind) = (conversations(60, 2), kind());
    let random = play(&setup(&trace, &kind, 16), &mut [Random::new(1)]);
    let all = play(&setup(&trace, &kind, 1), &mut [RoundRobin::default()]);
    let infinite = infinite_hit_share(&trace);
    // The block that all share is everywhere: 2 of the 6 that can be found in 14.
    assert!(random.hit_share < 0.45 * infinite, "{random:?} of {infinite}");
    // Of the last block one token is always computed, and with it its block of 16.
    assert!((0.98..=1.0).contains(&(all.hit_share / infinite)), "{all:?} of {infinite}");
    assert_eq!(all.max_over_mean, 1.0);
}

#[test]
fn the_same_seed_gives_the_same_outcome() {
    let (trace, kind) = (conversations(20, 3), kind());
    let setup = setup(&trace, &kind, 16);
    let outcome = || play(&setup, &mut ours(4, Others::Shared));
    assert_eq!(outcome(), outcome());
}

/// Whether the shadow report ranks policies by mean wait as truly routing with each does, whichever
/// is live meanwhile. Prints both.
#[expect(clippy::print_stdout, reason = "where it fails, the figures say why")]
fn ranks_right(setup: &AffinitySetup<'_>) -> bool {
    let routed = |policy| {
        let ours = Ours::new(setup.engines, Others::Reported).choosing(policy);
        play(setup, &mut [ours])
    };
    let outcomes = RoutingPolicy::ALL.map(|policy| (policy, routed(policy)));
    let ranked = |mut list: Vec<(RoutingPolicy, f64)>| {
        list.sort_by(|a, b| a.1.total_cmp(&b.1));
        list.into_iter().map(|(policy, _)| policy).collect::<Vec<_>>()
    };
    let truly = ranked(outcomes.iter().map(|(policy, one)| (*policy, one.ttft[2])).collect());
    RoutingPolicy::ALL.into_iter().all(|live| {
        let mut shadowed = [Shadowed::new(setup.engines, live, &RoutingPolicy::ALL)];
        play(setup, &mut shadowed);
        let report = shadowed[0].judge();
        println!("{live:?} live: error {:?}, {:?}", report.error, report.rates);
        for one in &report.policies {
            let truth = outcomes.iter().find(|(policy, _)| *policy == one.policy);
            println!("  {one:?}, truly {:?}", truth.map(|(_, o)| (o.ttft[2], o.hit_share)));
        }
        let all = report.policies.iter().map(|one| (one.policy, one.first_seconds));
        ranked(all.collect()) == truly
    })
}

#[test]
fn the_shadow_report_ranks_policies_as_full_engines_do() {
    // A number of conversations that turns of 8 do not meet again, at two thirds of what engines
    // bear without hits.
    let (trace, kind) = (conversations(243, 6), kind());
    assert!(ranks_right(&AffinitySetup { faster: 16.0, ..setup(&trace, &kind, 8) }));
}

#[test]
fn the_shadow_report_is_right_on_the_half_of_mooncake_that_nothing_was_tuned_on() {
    let Some(mut trace) = shared_trace("mooncake_conversation.jsonl.gz") else { return };
    trace.requests.drain(..trace.requests.len() / 2);
    let begin = trace.requests[0].at;
    trace.requests.iter_mut().for_each(|request| request.at = request.at - begin);
    let kind = AffinityEngine::vllm("llama-3.1-70b", "h200", 8).unwrap();
    // At 73 % of what engines bear. At 55 %, prefix and least load are one per cent apart.
    assert!(ranks_right(&AffinitySetup { faster: 8.0, ..setup(&trace, &kind, 16) }));
}

/// Caches that hold a sixth of what is said: 200 conversations of up to 8,704 tokens, 12 or 13 to an
/// engine.
#[test]
#[expect(clippy::print_stdout, reason = "the figure is what it is for")]
fn events_about_caches_keep_hopes_true() {
    let (trace, kind) = (conversations(200, 4), kind().with_cache_tokens(20_000));
    let setup = setup(&trace, &kind, 16);
    let deaf = play(&setup, &mut ours(1, Others::Reported));
    let hearing = play(&setup, &mut [Ours::new(16, Others::Reported).hearing()]);
    for (name, played) in [("deaf", &deaf), ("hearing", &hearing)] {
        println!(
            "{name}: {:.3} of hopes kept, {:.3} found, first token after {:.3} s (p95 {:.3} s)",
            played.hopes_met, played.hit_share, played.ttft[2], played.ttft[1]
        );
    }
    assert!(hearing.hopes_met > 1.5 * deaf.hopes_met, "{hearing:?} and {deaf:?}");
    assert!(hearing.hit_share > 0.98 * deaf.hit_share, "{hearing:?} and {deaf:?}");
}

#[test]
#[ignore = "it measures: the same on Mooncake's conversations; run it with --release --nocapture"]
#[expect(clippy::print_stdout, reason = "the figure is what it is for")]
fn mooncake_with_and_without_events_about_caches() {
    let Some(trace) = shared_trace("mooncake_conversation.jsonl.gz") else { return };
    let whole = AffinityEngine::vllm("llama-3.1-70b", "h200", 8).unwrap();
    for tokens in [100_000, 300_000, 1_000_000] {
        let kind = whole.clone().with_cache_tokens(tokens);
        let setup = AffinitySetup { faster: 6.0, ..setup(&trace, &kind, 16) };
        for gateways in [1, 8] {
            let deaf = play(&setup, &mut ours(gateways, Others::Reported));
            let hearing = |gone_per_thousand| {
                let weights = Weights { gone_per_thousand, ..Weights::DEFAULT };
                let one = Ours::new(16, Others::Reported).weighing(weights).hearing();
                play(&setup, &mut vec![one; gateways])
            };
            for (name, played) in [
                ("deaf", deaf),
                ("hearing, 0", hearing(0)),
                ("hearing, 200", hearing(200)),
                ("hearing, 400", hearing(400)),
            ] {
                println!(
                    "{tokens} tokens, {gateways} gateways, {name}: {:.3} of hopes kept, {:.3} found, \
                     first token after {:.3} s (p95 {:.3} s)",
                    played.hopes_met, played.hit_share, played.ttft[2], played.ttft[1]
                );
            }
        }
    }
}

#[test]
fn mooncake_conversations_over_16_engines() {
    let Some(trace) = shared_trace("mooncake_conversation.jsonl.gz") else { return };
    let kind = AffinityEngine::vllm("llama-3.1-70b", "h200", 8).unwrap();
    let setup = AffinitySetup { faster: 6.0, ..setup(&trace, &kind, 16) };
    let one = play(&setup, &mut ours(1, Others::Reported));
    let eight = play(&setup, &mut ours(8, Others::Reported));
    let tree = play(&setup, &mut [CacheAware::default()]);
    assert!(eight.hit_share >= 0.95 * one.hit_share, "{eight:?} and {one:?}");
    assert!(eight.hit_share >= 0.9 * infinite_hit_share(&trace), "{eight:?}");
    assert!(eight.max_over_mean.max(one.max_over_mean) <= 1.5, "{eight:?} and {one:?}");
    assert!(one.ttft[1] <= 0.9 * tree.ttft[1], "{one:?} and {tree:?}");
}
