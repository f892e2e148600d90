//! What must hold between the cells of one row, as a table.

use super::columns::{FocusColumn, SERVICES, SKU_PROPERTIES};
use super::format;
use super::row::FocusRow;
use crate::money::PicoDollars;
use FocusColumn as C;

/// A rule of the standard.
pub(super) struct RowRule {
    /// The column that is wrong where the rule does not hold.
    pub(super) column: FocusColumn,
    pub(super) says: &'static str,
    pub(super) holds: fn(&FocusRow) -> bool,
}

const fn rule(column: FocusColumn, says: &'static str, holds: fn(&FocusRow) -> bool) -> RowRule {
    RowRule { column, says, holds }
}

pub(super) const ROW_RULES: &[RowRule] = &[
    rule(C::BillingPeriodEnd, "is after BillingPeriodStart", |row| {
        row.get(C::BillingPeriodEnd) > row.get(C::BillingPeriodStart)
    }),
    rule(C::ChargePeriodEnd, "is after ChargePeriodStart", |row| {
        row.get(C::ChargePeriodEnd) > row.get(C::ChargePeriodStart)
    }),
    rule(
        C::ChargePeriodStart,
        "is within the billing period, unless the row is a correction",
        |row| {
            is_correction(row)
                || (row.get(C::ChargePeriodStart) >= row.get(C::BillingPeriodStart)
                    && row.get(C::ChargePeriodStart) < row.get(C::BillingPeriodEnd))
        },
    ),
    rule(C::ChargeClass, "is Correction where the charge began before the billing period", |row| {
        is_correction(row) || row.get(C::ChargePeriodStart) >= row.get(C::BillingPeriodStart)
    }),
    rule(C::ChargeFrequency, "is not Usage-Based for a Purchase", |row| {
        category(row) != "Purchase" || row.get(C::ChargeFrequency) != Some("Usage-Based")
    }),
    rule(C::CapacityReservationStatus, "is null without CapacityReservationId", |row| {
        only_with(row, C::CapacityReservationStatus, C::CapacityReservationId)
    }),
    rule(C::CapacityReservationStatus, "is not null for usage of a reservation", |row| {
        !has(row, C::CapacityReservationId)
            || category(row) != "Usage"
            || has(row, C::CapacityReservationStatus)
    }),
    rule(C::CommitmentDiscountCategory, "is null exactly when CommitmentDiscountId is", |row| {
        together(row, C::CommitmentDiscountCategory, C::CommitmentDiscountId)
    }),
    rule(C::CommitmentDiscountType, "is null exactly when CommitmentDiscountId is", |row| {
        together(row, C::CommitmentDiscountType, C::CommitmentDiscountId)
    }),
    rule(C::CommitmentDiscountName, "is null without CommitmentDiscountId", |row| {
        only_with(row, C::CommitmentDiscountName, C::CommitmentDiscountId)
    }),
    rule(C::CommitmentDiscountStatus, "is null exactly where no usage has a commitment", |row| {
        has(row, C::CommitmentDiscountStatus)
            == (has(row, C::CommitmentDiscountId) && category(row) == "Usage")
    }),
    rule(
        C::CommitmentDiscountQuantity,
        "is there for usage and purchase with a commitment, and nowhere else",
        |row| {
            let due = has(row, C::CommitmentDiscountId) && is_priced(row);
            match has(row, C::CommitmentDiscountQuantity) {
                true => due,
                false => !due || is_correction(row),
            }
        },
    ),
    rule(C::CommitmentDiscountUnit, "is null exactly when CommitmentDiscountQuantity is", |row| {
        together(row, C::CommitmentDiscountUnit, C::CommitmentDiscountQuantity)
    }),
    rule(C::ConsumedQuantity, "is there for usage that is not Unused, and nowhere else", |row| {
        let due =
            category(row) == "Usage" && row.get(C::CommitmentDiscountStatus) != Some("Unused");
        match has(row, C::ConsumedQuantity) {
            true => due,
            false => !due || is_correction(row),
        }
    }),
    rule(C::ConsumedUnit, "is null exactly when ConsumedQuantity is", |row| {
        together(row, C::ConsumedUnit, C::ConsumedQuantity)
    }),
    rule(C::PricingCategory, "is there for usage and purchase, and null for Tax", |row| {
        priced(row, C::PricingCategory)
    }),
    rule(C::PricingQuantity, "is there for usage and purchase, and null for Tax", |row| {
        priced(row, C::PricingQuantity)
    }),
    rule(C::PricingUnit, "is null exactly when PricingQuantity is", |row| {
        together(row, C::PricingUnit, C::PricingQuantity)
    }),
    rule(C::ListUnitPrice, "is there for usage and purchase, and null for Tax", |row| {
        priced(row, C::ListUnitPrice)
    }),
    rule(C::ContractedUnitPrice, "is there for usage and purchase, and null for Tax", |row| {
        priced(row, C::ContractedUnitPrice)
    }),
    rule(C::ListCost, "is ListUnitPrice times PricingQuantity", |row| {
        multiplies(row, C::ListCost, C::ListUnitPrice)
    }),
    rule(C::ContractedCost, "is ContractedUnitPrice times PricingQuantity", |row| {
        multiplies(row, C::ContractedCost, C::ContractedUnitPrice)
    }),
    rule(
        C::PricingCurrencyListUnitPrice,
        "is there for usage and purchase, and null for Tax",
        |row| priced(row, C::PricingCurrencyListUnitPrice),
    ),
    rule(
        C::PricingCurrencyContractedUnitPrice,
        "is there for usage and purchase, and null for Tax",
        |row| priced(row, C::PricingCurrencyContractedUnitPrice),
    ),
    rule(
        C::PricingCurrencyEffectiveCost,
        "is EffectiveCost where both currencies are one",
        |row| {
            row.get(C::PricingCurrency) != row.get(C::BillingCurrency)
                || row.get(C::PricingCurrencyEffectiveCost) == row.get(C::EffectiveCost)
        },
    ),
    rule(C::SkuId, "is there for usage and purchase, and null for Tax", |row| {
        priced(row, C::SkuId)
    }),
    rule(C::SkuPriceId, "is there for usage and purchase, and null for Tax", |row| {
        priced(row, C::SkuPriceId)
    }),
    rule(C::SkuMeter, "is null without SkuId", |row| only_with(row, C::SkuMeter, C::SkuId)),
    rule(C::SkuPriceDetails, "is null without SkuPriceId", |row| {
        only_with(row, C::SkuPriceDetails, C::SkuPriceId)
    }),
    rule(C::SkuPriceDetails, "has keys of the standard, and others behind x_", |row| {
        let keys = row.get(C::SkuPriceDetails).and_then(format::keys).unwrap_or_default();
        keys.iter().all(|key| key.starts_with("x_") || SKU_PROPERTIES.contains(&key.as_str()))
    }),
    rule(C::RegionName, "is null exactly when RegionId is", |row| {
        together(row, C::RegionName, C::RegionId)
    }),
    rule(C::ResourceName, "is null without ResourceId", |row| {
        only_with(row, C::ResourceName, C::ResourceId)
    }),
    rule(C::ResourceName, "does not repeat ResourceId", |row| {
        !has(row, C::ResourceName) || row.get(C::ResourceName) != row.get(C::ResourceId)
    }),
    rule(C::ResourceType, "is null exactly when ResourceId is", |row| {
        together(row, C::ResourceType, C::ResourceId)
    }),
    rule(C::SubAccountName, "is null exactly when SubAccountId is", |row| {
        together(row, C::SubAccountName, C::SubAccountId)
    }),
    rule(C::SubAccountType, "is null exactly when SubAccountId is", |row| {
        together(row, C::SubAccountType, C::SubAccountId)
    }),
    rule(C::AllocatedMethodDetails, "is null without AllocatedMethodId", |row| {
        only_with(row, C::AllocatedMethodDetails, C::AllocatedMethodId)
    }),
    rule(C::AllocatedResourceId, "is null without AllocatedMethodId", |row| {
        only_with(row, C::AllocatedResourceId, C::AllocatedMethodId)
    }),
    rule(C::AllocatedResourceName, "is null without AllocatedResourceId", |row| {
        only_with(row, C::AllocatedResourceName, C::AllocatedResourceId)
    }),
    rule(C::AllocatedTags, "is null without AllocatedMethodId", |row| {
        only_with(row, C::AllocatedTags, C::AllocatedMethodId)
    }),
    rule(C::ServiceCategory, "is one of the allowed values", |row| {
        row.get(C::ServiceCategory).is_none_or(|name| SERVICES.iter().any(|(one, _)| *one == name))
    }),
    rule(C::ServiceSubcategory, "belongs to ServiceCategory", |row| {
        let (category, sub) =
            (row.get(C::ServiceCategory).unwrap_or_default(), row.get(C::ServiceSubcategory));
        let known = SERVICES.iter().find(|(name, _)| *name == category);
        sub.is_none_or(|sub| {
            sub == format!("Other ({category})")
                || known.is_some_and(|(_, subs)| subs.contains(&sub))
        })
    }),
];

