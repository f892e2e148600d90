use super::*;
use flyball_engines::Engine;
use proptest::prelude::*;

const TICK: Duration = Duration::from_millis(50);

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// A report that is asked for at `at` and there 2 ms later.
fn seen(at: Instant, has: u32, known: u32) -> VerifiedEngine {
    VerifiedEngine { sent: at, came: at + ms(2), has, known }
}

fn case() -> Case {
    Case::new(Engine::Vllm)
}

fn report(case: &mut Case, at: Instant, has: u32, known: u32) -> CancelVerdict {
    case.report(&seen(at, has, known), || true)
}

#[test]
fn a_cancel_is_free_at_the_first_report_that_was_asked_for_after_it() {
    let (mut case, t) = (case(), Instant::now());
    case.cancelled(t);
    assert!(case.is_open());
    // Asked for before the cancel: says nothing about it.
    assert_eq!(report(&mut case, t - ms(1), 0, 0), CancelVerdict::default());
    // And in the same moment: the canceller may still count it.
    assert_eq!(report(&mut case, t + ms(1), 0, 0), CancelVerdict::default());
    // Still there.
    assert_eq!(report(&mut case, t + ms(50), 4, 3), CancelVerdict::default());
    let verdict = report(&mut case, t + ms(100), 3, 3);
    assert_eq!(verdict.freed, [ms(102)]);
    assert!(!case.is_open() && !case.is_quarantined());
}

#[test]
fn requests_on_their_way_hide_nothing_for_long_and_accuse_nobody() {
    let (mut case, t) = (case(), Instant::now());
    // Three are known, one has arrived: fewer is never an excess.
    assert_eq!(report(&mut case, t, 1, 3), CancelVerdict::default());
    case.cancelled(t + ms(10));
    assert_eq!(report(&mut case, t + ms(20), 1, 2).freed, [ms(12)]);
}

#[test]
fn others_that_come_and_go_make_no_zombies() {
    let (mut case, t) = (case(), Instant::now());
    // Another gateway has between 3 and 30 there.
    for second in 0..10 {
        report(&mut case, t + ms(1000 * second), 10 + 3 * second as u32, 7);
    }
    case.cancelled(t + ms(10_000));
    for tick in 0..200 {
        let verdict = report(&mut case, t + ms(10_050) + TICK * tick, 60, 6);
        assert_eq!((verdict.zombies, verdict.change), (0, None));
    }
}

#[test]
fn of_several_cancels_the_oldest_are_free_first() {
    let (mut case, t) = (case(), Instant::now());
    for i in 0..4 {
        case.cancelled(t + ms(i));
    }
    let verdict = report(&mut case, t + ms(50), 11, 10);
    assert_eq!(verdict.freed, [ms(52), ms(51), ms(50)]);
    assert_eq!(report(&mut case, t + ms(100), 10, 10).freed, [ms(99)]);
}

#[test]
fn an_engine_that_ignores_cancels_is_quarantined_after_five_seconds_and_released_after_ten() {
    let (mut case, t) = (case(), Instant::now());
    report(&mut case, t, 1, 1);
    case.cancelled(t + ms(1));
    let mut quarantined = None;
    let mut at = t + TICK;
    while at < t + ms(7000) {
        let verdict = report(&mut case, at, 1, 0);
        assert!(verdict.freed.is_empty());
        assert_eq!(verdict.zombies > 0, at - t >= GRACE + ms(1), "{:?}", at - t);
        if verdict.change == Some(VerifyEvent::Quarantined) {
            assert_eq!(quarantined.replace(at - t), None);
        }
        at += TICK;
    }
    let after = quarantined.unwrap();
    assert!(after >= ms(4990) && after <= ms(5060), "{after:?}");
    // The engine is through with it at last.
    let done = at;
    assert_eq!(report(&mut case, at, 0, 0).freed.len(), 1);
    while case.is_quarantined() {
        at += ms(500);
        let verdict = report(&mut case, at, 0, 0);
        assert_eq!(verdict.change == Some(VerifyEvent::Released), at - done >= RELEASE);
    }
    assert_eq!(at - done, RELEASE);
    assert!(!case.is_open() && !case.is_quarantined());
}

