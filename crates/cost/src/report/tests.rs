use super::*;
use crate::attribute::attribute;
use crate::civil::read_time;
use crate::money::PicoDollars;
use crate::price::HostRates;
use crate::row::{CostRow, RowOwner};
use crate::testing::MadeUpMonth;
use crate::uses::{GpuUse, Spending, Spent};
use CostDimension as By;
use flyball_core::units::{GpuMicros, Gpus, Micros, Timestamp};

const MONTH: MadeUpMonth = MadeUpMonth { seed: 3, tenants: 6, models: 4, nodes: 5, active_pct: 60 };

fn rows(hours: std::ops::Range<u64>) -> Vec<CostRow> {
    let hour = |hour| {
        let one = MONTH.hour(hour);
        attribute(one.bucket, &one.nodes, &one.served, HostRates::USUAL).rows
    };
    hours.flat_map(hour).collect()
}

fn question(by: &[By], from: &str, to: &str) -> CostQuestion {
    let [from, to] = [from, to].map(|text| read_time(text).unwrap());
    CostQuestion { by: by.to_vec(), from, to, offset: 0, limit: usize::MAX }
}

fn november(by: &[By]) -> CostQuestion {
    question(by, "2026-11-01", "2026-12-01")
}

/// A day of a pool at so many dollars.
fn day(date: &str, dollars: i64) -> CostRow {
    let time = GpuMicros::of(Gpus::new(8), Micros::HOUR);
    CostRow {
        start: read_time(date).unwrap(),
        length: Micros::HOUR,
        owner: RowOwner { pool: Some("h100".into()), ..RowOwner::default() },
        served: Default::default(),
        spent: Spending::of(
            GpuUse::Useful,
            Spent { time, money: PicoDollars::from_dollars(dollars), ..Spent::default() },
        ),
        host: PicoDollars::ZERO,
    }
}

#[test]
fn a_report_as_a_table() {
    let rows = rows(0..30);
    insta::assert_snapshot!(table(&ask(&rows, &november(&[By::Team]))));
    insta::assert_snapshot!(table(&ask(&rows, &november(&[By::Day, By::Pool]))));
    let page = CostQuestion { offset: 1, limit: 2, ..november(&[By::Model]) };
    insta::assert_snapshot!(table(&ask(&rows, &page)));
}

#[test]
fn a_report_for_programs() {
    let page = CostQuestion { limit: 2, ..november(&[By::Team, By::Model]) };
    let report = ask(&rows(0..3), &page);
    insta::assert_snapshot!(csv(&report));
    insta::assert_json_snapshot!(json(&report));
}

#[test]
fn groups_add_up_to_the_total_by_every_dimension_and_the_total_is_of_all_pages() {
    let rows = rows(0..60);
    let all = ask(&rows, &november(&[])).total;
    for by in By::ALL {
        let report = ask(&rows, &november(&[by]));
        let mut sum = CostSums::default();
        report.groups.iter().for_each(|group| sum += &group.sums);
        assert_eq!((&sum, &report.total), (&all, &all), "{}", by.name());
        let page = CostQuestion { offset: 1, limit: 1, ..november(&[by]) };
        let page = ask(&rows, &page);
        assert_eq!(
            (page.total, page.groups.len(), page.group_count),
            (all.clone(), 1, report.groups.len())
        );
        assert_eq!(By::named(by.name()), Some(by));
    }
}

