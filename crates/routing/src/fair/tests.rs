use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn request(caller: u64, weight: u32, cost: u64) -> QueuedRequest {
    QueuedRequest { class: Class::Normal, caller, weight, cost: Cost(cost) }
}

fn always(_: u64, _: &u64) -> bool {
    true
}

/// Cost served per caller, of so many turns, while all have something waiting.
fn served(callers: &[(u32, u64)], turns: usize) -> BTreeMap<u64, u64> {
    let mut queue = FairQueue::new();
    let mut sums = BTreeMap::new();
    for (caller, (weight, cost)) in (0..).zip(callers) {
        (0..100).for_each(|_| {
            queue.push(&request(caller, *weight, *cost), caller);
        });
    }
    for _ in 0..turns {
        let (was, caller) = queue.next(always).unwrap();
        *sums.entry(caller).or_default() += was.cost.0;
        queue.push(&was, caller);
    }
    sums
}

#[test]
fn callers_get_the_same_cost_however_large_their_requests_are() {
    let sums = served(&[(1, 20_000), (1, 1_000), (1, 300)], 10_000);
    let least = sums.values().min().unwrap();
    assert!(sums.values().all(|sum| sum - least <= 24_096), "{sums:?}");
}

#[test]
fn weights_are_parts() {
    let sums = served(&[(3, 1_000), (1, 1_000)], 4_000);
    assert!(sums[&0].abs_diff(3 * sums[&1]) <= 3 * 4_096, "{sums:?}");
}

#[test]
fn classes_are_strict_unless_the_first_cannot_go() {
    let mut queue = FairQueue::new();
    for (class, what) in [(Class::Low, 3), (Class::Normal, 2), (Class::High, 1)] {
        queue.push(&QueuedRequest { class, caller: what, weight: 1, cost: Cost(10) }, what);
    }
    assert_eq!(queue.next(|caller, _| caller != 1).map(|(_, what)| what), Some(2));
    assert_eq!(queue.next(always).map(|(_, what)| what), Some(1));
    assert_eq!(queue.next(always).map(|(_, what)| what), Some(3));
    assert_eq!(queue.next(always), None);
}

#[test]
fn batch_comes_after_all_others_also_where_those_cannot_go() {
    let mut queue = FairQueue::new();
    let of = |class, what| QueuedRequest { class, caller: what, weight: 1, cost: Cost(10) };
    queue.push(&of(Class::Batch, 4), 4);
    queue.push(&of(Class::Low, 3), 3);
    assert_eq!((queue.urgent(), queue.batch(), queue.has(4)), (1, 1, false));
    assert_eq!(queue.next(|_, _| false), None);
    assert_eq!(queue.next_batch(), None, "somebody else waits");
    assert_eq!(queue.next(always).map(|(_, what)| what), Some(3));
    assert_eq!(queue.next(always), None, "it has no turn among others");
    assert_eq!(queue.ahead(&of(Class::Low, 3)), Cost(10), "it is never ahead of anybody");
    assert_eq!(queue.next_batch().map(|(_, what)| what), Some(4));
    assert_eq!((queue.urgent(), queue.batch(), queue.len()), (0, 0, 0));
}

#[test]
fn what_is_put_back_goes_first_and_is_not_paid_twice() {
    let mut queue = FairQueue::new();
    let batch = QueuedRequest { class: Class::Batch, caller: 1, weight: 1, cost: Cost(50_000) };
    for what in 0..3 {
        queue.push(&batch, what);
    }
    let (request, first) = queue.next_batch().unwrap();
    assert_eq!(first, 0);
    queue.put_back(&request, first);
    assert_eq!(queue.cost(), Cost(100_000));
    assert_eq!(queue.next_batch().unwrap(), (QueuedRequest { cost: Cost(0), ..batch }, 0));
    let ticket = queue.put_back(&request, 0);
    assert_eq!(queue.remove(ticket), Some(0));
    assert_eq!((queue.batch(), queue.cost()), (2, Cost(100_000)));
}

