//! Faults under load: not yet.

use super::bench::Bench;
use crate::bench::Measured;
use anyhow::Result;

pub(super) fn measured(bench: &mut Bench, _seed: u64) -> Result<Measured> {
    let text = match bench.ours() {
        Err(reason) => format!("Skipped: {reason}."),
        Ok(_) => "Not yet.".to_owned(),
    };
    Ok(Measured { text, figures: Vec::new() })
}
