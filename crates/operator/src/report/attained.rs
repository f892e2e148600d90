//! The share of requests of the last hour that met their objectives, from counters that only rise.

use flyball_core::ids::ModelId;
use flyball_core::snapshot::{Misses, Snapshot};
use flyball_core::units::{Micros, Timestamp};
use std::collections::{BTreeMap, VecDeque};

/// How far back it looks.
const WINDOW: Micros = Micros::HOUR;

/// Counts are kept this far apart: 60 of them an hour.
const APART: Micros = Micros::from_minutes(1);

/// Counts of the last hour, by model.
#[derive(Clone, Debug, Default)]
pub struct Attained {
    models: BTreeMap<ModelId, VecDeque<(Timestamp, Misses)>>,
}

impl Attained {
    /// Looks at the counters of a picture.
    pub fn learn(&mut self, snapshot: &Snapshot) {
        let now = snapshot.taken_at;
        self.models.retain(|id, _| snapshot.models.contains_key(id));
        for (id, model) in &snapshot.models {
            let Some(counts) = model.misses.fresh() else { continue };
            let past = self.models.entry(id.clone()).or_default();
            // A counter that fell was restarted: what was before says nothing any more.
            if past.back().is_some_and(|(_, last)| counts.requests < last.requests) {
                past.clear();
            }
            let due =
                past.back().is_none_or(|(at, _)| now.since(*at).is_some_and(|age| age >= APART));
            if due {
                past.push_back((now, *counts));
            }
            while past.front().is_some_and(|(at, _)| now.since(*at).is_some_and(|age| age > WINDOW))
            {
                past.pop_front();
            }
        }
    }

    /// Requests of the last hour that met their objectives, of a million; `None` if nobody was judged.
    pub fn per_million(&self, id: &ModelId, counts: Option<&Misses>) -> Option<u32> {
        let (_, first) = self.models.get(id)?.front()?;
        let now = counts?;
        let judged = now.requests.checked_sub(first.requests)?.get();
        let missed = now.missed.checked_sub(first.missed)?.get();
        if judged == 0 {
            return None;
        }
        let met = u128::from(judged.saturating_sub(missed)) * 1_000_000 / u128::from(judged);
        u32::try_from(met).ok()
    }
}
