//! What was answered before the model was changed: `before.csv`, so that anybody can see both.

use super::judge::Judged;
use super::score::Scored;
use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// One row as it was answered then.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Earlier {
    pub(super) id: String,
    pub(super) answer: String,
    pub(super) inside: bool,
    pub(super) factor: Option<f64>,
    pub(super) far_unwarned: bool,
}

impl Earlier {
    pub(super) fn judged(&self) -> Judged {
        Judged { inside: self.inside, factor: self.factor, far_unwarned: self.far_unwarned }
    }
}

pub(super) fn write(path: &Path, scored: &[Scored]) -> Result<()> {
    let mut writer = csv::Writer::from_path(path)?;
    for one in scored {
        writer.serialize(Earlier {
            id: one.row.id.clone(),
            answer: one.shown(),
            inside: one.judged.inside,
            factor: one.judged.factor.map(|factor| (factor * 1e3).round() / 1e3),
            far_unwarned: one.judged.far_unwarned,
        })?;
    }
    writer.flush().with_context(|| format!("writing {}", path.display()))
}

/// By id; empty if nobody has kept them.
pub(super) fn read(path: &Path) -> Result<BTreeMap<String, Earlier>> {
    let Ok(text) = fs::read_to_string(path) else { return Ok(BTreeMap::new()) };
    parse(&text).with_context(|| format!("reading {}", path.display()))
}

pub(super) fn parse(text: &str) -> Result<BTreeMap<String, Earlier>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let rows = reader.deserialize().collect::<Result<Vec<Earlier>, _>>()?;
    Ok(rows.into_iter().map(|row| (row.id.clone(), row)).collect())
}
