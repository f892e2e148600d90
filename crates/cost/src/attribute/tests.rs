use super::*;
use crate::price::{HostSize, PriceSource};
use crate::sums::{SumError, check};
use crate::testing::{MadeUpBucket, MadeUpMonth, SeededNumbers};
use flyball_core::units::Bytes;
use proptest::prelude::*;

const HOUR: TimeBucket = TimeBucket { start: Timestamp::from_micros(0), length: Micros::HOUR };

fn hours(hours: u64) -> GpuMicros {
    GpuMicros::of(Gpus::new(hours as u32), Micros::HOUR)
}

fn replica(model: &str) -> GpuHolder {
    GpuHolder::Replica { model: model.into(), variant: "main".into() }
}

fn caller(tenant: &str, inside: u64, outside: u64) -> CallerWork {
    let served = ServedTokens { requests: 1, input: inside, ..ServedTokens::default() };
    CallerWork { tenant: Some(tenant.into()), key: None, served, inside, outside }
}

/// Eight GPUs for 80 dollars an hour, of which the host is worth 8: four held by a model, of which two computed.
fn half_held() -> NodeTime {
    let host = HostSize { milli_cpus: 1_000, memory: Bytes::ZERO };
    let hourly = PicoDollars::from_dollars(80);
    NodeTime {
        pool: "h100".into(),
        gpus: Gpus::new(8),
        from: Timestamp::from_micros(0),
        to: Timestamp::from_micros(Micros::HOUR.get()),
        price: Some(NodePrice {
            hourly,
            on_demand: None,
            host: Some(host),
            source: PriceSource::Pool,
        }),
        holdings: vec![GpuHolding {
            holder: replica("chat"),
            held: hours(4),
            computing: hours(2),
            other: BTreeMap::from([(GpuUse::Quiet, hours(1))]),
        }],
    }
}

const RATES: HostRates = HostRates { cpu: PicoDollars::from_dollars(8), gib: PicoDollars::ZERO };

fn chat(callers: Vec<CallerWork>) -> ServedBy {
    ServedBy { pool: "h100".into(), model: "chat".into(), variant: "main".into(), callers }
}

fn shown(rows: &[CostRow]) -> Vec<String> {
    let line = |row: &CostRow| {
        let owner = &row.owner;
        let who = owner
            .tenant
            .as_ref()
            .or(owner.model.as_ref())
            .or(owner.run.as_ref())
            .or(owner.pool.as_ref());
        let uses = row.spent.iter().map(|(use_, spent)| format!(" {use_}={:.2}", spent.money));
        format!("{}{} host={:.2}", who.unwrap(), uses.collect::<String>(), row.host)
    };
    rows.iter().map(line).collect()
}

#[test]
fn a_node_is_cut_into_host_holders_and_callers() {
    let served = [chat(vec![caller("b", 3, 0), caller("a", 1, 4)])];
    let Attribution { rows, problems } = attribute(HOUR, &[half_held()], &served, RATES);
    assert_eq!(problems, []);
    assert_eq!(
        shown(&rows),
        [
            "h100 unallocated=36.00 host=8.00",
            "chat quiet=9.00 unseen=9.00 host=0.00",
            "a useful=2.25 missed=9.00 host=0.00",
            "b useful=6.75 host=0.00",
        ]
    );
    assert_eq!(check(HOUR, &[half_held()], &served, &rows), []);
}

#[test]
fn a_node_without_a_price_is_unknown_for_its_hours_and_not_free() {
    let node = NodeTime { price: None, ..half_held() };
    let rows = attribute(HOUR, &[node, half_held()], &[], RATES).rows;
    let mut all = Spending::default();
    rows.iter().for_each(|row| all += &row.spent);
    assert_eq!(all.paid().unpriced, hours(8));
    assert_eq!(all.paid().money, PicoDollars::from_dollars(72));
    assert_eq!(
        all.on(GpuUse::Quiet),
        Spent { time: hours(2), money: PicoDollars::from_dollars(9), unpriced: hours(1) }
    );
}

#[test]
fn a_node_is_paid_for_as_long_as_it_was_there() {
    let half = Timestamp::from_micros(Micros::HOUR.get() / 2);
    let late = Timestamp::from_micros(u64::MAX);
    let node = NodeTime { from: half, to: late, holdings: Vec::new(), ..half_held() };
    let gone = NodeTime { from: late, to: half, ..node.clone() };
    let nodes = [node, gone];
    let rows = attribute(HOUR, &nodes, &[], RATES).rows;
    assert_eq!(shown(&rows), ["h100 unallocated=36.00 host=4.00"]);
    assert_eq!(rows[0].spent.paid().time, hours(4));
    assert_eq!(check(HOUR, &nodes, &[], &rows), []);
}

#[test]
fn a_run_pays_for_what_it_redoes_and_for_what_it_waits() {
    let mut node = half_held();
    node.holdings = vec![GpuHolding {
        holder: GpuHolder::Run { run: "ml/llm".into(), tenant: Some("ml/org".into()) },
        held: hours(8),
        computing: hours(5),
        other: BTreeMap::from([
            (GpuUse::RedoingLostWork, hours(2)),
            (GpuUse::WaitingForGang, hours(1)),
        ]),
    }];
    let rows = attribute(HOUR, &[node], &[], RATES).rows;
    let expected = "ml/org useful=45.00 redoing-lost-work=18.00 waiting-for-gang=9.00 host=0.00";
    assert_eq!(shown(&rows), ["h100 host=8.00", expected]);
}