#[test]
fn who_cost_more_than_thought_waits_for_it() {
    let mut queue = FairQueue::new();
    let mut turns = [0; 2];
    for caller in 0..2 {
        (0..10).for_each(|_| {
            queue.push(&request(caller, 1, 1_000), caller);
        });
    }
    for _ in 0..1_000 {
        let (was, caller) = queue.next(always).unwrap();
        turns[caller as usize] += 1;
        queue.push(&was, caller);
        let actual = if caller == 0 { 4_000 } else { 1_000 };
        queue.charge(Class::Normal, caller, Cost(1_000), Cost(actual));
    }
    assert!((3.5..4.5).contains(&(f64::from(turns[1]) / f64::from(turns[0]))), "{turns:?}");
}

#[test]
fn what_is_ahead_is_a_share_and_not_all() {
    let mut queue = FairQueue::new();
    for _ in 0..100 {
        queue.push(&request(1, 1, 10_000), 1);
    }
    assert_eq!(queue.ahead(&request(2, 1, 1_000)), Cost(2_000));
    assert_eq!(queue.ahead(&request(1, 1, 10_000)), Cost(1_010_000));
    let urgent = QueuedRequest { class: Class::High, ..request(2, 1, 1_000) };
    assert_eq!(queue.ahead(&urgent), Cost(1_000));
}

#[test]
fn only_who_wants_more_than_its_share_is_over_it() {
    let mut shares = Shares::default();
    shares.wants(1, 1, Cost(1_000_000));
    assert_eq!(shares.exceeded(1, false), None, "nobody else wants anything");
    for caller in 2..11 {
        shares.wants(caller, 1, Cost(20_000));
    }
    assert_eq!(shares.exceeded(1, false), Some(100));
    assert!((2..11).all(|caller| shares.exceeded(caller, true).is_none()));
    // While it waits it asks for nothing, and stays where it is; then it is let go.
    (0..8).for_each(|_| shares.fade());
    (2..11).for_each(|caller| shares.wants(caller, 1, Cost(20_000)));
    assert_eq!(shares.exceeded(1, true), Some(100));
    assert_eq!(shares.exceeded(1, false), None);
    (0..40).for_each(|_| shares.fade());
    assert_eq!(shares.exceeded(1, true), None);
}

#[test]
fn shares_go_by_what_was_spent_and_each_caller_has_its_own_hits() {
    let mut shares = Shares::default();
    for caller in 0..4 {
        shares.wants(caller, 1, Cost(10_000));
    }
    shares.spent(0, Cost(10_000), Cost(100_000), 1_000);
    (1..4).for_each(|caller| shares.spent(caller, Cost(10_000), Cost(2_000), 100));
    assert_eq!(shares.exceeded(0, false), Some(250));
    assert_eq!(shares.exceeded(1, false), None);
    assert_eq!((shares.read(0), shares.read(1), shares.read(9)), (1_000, 888, 1_000));
}

#[test]
fn a_shard_is_a_share_of_the_engines_and_the_same_for_everybody() {
    let keys: Vec<u64> = (0..9).map(|n| crate::ring::score(7, n)).collect();
    for (share, engines) in [(100, 2), (500, 4), (1_000, 9)] {
        let edge = shard_edge(42, share, keys.iter().copied());
        assert_eq!(keys.iter().filter(|key| in_shard(42, **key, edge)).count(), engines);
        assert_eq!(shard_edge(42, share, keys.iter().rev().copied()), edge);
    }
    assert_eq!(shard_edge(42, 500, [3_u64].into_iter()), u64::MAX);
    let many = shard_edge(42, 500, (0..10_000_u32).map(|n| crate::ring::score(7, u64::from(n))));
    let in_its_shard =
        (0..10_000).filter(|n| in_shard(42, crate::ring::score(7, *n), many)).count();
    assert!((4_800..5_200).contains(&in_its_shard), "{in_its_shard}");
}

/// An engine that runs so many at once.
fn settle(slots: u32, offered: u32, mut window: AdmissionWindow) -> AdmissionWindow {
    for _ in 0..60 {
        let own = offered.min(window.limit());
        let running = own.min(slots);
        let waiting = own - running;
        window = window.after(&Reported { own, running, waiting, kv_used_per_thousand: 0 });
    }
    window
}

#[test]
fn a_window_finds_the_slots_of_an_engine_from_both_sides() {
    for slots in [4, 32, 256, 1_000] {
        let window = settle(slots, 5_000, AdmissionWindow::NEW);
        let most = slots + slots / 8 + 4;
        assert!((slots..=most).contains(&window.limit()), "{slots}: {window:?}");
    }
}

