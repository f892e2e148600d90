//! Commitments: chosen on the first `ServeGen` week, paid in the second.

use crate::worlds::{Source, WEEK};
use flyball_core::units::Micros;
use flyball_cost::commitments::{
    Commitment, CommitmentAdvice, PastNeed, PastNeeds, above_ppm, advise,
};
use flyball_cost::money::PicoDollars;
use flyball_perf::catalog::{Catalog, Offer, PriceKind};

/// GPUs that a model needs on average in the first week. The second is never looked at before it is judged.
const MEAN_GPUS: f64 = 160.0;

/// The models together, which is how commitments are bought: for an accelerator and not for a model.
const FLEET: &str = "all three";

/// One choice and how it fared.
pub(super) struct Judged {
    model: String,
    list: String,
    advice: CommitmentAdvice,
    cost: PicoDollars,
    best: PicoDollars,
    on_demand: PicoDollars,
    pub(super) regret_pct: f64,
}

/// A price list with a reserved price: provider and accelerator.
struct List {
    name: String,
    on_demand: PicoDollars,
    reserved: PicoDollars,
}

pub(super) fn all(sources: &[Source]) -> Vec<Judged> {
    let mut all = Vec::new();
    for list in lists(&Catalog::builtin()) {
        let models: Vec<(String, Vec<u32>)> =
            sources.iter().map(|source| (source.name.clone(), needs(source))).collect();
        let longest = models.iter().map(|(_, gpus)| gpus.len()).max().unwrap_or(0);
        let at = |index: usize| models.iter().filter_map(|(_, gpus)| gpus.get(index)).sum();
        let together: Vec<u32> = (0..longest).map(at).collect();
        let named = models.into_iter().chain([(FLEET.to_owned(), together)]);
        all.extend(named.filter_map(|(model, gpus)| judged(model, &gpus, &list)));
    }
    all
}

/// Every reserved price in the catalogue with the on-demand price of the same machine.
fn lists(catalog: &Catalog) -> Vec<List> {
    let picos = |offer: &Offer| PicoDollars::from_money(offer.price.amount());
    let reserved = catalog
        .prices
        .iter()
        .filter(|offer| matches!(offer.purchase, PriceKind::Reserved1y | PriceKind::Reserved3y));
    let list = |offer: &Offer| {
        let same = |other: &&Offer| {
            other.purchase == PriceKind::OnDemand
                && (&other.accelerator, &other.provider, &other.sku)
                    == (&offer.accelerator, &offer.provider, &offer.sku)
        };
        let on_demand = catalog.prices.iter().find(same)?;
        let name = format!("{} {}, {}", offer.provider, offer.accelerator, offer.purchase);
        Some(List { name, on_demand: picos(on_demand), reserved: picos(offer) })
    };
    reserved.filter_map(list).collect()
}

/// GPUs in each window: what the first week needed on average is a given number of them. A gap in the recording needs
/// what the window before it did.
fn needs(source: &Source) -> Vec<u32> {
    let rates = &source.rates;
    let window = rates.window.get();
    let week = (WEEK.get() / window) as usize;
    let known: Vec<f64> = (0..week.min(rates.windows()))
        .filter(|at| !rates.is_gap(*at))
        .map(|at| rates.total(at))
        .collect();
    let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
    let per_gpu = mean / MEAN_GPUS;
    let mut last = 0;
    let gpus = |at: usize| {
        if !rates.is_gap(at) {
            last = (rates.total(at) / per_gpu).ceil() as u32;
        }
        last
    };
    (0..rates.windows()).map(gpus).collect()
}

fn judged(model: String, gpus: &[u32], list: &List) -> Option<Judged> {
    let week = |part: &[u32]| PastNeeds {
        // Windows of ten minutes.
        step: Micros::from_minutes(10),
        needs: vec![PastNeed {
            accelerator: list.name.clone(),
            on_demand: list.on_demand,
            reserved: Some(list.reserved),
            plan: None,
            gpus: part.to_vec(),
        }],
    };
    let half = gpus.len() / 2;
    let (first, second) = (week(&gpus[..half]), week(&gpus[half..]));
    let advice = advise(&first)?;
    let cost = second.cost(&advice.commitment);
    let best = second.cost(&second.best()?);
    let on_demand = second.cost(&Commitment::OnDemand);
    let regret_pct = above_ppm(cost, best)? as f64 / 1e4;
    Some(Judged { model, list: list.name.clone(), advice, cost, best, on_demand, regret_pct })
}

impl Judged {
    pub(super) fn is_fleet(&self) -> bool {
        self.model == FLEET
    }
}

pub(super) fn text(all: &[Judged]) -> String {
    let below = all.iter().filter(|one| one.cost <= one.on_demand).count();
    let mut text = format!(
        "Two recorded weeks of three models and of all together, in windows of ten minutes, as GPUs (160 a model on average of \
         the first week), at every reserved price of the catalogue whose on-demand price is there too. The \
         choice is exact for the first week and knows nothing of the second, in which it is paid and beside the best for it. \
         {below} of {} cost no more than all on demand. The figure is of all three models together, because that is how a \
         commitment is bought; a model alone grew by up to 30 % from one week to the other, which the first week does not say, and \
         regrets more.\n\n\
         | Traffic | Price list | Reserved GPUs | Second week, USD | Above the best, % | Below on-demand, % | \
         Regret known beforehand, from half to half, % | Loss if demand halves, USD a week |\n|---|---|---|---|---|---|---|---|\n",
        all.len()
    );
    for one in all {
        let gpus = match &one.advice.commitment {
            Commitment::Reserved(gpus) => gpus.iter().sum::<u32>().to_string(),
            Commitment::OnDemand | Commitment::SavingsPlan(_) => "0".to_owned(),
        };
        let saved = 100.0 * (1.0 - one.cost.as_dollars() / one.on_demand.as_dollars());
        let predicted = one
            .advice
            .regret_ppm
            .map_or("unknown".to_owned(), |ppm| format!("{:.2}", ppm as f64 / 1e4));
        text.push_str(&format!(
            "| {} | {} | {gpus} | {:.0} (best {:.0}) | {:.2} | {saved:.1} | {predicted} | {:.0} |\n",
            one.model, one.list, one.cost, one.best, one.regret_pct, one.advice.loss_if_halved
        ));
    }
    text
}
