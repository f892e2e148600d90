//! Finds the model behind the name that was asked for, and makes the request as its engines get it:
//! with the salt of its caller, and with the name that they know the model by.

use crate::admit::{Served, ServedModel};
use crate::answer::Problem;
use crate::answer_cache;
use crate::edit::Edits;
use crate::identify::Caller;
use crate::live::Live;
use crate::quota::QuotaTerms;
use crate::salt;
use crate::scan::{Blocks, ScanError, Scanned};
use crate::split::{Asks, Dealt};
use crate::surface::Surface;
use bytes::Bytes;
use flyball_fleet::FleetModel;
use http::HeaderMap;
use std::sync::Arc;

/// The longest answer of a request that does not say, if the budget of its caller is a hard one and it does not stream: it
/// cannot be stopped, so it is paid as a whole before it begins. Answers of reasoning models are seldom longer.
const UNSTATED_OUTPUT: u64 = 16_384;

/// The same of a completion: what OpenAI, vLLM and SGLang write if nothing is said.
const UNSTATED_COMPLETION: u64 = 16;

/// A body that was read.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    /// What it says, without prefixes.
    pub(crate) scanned: Scanned,
    pub(crate) blocks: Blocks,
    pub(crate) pieces: Arc<[Bytes]>,
}

/// A request as the engines of its model get it.
pub(crate) struct Job {
    pub(crate) headers: HeaderMap,
    pub(crate) scanned: Scanned,
    pub(crate) pieces: Arc<[Bytes]>,
    pub(crate) model: Arc<ServedModel>,
    /// By what its answer is kept, if it is.
    pub(crate) cache_key: Option<answer_cache::Key>,
    /// Whether its engine is asked what its stream came to, and its client did not.
    pub(crate) hides_usage: bool,
}

/// Where a request goes, and with what.
pub(crate) struct Target {
    /// In a box, because a dozen calls hand it on.
    pub(crate) job: Box<Job>,
    /// The name that was asked for, if it is one that stands for several models.
    pub(crate) split: Option<Arc<str>>,
    /// The same for the mirror, if this one is copied.
    pub(crate) copy: Option<Box<Job>>,
}

/// What a request is aimed by.
#[derive(Clone, Copy)]
pub(crate) struct Aim<'a> {
    pub(crate) live: &'a Live,
    pub(crate) served: &'a Served,
    pub(crate) caller: &'a Caller,
    pub(crate) surface: Surface,
    /// On what terms it is counted for a limit or a budget, if it is.
    pub(crate) terms: Option<QuotaTerms>,
}

