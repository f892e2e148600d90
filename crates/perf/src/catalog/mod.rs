//! Which accelerators there are and what they cost: built in, and from the user's own files.
//!
//! The built-in files stand in `catalog/` at the root of the repository and are part of the
//! program. [`Catalog::with_file`] adds a private part or a contract price from a TOML file.
//! Whatever is wrong with a file is told at once, with the line and what to write instead.
//!
//! Nothing here opens a file or knows what day it is: texts come in. Start at [`Catalog`], then
//! `accelerators.rs` and `prices.rs` for what is in a row, and `user.rs` for the user's file.

mod accelerators;
mod date;
mod kernels;
mod measured;
mod prices;
mod problems;
mod providers;
mod table;
#[cfg(test)]
mod tests;
mod toml_table;
mod user;
mod user_price;

pub use date::Date;
pub use kernels::kernels_measured;
pub use prices::{Confidence, Offer, PriceKind};
pub use problems::{CatalogError, CatalogProblem};
pub use providers::{Provider, ProviderKind};

use crate::hardware::Accelerator;
use accelerators::{folded, names};
use flyball_core::ids::AcceleratorId;
use thiserror::Error;

const ACCELERATORS: &str = include_str!("../../../../catalog/accelerators.csv");
const MEASURED: &str = include_str!("../../../../catalog/measured.csv");
const PRICES: &str = include_str!("../../../../catalog/prices.csv");
const PROVIDERS: &str = include_str!("../../../../catalog/providers.csv");

/// How many near misses a person can take in.
const NEAR: usize = 4;
/// Below this two names have so little in common that a guess would only distract.
const LIKENESS: f64 = 0.8;

/// All parts and all prices.
#[derive(Clone, Debug, PartialEq)]
pub struct Catalog {
    /// In the order of the file; a user's parts come last. Ids and aliases are unique.
    pub accelerators: Vec<Accelerator>,
    /// Every price is of a part above.
    pub prices: Vec<Offer>,
    /// Who sells them. A user's own seller is not among them.
    pub providers: Vec<Provider>,
}

/// No accelerator has this name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown accelerator `{name}`")]
pub struct UnknownAccelerator {
    pub name: String,
    /// Ids that may have been meant, likeliest first; often empty.
    pub near: Vec<AcceleratorId>,
}

impl Catalog {
    /// The built-in catalogue. Reads about 30 kB of text, so keep the result.
    pub fn builtin() -> Self {
        Self::parse(ACCELERATORS, MEASURED, PRICES).expect("tests read the built-in files")
    }

    /// Reads the three files of a catalogue.
    fn parse(accelerators: &str, measured: &str, prices: &str) -> Result<Self, CatalogError> {
        let mut parts = accelerators::read("accelerators.csv", accelerators)?;
        let known = |id: &AcceleratorId| parts.iter().any(|part| part.id == *id);
        let measured = measured::read("measured.csv", measured, known);
        let prices = prices::read("prices.csv", prices, known);
        let (measured, prices) = match (measured, prices) {
            (Ok(measured), Ok(prices)) => (measured, prices),
            (measured, prices) => {
                let found = [measured.err(), prices.err()].into_iter().flatten();
                return Err(CatalogError { problems: found.flat_map(|e| e.problems).collect() });
            }
        };
        for part in &mut parts {
            part.kernels = kernels::measured(part);
        }
        for entry in measured {
            if let Some(part) = parts.iter_mut().find(|part| part.id == entry.id) {
                part.measured = Some(entry.measured);
                part.source = format!("{}; measured: {}", part.source, entry.source);
            }
        }
        let providers = providers::read("providers.csv", PROVIDERS)?;
        Ok(Self { accelerators: parts, prices, providers })
    }

    /// Adds a user's file, whose text is TOML. `name` is what problems call the file.
    ///
    /// A price replaces the ones of the same accelerator, provider and purchase: that of its
    /// `sku`, or all of them if it names none. A part that exists is replaced only if the file
    /// says `replace = true`.
    pub fn with_file(self, text: &str, name: &str) -> Result<Self, CatalogError> {
        user::add(self, text, name)
    }

