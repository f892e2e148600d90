//! Real requests, from their arrival to their end: what engines are learned from.

use super::cache::Cache;
use super::fleet::cache_blocks;
use super::learner::{Learner, LearningRates};
use super::{AWAITED, Listed, ShadowArrival};
use std::collections::BTreeMap;

/// The real engines, and what is awaited of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Live {
    engines: BTreeMap<u64, Real>,
    /// By the request's number, which only rises.
    awaited: BTreeMap<u64, Awaited>,
}

#[derive(Clone, Debug)]
struct Real {
    /// What was sent to it.
    cache: Cache,
    /// When the last first token came from it.
    last_first: f64,
    /// Prompt tokens of requests between their first token and their end.
    prompts: u64,
    /// How many requests these are.
    answering: u64,
}

#[derive(Clone, Copy, Debug)]
struct Awaited {
    engine: u64,
    sent: f64,
    prompt: u64,
    to_read: u64,
    /// What the live policy's paper fleet said.
    predicted: Option<f64>,
    first: Option<f64>,
}

/// A first token that came: seconds after the request was sent, and as predicted.
pub(super) struct First {
    pub(super) actual: f64,
    pub(super) predicted: Option<f64>,
}

impl Live {
    pub(super) fn list(&mut self, engines: &[Listed], rates: &LearningRates) {
        let blocks = cache_blocks(rates, engines.len());
        self.engines.retain(|key, _| engines.iter().any(|listed| listed.key == *key));
        for listed in engines {
            self.engines.entry(listed.key).or_insert_with(|| Real {
                cache: Cache::new(blocks),
                last_first: 0.0,
                prompts: 0,
                answering: 0,
            });
        }
    }

    pub(super) fn fit(&mut self, rates: &LearningRates) {
        let blocks = cache_blocks(rates, self.engines.len());
        self.engines.values_mut().for_each(|real| real.cache.fit(blocks));
    }

    /// A request was sent to an engine, which will answer with about so many tokens.
    pub(super) fn sent(
        &mut self,
        now: f64,
        number: u64,
        arrival: &ShadowArrival<'_>,
        (engine, answer): (u64, u64),
        predicted: Option<f64>,
    ) {
        let Some(real) = self.engines.get_mut(&engine) else { return };
        let prompt = arrival.prompt.get();
        let block = u64::from(arrival.block_tokens.max(1));
        let found = real.cache.read(arrival.prefixes, arrival.key, answer / block) as u64 * block;
        let to_read = prompt - found.min(prompt.saturating_sub(1));
        if self.awaited.len() >= AWAITED
            && let Some((_, lost)) = self.awaited.pop_first()
        {
            self.leave(&lost);
        }
        let awaited = Awaited { engine, sent: now, prompt, to_read, predicted, first: None };
        self.awaited.insert(number, awaited);
    }

    /// The first token of a request came. An engine reads prompts one behind the other, so it had
    /// this one to read since it was sent or since the first token before, whichever was later.
    /// `None` for one that is not awaited.
    pub(super) fn first(&mut self, now: f64, number: u64, learner: &mut Learner) -> Option<First> {
        let awaited = self.awaited.get_mut(&number).filter(|awaited| awaited.first.is_none())?;
        awaited.first = Some(now);
        let Awaited { sent, to_read, prompt, predicted, .. } = *awaited;
        let real = self.engines.get_mut(&awaited.engine)?;
        learner.read(to_read, (now - sent.max(real.last_first)).max(0.0));
        real.last_first = real.last_first.max(now);
        real.prompts += prompt;
        real.answering += 1;
        Some(First { actual: now - sent, predicted })
    }

    /// A request is over, with so many tokens of answer if that is known.
    pub(super) fn end(
        &mut self,
        now: f64,
        number: u64,
        output: Option<u64>,
        learner: &mut Learner,
    ) {
        let Some(awaited) = self.awaited.remove(&number) else { return };
        if let (Some(first), Some(output)) = (awaited.first, output) {
            learner.answered(output, (now - first).max(0.0));
        }
        self.leave(&awaited);
    }

    /// An engine reported the share of its cache that is in use.
    pub(super) fn reported(&self, engine: u64, share: f64, usual: f64, learner: &mut Learner) {
        let Some(real) = self.engines.get(&engine).filter(|real| real.answering > 0) else {
            return;
        };
        let answers = (real.answering as f64 * usual / 2.0) as u64;
        learner.reported(real.prompts + answers, share);
    }

    fn leave(&mut self, awaited: &Awaited) {
        if let Some(real) =
            self.engines.get_mut(&awaited.engine).filter(|_| awaited.first.is_some())
        {
            real.prompts = real.prompts.saturating_sub(awaited.prompt);
            real.answering = real.answering.saturating_sub(1);
        }
    }
}