#[test]
fn zombies_that_come_back_begin_the_ten_seconds_anew() {
    let (mut case, t) = (case(), Instant::now());
    case.cancelled(t);
    report(&mut case, t + ms(1100), 1, 0);
    assert_eq!(report(&mut case, t + ms(5000), 1, 0).change, Some(VerifyEvent::Quarantined));
    report(&mut case, t + ms(6000), 0, 0);
    case.cancelled(t + ms(7000));
    report(&mut case, t + ms(9000), 1, 0);
    report(&mut case, t + ms(10_000), 0, 0);
    assert_eq!(report(&mut case, t + ms(16_500), 0, 0).change, None);
    assert_eq!(report(&mut case, t + ms(20_010), 0, 0).change, Some(VerifyEvent::Released));
}

#[test]
fn many_cancels_of_an_engine_that_obeys_are_not_held_against_it() {
    let (mut case, t) = (case(), Instant::now());
    // One cancel every 10 ms, each free after 80 ms: some are always under way.
    let mut freed = Vec::new();
    for step in 1..2000_u64 {
        let now = t + ms(step * 10);
        case.cancelled(now);
        if step % 5 == 0 {
            let under_way = step.min(8);
            let excess = u32::try_from(under_way).unwrap();
            let verdict = report(&mut case, now + ms(1), 20 + excess, 20);
            assert_eq!((verdict.zombies, verdict.change), (0, None), "{step}");
            freed.extend(verdict.freed);
        }
    }
    assert!(freed.len() > 1900);
    assert!(freed.iter().all(|took| *took >= ms(80) && *took < ms(150)), "{freed:?}");
}

#[test]
fn what_others_have_at_the_engine_is_not_held_against_it() {
    let (mut case, t) = (case(), Instant::now());
    for i in 0..20 {
        report(&mut case, t + ms(i * 500), 7 + u32::try_from(i % 3).unwrap(), 2);
    }
    let at = t + ms(10_000);
    case.cancelled(at);
    for i in 1..400 {
        let verdict = report(&mut case, at + ms(i * 50), 8, 1);
        assert_eq!((verdict.zombies, verdict.change), (0, None));
    }
    // The proof is against the least that others had, which was 5.
    assert_eq!(report(&mut case, at + ms(20_050), 6, 1).freed.len(), 1);
}

#[test]
fn what_others_had_is_forgotten() {
    let (mut case, t) = (case(), Instant::now());
    report(&mut case, t, 9, 0);
    for i in 1..50 {
        report(&mut case, t + ms(i * 500), 0, 0);
    }
    let at = t + ms(25_000);
    case.cancelled(at);
    report(&mut case, at + ms(1500), 1, 0);
    assert_eq!(report(&mut case, at + ms(5000), 1, 0).change, Some(VerifyEvent::Quarantined));
}

#[test]
fn the_last_who_could_serve_are_spared_and_that_is_said_once() {
    let (mut case, t) = (case(), Instant::now());
    case.cancelled(t);
    let changes: Vec<_> = (1..200)
        .filter_map(|i| case.report(&seen(t + ms(i * 50), 1, 0), || false).change)
        .collect();
    assert_eq!(changes, [VerifyEvent::Spared]);
    assert!(!case.is_quarantined());
    assert_eq!(report(&mut case, t + ms(10_000), 1, 0).change, Some(VerifyEvent::Quarantined));
}

#[test]
fn sglang_has_the_time_that_its_gauges_need() {
    let t = Instant::now();
    let mut case = Case::new(Engine::Sglang);
    case.cancelled(t);
    assert_eq!(report(&mut case, t + ms(31_000), 1, 0).change, None);
    assert_eq!(report(&mut case, t + ms(40_000), 1, 0).change, Some(VerifyEvent::Quarantined));
}

