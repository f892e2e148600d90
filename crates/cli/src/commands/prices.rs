//! `flyball prices`: what accelerators cost, by provider and way of buying, with the day.

use clap::Args;
use flyball_perf::catalog::{Catalog, PriceKind};
use schemars::JsonSchema;
use serde::Serialize;

use crate::catalog::{self, CatalogArgs, PriceView, purchases};
use crate::output::document::{Block, Column, Document, Row, Table};
use crate::output::{Answer, Detail, Exit, Failure, Printer, plural};

/// Show prices of accelerators, cheapest first
///
/// From the built-in catalog and your own files, without a network. Each price shows its date and
/// its confidence. Exit status 1 if no price matches.
#[derive(Debug, Args)]
pub(crate) struct PricesArgs {
    /// Only this GPU, by id or alias
    #[arg(long = "gpu", aliases = ["accelerator", "accelerators"], value_name = "NAME")]
    #[arg(env = "FLYBALL_PRICES_ACCELERATOR", hide_env_values = true)]
    accelerator: Option<String>,

    /// Only this provider
    #[arg(long, value_name = "NAME", env = "FLYBALL_PRICES_PROVIDER", hide_env_values = true)]
    provider: Option<String>,

    /// Only this purchase option
    #[arg(long, value_name = "HOW", env = "FLYBALL_PRICES_PURCHASE", hide_env_values = true)]
    #[arg(value_parser = purchases())]
    purchase: Option<PriceKind>,

    #[command(flatten)]
    catalog: CatalogArgs,
}

/// Prices, cheapest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PriceList {
    prices: Vec<PriceView>,
}

pub(crate) fn run(args: &PricesArgs, printer: &Printer) -> Result<Exit, Failure> {
    let catalog = args.catalog.load()?;
    Ok(printer.answer(&list(&catalog, args)?))
}

fn list(catalog: &Catalog, args: &PricesArgs) -> Result<PriceList, Failure> {
    let part = match &args.accelerator {
        Some(name) => {
            Some(catalog::accelerator(catalog, name, "flyball prices --accelerator")?.id.clone())
        }
        None => None,
    };
    let provider = match &args.provider {
        Some(name) => Some(catalog::provider(catalog, name)?),
        None => None,
    };
    let mut found: Vec<_> = catalog
        .prices
        .iter()
        .filter(|offer| part.as_ref().is_none_or(|id| offer.accelerator == *id))
        .filter(|offer| provider.is_none_or(|name| offer.provider.eq_ignore_ascii_case(name)))
        .filter(|offer| args.purchase.is_none_or(|purchase| offer.purchase == purchase))
        .collect();
    // A stable sort: equal prices stay in the order of the catalog.
    found.sort_by_key(|offer| offer.price.amount().micros());
    Ok(PriceList { prices: found.into_iter().map(PriceView::from).collect() })
}

impl Answer for PriceList {
    const KIND: &'static str = "PriceList";

    fn view(&self, _: Detail) -> Document {
        let mut document = Document::new();
        if self.prices.is_empty() {
            let words = "no price fits; to add yours: flyball explain FLY-602";
            document.push(Block::Line(words.to_owned()));
            return document;
        }
        let mut table = Table::new(vec![
            Column::left("ACCELERATOR"),
            Column::left("PROVIDER"),
            Column::left("SKU"),
            Column::left("PURCHASE"),
            Column::right("$/GPU-H"),
            Column::left("AS-OF"),
            Column::left("TRUST"),
        ]);
        for price in &self.prices {
            table.rows.push(Row::new([
                price.accelerator.clone(),
                price.provider.clone(),
                price.sku.clone(),
                price.purchase.to_owned(),
                format!("{:.4}", price.usd_per_gpu_hour),
                price.as_of.clone(),
                price.confidence.to_owned(),
            ]));
        }
        document.push(Block::Table(table));
        document.push(Block::Gap);
        let words = format!("{}, {}", plural(self.prices.len(), "price"), days(&self.prices));
        document.push(Block::Line(words));
        document
    }

    fn exit(&self) -> Exit {
        if self.prices.is_empty() { Exit::No } else { Exit::Yes }
    }
}

/// `of 2026-08-22`, or from the oldest to the newest.
pub(super) fn days<'a>(prices: impl IntoIterator<Item = &'a PriceView>) -> String {
    let mut days: Vec<&str> = prices.into_iter().map(|price| price.as_of.as_str()).collect();
    days.sort_unstable();
    match (days.first(), days.last()) {
        (Some(oldest), Some(newest)) if oldest != newest => format!("of {oldest} to {newest}"),
        (Some(day), _) => format!("of {day}"),
        _ => "without prices".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{answer_json, conforms};

    #[test]
    fn json_has_the_shape_of_its_schema() {
        let catalog = Catalog::builtin();
        let all = catalog.prices.iter().map(PriceView::from).collect();
        conforms("prices", &answer_json(&PriceList { prices: all }));
        conforms("prices", &answer_json(&PriceList { prices: Vec::new() }));
    }
}