    /// The part of this id or alias, however it is typed: `H100`, `NVIDIA-H100-80GB-HBM3`.
    pub fn accelerator(&self, name: &str) -> Result<&Accelerator, UnknownAccelerator> {
        let folded_name = folded(name);
        self.accelerators
            .iter()
            .find(|part| names(part).any(|name| folded(name) == folded_name))
            .ok_or_else(|| UnknownAccelerator { name: name.to_owned(), near: self.near(name) })
    }

    /// All prices of a part, in the order of the file.
    pub fn prices_of<'a>(&'a self, id: &AcceleratorId) -> impl Iterator<Item = &'a Offer> {
        self.prices.iter().filter(move |offer| offer.accelerator == *id)
    }

    /// The lowest price of a part, from one provider or from any that is not a marketplace: what those ask is for
    /// hosts of others, as they come, and nobody plans a service on it unless they say so.
    ///
    /// A price of low confidence counts only if there is no other: a list that contradicts itself
    /// is often far too cheap.
    pub fn cheapest(
        &self,
        id: &AcceleratorId,
        provider: Option<&str>,
        purchase: PriceKind,
    ) -> Option<&Offer> {
        self.sold(id, provider, purchase)
            // All prices are in US dollars, so the bare amounts compare.
            .min_by_key(|offer| {
                (offer.confidence == Confidence::Low, offer.price.amount().micros())
            })
    }

    /// The lowest price for each number of accelerators that must be connected: cheapest first, and each sells more
    /// than the one before it. Whoever names a provider knows how many it connects.
    pub fn offers(
        &self,
        id: &AcceleratorId,
        provider: Option<&str>,
        purchase: PriceKind,
    ) -> Vec<(u32, &Offer)> {
        let most = |offer: &Offer| match provider {
            Some(_) => u32::MAX,
            None => self.provider(&offer.provider).map_or(u32::MAX, Provider::most_connected),
        };
        let mut all: Vec<(u32, &Offer)> =
            self.sold(id, provider, purchase).map(|offer| (most(offer), offer)).collect();
        all.sort_by_key(|(_, offer)| {
            (offer.confidence == Confidence::Low, offer.price.amount().micros())
        });
        let mut reached = 0;
        all.retain(|(most, _)| {
            let more = *most > reached;
            reached = reached.max(*most);
            more
        });
        all
    }

    fn sold<'a>(
        &'a self,
        id: &AcceleratorId,
        provider: Option<&str>,
        purchase: PriceKind,
    ) -> impl Iterator<Item = &'a Offer> {
        let marketplace = |offer: &Offer| {
            self.provider(&offer.provider).is_some_and(|one| one.kind == ProviderKind::Marketplace)
        };
        self.prices_of(id).filter(move |offer| offer.purchase == purchase).filter(move |offer| {
            match provider {
                Some(name) => offer.provider.eq_ignore_ascii_case(name),
                None => !marketplace(offer),
            }
        })
    }

    fn provider(&self, name: &str) -> Option<&Provider> {
        self.providers.iter().find(|one| one.name.eq_ignore_ascii_case(name))
    }

    /// Ids that begin like the name first (`a100` may be one of four), then similar ones.
    fn near(&self, name: &str) -> Vec<AcceleratorId> {
        let folded_name = folded(name);
        let likeness = |part: &Accelerator| {
            let like = |name: String| match name.starts_with(&folded_name) {
                // The less there is to add, the likelier.
                true => 1.0 + 1.0 / name.len() as f64,
                false => strsim::jaro_winkler(&name, &folded_name),
            };
            names(part).map(folded).map(like).fold(0.0, f64::max)
        };
        let mut found: Vec<(f64, &Accelerator)> = self
            .accelerators
            .iter()
            .map(|part| (likeness(part), part))
            .filter(|(likeness, _)| *likeness > LIKENESS && !folded_name.is_empty())
            .collect();
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        found.into_iter().take(NEAR).map(|(_, part)| part.id.clone()).collect()
    }
}