#[test]
fn cancels_of_an_engine_that_never_reports_are_given_up() {
    let (mut case, t) = (case(), Instant::now());
    case.cancelled(t);
    assert_eq!(case.give_up(t + ms(59_000)), 0);
    assert_eq!(case.give_up(t + ms(60_000)), 1);
    assert!(!case.is_open() && !case.is_quarantined());
    // Zombies of an engine that reports are kept, however old they are.
    case.cancelled(t);
    report(&mut case, t + ms(100_000), 1, 0);
    assert_eq!(case.give_up(t + ms(120_000)), 0);
}

#[test]
fn unproven_cancels_are_bounded() {
    let (mut case, t) = (case(), Instant::now());
    for i in 0..CANCELS {
        assert!(case.cancelled(t + ms(i as u64)));
    }
    assert!(!case.cancelled(t));
    assert_eq!(report(&mut case, t + ms(10_000), 0, 0).freed.len(), CANCELS);
}

/// An engine that takes its time over each cancel, and perhaps ignores some, under other load.
#[derive(Clone, Debug)]
struct Story {
    /// For each cancel: when, and how long it holds the slot.
    cancels: Vec<(u64, u64)>,
    /// Other requests, over time: what gateways know and what of it has arrived.
    load: Vec<(u32, u32)>,
}

fn story(longest_ms: u64) -> impl Strategy<Value = Story> {
    let cancels = prop::collection::vec((0_u64..8000, 0..longest_ms), 0..60);
    let load = prop::collection::vec((0_u32..20, 0_u32..20), 1..50);
    (cancels, load).prop_map(|(cancels, load)| Story { cancels, load })
}

/// Plays it in steps of 50 ms and returns everything that was concluded.
fn play(story: &Story) -> (usize, Vec<(u64, CancelVerdict)>) {
    let t = Instant::now();
    let mut case = case();
    let mut verdicts = Vec::new();
    let mut cancelled = 0;
    for step in 0..600_u64 {
        let now = step * 50;
        for (at, _) in story.cancels.iter().filter(|(at, _)| at / 50 == step) {
            case.cancelled(t + ms(*at));
            cancelled += 1;
        }
        let sent_at = now + 50;
        let held =
            story.cancels.iter().filter(|(at, hold)| *at < sent_at && sent_at < at + hold).count();
        let (known, arrived) = story.load[usize::try_from(step).unwrap() % story.load.len()];
        let has = u32::try_from(held).unwrap() + arrived.min(known);
        verdicts.push((sent_at, report(&mut case, t + ms(sent_at), has, known)));
    }
    (cancelled, verdicts)
}

proptest! {
    #[test]
    fn every_cancel_is_proven_exactly_once(story in story(3000)) {
        let (cancelled, verdicts) = play(&story);
        let freed: usize = verdicts.iter().map(|(_, verdict)| verdict.freed.len()).sum();
        prop_assert_eq!(freed, cancelled);
    }

    #[test]
    fn an_engine_that_lets_go_within_the_grace_is_never_accused(story in story(900)) {
        let (_, verdicts) = play(&story);
        for (at, verdict) in verdicts {
            prop_assert_eq!((verdict.zombies, verdict.change), (0, None), "at {} ms", at);
        }
    }

    /// Fewer than others seem to be there never makes a figure wrong: what is concluded to be held
    /// is never more than what is.
    #[test]
    fn zombies_are_never_more_than_slots_that_are_held(story in story(20_000)) {
        let (_, verdicts) = play(&story);
        for (at, verdict) in verdicts {
            let held = story.cancels.iter().filter(|(c, hold)| *c < at && at < c + hold).count();
            prop_assert!(verdict.zombies as usize <= held);
        }
    }

    /// With nothing on its way, an engine that never lets go is found in five to six seconds.
    #[test]
    fn an_engine_that_never_lets_go_is_found(first in 0_u64..3000, load in 0_u32..20) {
        let story = Story { cancels: vec![(first, 1_000_000)], load: vec![(load, load)] };
        let (_, verdicts) = play(&story);
        let found = verdicts.iter().find(|(_, v)| v.change == Some(VerifyEvent::Quarantined)).unwrap();
        let came = found.0 + 2;
        prop_assert!((5000..5200).contains(&(came - first)), "after {} ms", came - first);
    }
}
