//! Rows of the ledger as charges.
//!
//! A caller of a model with a price list has a row each for input, cached input and output tokens. Everything else is GPU
//! time with what it went into, at what it cost. Each row has what a price list says (`ListCost`, `ContractedCost`), the
//! money really behind it (`EffectiveCost`) and what the team is charged (`BilledCost`).

use super::columns::{FocusColumn as C, OwnColumn as X};
use super::row::FocusRow;
use super::rules::product;
use crate::civil::{BillingMonth, time_text};
use crate::money::PicoDollars;
use crate::row::{CostRow, RowOwner};
use crate::split::split;
use crate::uses::{GpuUse, Spent};
use flyball_core::units::{GpuMicros, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The rule by which GPU money was shared out, for `AllocatedMethodId`. Another rule gets another number.
pub const ALLOCATION_METHOD: &str = "flyball-gpu-time/1";

/// What teams are charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChargebackPolicy {
    /// What the price list says; GPU time without a list price at cost.
    PriceList,
    /// The money behind it.
    AtCost,
    /// Nothing: everything is only shown.
    Showback,
}

/// What tokens of a model cost by the price list, each in pico-dollars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListPrices {
    pub input: u64,
    pub cached_input: u64,
    pub output: u64,
}

/// Who bills, and by what list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FocusIssuer {
    pub billing_account_id: String,
    pub billing_account_name: Option<String>,
    /// The name of the platform: who provides the service and issues the invoice.
    pub platform: String,
    /// The cloud; unknown is null.
    pub host_provider: Option<String>,
    /// Id and name.
    pub region: Option<(String, String)>,
    pub policy: ChargebackPolicy,
    pub prices: BTreeMap<Arc<str>, ListPrices>,
}

/// Charges, and what could not be one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FocusExport {
    pub rows: Vec<FocusRow>,
    /// GPU time without a price and without tokens that have one: a charge needs a price, and a zero would be a lie.
    pub withheld: GpuMicros,
}

/// All charges of these rows, in a billing period that is the month in which each began.
pub fn export(rows: &[CostRow], issuer: &FocusIssuer) -> FocusExport {
    let mut export = FocusExport::default();
    for row in rows {
        Charges { row, issuer, period: BillingMonth::of(row.start), correction: false, sign: 1 }
            .add(&mut export);
    }
    export
}

/// What an invoiced row was is taken back, and what it should have been is charged, in the billing period of `now`. The
/// rows are marked as corrections if that is a later one than theirs.
pub fn corrections(
    before: &[CostRow],
    after: &[CostRow],
    now: Timestamp,
    issuer: &FocusIssuer,
) -> FocusExport {
    let mut export = FocusExport::default();
    let period = BillingMonth::of(now);
    for (rows, sign) in [(before, -1), (after, 1)] {
        for row in rows {
            let own = BillingMonth::of(row.start);
            let before = export.withheld;
            Charges { row, issuer, period: period.max(own), correction: period > own, sign }
                .add(&mut export);
            // Time that had no price before had no charge to take back.
            export.withheld = if sign < 0 { before } else { export.withheld };
        }
    }
    export
}

struct Charges<'a> {
    row: &'a CostRow,
    issuer: &'a FocusIssuer,
    period: BillingMonth,
    correction: bool,
    /// Minus one for what is taken back.
    sign: i128,
}

/// A quantity and its prices; all amounts are in millionths of millionths.
struct Charge {
    sku: String,
    meter: &'static str,
    description: String,
    consumed: PicoDollars,
    consumed_unit: &'static str,
    priced: PicoDollars,
    pricing_unit: &'static str,
    unit_price: PicoDollars,
    /// What it really cost. Unknown is written as the list's price, which a column that must not be null needs, and marked
    /// by `x_UnpricedGpuSeconds`.
    effective: Option<PicoDollars>,
    details: &'static str,
}

/// Millionths of millionths of one.
const ONE: i128 = 1_000_000_000_000;
/// What a written token weighs beside a read one in the fair queue's cost; a cached one weighs nothing there, and one
/// hundredth here, so that its row is not free.
const READ: u64 = 100;
const CACHED: u64 = 1;
const WRITTEN: u64 = 700;

