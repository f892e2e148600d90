use super::rules::ROW_RULES;
use super::*;
use crate::attribute::attribute;
use crate::money::PicoDollars;
use crate::price::HostRates;
use crate::row::CostRow;
use crate::testing::MadeUpMonth;
use crate::uses::Spending;
use FocusColumn as C;
use std::collections::{BTreeMap, BTreeSet};

fn issuer(policy: ChargebackPolicy) -> FocusIssuer {
    let prices = ListPrices { input: 300_000, cached_input: 30_000, output: 1_200_000 };
    FocusIssuer {
        billing_account_id: "cluster-1".into(),
        billing_account_name: None,
        platform: "Flyball".into(),
        host_provider: Some("AWS".into()),
        region: Some(("us-east-1".into(), "US East".into())),
        policy,
        // Half of the models have a price list.
        prices: (0..7)
            .step_by(2)
            .map(|model| (format!("ml/model-{model}").into(), prices))
            .collect(),
    }
}

fn rows(hours: u64) -> Vec<CostRow> {
    let month = MadeUpMonth { seed: 5, tenants: 12, models: 7, nodes: 9, active_pct: 50 };
    let hour = |hour| {
        let one = month.hour(hour);
        attribute(one.bucket, &one.nodes, &one.served, HostRates::USUAL).rows
    };
    (0..hours).flat_map(hour).collect()
}

fn sum(rows: &[FocusRow], column: C) -> PicoDollars {
    rows.iter().map(|row| PicoDollars::read(row.get(column).unwrap()).unwrap()).sum()
}

fn money(rows: &[CostRow]) -> PicoDollars {
    rows.iter().map(|row| row.spent.paid().money + row.host).sum()
}

#[test]
fn there_are_the_65_columns_of_1_4_of_which_21_are_mandatory() {
    assert_eq!(C::ALL.len(), 65);
    let mandatory = C::ALL.iter().filter(|column| column.facts().level == FeatureLevel::Mandatory);
    assert_eq!(mandatory.count(), 21);
    assert!(C::ALL.is_sorted());
    assert!(C::named("ProviderName").is_none() && C::named("PublisherName").is_none());
}

#[test]
fn what_is_exported_keeps_every_rule() {
    for policy in
        [ChargebackPolicy::PriceList, ChargebackPolicy::AtCost, ChargebackPolicy::Showback]
    {
        let export = export(&rows(6), &issuer(policy));
        let findings = validate(&csv_text(&export.rows)).unwrap();
        assert_eq!(findings.violations, []);
        assert_eq!(
            (findings.rows, findings.columns_ok_pct()),
            (export.rows.len() as u64, Some(100.0))
        );
    }
}

#[test]
fn charges_add_up_to_the_money_of_the_ledger() {
    let rows: Vec<CostRow> =
        rows(10).into_iter().filter(|row| row.spent.paid().unpriced.is_zero()).collect();
    let export = export(&rows, &issuer(ChargebackPolicy::AtCost));
    assert_eq!(sum(&export.rows, C::EffectiveCost), money(&rows));
    assert_eq!(sum(&export.rows, C::BilledCost), money(&rows));
    assert!(export.withheld.is_zero());
    let tokens: u64 = export
        .rows
        .iter()
        .filter(|row| row.get(C::ConsumedUnit) == Some("Tokens"))
        .map(|row| row.get(C::ConsumedQuantity).unwrap().parse::<u64>().unwrap())
        .sum();
    let issuer = issuer(ChargebackPolicy::AtCost);
    let listed = rows.iter().filter(|row| {
        row.owner.model.as_ref().is_some_and(|model| issuer.prices.contains_key(model))
    });
    let served = listed.map(|row| row.served.input + row.served.cached_input + row.served.output);
    assert_eq!(tokens, served.sum::<u64>());
}

