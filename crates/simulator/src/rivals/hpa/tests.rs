//! The HPA against what Kubernetes documents, and sums worked out by hand.

use super::super::{RivalLaw, RivalMetric};
use super::{
    Behaviour, Hpa, HpaMetricKind, HpaRules, HpaSettings, HpaSource, Rate, Select, Starting,
};
use crate::policy::Reading;
use crate::seconds::Seconds;

const TOLERANCE: (f64, f64) = (0.1, 0.1);

fn running(ready: u32, starting: u32, mean: f64) -> Reading {
    Reading { ready, starting, running: Some(mean * f64::from(ready)), ..Reading::default() }
}

fn per_pod(target: f64, reading: &Reading, starting: Starting) -> Option<u32> {
    let current = reading.ready + reading.starting;
    HpaSource::per_pod(RivalMetric::Running, target).propose(reading, current, TOLERANCE, starting)
}

/// An HPA on running requests per pod with nothing to hold it back but what is given.
fn hpa(target: f64, behaviour: Behaviour) -> Hpa {
    let sources = vec![HpaSource::per_pod(RivalMetric::Running, target)];
    Hpa::new(HpaSettings { sources, behaviour, max: 10_000, ..HpaSettings::default() })
}

fn free() -> HpaRules {
    HpaRules::new(Seconds::ZERO, Vec::new())
}

/// What it orders when its target is shown to be met by exactly so many.
fn recommendation(hpa: &mut Hpa, now: f64, running: f64, current: u32) -> u32 {
    let reading = Reading { ready: current, running: Some(running), ..Reading::default() };
    hpa.desired(Seconds(now), &reading, current)
}

#[test]
fn the_documented_ratio_examples() {
    // kubernetes.io: at 200m with a target of 100m replicas double, at 50m they halve.
    assert_eq!(per_pod(100.0, &running(4, 0, 200.0), Starting::Running), Some(8));
    assert_eq!(per_pod(100.0, &running(4, 0, 50.0), Starting::Running), Some(2));
    // Kubernetes blog, 1.33: 50 replicas at 90 % with a target of 75 % become 60.
    assert_eq!(per_pod(75.0, &running(50, 0, 90.0), Starting::Running), Some(60));
}

#[test]
fn a_ratio_within_a_tenth_moves_nothing() {
    for mean in [90.0, 100.0, 110.0] {
        assert_eq!(per_pod(100.0, &running(10, 0, mean), Starting::Running), Some(10));
    }
    assert_eq!(per_pod(100.0, &running(10, 0, 111.0), Starting::Running), Some(12));
    assert_eq!(per_pod(100.0, &running(10, 0, 89.0), Starting::Running), Some(9));
}

#[test]
fn tolerance_may_differ_by_direction() {
    let source = HpaSource::per_pod(RivalMetric::Running, 100.0);
    let ask = |mean| source.propose(&running(100, 0, mean), 100, (0.0, 0.05), Starting::Running);
    assert_eq!(ask(101.0), Some(101));
    assert_eq!(ask(95.0), Some(100));
    assert_eq!(ask(94.0), Some(94));
}

#[test]
fn starting_pods_count_as_idle_on_the_way_up() {
    // Three ready at 150 and three coming: (450 + 0) / 6 = 75, below the target, so it holds.
    assert_eq!(per_pod(100.0, &running(3, 3, 150.0), Starting::Running), Some(6));
    // Three ready at 300 and one coming: 900 / 4 = 225, and 2.25 · 4 = 9.
    assert_eq!(per_pod(100.0, &running(3, 1, 300.0), Starting::Running), Some(9));
    assert_eq!(per_pod(100.0, &running(3, 1, 300.0), Starting::Pending), Some(9));
}

#[test]
fn starting_pods_count_as_busy_on_the_way_down_unless_they_are_pending() {
    // Four ready at 20 and four without a metric: (80 + 400) / 8 = 60, so 0.6 · 8 = 4.8.
    assert_eq!(per_pod(100.0, &running(4, 4, 20.0), Starting::Running), Some(5));
    // Pending ones are left out: 0.2 · 4 = 0.8.
    assert_eq!(per_pod(100.0, &running(4, 4, 20.0), Starting::Pending), Some(1));
}