fn has(row: &FocusRow, column: FocusColumn) -> bool {
    row.get(column).is_some()
}

fn together(row: &FocusRow, one: FocusColumn, other: FocusColumn) -> bool {
    has(row, one) == has(row, other)
}

fn only_with(row: &FocusRow, one: FocusColumn, other: FocusColumn) -> bool {
    !has(row, one) || has(row, other)
}

fn category(row: &FocusRow) -> &str {
    row.get(C::ChargeCategory).unwrap_or_default()
}

fn is_correction(row: &FocusRow) -> bool {
    row.get(C::ChargeClass) == Some("Correction")
}

fn is_priced(row: &FocusRow) -> bool {
    matches!(category(row), "Usage" | "Purchase")
}

/// What is there for usage and purchase (in corrections it may be missing), null for Tax, and as it likes elsewhere.
fn priced(row: &FocusRow, column: FocusColumn) -> bool {
    match (category(row), has(row, column)) {
        ("Tax", there) => !there,
        ("Usage" | "Purchase", false) => is_correction(row),
        _ => true,
    }
}

/// To a pico-dollar, where both factors are there and the row is no correction.
fn multiplies(row: &FocusRow, cost: FocusColumn, price: FocusColumn) -> bool {
    let number = |column| row.get(column).map(PicoDollars::read);
    let (Some(Ok(price)), Some(Ok(quantity)), Some(Ok(cost))) =
        (number(price), number(C::PricingQuantity), number(cost))
    else {
        return true;
    };
    // Numbers of this size are no charges of one row; the forms of the cells are judged elsewhere.
    let Some(product) = product(price, quantity) else { return false };
    is_correction(row) || (product - cost).get().abs() <= 1
}

/// Both are in millionths of millionths, so that the product is one million millions too large.
pub(super) fn product(price: PicoDollars, quantity: PicoDollars) -> Option<PicoDollars> {
    const ONE: i128 = 1_000_000_000_000;
    let (whole, rest) = (quantity.get() / ONE, quantity.get() % ONE);
    let whole = price.get().checked_mul(whole)?;
    let exact = price.get().checked_mul(rest)?;
    let half = if exact < 0 { -ONE / 2 } else { ONE / 2 };
    Some(PicoDollars::new(whole.checked_add(exact.checked_add(half)? / ONE)?))
}