impl Aim<'_> {
    /// Of this request.
    pub(crate) fn at(self, headers: HeaderMap, read: Read) -> Result<Target, Problem> {
        // Before anything is looked up: what the caller may not use is as if it did not exist, down to the time that it
        // takes. Names are those of requests, so that whoever may use a split may use what it stands for.
        if !self.caller.may_use(&read.scanned.model) {
            return Err(Problem::NoModel { model: read.scanned.model });
        }
        let split = self.live.splits.get(&read.scanned.model);
        let asks =
            Asks { caller: &self.caller.name, headers: &headers, session: read.scanned.session };
        let dealt = split.and_then(|split| split.deal(asks));
        let (name, known_as) = match &dealt {
            Some(Dealt { arm, .. }) => (&arm.model, arm.known_as.as_deref()),
            None => (&read.scanned.model, None),
        };
        let known_as = known_as.or_else(|| self.known_as(name, &read.scanned.model));
        let Some(model) = self.served.model(name) else {
            // In the settings, but its engines could not be looked for yet: worth trying again.
            let configured = self.live.models.contains_key(name);
            let unknown = Problem::NoModel { model: read.scanned.model };
            return Err(if configured { Problem::NoEndpoint } else { unknown });
        };
        if let Some(key) = read.scanned.steers.beyond(self.engine_keys(&model.engines)) {
            return Err(Problem::Body(ScanError::Steers { key }));
        }
        // What a caller may not send to a model is not copied to it.
        let mirror = dealt.and_then(|dealt| dealt.copy);
        let mirror = mirror.filter(|mirror| self.caller.may_use(&mirror.model));
        let copy = mirror.and_then(|mirror| {
            let model = self.served.model(&mirror.model)?;
            // What this model does not take is not sent to it behind everybody's back.
            if read.scanned.steers.beyond(self.engine_keys(&model.engines)).is_some() {
                return None;
            }
            let known_as = mirror.known_as.as_deref();
            let known_as = known_as.or_else(|| self.known_as(&mirror.model, &read.scanned.model));
            let mut job = self.job(model, known_as, headers.clone(), read.clone());
            job.cache_key = None;
            Some(job)
        });
        let split = split.map(|split| Arc::clone(&split.name));
        Ok(Target { job: self.job(model, known_as, headers, read), split, copy })
    }

    fn job(
        self,
        model: &Arc<ServedModel>,
        known_as: Option<&str>,
        headers: HeaderMap,
        read: Read,
    ) -> Box<Job> {
        let Read { mut scanned, blocks, pieces } = read;
        let cache_key = self.cache_key(&model.engines, known_as, &headers, &scanned, &pieces);
        let clients = scanned.cache_salt.as_deref();
        let salt = self.caller.salt.as_ref();
        let salt = salt.filter(|_| salt::is_taken(self.engine_of(&model.engines), self.surface));
        let salt = salt.map(|salt| salt.with(clients));
        let mut edits = Edits::new(&scanned.marks);
        if let Some(salt) = &salt {
            edits.cache_salt(salt);
        }
        if let Some(name) = known_as {
            edits.model(name);
        }
        if let Some((key, most)) = self.bound(&scanned, model) {
            edits.most_output(key, most);
            scanned.most_output = Some(most);
        }
        let hides_usage = self.hides_usage(&scanned);
        if hides_usage {
            edits.include_usage();
        }
        let pieces = edits.on(&pieces);
        // By the arm and not by the name that was asked for, so that all ways to an engine agree on
        // what it has cached.
        (scanned.prefixes, scanned.whole) = blocks.chain(model.name(), salt.as_deref().or(clients));
        let model = Arc::clone(model);
        Box::new(Job { headers, scanned, pieces, model, cache_key, hides_usage })
    }

    /// A stream whose client does not ask for usage ends without, and its prompt would be paid by an estimate for ever.
    fn hides_usage(self, scanned: &Scanned) -> bool {
        let asks = matches!(self.surface, Surface::Chat | Surface::Completions);
        asks && self.terms.is_some() && scanned.stream && !scanned.include_usage
    }

    /// How long an answer may be that cannot be stopped, if its client does not say, and under which key.
    fn bound(self, scanned: &Scanned, model: &ServedModel) -> Option<(&'static str, u64)> {
        let is_hard = self.terms.is_some_and(|terms| terms.is_hard);
        let is_open = is_hard && !scanned.stream && scanned.most_output.is_none();
        let key = self.surface.output_key().filter(|_| is_open)?;
        let most = match self.surface {
            Surface::Completions => UNSTATED_COMPLETION,
            _ => UNSTATED_OUTPUT.min(model.longest_output(scanned).unwrap_or(UNSTATED_OUTPUT)),
        };
        Some((key, most))
    }

    /// By what its answer is kept, if it is.
    fn cache_key(
        self,
        model: &FleetModel,
        known_as: Option<&str>,
        headers: &HeaderMap,
        scanned: &Scanned,
        pieces: &[Bytes],
    ) -> Option<answer_cache::Key> {
        let opted = self.live.models.get(&*model.name).is_some_and(|model| model.cache_responses);
        if !opted || !answer_cache::may_be(self.surface, scanned, headers, pieces) {
            return None;
        }
        let salt = self.caller.salt.as_ref().map_or("", |salt| salt.own());
        let names = [salt, self.surface.path(), &model.name, known_as.unwrap_or_default()];
        Some(answer_cache::Key::of(names, headers, pieces))
    }

    /// The name that a model's engines know it by, if it is another than the one that was asked for.
    fn known_as(&self, model: &str, requested: &str) -> Option<&str> {
        let known = self.live.models.get(model)?.known_as.as_deref();
        known.filter(|known| *known != requested)
    }

    /// What may steer its engines.
    fn engine_keys(&self, model: &FleetModel) -> &[String] {
        self.live.models.get(&*model.name).map_or(&[], |model| &model.engine_keys)
    }

    /// By the settings; engines themselves are asked where those say nothing.
    fn engine_of(self, model: &FleetModel) -> flyball_engines::Engine {
        let stated = self.live.models.get(&*model.name).map(|model| model.engine);
        stated.or_else(|| model.endpoints.first().map(|found| found.engine)).unwrap_or_default()
    }
}