#[test]
fn what_has_no_price_is_withheld_or_marked_and_never_free() {
    let mut rows = rows(1);
    for row in &mut rows {
        let mut spent = Spending::default();
        for (use_, one) in row.spent.iter() {
            spent.add(
                use_,
                crate::uses::Spent { money: PicoDollars::ZERO, unpriced: one.time, ..one },
            );
        }
        row.spent = spent;
        row.host = PicoDollars::ZERO;
    }
    let export = export(&rows, &issuer(ChargebackPolicy::PriceList));
    assert!(!export.withheld.is_zero());
    for row in &export.rows {
        assert_eq!(row.get(C::ConsumedUnit), Some("Tokens"));
        assert_eq!(row.get(C::EffectiveCost), row.get(C::ContractedCost));
    }
    let marked = export.rows.iter().filter(|row| row.own(OwnColumn::UnpricedGpuSeconds).is_some());
    assert!(marked.count() > 0);
}

#[test]
fn a_correction_takes_back_what_was_and_charges_what_should_have_been() {
    let before = rows(5);
    let mut after = before.clone();
    after[3].host += PicoDollars::from_dollars(2);
    let later = crate::civil::read_time("2026-12-05T00:00:00Z").unwrap();
    let issuer = issuer(ChargebackPolicy::AtCost);
    let export = corrections(&before[3..4], &after[3..4], later, &issuer);
    assert!(export.rows.iter().all(|row| row.get(C::ChargeClass) == Some("Correction")));
    assert_eq!(sum(&export.rows, C::EffectiveCost), PicoDollars::from_dollars(2));
    assert!(
        export
            .rows
            .iter()
            .all(|row| row.get(C::BillingPeriodStart) == Some("2026-12-01T00:00:00Z"))
    );
    assert_eq!(validate(&csv_text(&export.rows)).unwrap().violations, []);
    // In the same month it is no correction in the standard's sense.
    let soon = corrections(&before[3..4], &after[3..4], before[3].end(), &issuer);
    assert!(soon.rows.iter().all(|row| row.get(C::ChargeClass).is_none()));
    assert_eq!(validate(&csv_text(&soon.rows)).unwrap().violations, []);
}