#[test]
fn a_window_that_long_prompts_made_small_is_wide_again_within_three_seconds() {
    let long = Reported { own: 40, running: 2, waiting: 38, kv_used_per_thousand: 0 };
    let mut window = (0..4).fold(AdmissionWindow::NEW, |window, _| window.after(&long));
    assert!(window.limit() <= 4, "{window:?}");
    for _ in 0..6 {
        let own = window.limit();
        let calm = Reported { own, running: own, waiting: 0, kv_used_per_thousand: 0 };
        window = window.after(&calm);
    }
    assert!(window.limit() >= 64, "{window:?}");
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let window = settle(256, 10, AdmissionWindow::NEW);
    assert_eq!(window.limit(), AdmissionWindow::NEW.limit());
}

#[test]
fn a_short_burst_is_no_reason_to_send_less() {
    let burst = Reported { own: 40, running: 0, waiting: 40, kv_used_per_thousand: 0 };
    let calm = Reported { own: 40, running: 40, waiting: 0, kv_used_per_thousand: 0 };
    let window = AdmissionWindow::NEW.after(&calm).after(&burst).after(&calm);
    assert_eq!(window.limit(), AdmissionWindow::NEW.limit());
}

#[derive(Clone, Debug)]
enum Act {
    Push { caller: u64, class: Class, weight: u32, cost: u64 },
    Next { blocked: u64 },
    Remove { place: usize },
    Charge { caller: u64, actual: u64 },
    Forgive,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let class = prop_oneof![Just(Class::High), Just(Class::Normal), Just(Class::Low)];
    let act = prop_oneof![
        4 => (0..6_u64, class, 1..5_u32, 1..50_000_u64)
            .prop_map(|(caller, class, weight, cost)| Act::Push { caller, class, weight, cost }),
        4 => (0..8_u64).prop_map(|blocked| Act::Next { blocked }),
        1 => (0..50_usize).prop_map(|place| Act::Remove { place }),
        1 => (0..6_u64, 0..200_000_u64).prop_map(|(caller, actual)| Act::Charge { caller, actual }),
        1 => Just(Act::Forgive),
    ];
    proptest::collection::vec(act, 0..200)
}

proptest! {
    #[test]
    fn nothing_is_lost_doubled_or_passed_over(acts in acts()) {
        let mut queue = FairQueue::new();
        let mut inside: Vec<(u64, Ticket, Class, u64, u64)> = Vec::new();
        let mut number = 0;
        for act in acts {
            match act {
                Act::Push { caller, class, weight, cost } => {
                    let request = QueuedRequest { class, caller, weight, cost: Cost(cost) };
                    inside.push((number, queue.push(&request, number), class, caller, cost));
                    number += 1;
                }
                Act::Next { blocked } => {
                    let next = queue.next(|caller, _| caller != blocked);
                    // Work is kept up: if any can go, one goes, of the first class that can, and
                    // in order within its flow.
                    let can = inside.iter().filter(|one| one.3 != blocked);
                    let class = can.clone().map(|one| one.2).min();
                    prop_assert_eq!(next.as_ref().map(|(request, _)| request.class), class);
                    if let Some((request, what)) = next {
                        let mut flow = can.filter(|one| one.2 == request.class && one.3 == request.caller);
                        prop_assert_eq!(flow.next().map(|one| one.0), Some(what));
                        inside.retain(|one| one.0 != what);
                    }
                }
                Act::Remove { place } => {
                    if let Some(one) = inside.get(place).copied() {
                        prop_assert_eq!(queue.remove(one.1), Some(one.0));
                        prop_assert_eq!(queue.remove(one.1), None);
                        inside.retain(|other| other.0 != one.0);
                    }
                }
                Act::Charge { caller, actual } => {
                    queue.charge(Class::Normal, caller, Cost(1_000), Cost(actual));
                }
                Act::Forgive => queue.forgive(),
            }
            prop_assert_eq!(queue.len(), inside.len());
            prop_assert_eq!(queue.cost().0, inside.iter().map(|one| one.4).sum::<u64>());
        }
    }
}
