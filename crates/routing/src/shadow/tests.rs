//! Worlds with one answer, and whatever may come.

use super::*;
use crate::policy::RoutingPolicy;
use crate::ring::score;
use proptest::prelude::*;
use std::time::Duration;

const BLOCK: u32 = 256;

fn engines(count: u64) -> Vec<Listed> {
    (0..count).map(|key| Listed { key: key * 1_000_003, open: true }).collect()
}

fn arrival(prefixes: &[u64], key: u64) -> ShadowArrival<'_> {
    let prompt = Tokens::new(prefixes.len() as u64 * u64::from(BLOCK));
    ShadowArrival { prefixes, block_tokens: BLOCK, prompt, output: Tokens::new(100), key }
}

fn conversation(number: u64, blocks: u64) -> Vec<u64> {
    (0..blocks).map(|block| score(number, block)).collect()
}

/// Real engines that read 10,000 tokens a second one behind the other, with all the cache they want,
/// before which conversations are dealt out in turn.
fn tried(conversations: u64, turns: u64, apart: f64) -> ShadowTrial {
    let listed = engines(8);
    let mut trial = ShadowTrial::new(
        RoutingPolicy::RoundRobin,
        &[RoutingPolicy::Prefix, RoutingPolicy::LeastLoad],
        BLOCK,
    );
    trial.list(&listed);
    let mut free = [0.0_f64; 8];
    let mut firsts: Vec<(f64, u64)> = Vec::new();
    for number in 0..conversations * turns {
        let (turn, who) = (number / conversations, number % conversations);
        let at = number as f64 * apart;
        firsts.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (first, number) in firsts.extract_if(.., |(first, _)| *first <= at) {
            trial.first(Duration::from_secs_f64(first), number);
            trial.end(Duration::from_secs_f64(first + 0.01), number, Some(10));
        }
        let prefixes = conversation(who, 8 * (turn + 1));
        let engine = (number % 8) as usize;
        // Whoever had the turn before is another engine, so all of it is read.
        free[engine] = free[engine].max(at) + prefixes.len() as f64 * f64::from(BLOCK) / 1e4;
        firsts.push((free[engine], number));
        let at = Duration::from_secs_f64(at);
        trial.arrive(at, number, &arrival(&prefixes, number), listed[engine].key);
    }
    trial
}

#[test]
fn regret_names_the_policy_that_finds_what_turns_lose() {
    // 61 conversations over 8 engines: the next turn is never where the last one was.
    let report = tried(61, 6, 0.2).judge();
    let [live, prefix, least] = &report.policies[..] else { panic!("{report:?}") };
    assert_eq!((live.policy, live.regret_seconds), (RoutingPolicy::RoundRobin, 0.0));
    assert_eq!(report.best(), Some(RoutingPolicy::Prefix), "{report:?}");
    assert!(prefix.regret_seconds > 0.1 && prefix.is_sure(), "{report:?}");
    assert!(prefix.hit_share > 0.6 && live.hit_share < 0.2, "{report:?}");
    assert!(least.first_seconds > prefix.first_seconds, "{report:?}");
    // 10,000 tokens a second were to be found out, and what is predicted is what came.
    assert!((report.rates.per_prompt_token * 1e4 - 1.0).abs() < 0.1, "{report:?}");
    assert!(report.error.unwrap() < 0.15, "{report:?}");
    let measured = report.measured_seconds.unwrap();
    assert!((live.first_seconds / measured - 1.0).abs() < 0.15, "{report:?}");
}

#[test]
fn nothing_is_scored_before_anything_was_measured() {
    let mut trial = ShadowTrial::new(RoutingPolicy::Prefix, &[RoutingPolicy::Prefix], BLOCK);
    trial.list(&engines(3));
    let prefixes = conversation(1, 10);
    for number in 0..100 {
        let at = Duration::from_secs(number);
        trial.arrive(at, number, &arrival(&prefixes, number), 0);
    }
    let report = trial.judge();
    assert_eq!((report.policies.len(), report.requests, report.error), (1, 0, None));
    assert!(!report.rates.timed);
}

#[test]
fn too_many_engines_or_none_are_not_scored() {
    for count in [0, ENGINES as u64 + 1] {
        let mut trial =
            ShadowTrial::new(RoutingPolicy::Prefix, &[RoutingPolicy::RoundRobin], BLOCK);
        trial.list(&engines(count));
        trial.arrive(Duration::ZERO, 1, &arrival(&conversation(1, 10), 1), 0);
        assert_eq!(trial.judge().requests, 0);
    }
}

#[test]
fn an_engine_that_stays_keeps_what_it_has() {
    let rates = LearningRates::GUESS;
    let mut shadow = Shadow::new(RoutingPolicy::Prefix);
    shadow.list(&engines(4), &rates);
    let prefixes = conversation(1, 20);
    shadow.arrive(Duration::ZERO, &arrival(&prefixes, 1), &rates).unwrap();
    // Two come and all stay; then only the new ones are left.
    shadow.list(&engines(6), &rates);
    let again = shadow.arrive(Duration::from_secs(9), &arrival(&prefixes, 2), &rates).unwrap();
    assert_eq!(again.cached, Tokens::new(20 * 256 - 1));
    shadow.list(&engines(6)[4..], &rates);
    let lost = shadow.arrive(Duration::from_secs(18), &arrival(&prefixes, 3), &rates).unwrap();
    assert_eq!(lost.cached, Tokens::ZERO);
}

#[derive(Clone, Debug)]
enum Step {
    List(u64),
    Arrive(u64, u64, u64),
    First(u64),
    End(u64, Option<u64>),
    Report(u64, u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => (0_u64..12).prop_map(Step::List),
        8 => (0_u64..20, 0_u64..30, 0_u64..12).prop_map(|(who, long, to)| Step::Arrive(who, long, to)),
        6 => (0_u64..200).prop_map(Step::First),
        6 => (0_u64..200, prop::option::of(0_u64..1_000)).prop_map(|(n, out)| Step::End(n, out)),
        2 => (0_u64..12, 0_u32..1_001).prop_map(|(engine, used)| Step::Report(engine, used)),
    ]
}

proptest! {
    #[test]
    fn whatever_comes_in_whatever_order_the_report_is_sound(
        steps in prop::collection::vec((step(), 0_u64..3_000), 0..200),
    ) {
        let mut trial = ShadowTrial::new(RoutingPolicy::LeastLoad, &RoutingPolicy::ALL, BLOCK);
        let (mut now, mut number) = (0, 0);
        for (step, later) in steps {
            now += later;
            let at = Duration::from_millis(now);
            match step {
                Step::List(count) => trial.list(&engines(count)),
                Step::Arrive(who, long, to) => {
                    number += 1;
                    let prefixes = conversation(who, long);
                    trial.arrive(at, number, &arrival(&prefixes, number), to * 1_000_003);
                }
                Step::First(number) => trial.first(at, number),
                Step::End(number, output) => trial.end(at, number, output),
                Step::Report(engine, used) => trial.report(engine * 1_000_003, used),
            }
        }
        let report = trial.judge();
        prop_assert_eq!(report.policies[0].regret_seconds, 0.0);
        for one in &report.policies {
            prop_assert!(one.first_seconds.is_finite() && one.first_seconds >= 0.0);
            prop_assert!((0.0..=1.0).contains(&one.hit_share));
        }
    }
}