#[test]
fn more_than_there_is_is_cut_in_proportion_and_said() {
    let mut node = half_held();
    node.holdings.push(GpuHolding {
        holder: replica("code"),
        held: hours(12),
        computing: hours(24),
        other: BTreeMap::new(),
    });
    let Attribution { rows, problems } = attribute(HOUR, std::slice::from_ref(&node), &[], RATES);
    assert_eq!(problems.len(), 5, "{problems:?}");
    assert_eq!(
        problems[0],
        AttributionProblem::HeldTooMuch { pool: "h100".into(), held: hours(16), exists: hours(8) }
    );
    assert!(matches!(problems[4], AttributionProblem::NoCallers { .. }));
    assert_eq!(check(HOUR, &[node], &[], &rows), []);
    assert!(rows.iter().all(|row| row.spent.on(GpuUse::Unallocated).is_zero()));
}

#[test]
fn callers_whose_requests_were_all_refused_have_rows_and_pay_nothing() {
    let served = [chat(vec![caller("a", 0, 0)])];
    let Attribution { rows, problems } = attribute(HOUR, &[half_held()], &served, RATES);
    assert_eq!(problems.len(), 1);
    let row = rows.iter().find(|row| row.owner.tenant.as_deref() == Some("a")).unwrap();
    assert_eq!((row.served.requests, row.spent.paid()), (1, Spent::default()));
    assert_eq!(check(HOUR, &[half_held()], &served, &rows), []);
}

#[test]
fn a_row_that_was_lost_doubled_or_changed_does_not_add_up() {
    let MadeUpBucket { bucket, nodes, served } = month().hour(3);
    let rows = attribute(bucket, &nodes, &served, HostRates::USUAL).rows;
    assert_eq!(check(bucket, &nodes, &served, &rows), []);
    for index in 0..rows.len() {
        let mut lost = rows.clone();
        lost.remove(index);
        let mut doubled = rows.clone();
        doubled.push(rows[index].clone());
        let mut host = rows.clone();
        host[index].host += PicoDollars::new(1);
        for changed in [lost, doubled, host] {
            assert_ne!(check(bucket, &nodes, &served, &changed), [], "row {index}");
        }
    }
    let mut unpriced = rows;
    let more = Spent { unpriced: GpuMicros::new(1), ..Spent::default() };
    unpriced[0].spent.add(GpuUse::Lent, more);
    assert!(
        check(bucket, &nodes, &served, &unpriced)
            .iter()
            .any(|one| matches!(one, SumError::Uses { .. }))
    );
}

fn month() -> MadeUpMonth {
    MadeUpMonth { seed: 1, tenants: 20, models: 5, nodes: 7, active_pct: 40 }
}

#[test]
fn a_month_adds_up_bucket_by_bucket() {
    for seed in 0..5 {
        for hour in (0..720).step_by(24) {
            let MadeUpBucket { bucket, nodes, served } = MadeUpMonth { seed, ..month() }.hour(hour);
            let rows = attribute(bucket, &nodes, &served, HostRates::USUAL).rows;
            assert_eq!(check(bucket, &nodes, &served, &rows), [], "seed {seed}, hour {hour}");
        }
    }
}

proptest! {
    #[test]
    fn the_order_of_what_comes_in_changes_nothing(seed: u64, hour in 0u64..720) {
        let MadeUpBucket { bucket, mut nodes, mut served } = MadeUpMonth { seed, ..month() }.hour(hour);
        let before = attribute(bucket, &nodes, &served, HostRates::USUAL);
        let mut numbers = SeededNumbers(seed);
        shuffle(&mut nodes, &mut numbers);
        nodes.iter_mut().for_each(|node| shuffle(&mut node.holdings, &mut numbers));
        shuffle(&mut served, &mut numbers);
        served.iter_mut().for_each(|one| shuffle(&mut one.callers, &mut numbers));
        let after = attribute(bucket, &nodes, &served, HostRates::USUAL);
        prop_assert_eq!(before.rows, after.rows);
    }

    #[test]
    fn two_gateways_that_served_half_each_are_one_that_served_all(seed: u64) {
        let MadeUpBucket { bucket, nodes, served } = MadeUpMonth { seed, ..month() }.hour(0);
        let whole = attribute(bucket, &nodes, &served, HostRates::USUAL);
        let (mut left, mut right) = (served.clone(), served);
        for (left, right) in left.iter_mut().zip(&mut right) {
            for (left, right) in left.callers.iter_mut().zip(&mut right.callers) {
                right.inside -= left.inside / 3;
                left.inside /= 3;
                right.served.input -= left.served.input / 3;
                left.served.input /= 3;
                right.outside = 0;
                left.served = ServedTokens { input: left.served.input, ..left.served };
                right.served = ServedTokens { input: right.served.input, ..ServedTokens::default() };
            }
        }
        left.extend(right);
        prop_assert_eq!(whole.rows, attribute(bucket, &nodes, &left, HostRates::USUAL).rows);
    }
}

fn shuffle<T>(items: &mut [T], numbers: &mut SeededNumbers) {
    for index in (1..items.len()).rev() {
        items.swap(index, numbers.below(index as u64 + 1) as usize);
    }
}
