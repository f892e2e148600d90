//! One `[[price]]` of the user's file.

use super::problems::Reader;
use super::toml_table::TomlTable;
use super::{Catalog, Confidence, Offer};
use flyball_core::units::Gpus;

/// The keys of `[[price]]`.
pub(super) const PRICE_KEYS: &[&str] = &[
    "accelerator",
    "provider",
    "purchase",
    "usd_per_gpu_hour",
    "as_of",
    "sku",
    "gpus_per_sku",
    "region",
    "note",
    "source",
];

/// What a price is for when it names no sku.
pub(super) const ANY: &str = "any";

/// Reads it; the accelerator must be in the catalogue by now.
pub(super) fn price(
    reader: &mut Reader<'_>,
    table: &TomlTable<'_, '_>,
    catalog: &Catalog,
) -> Option<Offer> {
    let name = table.required(reader, "accelerator", "\"h100\"");
    let accelerator = name.and_then(|name| match catalog.accelerator(&name) {
        Ok(part) => Some(part.id.clone()),
        Err(unknown) => {
            let mend = match unknown.near.first() {
                Some(near) => format!("write {near}, or add it as [[accelerator]]"),
                None => "add it as [[accelerator]]".to_owned(),
            };
            reader.wrong(unknown.to_string(), mend);
            None
        }
    });
    let provider = table.required(reader, "provider", "\"our-cloud\"");
    let purchase = table.required(reader, "purchase", "\"on-demand\"");
    let purchase = purchase.and_then(|text| reader.purchase(&text));
    let price = table.required(reader, "usd_per_gpu_hour", "2.10");
    let price = price.and_then(|text| reader.usd("usd_per_gpu_hour", &text));
    let as_of = table.required(reader, "as_of", "\"2026-08-22\"");
    let as_of = as_of.and_then(|text| reader.date(&text));
    let gpus_per_sku = match table.has("gpus_per_sku") {
        true => table.read(reader, "gpus_per_sku", Reader::whole),
        false => Some(1),
    };
    let file = reader.file();
    let mut text = |key| table.text(reader, key);
    let (sku, region, note, source) = (text("sku"), text("region"), text("note"), text("source"));
    Some(Offer {
        accelerator: accelerator?,
        provider: provider?,
        sku: sku.unwrap_or_else(|| ANY.to_owned()),
        gpus_per_sku: Gpus::new(gpus_per_sku?),
        region: region.unwrap_or_default(),
        purchase: purchase?,
        price: price?,
        low: None,
        high: None,
        as_of: as_of?,
        source: source.unwrap_or_else(|| file.to_owned()),
        // Nobody knows a contract better than who signed it.
        confidence: Confidence::High,
        note: note.unwrap_or_default(),
    })
}
