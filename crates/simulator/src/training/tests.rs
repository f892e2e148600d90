//! What must hold of every replay, on made-up markets and on recorded ones.

use flyball_core::units::{Gpus, Micros, Timestamp};
use flyball_training::{RunMemory, TrainingChoice, ZoneName};
use proptest::prelude::*;

use super::market::{MarketPrices, SpotMarket, usd};
use super::optimum::optimum;
use super::ours::{OurPolicy, watched};
use super::recording::{self, SpotRecording};
use super::replay::{ReplayedRun, RunToReplay, play};
use super::rivals::RunRival;
use crate::traffic::real::shared;

const STEP: Micros = Micros::from_minutes(5);

fn recorded(zones: &[&[u16]]) -> SpotRecording {
    let names = ["a", "b", "c"].map(ZoneName::new);
    SpotRecording {
        name: "made up".to_owned(),
        begins: Timestamp::from_millis(1_000_000_000),
        step: STEP,
        zones: names.into_iter().zip(zones.iter().map(|nodes| nodes.to_vec())).collect(),
    }
}

fn market(zones: &[&[u16]]) -> SpotMarket {
    let prices =
        MarketPrices { on_demand: usd(3.0), spot: Default::default(), otherwise: usd(1.0) };
    let names = ["a", "b", "c"].map(ZoneName::new);
    SpotMarket::new(&recorded(zones), &names, 1, &prices)
}

fn run(work_min: u64, allowed_min: u64) -> RunToReplay {
    RunToReplay {
        start: 0,
        work: Micros::from_minutes(work_min),
        allowed: Micros::from_minutes(allowed_min),
        restart: Micros::from_minutes(10),
        save: Micros::from_seconds(30),
        gpus: Gpus::new(8),
    }
}

fn by(rival: RunRival, market: &SpotMarket, run: &RunToReplay) -> ReplayedRun {
    play(market, run, &mut rival.policy(run.work, run.allowed, RunMemory::default()))
}

#[test]
fn time_and_money_of_a_run_add_up() {
    // Spot for 30 minutes, none for 30, then spot to the end.
    let nodes = [[1; 6], [0; 6], [1; 6], [1; 6], [1; 6], [1; 6]].concat();
    let market = market(&[&nodes]);
    let run = run(60, 180);
    let came = by(RunRival::Greedy, &market, &run);
    let all = came.spot.saturating_add(came.on_demand).saturating_add(came.waited);
    assert_eq!(Some(all), came.took);
    let busy = came.starting.saturating_add(came.saving).saturating_add(came.lost);
    assert_eq!(came.spot.saturating_sub(busy), run.work);
    assert_eq!((came.reclaims, came.restarts, came.late), (1, 2, false));
    assert!((came.dollars - 8.0 * came.spot.as_seconds() / 3_600.0).abs() < 1e-9, "{came:?}");
    let places: Vec<String> = came.stays.iter().map(|stay| stay.at.to_string()).collect();
    assert_eq!(places, ["spot in a", "wait", "spot in a"]);
    assert!(came.stays[0].reclaimed);
}

#[test]
fn on_demand_alone_costs_what_it_is_said_to() {
    let market = market(&[&[0; 60]]);
    let run = run(60, 180);
    let came = by(RunRival::OnDemandOnly, &market, &run);
    assert!((came.dollars - run.on_demand_dollars(&market)).abs() < 1e-9, "{came:?}");
}

#[test]
fn the_optimum_waits_for_what_it_knows_will_come() {
    let mut nodes = vec![0; 12];
    nodes.extend([1; 30]);
    let market = market(&[&nodes]);
    // An hour and a restart on spot at 8 dollars an hour, after an hour without any.
    let best = optimum(&market, &run(60, 200)).unwrap();
    assert!((best - 8.0 * 70.0 / 60.0).abs() < 1e-9, "{best}");
    // With no time to wait it is on demand.
    let best = optimum(&market, &run(60, 75)).unwrap();
    assert!((best - 24.0 * 70.0 / 60.0).abs() < 1e-9, "{best}");
    assert_eq!(optimum(&market, &run(60, 60)), None);
}