#[test]
fn without_a_ready_pod_a_pods_metric_cannot_be_read() {
    let reading = Reading { starting: 3, running: Some(0.0), ..Reading::default() };
    assert_eq!(per_pod(100.0, &reading, Starting::Running), None);
}

#[test]
fn an_average_value_divides_the_sum_by_the_target() {
    let source = HpaSource::average_value(RivalMetric::Waiting, 30.0);
    let ask = |ready, starting, waiting| {
        let reading = Reading { ready, starting, waiting: Some(waiting), ..Reading::default() };
        source.propose(&reading, ready + starting, TOLERANCE, Starting::Running)
    };
    assert_eq!(ask(2, 0, 150.0), Some(5));
    assert_eq!(ask(5, 0, 160.0), Some(5), "32 each is within a tenth of 30");
    // Pods that start are in the `scale` status: 150 over 5 is on target.
    assert_eq!(ask(2, 3, 150.0), Some(5));
    assert_eq!(ask(0, 0, 150.0), Some(5));
}

#[test]
fn a_value_is_a_ratio_of_ready_pods() {
    let source = HpaSource {
        kind: HpaMetricKind::Value,
        ..HpaSource::average_value(RivalMetric::Waiting, 30.0)
    };
    let ask = |ready, starting, waiting| {
        let reading = Reading { ready, starting, waiting: Some(waiting), ..Reading::default() };
        source.propose(&reading, ready + starting, TOLERANCE, Starting::Running)
    };
    assert_eq!(ask(3, 0, 60.0), Some(6));
    assert_eq!(ask(3, 3, 60.0), Some(6), "the three that start are not the base");
    assert_eq!(ask(3, 3, 31.0), Some(6), "within tolerance all stay");
    assert_eq!(ask(0, 0, 60.0), Some(2));
}

#[test]
fn the_largest_proposal_counts_and_an_unreadable_one_forbids_going_down() {
    let sources = vec![
        HpaSource::per_pod(RivalMetric::Running, 10.0),
        HpaSource::per_pod(RivalMetric::Waiting, 10.0),
    ];
    let make = || {
        Hpa::new(HpaSettings {
            sources: sources.clone(),
            behaviour: Behaviour { up: free(), down: free() },
            ..HpaSettings::default()
        })
    };
    let seen = |running: f64, waiting: Option<f64>| Reading {
        ready: 4,
        running: Some(running),
        waiting,
        ..Reading::default()
    };
    assert_eq!(make().desired(Seconds::ZERO, &seen(60.0, Some(80.0)), 4), 8);
    assert_eq!(make().desired(Seconds::ZERO, &seen(20.0, Some(30.0)), 4), 3);
    assert_eq!(make().desired(Seconds::ZERO, &seen(20.0, None), 4), 4);
    assert_eq!(make().desired(Seconds::ZERO, &seen(60.0, None), 4), 6);
    let blind = Reading { ready: 4, ..Reading::default() };
    assert_eq!(make().desired(Seconds::ZERO, &blind, 4), 4);
}

#[test]
fn down_waits_for_the_largest_proposal_of_five_minutes() {
    let mut hpa = hpa(1.0, Behaviour::default());
    assert_eq!(recommendation(&mut hpa, 0.0, 10.0, 10), 10);
    assert_eq!(recommendation(&mut hpa, 60.0, 8.0, 10), 10);
    assert_eq!(recommendation(&mut hpa, 120.0, 4.0, 10), 10);
    // At 300 s the first ten is five minutes old and the eight is the largest left.
    assert_eq!(recommendation(&mut hpa, 300.0, 4.0, 10), 8);
    assert_eq!(recommendation(&mut hpa, 359.0, 4.0, 8), 8);
    assert_eq!(recommendation(&mut hpa, 360.0, 4.0, 8), 4);
}

#[test]
fn a_controller_that_starts_keeps_what_it_finds_for_five_minutes() {
    let mut hpa = hpa(1.0, Behaviour::default());
    assert_eq!(recommendation(&mut hpa, 0.0, 1.0, 10), 10);
    assert_eq!(recommendation(&mut hpa, 285.0, 1.0, 10), 10);
    assert_eq!(recommendation(&mut hpa, 300.0, 1.0, 10), 1);
}

