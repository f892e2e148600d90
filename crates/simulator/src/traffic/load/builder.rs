//! Puts requests in order, model by model.

use std::collections::BTreeMap;

use super::{LoadedPart, Traffic};
use crate::seconds::Seconds;
use crate::traffic::{Request, Trace};

/// One request as a file has it.
pub(super) struct Raw<'a> {
    /// Seconds, from wherever the file counts.
    pub(super) at: f64,
    pub(super) prompt: u32,
    pub(super) output: u32,
    pub(super) patience: Option<f64>,
    pub(super) model: &'a str,
    pub(super) blocks: &'a [u64],
    pub(super) block_tokens: u32,
}

#[derive(Default)]
pub(super) struct Builder {
    /// By model; the empty name stands for no name.
    traces: BTreeMap<String, Trace>,
    earliest: Option<f64>,
}

impl Builder {
    pub(super) fn push(&mut self, raw: &Raw<'_>) -> Result<(), String> {
        if !self.traces.contains_key(raw.model) {
            self.traces.insert(raw.model.to_owned(), Trace::default());
        }
        let Some(trace) = self.traces.get_mut(raw.model) else { return Ok(()) };
        if !raw.blocks.is_empty() {
            let known = trace.block_tokens;
            if known != 0 && known != raw.block_tokens {
                return Err(format!("blocks of {} and of {known} tokens", raw.block_tokens));
            }
            trace.block_tokens = raw.block_tokens;
        }
        let place = |place: usize| u32::try_from(place).map_err(|_| "too many blocks".to_owned());
        let begin = place(trace.blocks.len())?;
        let end = place(trace.blocks.len() + raw.blocks.len())?;
        trace.blocks.extend_from_slice(raw.blocks);
        trace.requests.push(Request {
            at: Seconds(raw.at),
            prompt: raw.prompt,
            output: raw.output,
            blocks: begin..end,
            patience: raw.patience.map(Seconds),
        });
        self.earliest = Some(self.earliest.map_or(raw.at, |known| known.min(raw.at)));
        Ok(())
    }

    /// The time of the first request, and all of it counted from there.
    pub(super) fn finish(self) -> (f64, Vec<LoadedPart>) {
        let zero = self.earliest.unwrap_or(0.0);
        let parts = self.traces.into_iter().map(|(model, mut trace)| {
            for request in &mut trace.requests {
                request.at = Seconds(request.at.get() - zero);
            }
            // Stable, so that requests of one moment stay in the order of the file.
            trace.requests.sort_by_key(|request| request.at);
            let model = Some(model).filter(|name| !name.is_empty());
            LoadedPart { model, traffic: Traffic::Trace(trace), lengths: None }
        });
        (zero, parts.collect())
    }
}
