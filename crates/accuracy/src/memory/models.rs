//! From a name and a precision in the files to a shape.

use anyhow::{Context, Result};
use flyball_perf::architecture::{Architecture, Stored};
use flyball_perf::models;
use flyball_perf::precision::Dtype;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Names in the validation files, and the shapes they mean.
pub(super) struct Names(BTreeMap<String, Architecture>);

#[derive(Deserialize)]
struct Row {
    name: String,
    catalog_model: String,
}

impl Names {
    /// Reads models.csv; a name without a shape stays unknown.
    pub(super) fn read(text: &str) -> Result<Self> {
        let mut known = BTreeMap::new();
        for row in csv::Reader::from_reader(text.as_bytes()).deserialize() {
            let row: Row = row.context("a row of models.csv")?;
            if row.catalog_model.is_empty() {
                continue;
            }
            let config = models::config(&row.catalog_model)
                .with_context(|| format!("{} is not in catalog/models", row.catalog_model))?;
            known.insert(row.name, Architecture::from_config(&config)?);
        }
        Ok(Self(known))
    }

    /// The shape with its weights in this precision, if the name has one.
    pub(super) fn model(&self, name: &str, precision: &str) -> Option<Architecture> {
        let mut model = self.0.get(name)?.clone();
        model.stored = stored(name, precision, &model.stored);
        Some(model)
    }
}

fn stored(name: &str, precision: &str, own: &Stored) -> Stored {
    let four_bits = own.narrowest().bytes() < 1.0;
    if name.contains("Scout-17B-16E-Instruct-FP8-dynamic") {
        // Attention, router, encoder and tables are on the recipe's list of what is left alone.
        let narrow = Stored::quantised(Dtype::Fp8, true);
        return Stored { attention: Dtype::Bf16, ..narrow };
    }
    match precision {
        // A checkpoint that exists in four bits only is what was served, whatever the row calls it.
        text if four_bits && !text.contains("nvfp4") => *own,
        text if text.contains("fp4") => Stored::quantised(Dtype::Nvfp4, true),
        text if text.contains("int4") => Stored::quantised(Dtype::Int4, false),
        // Files that say FP16 and "usually FP8" are taken as FP8.
        text if text.contains("fp8") || text.contains("per file") => {
            Stored::quantised(Dtype::Fp8, true)
        }
        _ => Stored::uniform(Dtype::Bf16),
    }
}

/// What the cache is kept in, at its narrowest: engines halve it along with the weights.
pub(super) fn narrowest_cache(precision: &str) -> Dtype {
    let wide = precision.contains("16") && !precision.contains("per file");
    if wide { Dtype::Bf16 } else { Dtype::Fp8 }
}
