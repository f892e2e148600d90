//! What came of it: every answer, how many replicas there were when, and the score.

use super::World;
use super::checks::BrokenInvariant;
use super::observe::LogEntry;
use super::replicas::{Replica, State};
use super::requests::{AnsweredBy, Request, Stage};
use super::setup::ModelSetup;
use crate::score::{ModelOutcome, Outcome, TimelineMoment};
use crate::seconds::Seconds;
use flyball_core::quantile::nearest_rank;

/// What came of a world.
#[derive(Clone, Debug)]
pub struct ClusterRun {
    /// The score.
    pub outcome: Outcome,
    /// Every decision, in order of time.
    pub log: Vec<LogEntry>,
    /// Every rule that was broken.
    pub broken: Vec<BrokenInvariant>,
    /// Events that happened.
    pub events: u64,
    /// One per model, in the order of the setup.
    pub histories: Vec<ReplicaHistory>,
}

/// How one model fared, in detail.
#[derive(Clone, Debug, Default)]
pub struct ReplicaHistory {
    /// Each change of its replicas.
    pub standings: Vec<ReplicaCounts>,
    /// What became of each request, in order of arrival: when it arrived, and whether it missed.
    pub answers: Vec<(Seconds, bool)>,
    /// What each of them got, in the same order.
    pub ends: Vec<AnsweredBy>,
    /// When the policy asked for fewer replicas.
    pub downs: Vec<Seconds>,
    /// Time from asking for a replica until it served.
    pub cold_starts: Vec<Seconds>,
}

/// How many replicas there were from a moment on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReplicaCounts {
    /// The moment.
    pub at: Seconds,
    /// Without a node.
    pub pending: u32,
    /// Starting.
    pub starting: u32,
    /// Serving.
    pub ready: u32,
    /// Finishing what they have.
    pub draining: u32,
}

impl ReplicaHistory {
    /// Mean number of replicas that there were or were coming between two moments, as a
    /// Deployment's status counts them: without those that end.
    pub fn mean_replicas(&self, from: Seconds, to: Seconds) -> f64 {
        let ends = self.standings.iter().skip(1).map(|next| next.at).chain([to]);
        let parts = self.standings.iter().zip(ends).map(|(standing, end)| {
            let long = (end.min(to) - standing.at.max(from)).max(Seconds::ZERO);
            f64::from(standing.pending + standing.starting + standing.ready) * long.get()
        });
        parts.sum::<f64>() / (to - from).get().max(f64::MIN_POSITIVE)
    }

    /// How it stood at a moment.
    pub fn at(&self, moment: Seconds) -> ReplicaCounts {
        let before = self.standings.partition_point(|standing| standing.at <= moment);
        before.checked_sub(1).map(|last| self.standings[last]).unwrap_or_default()
    }

    /// From `from` until the end of the last minute in which more than this share missed; zero if
    /// there was none.
    pub fn recovery(&self, from: Seconds, share: f64) -> Seconds {
        let mut minutes: Vec<(u32, u32)> = Vec::new();
        for (at, missed) in self.answers.iter().filter(|(at, _)| *at >= from) {
            let minute = ((*at - from).get() / 60.0) as usize;
            minutes.resize(minutes.len().max(minute + 1), (0, 0));
            minutes[minute].0 += 1;
            minutes[minute].1 += u32::from(*missed);
        }
        let bad = |(all, missed): &(u32, u32)| f64::from(*missed) > share * f64::from(*all);
        let last = minutes.iter().rposition(bad);
        last.map_or(Seconds::ZERO, |minute| Seconds::MINUTE * (minute + 1) as f64)
    }
}

/// What is noted of a model while its world goes on.
#[derive(Debug, Default)]
pub(super) struct Account {
    history: ReplicaHistory,
    answers: Vec<(usize, AnsweredBy)>,
    waiting: Vec<(Seconds, f64)>,
    /// Variant and length.
    pub(super) cold_starts: Vec<(usize, Seconds)>,
    pub(super) downs: Vec<Seconds>,
    starts: u32,
    reversals: u32,
    regrets: u32,
    last_start: Option<Seconds>,
    last_removal: Option<Seconds>,
}

impl Account {
    /// The policy asked for a replica; `soon` is a cold start.
    pub(super) fn started(&mut self, now: Seconds, soon: Seconds) {
        self.starts += 1;
        self.regrets += u32::from(self.last_removal.is_some_and(|at| now - at < soon));
        self.last_start = Some(now);
    }

