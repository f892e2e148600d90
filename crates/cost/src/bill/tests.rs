use super::*;
use crate::civil::{read_time, time_text};
use crate::focus::csv_text;
use crate::focus::{FocusColumn as C, FocusRow};
use crate::money::PicoDollars;
use crate::testing::SeededNumbers;
use DifferenceKind as D;
use flyball_core::units::{Micros, Timestamp};
use proptest::prelude::*;
use std::collections::BTreeMap;

const TOLERANCE_PPM: u32 = 5_000;

fn at(hours: u64) -> Timestamp {
    let start = read_time("2026-11-01T00:00:00Z").unwrap();
    start.saturating_add(Micros::HOUR.saturating_mul(hours))
}

fn nodes(count: u64, hours: u64) -> Vec<SeenNode> {
    let hourly = |node: u64| Some(PicoDollars::from_dollars(10 + node as i64));
    let node = |node| SeenNode {
        id: format!("aws:///us-east-1a/i-{node:04}"),
        from: at(0),
        to: at(hours),
        hourly: hourly(node),
    };
    (0..count).map(node).collect()
}

fn line(resource: &str, from: u64, to: u64, dollars: PicoDollars) -> FocusRow {
    let mut row = FocusRow::default();
    let cells = [
        (C::ResourceId, resource.to_owned()),
        (C::ChargePeriodStart, time_text(at(from))),
        (C::ChargePeriodEnd, time_text(at(to))),
        (C::BilledCost, dollars.to_string()),
        (C::EffectiveCost, dollars.to_string()),
        (C::ChargeCategory, "Usage".to_owned()),
        (C::BillingCurrency, "USD".to_owned()),
    ];
    cells.into_iter().for_each(|(column, value)| row.set(column, value));
    row
}

/// A bill that says what we say, cut into pieces of so many hours.
fn bill(nodes: &[SeenNode], hours: u64, step: u64) -> Vec<FocusRow> {
    let pieces = |node: &SeenNode| {
        let (id, hourly) = (node.id.rsplit('/').next().unwrap().to_owned(), node.hourly.unwrap());
        (0..hours)
            .step_by(step as usize)
            .map(move |from| line(&id, from, from + step, hourly.times(step.into())))
    };
    nodes.iter().flat_map(pieces).collect()
}

fn counts(all: &Reconciliation) -> BTreeMap<&'static str, (usize, i128, i128)> {
    let dollar = 1_000_000_000_000;
    let of = |kind: D| {
        let (count, billed, seen) = all.sum(kind);
        (kind.name(), (count, billed.get() / dollar, seen.get() / dollar))
    };
    D::ALL.into_iter().map(of).filter(|(_, (count, ..))| *count > 0).collect()
}

fn compared(rows: &[FocusRow], nodes: &[SeenNode]) -> BTreeMap<&'static str, (usize, i128, i128)> {
    let file = import(&csv_text(rows)).unwrap();
    assert_eq!((file.unread, file.version), (0, FocusVersion::V1_4));
    counts(&reconcile(&file.lines, nodes, TOLERANCE_PPM))
}

#[test]
fn a_bill_that_says_the_same_matches_by_hours_and_by_days() {
    let nodes = nodes(3, 48);
    let all = 48 * (10 + 11 + 12);
    assert_eq!(
        compared(&bill(&nodes, 48, 1), &nodes),
        BTreeMap::from([("matched", (144, all, all))])
    );
    assert_eq!(
        compared(&bill(&nodes, 48, 24), &nodes),
        BTreeMap::from([("matched", (6, all, all))])
    );
}

#[test]
fn each_planted_difference_is_found_with_its_money() {
    let mut nodes = nodes(4, 24);
    let mut rows = bill(&nodes, 24, 1);
    // An hour of the first node at twice the price, one within the tolerance, one that was not billed.
    rows[0] = line("i-0000", 0, 1, PicoDollars::from_dollars(20));
    rows[1] = line("i-0000", 1, 2, PicoDollars::read("10.04").unwrap());
    rows.remove(2);
    // A machine that we never saw, a tax, and a node without a price here.
    rows.push(line("i-9999", 5, 6, PicoDollars::from_dollars(7)));
    let mut tax = line("", 0, 24, PicoDollars::from_dollars(3));
    tax.set(C::ChargeCategory, "Tax");
    rows.push(tax);
    nodes[3].hourly = None;
    let found = compared(&rows, &nodes);
    let expected = BTreeMap::from([
        ("matched", (70, 22 * 10 + 24 * 11 + 24 * 12, 22 * 10 + 24 * 11 + 24 * 12)),
        ("price-differs", (1, 20, 10)),
        ("price-unknown", (24, 24 * 13, 0)),
        ("not-seen", (1, 7, 0)),
        ("not-billed", (1, 0, 10)),
        ("no-resource", (1, 3, 0)),
    ]);
    assert_eq!(found, expected);
}