#[test]
fn up_stabilisation_follows_the_smallest_recent_proposal() {
    let up = HpaRules::new(Seconds(60.0), Vec::new());
    let mut hpa = hpa(1.0, Behaviour { up, down: free() });
    assert_eq!(recommendation(&mut hpa, 0.0, 4.0, 4), 4);
    assert_eq!(recommendation(&mut hpa, 15.0, 20.0, 4), 4);
    assert_eq!(recommendation(&mut hpa, 30.0, 9.0, 4), 4);
    assert_eq!(recommendation(&mut hpa, 60.0, 20.0, 4), 9);
}

#[test]
fn the_default_pace_up_is_the_larger_of_double_and_four_more() {
    let mut small = hpa(1.0, Behaviour::default());
    assert_eq!(recommendation(&mut small, 0.0, 100.0, 1), 5);
    // What was added in the last 15 s counts against them.
    assert_eq!(recommendation(&mut small, 10.0, 100.0, 5), 5);
    assert_eq!(recommendation(&mut small, 15.0, 100.0, 5), 10);
    assert_eq!(recommendation(&mut small, 30.0, 100.0, 10), 20);
}

#[test]
fn percent_down_is_counted_from_the_start_of_its_period() {
    let rate = Rate::Percent { value: 10, period: Seconds(60.0) };
    let down = HpaRules::new(Seconds::ZERO, vec![rate]);
    let mut hpa = hpa(1.0, Behaviour { up: free(), down });
    // The documented case: 80 replicas lose 8, then 10 % of 72 is 7.2, which keeps 64.
    assert_eq!(recommendation(&mut hpa, 0.0, 10.0, 80), 72);
    assert_eq!(recommendation(&mut hpa, 30.0, 10.0, 72), 72);
    assert_eq!(recommendation(&mut hpa, 60.0, 10.0, 72), 64);
}

#[test]
fn of_two_rates_max_allows_the_larger_change_and_min_the_smaller() {
    let period = Seconds(60.0);
    let rates = vec![Rate::Pods { value: 4, period }, Rate::Percent { value: 10, period }];
    let with = |select| HpaRules { select, ..HpaRules::new(Seconds::ZERO, rates.clone()) };
    // The documented pair: with 80 replicas 10 % is more than 4 pods, with 30 it is fewer.
    for (select, from, to) in [
        (Select::Max, 80, 72),
        (Select::Max, 30, 26),
        (Select::Min, 80, 76),
        (Select::Min, 30, 27),
        (Select::Disabled, 80, 80),
    ] {
        let mut hpa = hpa(1.0, Behaviour { up: free(), down: with(select) });
        assert_eq!(recommendation(&mut hpa, 0.0, 1.0, from), to, "{select:?} from {from}");
    }
    for (select, from, to) in
        [(Select::Max, 80, 88), (Select::Min, 80, 84), (Select::Disabled, 80, 80)]
    {
        let mut hpa = hpa(1.0, Behaviour { up: with(select), down: free() });
        assert_eq!(recommendation(&mut hpa, 0.0, 1000.0, from), to, "{select:?} from {from}");
    }
}

#[test]
fn bounds_hold_and_zero_replicas_switch_it_off() {
    let settings = HpaSettings { min: 3, max: 8, ..HpaSettings::default() };
    let idle = |ready| Reading { ready, waiting: Some(0.0), ..Reading::default() };
    let flood = |ready| Reading { ready, waiting: Some(1e6), ..Reading::default() };
    assert_eq!(Hpa::new(settings.clone()).desired(Seconds::ZERO, &idle(1), 1), 3);
    assert_eq!(Hpa::new(settings.clone()).desired(Seconds::ZERO, &idle(20), 20), 8);
    assert_eq!(Hpa::new(settings.clone()).desired(Seconds::ZERO, &flood(7), 7), 8);
    let mut off = Hpa::new(settings);
    assert_eq!(off.desired(Seconds::ZERO, &flood(0), 0), 3, "only just created");
    assert_eq!(off.desired(Seconds(15.0), &flood(0), 0), 0);
}