    /// The policy gave a replica back.
    pub(super) fn removed(&mut self, now: Seconds, soon: Seconds) {
        self.reversals += u32::from(self.last_start.is_some_and(|at| now - at < soon));
        self.last_removal = Some(now);
    }

    pub(super) fn waited(&mut self, now: Seconds, requests: f64) {
        self.waiting.push((now, requests));
    }
}

impl World<'_> {
    pub(super) fn standing(&self, model: usize) -> ReplicaCounts {
        let mut standing = ReplicaCounts { at: self.now, ..ReplicaCounts::default() };
        let own = self.present.iter().map(|place| &self.replicas[*place]);
        for replica in own.filter(|replica| replica.model == model) {
            match replica.state {
                State::Pending => standing.pending += 1,
                State::Starting | State::Unready | State::Failed | State::Lost => {
                    standing.starting += 1;
                }
                State::Ready | State::Leaving => standing.ready += 1,
                State::Draining => standing.draining += 1,
            }
        }
        standing
    }

    pub(super) fn note_standing(&mut self, model: usize) {
        let standing = self.standing(model);
        let standings = &mut self.models[model].account.history.standings;
        match standings.last_mut() {
            Some(last) if last.at == standing.at => *last = standing,
            _ => standings.push(standing),
        }
    }

    pub(super) fn note_answer(&mut self, request: usize, answer: AnsweredBy) {
        let model = self.requests[request].model;
        let setup = &self.setup.models[model];
        let missed = missed(setup, &self.requests[request], &answer, self.now);
        self.pipeline.judged(model, missed);
        self.models[model].account.answers.push((request, answer));
    }

    /// The score, when all is over.
    pub(super) fn finish(mut self) -> ClusterRun {
        let mut models = Vec::new();
        let mut histories = Vec::new();
        for model in 0..self.models.len() {
            let (outcome, history) = self.finish_model(model);
            models.push(outcome);
            histories.push(history);
        }
        let (from, to) = (self.setup.scored_from, self.setup.length);
        let node = |node: &super::nodes::Node| {
            let long = node.gone.unwrap_or(to).min(to) - node.came.max(from);
            f64::from(node.gpus) * long.get().max(0.0)
        };
        let outcome = Outcome {
            models,
            gpu_seconds: self.nodes.iter().map(node).sum(),
            lent_gpu_seconds: 0.0,
            idle_gpu_seconds: 0.0,
            trained_gpu_seconds: 0.0,
            take_backs: 0,
            scored: to - from,
        };
        let (log, broken) = (self.log, self.broken);
        ClusterRun { outcome, log, broken, events: self.events, histories }
    }

    fn finish_model(&mut self, model: usize) -> (ModelOutcome, ReplicaHistory) {
        let setup = &self.setup.models[model];
        let mut account = std::mem::take(&mut self.models[model].account);
        // Who is still inside after the aftermath has missed whatever was promised.
        let open = |request: &Request| {
            matches!(request.stage, Stage::Crossing | Stage::Held | Stage::In(_))
        };
        let unfinished = self.requests.iter().enumerate();
        let unfinished = unfinished.filter(|(_, r)| r.model == model && open(r));
        account.answers.extend(unfinished.map(|(request, _)| (request, AnsweredBy::Refused)));
        account.answers.sort_by_key(|(request, _)| *request);

        let mut score = ModelOutcome {
            starts: account.starts,
            reversals: account.reversals,
            regrets: account.regrets,
            timeline: self.timeline(model, &account),
            ..ModelOutcome::default()
        };
        let (mut first_tokens, mut between_tokens) = (Vec::new(), Vec::new());
        for (request, answer) in &account.answers {
            let Request { at, first_token, place, .. } = self.requests[*request];
            let missed = missed(setup, &self.requests[*request], answer, self.setup.length);
            account.history.answers.push((at, missed));
            account.history.ends.push(*answer);
            if self.is_masked(model, at) {
                continue;
            }
            score.requests += 1.0;
            score.missed += f64::from(u8::from(missed));
            score.killed += f64::from(u8::from(*answer == AnsweredBy::Killed));
            first_tokens.extend(first_token.map(|first| (first - at).get()));
            if let AnsweredBy::Finished { between, .. } = answer {
                score.useful_seconds += work(setup, place);
                between_tokens.push(between.get());
            }
            let minute = (at.get() / 60.0) as usize;
            if let Some(moment) = score.timeline.get_mut(minute) {
                moment.requests += 1.0;
                moment.missed += f64::from(u8::from(missed));
                moment.demand += work(setup, place) / 60.0;
            }
        }
        score.first_token_p99 = percentile(&mut first_tokens, 0.99);
        score.between_tokens_p99 = percentile(&mut between_tokens, 0.99);
        score.worst_five_minutes = worst_five_minutes(&score.timeline);
        for replica in self.replicas.iter().filter(|replica| replica.model == model) {
            self.add_replica(&mut score, replica);
        }
        account.history.downs = account.downs;
        account.history.cold_starts = account.cold_starts.iter().map(|(_, took)| *took).collect();
        (score, account.history)
    }

    fn is_masked(&self, model: usize, at: Seconds) -> bool {
        let gaps = &self.setup.models[model].trace.gaps;
        at < self.setup.scored_from || gaps.iter().any(|gap| gap.contains(&at))
    }

    /// How many replicas and waiting requests there were at the end of each minute.
    fn timeline(&self, model: usize, account: &Account) -> Vec<TimelineMoment> {
        let minutes = (self.setup.length.get() / 60.0).ceil() as usize;
        let moment = |minute: usize| {
            let (at, end) = (Seconds(minute as f64 * 60.0), Seconds((minute + 1) as f64 * 60.0));
            let standing = account.history.at(end);
            let scrape = account.waiting.partition_point(|(at, _)| *at <= end);
            TimelineMoment {
                at,
                ready: standing.ready.into(),
                starting: (standing.pending + standing.starting).into(),
                draining: standing.draining.into(),
                waiting: scrape.checked_sub(1).map_or(0.0, |last| account.waiting[last].1),
                masked: self.is_masked(model, at),
                ..TimelineMoment::default()
            }
        };
        (0..minutes).map(moment).collect()
    }

    fn add_replica(&self, score: &mut ModelOutcome, replica: &Replica) {
        let (from, to) = (self.setup.scored_from, self.setup.length);
        let end = replica.gone.unwrap_or(to).min(to);
        let long =
            |since: Seconds, until: Seconds| (until.min(end) - since.max(from)).get().max(0.0);
        score.replica_seconds += long(replica.ordered, end);
        score.starting_seconds += long(replica.ordered, replica.served.unwrap_or(end));
        if let Some(drained) = replica.drained {
            score.draining_seconds += long(drained, end);
        }
    }
}

