use super::*;
use crate::observe::testing::{engine, gateway};
use flyball_core::ids::{NodeName, ReplicaId};
use flyball_core::interval::{Interval, Origin};
use flyball_core::snapshot::{
    Capacity, Mode, Objectives, Observed, Pool, Purchase, Replica, ReplicaState, ScalingBounds,
    Share,
};
use flyball_core::units::{
    Currency, Gpus, Micros, Money, Price, Replicas, Requests, Timestamp, Tokens, TokensPerSecond,
};
use flyball_estimator::reading::{
    CacheUsed, EngineReading, ModelReading, Paces, PredictedReplica, VariantReading,
};
use std::collections::BTreeMap;

const NOW: Timestamp = Timestamp::from_millis(1_000_000);

fn replicas() -> BTreeMap<ReplicaId, Replica> {
    let replica = |state, in_flight| Replica {
        state,
        since: Timestamp::from_millis(5),
        in_flight,
        nodes: [NodeName::new("n").unwrap()].into(),
        purchase: Some(Purchase::Spot),
    };
    let seven = Requests::new(7);
    let all = [
        replica(ReplicaState::Ready, Observed::Fresh { value: seven, at: NOW }),
        replica(ReplicaState::Draining, Observed::Stale { value: seven, at: NOW }),
        replica(ReplicaState::Lost, Observed::Missing),
    ];
    let id = |n: usize| ReplicaId::new("a", &format!("m-{n}")).unwrap();
    all.into_iter().enumerate().map(|(n, one)| (id(n), one)).collect()
}

fn variant() -> VariantReading {
    let rate = |point: u64| {
        let of = |part: u64| TokensPerSecond::new(part);
        Interval::new(of(point - 1), of(point), of(point + 1), Origin::Stated).ok()
    };
    let id = |name: &str| ReplicaId::new("a", name).unwrap();
    let llama =
        EngineReading { cache_used: CacheUsed::Untold, ..engine(NOW, (0.1, 3.0, 1.0 / 3.0)) };
    VariantReading {
        pool: "live".parse().unwrap(),
        gpus_per_replica: Gpus::new(2),
        stated: Capacity {
            prefill: rate(10_000),
            decode: rate(1_000),
            resident: Interval::exact(Tokens::new(9), Origin::Measured).ok(),
            reading_per_million: Some(1),
            pooled_per_million: Some(2),
            measured_per_million: Some(3),
        },
        predicted: Some(PredictedReplica {
            model: "m".to_owned(),
            accelerator: "h100".to_owned(),
            tensor: 2,
            step_tokens: None,
        }),
        paces: Some(Paces { idle: 0.1, full: 1.0 / 3.0, carried: 0.3 }),
        cold_start: Interval::exact(Micros::from_seconds(60), Origin::Stated).ok(),
        replicas: replicas(),
        started: vec![(id("m-0"), Micros::from_seconds(61))],
        engines: [
            (id("m-0"), engine(NOW, (0.3, 7.0, 0.1))),
            (id("m-1"), llama),
            (id("m-2"), EngineReading::unread()),
        ]
        .into(),
        lapsed: true,
    }
}

fn readings() -> Readings {
    let price = Price::per_gpu_hour(Money::from_micros(4_000_001, Currency::EUR)).unwrap();
    let gpus = Observed::Fresh { value: Gpus::new(8), at: NOW };
    let pool = Pool {
        accelerator: "h100".parse().unwrap(),
        allocatable: [(Purchase::OnDemand, gpus), (Purchase::Spot, Observed::Missing)].into(),
        held_by_others: Gpus::new(1),
        can_grow: true,
        supply: Interval::exact(Micros::from_seconds(9), Origin::Assumed).ok(),
        take_back: Some(Micros::from_seconds(40)),
        limit: Some(Gpus::new(16)),
        shares: [("a".parse().unwrap(), Share { guaranteed: Gpus::new(2), priority: -1 })].into(),
        prices: [(Purchase::OnDemand, price)].into(),
    };
    let model = ModelReading {
        mode: Mode::Act,
        pinned: Some(Replicas::new(3)),
        frozen: true,
        blocked: false,
        bounds: ScalingBounds { min: Replicas::new(1), max: Replicas::new(8), may_sleep: true },
        objectives: Objectives {
            first_token: Some(Micros::from_seconds(2)),
            between_tokens: None,
            attainment_per_million: 990_000,
        },
        gateways: vec![gateway(NOW, (0.7, 100.0, 30.0))],
        silent_gateways: 2,
        waited_for: true,
        variants: [("main".parse().unwrap(), variant())].into(),
    };
    Readings {
        taken_at: NOW,
        shard: 3,
        max_age: Micros::from_seconds(60),
        models: [("a/m".parse().unwrap(), model)].into(),
        pools: [("live".parse().unwrap(), pool)].into(),
        runs: BTreeMap::new(),
    }
}

#[test]
fn a_line_says_everything_that_was_read() {
    let line = line(&readings()).unwrap();
    assert!(!line.contains('\n'));
    // As text, since what is no number does not equal itself.
    assert_eq!(format!("{:?}", read(&line).unwrap()), format!("{:?}", readings()));
}

#[test]
fn what_is_no_line_is_refused_and_said() {
    assert!(matches!(read("{}"), Err(RecordError::Form(_))));
    let line = line(&readings()).unwrap().replace("\"Act\"", "\"Acts\"");
    let Err(RecordError::Value(what)) = read(&line) else { panic!("it was read") };
    assert_eq!(what, "Acts");
}

#[test]
fn a_file_ends_before_it_is_too_long() {
    let folder = std::env::temp_dir().join(format!("flyball-readings-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("readings.jsonl");
    let mut recorder =
        Recorder::begin(&settings::ReadingsSettings { file: file.clone(), most_megabytes: 1 })
            .unwrap();
    let each = line(&readings()).unwrap().len() as u64 + 1;
    (0..2 * (1 << 20) / each).for_each(|_| recorder.write(&readings()));
    let written = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(written.lines().count() as u64, (1 << 20) / each, "as many whole lines as fit");
    assert!(written.lines().all(|line| read(line).is_ok()));
}