/// A row that keeps every rule and has a commitment, a reservation and a region.
fn full() -> FocusRow {
    let mut row = export(&rows(1), &issuer(ChargebackPolicy::PriceList))
        .rows
        .into_iter()
        .find(|row| row.get(C::ConsumedUnit) == Some("Tokens"))
        .unwrap();
    let more = [
        (C::CommitmentDiscountId, "cd-1"),
        (C::CommitmentDiscountName, "three years"),
        (C::CommitmentDiscountCategory, "Usage"),
        (C::CommitmentDiscountType, "Reserved"),
        (C::CommitmentDiscountStatus, "Used"),
        (C::CommitmentDiscountQuantity, "1"),
        (C::CommitmentDiscountUnit, "GPU-Hours"),
        (C::CapacityReservationId, "cr-1"),
        (C::CapacityReservationStatus, "Used"),
        (C::AllocatedMethodDetails, "{}"),
        (C::AllocatedResourceName, "chat"),
        (C::AllocatedTags, "{}"),
        (C::ResourceName, "chat"),
        (C::Tags, r#"{"team":"a"}"#),
    ];
    more.into_iter().for_each(|(column, value)| row.set(column, value));
    row
}

fn found(row: &FocusRow) -> BTreeSet<String> {
    let findings = validate(&csv_text(std::slice::from_ref(row))).unwrap();
    findings.violations.into_iter().map(|one| format!("{} {}", one.column, one.says)).collect()
}

/// Cells to change, and the column whose rule is broken then.
const PLANTED: &[(&[(C, &str)], C)] = &[
    (&[(C::BillingPeriodEnd, "2026-11-01T00:00:00Z")], C::BillingPeriodEnd),
    (&[(C::ChargePeriodEnd, "2026-11-01T00:00:00Z")], C::ChargePeriodEnd),
    (
        &[
            (C::ChargePeriodStart, "2026-12-01T00:00:00Z"),
            (C::ChargePeriodEnd, "2026-12-01T01:00:00Z"),
        ],
        C::ChargePeriodStart,
    ),
    (&[(C::ChargePeriodStart, "2026-10-31T23:00:00Z")], C::ChargeClass),
    (
        &[(C::ChargeCategory, "Purchase"), (C::ConsumedQuantity, ""), (C::ConsumedUnit, "")],
        C::ChargeFrequency,
    ),
    (&[(C::CapacityReservationId, "")], C::CapacityReservationStatus),
    (&[(C::CapacityReservationStatus, "")], C::CapacityReservationStatus),
    (&[(C::CommitmentDiscountId, "")], C::CommitmentDiscountCategory),
    (&[(C::CommitmentDiscountCategory, "")], C::CommitmentDiscountCategory),
    (&[(C::CommitmentDiscountType, "")], C::CommitmentDiscountType),
    (&[(C::CommitmentDiscountId, "")], C::CommitmentDiscountName),
    (&[(C::CommitmentDiscountStatus, "")], C::CommitmentDiscountStatus),
    (
        &[(C::CommitmentDiscountQuantity, ""), (C::CommitmentDiscountUnit, "")],
        C::CommitmentDiscountQuantity,
    ),
    (&[(C::CommitmentDiscountUnit, "")], C::CommitmentDiscountUnit),
    (&[(C::ConsumedQuantity, ""), (C::ConsumedUnit, "")], C::ConsumedQuantity),
    (&[(C::CommitmentDiscountStatus, "Unused")], C::ConsumedQuantity),
    (&[(C::ConsumedUnit, "")], C::ConsumedUnit),
    (&[(C::PricingCategory, "")], C::PricingCategory),
    (&[(C::ChargeCategory, "Tax")], C::PricingCategory),
    (&[(C::PricingQuantity, ""), (C::PricingUnit, "")], C::PricingQuantity),
    (&[(C::PricingUnit, "")], C::PricingUnit),
    (&[(C::ListUnitPrice, "")], C::ListUnitPrice),
    (&[(C::ContractedUnitPrice, "")], C::ContractedUnitPrice),
    (&[(C::ListCost, "99")], C::ListCost),
    (&[(C::ContractedCost, "99")], C::ContractedCost),
    (&[(C::PricingCurrencyListUnitPrice, "")], C::PricingCurrencyListUnitPrice),
    (&[(C::PricingCurrencyContractedUnitPrice, "")], C::PricingCurrencyContractedUnitPrice),
    (&[(C::PricingCurrencyEffectiveCost, "99")], C::PricingCurrencyEffectiveCost),
    (&[(C::SkuId, "")], C::SkuId),
    (&[(C::SkuPriceId, "")], C::SkuPriceId),
    (&[(C::SkuId, "")], C::SkuMeter),
    (&[(C::SkuPriceId, "")], C::SkuPriceDetails),
    (&[(C::SkuPriceDetails, r#"{"TokenDirection":"Input"}"#)], C::SkuPriceDetails),
    (&[(C::RegionId, "")], C::RegionName),
    (&[(C::RegionName, "")], C::RegionName),
    (&[(C::ResourceId, "")], C::ResourceName),
    (&[(C::ResourceId, "chat")], C::ResourceName),
    (&[(C::ResourceType, "")], C::ResourceType),
    (&[(C::SubAccountName, "")], C::SubAccountName),
    (&[(C::SubAccountType, "")], C::SubAccountType),
    (&[(C::AllocatedMethodId, "")], C::AllocatedMethodDetails),
    (&[(C::AllocatedMethodId, "")], C::AllocatedResourceId),
    (&[(C::AllocatedResourceId, "")], C::AllocatedResourceName),
    (&[(C::AllocatedMethodId, "")], C::AllocatedTags),
    (&[(C::ServiceCategory, "Artificial")], C::ServiceCategory),
    (&[(C::ServiceSubcategory, "Containers")], C::ServiceSubcategory),
];

#[test]
fn every_rule_between_cells_is_found_broken_where_it_is() {
    assert_eq!(found(&full()), BTreeSet::new());
    let mut broken = BTreeSet::new();
    for (cells, column) in PLANTED {
        let mut row = full();
        cells.iter().for_each(|(column, value)| row.set(*column, *value));
        let found = found(&row);
        assert!(
            found.iter().any(|one| one.starts_with(&format!("{} ", column.name()))),
            "{cells:?}: {found:?}"
        );
        broken.extend(found);
    }
    for rule in ROW_RULES {
        let one = format!("{} {}", rule.column.name(), rule.says);
        assert!(broken.contains(&one), "nothing in the table breaks: {one}");
    }
}

#[test]
fn every_column_is_found_wrong_when_it_is_missing_null_or_malformed() {
    let row = full();
    let text = csv_text(std::slice::from_ref(&row));
    for column in C::ALL {
        let facts = column.facts();
        let mut null = row.clone();
        null.set(*column, "");
        let says = format!("{} must not be null", facts.name);
        assert_eq!(found(&null).contains(&says), !facts.may_be_null, "{}", facts.name);
        let mut malformed = row.clone();
        malformed.set(*column, " N/A ");
        let is_wrong = |one: &String| one.starts_with(&format!("{} ", facts.name));
        assert!(found(&malformed).iter().any(is_wrong), "{}", facts.name);
        let says = format!("{} is mandatory and missing", facts.name);
        let without = text.replacen(&format!("{},", facts.name), "x_Other,", 1);
        let findings = validate(&without).unwrap();
        let all: Vec<String> =
            findings.violations.iter().map(|one| format!("{} {}", one.column, one.says)).collect();
        assert_eq!(all.contains(&says), facts.level == FeatureLevel::Mandatory, "{}", facts.name);
    }
}

#[test]
fn headers_are_read_strictly_and_hostile_files_are_refused() {
    let wrong = |text: &str| {
        validate(text).unwrap().violations.into_iter().map(|one| one.says).collect::<Vec<_>>()
    };
    assert!(
        wrong("Cost\n1\n")
            .contains(&"is no column of the standard and does not begin with x_".to_owned())
    );
    assert!(wrong("ListCost,BilledCost\n1,1\n").contains(&"is out of order".to_owned()));
    assert!(wrong("ListCost,ListCost\n1,1\n").contains(&"comes twice".to_owned()));
    assert!(matches!(validate("a,b\n1\n"), Err(FocusFileError::Broken { line: 2, .. })));
    assert!(matches!(validate(&"x_a,".repeat(2_000)), Err(FocusFileError::TooWide(2_001))));
    assert_eq!(validate("").unwrap().columns_ok_pct(), None);
    let many = format!(
        "{}\n{}",
        C::ALL.iter().map(|one| one.name()).collect::<Vec<_>>().join(","),
        ",".repeat(64) + "\n"
    );
    let findings = validate(
        &many.replace(&",".repeat(64), &format!("{0}\n{0}\n{0}\n{0}\n{0}\n{0}", ",".repeat(64))),
    )
    .unwrap();
    assert!(findings.count > findings.violations.len() as u64);
}

#[test]
fn cells_with_commas_quotes_and_line_ends_come_back_as_they_were() {
    let mut row = full();
    row.set(C::ChargeDescription, "a \"b\", c\nd");
    let text = csv_text(std::slice::from_ref(&row));
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let record = reader.records().next().unwrap().unwrap();
    let cells: BTreeMap<&str, &str> =
        header.iter().map(String::as_str).zip(record.iter()).collect();
    assert_eq!(cells["ChargeDescription"], "a \"b\", c\nd");
    assert_eq!(header.len(), 65 + OwnColumn::ALL.len());
}
