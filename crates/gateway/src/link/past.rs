//! How things stood in the last half minute, for an operator that has just begun.

use flyball_resources::stream::{self, MAX_MODELS, ModelDemand, PAST};
use std::collections::{BTreeMap, VecDeque};
use tokio::time::Instant;

/// The last half minute: its beginning whole, and then what changed.
#[derive(Debug, Default)]
pub(super) struct Past {
    begin: Option<(Instant, BTreeMap<String, ModelDemand>)>,
    moments: VecDeque<(Instant, Vec<ModelDemand>)>,
    last: BTreeMap<String, ModelDemand>,
}

impl Past {
    /// Things stand like this.
    pub(super) fn add(&mut self, now: Instant, models: &[ModelDemand]) {
        let changed = models.iter().filter(|model| {
            !self.last.get(&model.model).is_some_and(|before| model.counts_as(before))
        });
        let changed: Vec<ModelDemand> = changed.cloned().collect();
        for model in &changed {
            self.last.insert(model.model.clone(), model.clone());
        }
        if self.begin.is_none() {
            self.begin = Some((now, self.last.clone()));
        } else {
            self.moments.push_back((now, changed));
        }
        while let Some((at, _)) = self.moments.front()
            && now.duration_since(*at) > PAST
        {
            let next = self.moments.pop_front();
            for ((begin, known), (at, models)) in self.begin.iter_mut().zip(next) {
                *begin = at;
                known.extend(models.into_iter().map(|model| (model.model.clone(), model)));
            }
        }
        self.forget(models);
    }

    /// A model that is not served any more is not told of.
    fn forget(&mut self, models: &[ModelDemand]) {
        if self.last.len() > models.len() {
            let served: Vec<&str> = models.iter().map(|model| &*model.model).collect();
            self.last.retain(|name, _| served.contains(&&**name));
            if let Some((_, known)) = &mut self.begin {
                known.retain(|name, _| served.contains(&&**name));
            }
        }
    }

    /// All of it, the oldest first; the younger part where it is more than a message may hold.
    pub(super) fn reported(&self, now: Instant) -> Vec<stream::ReportedPast> {
        let moment = |at: Instant, models: Vec<ModelDemand>| {
            let age = now.saturating_duration_since(at).as_millis();
            stream::ReportedPast { age_ms: u64::try_from(age).unwrap_or(u64::MAX), models }
        };
        let begin = self.begin.iter();
        let begin = begin.map(|(at, models)| moment(*at, models.values().cloned().collect()));
        let later = self.moments.iter().map(|(at, models)| moment(*at, models.clone()));
        let mut reported: Vec<stream::ReportedPast> = begin.chain(later).collect();
        let mut room = 2 * MAX_MODELS;
        let fits = reported.iter().rev().take_while(|moment| {
            let fits = moment.models.len() <= room;
            room = room.saturating_sub(moment.models.len());
            fits
        });
        let fits = fits.count();
        reported.split_off(reported.len() - fits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn model(name: &str, arrived: u64) -> ModelDemand {
        ModelDemand { model: name.to_owned(), arrived, ..ModelDemand::default() }
    }

    fn of(past: &Past, name: &str, now: Instant) -> Vec<(u64, u64)> {
        let reported = past.reported(now);
        let of_model = reported.iter().flat_map(|moment| {
            let model = moment.models.iter().find(|model| model.model == name);
            model.map(|model| (moment.age_ms / 1_000, model.arrived))
        });
        of_model.collect()
    }

    #[test]
    fn it_is_half_a_minute_whole_at_its_beginning_and_then_what_changed() {
        let (mut past, began) = (Past::default(), Instant::now());
        let at = |second| began + Duration::from_secs(second);
        for second in 0..=100 {
            past.add(at(second), &[model("busy", second), model("idle", 7)]);
        }
        let busy = of(&past, "busy", at(100));
        assert_eq!((busy[0], busy.len()), ((33, 67), 34));
        assert_eq!(of(&past, "idle", at(100)), [(33, 7)]);
        past.add(at(101), &[model("busy", 101)]);
        assert_eq!(of(&past, "idle", at(101)), [], "it is not served any more");
        assert_eq!(Past::default().reported(at(0)), []);
    }

    #[test]
    fn what_no_message_holds_is_cut_at_the_old_end() {
        let (mut past, began) = (Past::default(), Instant::now());
        for second in 0..5 {
            let models: Vec<ModelDemand> =
                (0..MAX_MODELS).map(|number| model(&number.to_string(), second)).collect();
            past.add(began + Duration::from_secs(second), &models);
        }
        let reported = past.reported(began + Duration::from_secs(4));
        let sizes: Vec<usize> = reported.iter().map(|moment| moment.models.len()).collect();
        assert_eq!(sizes, [MAX_MODELS, MAX_MODELS]);
        assert_eq!(reported[1].age_ms, 0);
    }
}