#[test]
fn a_rival_without_a_deadline_can_be_late_and_says_so() {
    // Machines that each leave before their restart is done.
    let nodes: Vec<u16> = (0..60).map(|step| u16::from(step % 2 == 0)).collect();
    let both: Vec<u16> = nodes.iter().map(|node| 1 - node).collect();
    let market = market(&[&nodes, &both]);
    let came = by(RunRival::SpotWithFallback, &market, &run(60, 80));
    assert!(came.late && came.reclaims > 5, "{came:?}");
    assert!(!by(RunRival::Greedy, &market, &run(60, 90)).late);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nobody_beats_the_optimum_and_who_has_a_deadline_keeps_it(
        work in 40u64..400,
        spare in 12u64..400,
        restart in 1u64..20,
        changes in prop::collection::vec((0u16..2, 0u16..2, 1usize..16), 1..40),
    ) {
        let zone = |of: fn(&(u16, u16, usize)) -> u16| -> Vec<u16> {
            let spread = changes.iter().flat_map(|one| std::iter::repeat_n(of(one), one.2));
            spread.cycle().take(400).collect()
        };
        let (a, b) = (zone(|one| one.0), zone(|one| one.1));
        let market = market(&[&a, &b]);
        let mut run = run(work, 0);
        run.restart = Micros::from_minutes(restart);
        run.allowed = Micros::from_minutes(work + restart + spare);
        let best = optimum(&market, &run).expect("on-demand machines end it in time");
        let mut ours = OurPolicy::default();
        let came = play(&market, &run, &mut ours);
        prop_assert_eq!(&came.broken, &Vec::<&str>::new());
        prop_assert!(!came.late, "{:?}", came);
        prop_assert!(came.dollars >= best - 1e-9, "{} < {best}", came.dollars);
        for rival in RunRival::ALL {
            let came = by(rival, &market, &run);
            prop_assert!(!came.late || rival == RunRival::SpotWithFallback, "{rival:?} {came:?}");
            prop_assert!(came.late || came.dollars >= best - 1e-9, "{rival:?} {}", came.dollars);
        }
    }
}

/// A recorded week in three regions, for what the bench measures on all of them.
#[test]
fn a_recorded_run_in_three_regions_is_in_time_and_close_to_the_optimum() {
    let Some(path) = shared("spot_availability.tar.gz") else { return };
    let all = recording::open(&path).unwrap();
    assert_eq!(all.len(), 10, "{:?}", all.iter().map(|one| &one.name).collect::<Vec<_>>());
    let named = |one: &&SpotRecording| one.name == "availability/1-node/aws-02-15-2023 v100_1";
    let recording = all.iter().find(named).unwrap();
    let zones = ["us-east-1f", "us-east-2a", "us-west-2b"].map(ZoneName::new);
    let prices =
        MarketPrices { on_demand: usd(3.06), spot: Default::default(), otherwise: usd(0.918) };
    let market = SpotMarket::new(recording, &zones, 1, &prices);
    let shares: Vec<i64> =
        market.zones.iter().map(|zone| (100.0 * market.share(zone, 0)).round() as i64).collect();
    assert_eq!(shares, [59, 76, 90]);
    let mut run = run(24 * 60, 30 * 60);
    run.start = market.steps / 2;
    let memory = watched(&market, &run, 0..run.start);
    let came = play(&market, &run, &mut OurPolicy::with(memory));
    let best = optimum(&market, &run).unwrap();
    let points = 100.0 * (came.dollars - best) / run.on_demand_dollars(&market);
    assert!(!came.late && came.broken.is_empty(), "{came:?}");
    assert!((0.0..10.0).contains(&points), "{points}");
    assert!(came.stays.iter().any(|stay| matches!(stay.at, TrainingChoice::Spot(_))));
}