/// Whether a request missed what its model's owner promised.
fn missed(setup: &ModelSetup, request: &Request, answer: &AnsweredBy, end: Seconds) -> bool {
    let allowed = setup.objectives.first_token.map(Seconds::from);
    let late = |waited: Seconds| allowed.is_some_and(|allowed| waited > allowed);
    match answer {
        AnsweredBy::Killed | AnsweredBy::Refused => true,
        AnsweredBy::Finished { first, between } => {
            let apart = setup.objectives.between_tokens.map(Seconds::from);
            late(*first - request.at) || apart.is_some_and(|apart| *between > apart)
        }
        // A client that leaves before anything was due did not leave because of us.
        AnsweredBy::HungUp => {
            let traced = &setup.trace.requests[request.place];
            let waited = request.first_token.map(|first| first - request.at);
            late(waited.or(traced.patience).unwrap_or(end - request.at))
        }
    }
}

/// Time that one replica at its capacity needs for a request.
fn work(setup: &ModelSetup, place: usize) -> f64 {
    let Some(variant) = setup.variants.first() else { return 0.0 };
    let request = &setup.trace.requests[place];
    let part = |tokens: u32, rate: Option<f64>| match rate {
        Some(rate) if rate > 0.0 => f64::from(tokens) / rate,
        _ => 0.0,
    };
    let prefill = variant.capacity.prefill.map(|rate| rate.point().get() as f64);
    let decode = variant.capacity.decode.map(|rate| rate.point().get() as f64);
    part(request.prompt, prefill).max(part(request.output, decode))
}

fn percentile(samples: &mut [f64], share: f64) -> Seconds {
    samples.sort_by(f64::total_cmp);
    Seconds(nearest_rank(samples, share).unwrap_or(0.0))
}

fn worst_five_minutes(timeline: &[TimelineMoment]) -> f64 {
    let shares = timeline.windows(5).map(|five| {
        let (requests, missed) =
            five.iter().fold((0.0, 0.0), |(r, m), moment| (r + moment.requests, m + moment.missed));
        if requests > 0.0 { missed / requests } else { 0.0 }
    });
    shares.fold(0.0, f64::max)
}