impl Charges<'_> {
    fn add(&self, export: &mut FocusExport) {
        let prices = self.row.owner.model.as_ref().and_then(|model| self.issuer.prices.get(model));
        let served = &self.row.served;
        let has_tokens = served.input > 0 || served.cached_input > 0 || served.output > 0;
        let by_tokens = self.row.owner.tenant.is_some() && prices.is_some() && has_tokens;
        for (use_, spent) in self.row.spent.iter() {
            if !(by_tokens && matches!(use_, GpuUse::Useful | GpuUse::Missed)) {
                export.withheld = export.withheld.saturating_add(spent.unpriced);
                export.rows.extend(self.gpu_time(use_, spent));
            }
        }
        if let Some(prices) = prices.filter(|_| by_tokens) {
            self.tokens(prices, &mut export.rows);
        }
        if !self.row.host.is_zero() {
            export.rows.push(self.host());
        }
    }

    fn tokens(&self, prices: &ListPrices, rows: &mut Vec<FocusRow>) {
        let served = &self.row.served;
        let kinds = [
            (
                "input",
                "Input tokens",
                served.input,
                prices.input,
                READ,
                r#"{"x_TokenDirection":"Input","x_TokenCacheAction":"Uncached"}"#,
            ),
            (
                "cached-input",
                "Cached input tokens",
                served.cached_input,
                prices.cached_input,
                CACHED,
                r#"{"x_TokenDirection":"Input","x_TokenCacheAction":"Read"}"#,
            ),
            (
                "output",
                "Output tokens",
                served.output,
                prices.output,
                WRITTEN,
                r#"{"x_TokenDirection":"Output"}"#,
            ),
        ];
        let mut behind = self.row.spent.on(GpuUse::Useful);
        behind += self.row.spent.on(GpuUse::Missed);
        let is_unknown = !behind.unpriced.is_zero() && behind.unpriced == behind.time;
        let weights = kinds.map(|(_, _, tokens, _, weight, _)| tokens.saturating_mul(weight));
        let Some(parts) = split(behind.money.get(), &weights) else { return };
        let model = self.row.owner.model.as_deref().unwrap_or_default();
        for ((name, meter, tokens, price, _, details), effective) in kinds.into_iter().zip(parts) {
            if tokens == 0 {
                continue;
            }
            let row = self.charge(Charge {
                sku: format!("{model}/{name}"),
                meter,
                description: format!("{meter} of {model}"),
                consumed: PicoDollars::new(i128::from(tokens) * ONE),
                consumed_unit: "Tokens",
                priced: PicoDollars::new(i128::from(tokens) * (ONE / 1_000_000)),
                pricing_unit: "1000000 Tokens",
                unit_price: PicoDollars::new(i128::from(price) * 1_000_000),
                effective: (!is_unknown).then_some(PicoDollars::new(effective)),
                details,
            });
            rows.push(row);
        }
    }

    /// What has a price of the time; nothing if none has.
    fn gpu_time(&self, use_: GpuUse, spent: Spent) -> Option<FocusRow> {
        let time = i128::from(spent.time.saturating_sub(spent.unpriced).get());
        let unit_price = spent.money.get().checked_mul(1_000_000)?.checked_div(time)?;
        let (id, _) = resource(&self.row.owner);
        let quantity = PicoDollars::new(time * (ONE / 1_000_000));
        let mut row = self.charge(Charge {
            sku: format!("gpu-time/{use_}"),
            meter: "GPU time",
            description: format!("GPU time of {id}: {use_}"),
            consumed: quantity,
            consumed_unit: "GPU-Seconds",
            priced: quantity,
            pricing_unit: "GPU-Seconds",
            unit_price: PicoDollars::new(unit_price),
            effective: Some(spent.money),
            details: r#"{"GpuCount":1}"#,
        });
        row.set_own(X::Use, use_.name());
        row.set_own(X::GpuSeconds, quantity.times(self.sign).to_string());
        Some(row)
    }

    fn host(&self) -> FocusRow {
        let hours = i128::from(self.row.length.get()) * (ONE / 1_000_000);
        let pool = self.row.owner.pool.as_deref().unwrap_or_default();
        let per_second = self.row.host.get().saturating_mul(ONE).checked_div(hours).unwrap_or(0);
        self.charge(Charge {
            sku: "host-time".to_owned(),
            meter: "Host time",
            description: format!("Processors and memory of the nodes of {pool}"),
            consumed: PicoDollars::new(hours),
            consumed_unit: "Pool-Seconds",
            priced: PicoDollars::new(hours),
            pricing_unit: "Pool-Seconds",
            unit_price: PicoDollars::new(per_second),
            effective: Some(self.row.host),
            details: "",
        })
    }

    fn charge(&self, charge: Charge) -> FocusRow {
        let mut row = FocusRow::default();
        self.account(&mut row);
        self.times(&mut row);
        self.subject(&mut row);
        let listed = product(charge.unit_price, charge.priced).unwrap_or_default();
        let effective = charge.effective.unwrap_or(listed);
        let billed = match self.issuer.policy {
            ChargebackPolicy::PriceList => listed,
            ChargebackPolicy::AtCost => effective,
            ChargebackPolicy::Showback => PicoDollars::ZERO,
        };
        let amount = |value: PicoDollars| value.times(self.sign).to_string();
        row.set(C::ChargeDescription, charge.description);
        row.set(C::ConsumedQuantity, amount(charge.consumed));
        row.set(C::ConsumedUnit, charge.consumed_unit);
        row.set(C::PricingQuantity, amount(charge.priced));
        row.set(C::PricingUnit, charge.pricing_unit);
        row.set(C::PricingCategory, "Standard");
        for column in [
            C::ListUnitPrice,
            C::ContractedUnitPrice,
            C::PricingCurrencyListUnitPrice,
            C::PricingCurrencyContractedUnitPrice,
        ] {
            row.set(column, charge.unit_price.to_string());
        }
        row.set(C::ListCost, amount(listed));
        row.set(C::ContractedCost, amount(listed));
        row.set(C::EffectiveCost, amount(effective));
        row.set(C::PricingCurrencyEffectiveCost, amount(effective));
        row.set(C::BilledCost, amount(billed));
        row.set(C::SkuPriceId, format!("{}@{}", charge.sku, charge.unit_price));
        row.set(C::SkuId, charge.sku);
        row.set(C::SkuMeter, charge.meter);
        row.set(C::SkuPriceDetails, charge.details);
        row
    }

    fn account(&self, row: &mut FocusRow) {
        let issuer = self.issuer;
        row.set(C::BillingAccountId, &issuer.billing_account_id);
        row.set(C::BillingAccountName, issuer.billing_account_name.clone().unwrap_or_default());
        row.set(C::BillingAccountType, "Cluster");
        row.set(C::BillingCurrency, "USD");
        row.set(C::PricingCurrency, "USD");
        row.set(C::InvoiceIssuerName, &issuer.platform);
        row.set(C::ServiceProviderName, &issuer.platform);
        row.set(C::HostProviderName, issuer.host_provider.clone().unwrap_or_default());
        if let Some((id, name)) = &issuer.region {
            row.set(C::RegionId, id);
            row.set(C::RegionName, name);
        }
    }

    fn times(&self, row: &mut FocusRow) {
        row.set(C::BillingPeriodStart, time_text(self.period.start()));
        row.set(C::BillingPeriodEnd, time_text(self.period.end()));
        row.set(C::ChargePeriodStart, time_text(self.row.start));
        row.set(C::ChargePeriodEnd, time_text(self.row.end()));
        row.set(C::ChargeCategory, "Usage");
        row.set(C::ChargeFrequency, "Usage-Based");
        if self.correction {
            row.set(C::ChargeClass, "Correction");
        }
    }

    fn subject(&self, row: &mut FocusRow) {
        let owner = &self.row.owner;
        let (id, kind) = resource(owner);
        row.set(C::ResourceId, id);
        row.set(C::ResourceType, kind);
        let (category, sub, name) = match kind {
            "Model" => ("AI and Machine Learning", "Generative AI", "Inference"),
            "Training Run" => ("AI and Machine Learning", "Machine Learning", "Training"),
            _ => ("Compute", "Other (Compute)", "GPU Capacity"),
        };
        row.set(C::ServiceCategory, category);
        row.set(C::ServiceSubcategory, sub);
        row.set(C::ServiceName, name);
        row.set(C::AllocatedMethodId, ALLOCATION_METHOD);
        row.set(C::AllocatedResourceId, id);
        if let Some(tenant) = &owner.tenant {
            row.set(C::SubAccountId, &**tenant);
            row.set(C::SubAccountName, tenant.rsplit('/').next().unwrap_or(tenant));
            row.set(C::SubAccountType, "Team");
        }
        let own = [
            (X::PrincipalId, &owner.tenant),
            (X::CredentialId, &owner.key),
            (X::Model, &owner.model),
            (X::Variant, &owner.variant),
            (X::Run, &owner.run),
            (X::Pool, &owner.pool),
        ];
        for (column, value) in own {
            row.set_own(column, value.as_deref().unwrap_or_default());
        }
        if self.row.served.requests > 0 {
            row.set_own(
                X::Requests,
                (self.sign * i128::from(self.row.served.requests)).to_string(),
            );
            row.set_own(
                X::MissedRequests,
                (self.sign * i128::from(self.row.served.missed)).to_string(),
            );
        }
        let unpriced = self.row.spent.paid().unpriced;
        if !unpriced.is_zero() {
            let seconds = PicoDollars::new(i128::from(unpriced.get()) * (ONE / 1_000_000));
            row.set_own(X::UnpricedGpuSeconds, seconds.to_string());
        }
    }
}

/// What a row is of: its id and its type.
fn resource(owner: &RowOwner) -> (&str, &'static str) {
    match (&owner.model, &owner.run, &owner.pool) {
        (Some(model), ..) => (model, "Model"),
        (None, Some(run), _) => (run, "Training Run"),
        (None, None, Some(pool)) => (pool, "Pool"),
        (None, None, None) => ("cluster", "Cluster"),
    }
}