#[test]
fn a_correction_of_the_bill_counts_in_the_hour_that_it_corrects() {
    let nodes = nodes(1, 2);
    let mut rows = bill(&nodes, 2, 1);
    rows[0] = line("i-0000", 0, 1, PicoDollars::from_dollars(15));
    let mut correction = line("i-0000", 0, 1, PicoDollars::from_dollars(-5));
    correction.set(C::ChargeClass, "Correction");
    rows.push(correction);
    assert_eq!(compared(&rows, &nodes), BTreeMap::from([("matched", (2, 20, 20))]));
}

#[test]
fn older_versions_are_known_by_their_columns_and_their_providers_mapped() {
    let base = "ChargePeriodStart,ChargePeriodEnd,BilledCost,EffectiveCost,ChargeCategory,BillingCurrency,ResourceId";
    let cells = "2026-11-01 00:00:00,2026-11-01 01:00:00,1.5E+1,15,Usage,USD,i-1";
    let table = [
        (",ProviderName,PublisherName", ",AWS,Datadog", FocusVersion::V1_0),
        (",ProviderName,PublisherName,ServiceSubcategory", ",AWS,Datadog,x", FocusVersion::V1_1),
        (",ProviderName,PublisherName,InvoiceId", ",AWS,Datadog,1", FocusVersion::V1_2),
        (
            ",ProviderName,PublisherName,HostProviderName,ServiceProviderName",
            ",x,x,AWS,Datadog",
            FocusVersion::V1_3,
        ),
        (",HostProviderName,ServiceProviderName", ",AWS,Datadog", FocusVersion::V1_4),
    ];
    for (columns, values, version) in table {
        let file = import(&format!("{base}{columns}\n{cells}{values}\n")).unwrap();
        let line = &file.lines[0];
        assert_eq!(file.version, version);
        assert_eq!(line.host_provider.as_deref(), Some("AWS"), "{version:?}");
        assert_eq!(line.service_provider.as_deref(), Some("Datadog"), "{version:?}");
        assert_eq!((line.billed, line.to), (PicoDollars::from_dollars(15), at(1)));
    }
}

#[test]
fn lines_that_cannot_be_read_are_counted_and_said() {
    let base = "ChargePeriodStart,ChargePeriodEnd,BilledCost,EffectiveCost,ChargeCategory,BillingCurrency\n";
    let wrong = [
        ("2026-11-01,2026-11-02,1,1,Usage,EUR", "BillingCurrency"),
        ("2026-11-01,2026-11-01,1,1,Usage,USD", "ChargePeriodEnd"),
        ("yesterday,2026-11-02,1,1,Usage,USD", "ChargePeriodStart"),
        ("2026-11-01,2026-11-02,,1,Usage,USD", "BilledCost"),
        ("2026-11-01,2026-11-02,1,much,Usage,USD", "EffectiveCost"),
        ("2026-11-01,2026-11-02", "BillingCurrency"),
    ];
    for (cells, column) in wrong {
        let file = import(&format!("{base}{cells}\n")).unwrap();
        assert_eq!((file.lines.len(), file.unread), (0, 1));
        assert_eq!(file.problems[0].column, column, "{cells}");
    }
    assert_eq!(import("Cost\n1\n").unwrap_err().column, "ChargePeriodStart");
    assert!(import("").is_err());
}

proptest! {
    #[test]
    fn classes_add_up_to_the_bill_and_to_what_was_seen(seed: u64) {
        let mut numbers = SeededNumbers(seed);
        let mut nodes = nodes(5, 30);
        for node in &mut nodes {
            node.from = node.from.saturating_add(Micros::from_seconds(numbers.below(40_000)));
            node.hourly = (numbers.below(4) > 0).then(|| PicoDollars::new(numbers.next().into()));
        }
        let one = |numbers: &mut SeededNumbers| {
            let from = numbers.below(30);
            let id = if numbers.below(9) == 0 { String::new() } else { format!("i-{:04}", numbers.below(8)) };
            line(&id, from, from + 1 + numbers.below(30), PicoDollars::new(i128::from(numbers.next()) - (1 << 62)))
        };
        let rows: Vec<FocusRow> = (0..60).map(|_| one(&mut numbers)).collect();
        let file = import(&csv_text(&rows)).unwrap();
        let all = reconcile(&file.lines, &nodes, TOLERANCE_PPM);
        let sums = D::ALL.map(|kind| all.sum(kind));
        let billed: PicoDollars = file.lines.iter().map(|line| line.effective).sum();
        let hourly = |node: &SeenNode| node.hourly.map(|hourly| hourly.for_span(node.from, node.to));
        let seen: PicoDollars = nodes.iter().filter_map(hourly).sum();
        prop_assert_eq!(sums.iter().map(|(_, billed, _)| *billed).sum::<PicoDollars>(), billed);
        prop_assert_eq!(sums.iter().map(|(.., seen)| *seen).sum::<PicoDollars>(), seen);
    }
}
