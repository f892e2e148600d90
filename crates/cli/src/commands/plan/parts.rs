//! Which accelerators are looked at, and at which price.

use clap::Args;
use flyball_perf::catalog::{Catalog, PriceKind};
use flyball_perf::hardware::Accelerator;
use flyball_perf::search::serve::OfferedPart;
use schemars::JsonSchema;
use serde::Serialize;

use crate::catalog::{self, CatalogArgs, purchases};
use crate::output::{Exit, Failure};

#[derive(Debug, Args)]
#[command(next_help_heading = "Accelerators and prices")]
pub(crate) struct PartsArgs {
    /// GPUs to consider; all with a price if not set
    #[arg(long = "gpu", aliases = ["accelerators", "accelerator"], value_name = "NAME")]
    #[arg(value_delimiter = ',', env = "FLYBALL_PLAN_ACCELERATORS", hide_env_values = true)]
    accelerators: Vec<String>,

    /// Only prices of this provider; marketplaces count only if they are named
    #[arg(long, value_name = "NAME", env = "FLYBALL_PLAN_PROVIDER", hide_env_values = true)]
    provider: Option<String>,

    /// How accelerators are bought
    #[arg(long, value_name = "HOW", env = "FLYBALL_PLAN_PURCHASE", hide_env_values = true)]
    #[arg(default_value = "on-demand", value_parser = purchases())]
    purchase: PriceKind,

    /// Short for --purchase spot; for a service also one replica more, so that one can be lost
    #[arg(long, env = "FLYBALL_PLAN_SPOT", hide_env_values = true)]
    #[arg(value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) spot: bool,

    #[command(flatten)]
    pub(crate) catalog: CatalogArgs,
}

/// The price used in a plan.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PaidView {
    provider: String,
    sku: String,
    purchase: &'static str,
    usd_per_gpu_hour: f64,
    /// Date of the price.
    as_of: String,
}

impl PaidView {
    /// What so many connected ones cost.
    pub(crate) fn of(part: &OfferedPart<'_>, connected: u32) -> Option<PaidView> {
        part.offer(connected).map(|offer| PaidView {
            provider: offer.provider.clone(),
            sku: offer.sku.clone(),
            purchase: offer.purchase.name(),
            usd_per_gpu_hour: offer.price.amount().micros() as f64 / 1e6,
            as_of: offer.as_of.as_str().to_owned(),
        })
    }

    /// `aws p5.48xlarge`, or the provider alone where any order has the price.
    pub(crate) fn from(&self) -> String {
        match self.sku.as_str() {
            "any" => self.provider.clone(),
            sku => format!("{} {sku}", self.provider),
        }
    }
}

impl PartsArgs {
    pub(crate) fn purchase(&self) -> PriceKind {
        if self.spot { PriceKind::Spot } else { self.purchase }
    }

    /// The parts that were named, or all of the usual makers that have a price.
    pub(crate) fn choose<'a>(
        &self,
        catalog: &'a Catalog,
        again: &str,
    ) -> Result<Vec<OfferedPart<'a>>, Failure> {
        let provider = match &self.provider {
            Some(name) => Some(catalog::provider(catalog, name)?),
            None => None,
        };
        let priced = |accelerator: &'a Accelerator| {
            OfferedPart::priced(catalog, accelerator, provider, self.purchase())
        };
        if self.accelerators.is_empty() {
            // Engines and kernels of the other makers are not modelled, and parts before 2020 have no
            // BF16; who names one gets it. A private part says neither maker nor year.
            let usual = |part: &&'a Accelerator| {
                ["NVIDIA", "AMD", ""].contains(&part.vendor.as_str())
                    && (part.year == 0 || part.year >= 2020)
            };
            return Ok(catalog
                .accelerators
                .iter()
                .filter(usual)
                .map(priced)
                .filter(|part| !part.offers.is_empty())
                .collect());
        }
        let mut parts: Vec<OfferedPart<'a>> = Vec::new();
        for name in &self.accelerators {
            let part = priced(catalog::accelerator(catalog, name, again)?);
            if parts.iter().all(|known| known.accelerator.id != part.accelerator.id) {
                parts.push(part);
            }
        }
        Ok(parts)
    }

    /// No part has such a price.
    pub(crate) fn nothing_to_buy(&self) -> Failure {
        let from = self.provider.as_ref().map_or(String::new(), |name| format!(" from {name}"));
        let what = format!("no accelerator has a price{from} for {}", self.purchase());
        Failure::new(Exit::Unknown, what)
            .hint("flyball prices shows what there is; --catalog FILE adds yours")
    }
}

/// Said of a first choice that rests on the datasheet alone.
pub(crate) const UNMEASURED: &str =
    "Kernels were not measured on this accelerator: its speed is a rough estimate.";

/// At most two choices of each kind, so that near copies do not fill the table.
pub(crate) fn two_of_each<'a, C: 'a, K: PartialEq>(
    ranked: impl Iterator<Item = &'a C>,
    kind: impl Fn(&C) -> K,
) -> impl Iterator<Item = &'a C> {
    let mut seen: Vec<K> = Vec::new();
    ranked.filter(move |choice| {
        let kind = kind(choice);
        let times = seen.iter().filter(|known| **known == kind).count();
        seen.push(kind);
        times < 2
    })
}

/// `prices of 2026-08-22, on demand` under a table.
pub(crate) fn price_note(prices: &[&PaidView], purchase: PriceKind) -> String {
    let mut days: Vec<&str> = prices.iter().map(|price| price.as_of.as_str()).collect();
    days.sort_unstable();
    days.dedup();
    let days = match days.as_slice() {
        [] => "unknown".to_owned(),
        [day] => (*day).to_owned(),
        [first, .., last] => format!("{first} to {last}"),
    };
    format!("prices of {days}, {purchase}, the cheapest known; flyball prices shows all")
}