#[test]
fn what_has_no_price_is_unknown_in_every_form() {
    let time = GpuMicros::of(Gpus::new(8), Micros::HOUR);
    let free = CostRow {
        spent: Spending::of(
            GpuUse::Quiet,
            Spent { time, money: PicoDollars::ZERO, unpriced: time },
        ),
        ..day("2026-11-03", 0)
    };
    let report = ask([&free], &november(&[By::Pool]));
    assert!(table(&report).contains("unknown"));
    let json = json(&report);
    assert_eq!(json["total"]["cost"], serde_json::Value::Null);
    assert_eq!(json["total"]["paid"]["unpricedGpuSeconds"], "28800.000000");
    let text = csv(&report);
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let (head, cells) = (lines.next().unwrap(), lines.next().unwrap());
    let cell = |name: &str| cells[head.iter().position(|one| *one == name).unwrap()];
    assert_eq!((cell("cost_usd"), cell("quiet_usd"), cell("useful_usd")), ("", "", "0"));
    let both = ask([&free, &day("2026-11-03", 5)], &november(&[By::Pool]));
    assert!(table(&both).contains("5.00 + unknown for 8.00 GPU-hours"));
    let change = compare(&report, &both);
    assert_eq!(change.total.by_time, None);
    assert!(change.table(9).contains("unknown"));
    assert!(
        forecast([&free], read_time("2026-11-20").unwrap())
            .text()
            .contains("8.00 GPU-hours without a price")
    );
}

#[test]
fn why_it_costs_what_it_costs() {
    let (from, to) = (Timestamp::from_micros(0), Timestamp::from_micros(u64::MAX));
    let rows = rows(0..30);
    let reasons = why(&rows, from, to);
    insta::assert_snapshot!(reasons.table(6));
    let mut sum = reasons.useful;
    reasons.reasons.iter().for_each(|one| sum += one.spent);
    assert_eq!(sum, reasons.paid);
}

#[test]
fn a_change_is_cut_into_hours_and_price() {
    let before = ask([&day("2026-11-03", 80)], &november(&[By::Pool]));
    let mut dearer = day("2026-12-03", 120);
    dearer.owner.pool = Some("h100".into());
    let mut other = day("2026-12-03", 10);
    other.owner.pool = Some("a100".into());
    let after = ask(
        [&dearer, &day("2026-12-04", 120), &other],
        &question(&[By::Pool], "2026-12-01", "2027-01-01"),
    );
    let change = compare(&before, &after);
    let h100 = &change.changes[0];
    assert_eq!(h100.change(), PicoDollars::from_dollars(160));
    assert_eq!(h100.by_time, Some(PicoDollars::from_dollars(80)));
    assert_eq!(h100.by_price(), Some(PicoDollars::from_dollars(80)));
    insta::assert_snapshot!(change.table(9));
}

#[test]
fn a_month_ends_where_its_weekdays_lead() {
    // Four weeks: 100 on weekdays, 30 on Saturdays and Sundays.
    let cost = |date: u64| if [0, 6].contains(&(date % 7)) { 30 } else { 100 };
    let rows: Vec<CostRow> =
        (1..=28).map(|date| day(&format!("2026-11-{date:02}"), cost(date - 1))).collect();
    let forecast = forecast(&rows, read_time("2026-11-29").unwrap());
    let end = forecast.at_end.unwrap();
    let sum: i64 = (0..28).map(cost).sum();
    assert_eq!(forecast.so_far, PicoDollars::from_dollars(sum));
    // A Sunday and a Monday are to come, and no day was off its weekday.
    assert_eq!(end.point(), PicoDollars::from_dollars(sum + 30 + 100));
    assert_eq!((end.low(), end.high()), (end.point(), end.point()));
    insta::assert_snapshot!(forecast.text());
}

#[test]
fn a_forecast_is_wide_where_days_differ_and_unknown_without_a_week() {
    let rows: Vec<CostRow> =
        (1..=20).map(|date| day(&format!("2026-11-{date:02}"), 100 + (date % 3) * 50)).collect();
    let wide = forecast(&rows, read_time("2026-11-21T12:00:00Z").unwrap()).at_end.unwrap();
    assert!(wide.low() < wide.point() && wide.point() < wide.high());
    let unknown = forecast(&rows[..5], read_time("2026-11-06").unwrap());
    assert_eq!(unknown.at_end, None);
    insta::assert_snapshot!(unknown.text());
    assert_eq!(forecast([], read_time("2026-11-06").unwrap()).at_end, None);
}
