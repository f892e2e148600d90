//! What gateways say, turned into demand: sums into rates, endpoints into requests inside pods.

use super::demand::{Asked, Means, Signals, Silent};
use super::facts::Facts;
use super::in_flight::{self, InFlight};
use super::names::Names;
use crate::link::{Heard, Report};
use crate::time;
use flyball_core::ids::ModelId;
use flyball_core::snapshot::Sources;
use flyball_core::units::{Micros, Timestamp};
use flyball_resources::stream::{EndpointLoad, EndpointState, ModelDemand, PublicName};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::SystemTime;

/// Rates are taken over this long, as the simulator's are.
const WINDOW: Micros = Micros::from_seconds(30);

/// The shortest time that a rate can be told from.
const SHORTEST: Micros = Micros::from_seconds(4);

/// What is remembered of gateways from look to look.
#[derive(Clone, Debug, Default)]
pub struct Gateways {
    /// Sums of the last half minute, by gateway and model.
    past: BTreeMap<(String, String), VecDeque<Sums>>,
    /// Gateways that were seen to be pods.
    in_pods: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug)]
struct Sums {
    at: Timestamp,
    started: SystemTime,
    arrived: u64,
    prompt_tokens: u64,
    /// Those that no cache had; all of them where a gateway does not tell.
    uncached_tokens: u64,
    output_tokens: u64,
    judged: u64,
}

impl Gateways {
    /// Adds what gateways say to the signals, and returns those that exist no more.
    ///
    /// A gateway that is silent may have requests under way, and counts with what it told last until its
    /// pod was there and is deleted or ended; a pod on a node that is lost is neither. One that is no pod
    /// counts for good.
    ///
    /// What is said of a name counts for the model that it belongs to, and for none if that is not clear.
    ///
    /// `wanted` are models without an engine that somebody waits for: that is told at once, and how much
    /// waits only within a second.
    pub fn add(
        &mut self,
        signals: &mut Signals,
        heard: &Heard,
        wanted: &BTreeSet<PublicName>,
        facts: &Facts,
        (now, max_age): (Timestamp, Micros),
    ) -> BTreeSet<String> {
        let left = self.left(heard, facts);
        let pods = || facts.pods.values().flatten().filter(|pod| !pod.over);
        let uids: BTreeSet<&str> = pods().map(|pod| pod.uid.as_str()).collect();
        let ended = pods().filter(|pod| in_flight::has_ended(pod, now));
        let ended: BTreeSet<&str> = ended.map(|pod| pod.name.as_str()).collect();
        let names = Names::of(&facts.models);
        let mut kept = BTreeMap::new();
        let mut listed = Vec::new();
        for report in heard.reports.iter().filter(|report| !left.contains(&report.gateway)) {
            let Some(at) = report.told_at.map(time::of_system) else {
                signals.in_flight.gateway(&report.gateway, None);
                continue;
            };
            let recent = now.apart(at) <= max_age;
            if !recent {
                signals.silent.push(Silent { gateway: report.gateway.clone(), since: Some(at) });
            }
            for model in report.models.iter() {
                let place = (report.gateway.clone(), model.model.clone());
                let mut past = self.past.remove(&place).unwrap_or_default();
                remember(&mut past, sums(model, report.started, at));
                if let Some(id) = names.owner(&model.public_name()) {
                    let mut asked = asked(model, &past, at);
                    // One that just began cannot tell a rate yet.
                    let tells = recent && asked.prompt_rate.is_some();
                    asked.sources = Sources { heard: u32::from(tells), silent: u32::from(!tells) };
                    let all = signals.asked.entry(id.clone());
                    all.and_modify(|all| *all = all.with(asked)).or_insert(asked);
                }
                kept.insert(place, past);
            }
            if report.left_out > 0 {
                let owners = report.models.iter().map(|model| names.owner(&model.public_name()));
                listed.push(owners.flatten().collect());
            }
            if !ended.contains(report.gateway.as_str()) {
                inside(&mut signals.in_flight, report, at, &uids);
            }
        }
        self.past = kept;
        leave_out(signals, &listed);
        want(signals, wanted.iter().filter_map(|name| names.owner(name)), now);
        left
    }

    /// Gateways that were pods, are silent, and whose pods are gone with all their requests.
    fn left(&mut self, heard: &Heard, facts: &Facts) -> BTreeSet<String> {
        let pods = facts.pods.values().flatten().filter(|pod| !pod.over);
        let pods: BTreeSet<&str> = pods.map(|pod| pod.name.as_str()).collect();
        let reports = heard.reports.iter().map(|report| (&report.gateway, report.gone));
        let known = reports.chain(heard.refused.iter().map(|name| (name, true)));
        let mut left = BTreeSet::new();
        let mut in_pods = BTreeSet::new();
        for (name, gone) in known {
            let there = pods.contains(name.as_str());
            if there || self.in_pods.contains(name) {
                in_pods.insert(name.clone());
                if gone && !there {
                    left.insert(name.clone());
                }
            }
        }
        self.in_pods = in_pods;
        left
    }
}

/// Requests inside engines, as one gateway counts them, of pods that are there.
fn inside(in_flight: &mut InFlight, report: &Report, at: Timestamp, uids: &BTreeSet<&str>) {
    in_flight.gateway(&report.gateway, Some(at));
    let ip = |endpoint: &EndpointLoad| {
        let ip = endpoint.address.rsplit_once(':').map_or("", |(ip, _)| ip);
        ip.trim_matches(['[', ']']).to_owned()
    };
    if report.left_out > 0 {
        in_flight.names_only(&report.gateway, report.endpoints.iter().map(ip));
    }
    // Another pod may have the address of one that is gone: only its own id is its own.
    let is_there = |load: &&EndpointLoad| load.uid.is_empty() || uids.contains(&*load.uid);
    for endpoint in report.endpoints.iter().filter(is_there) {
        let address = ip(endpoint);
        in_flight.at_address(&address, f64::from(endpoint.in_flight), at);
        if endpoint.state == EndpointState::Open as i32 {
            in_flight.still_open(&address);
        }
    }
}

/// What a gateway had no room to tell is not known: it is silent about every model that it did not list.
fn leave_out(signals: &mut Signals, listed: &[BTreeSet<&ModelId>]) {
    for models in listed {
        for (id, asked) in &mut signals.asked {
            asked.sources.silent += u32::from(!models.contains(id));
        }
    }
}

fn want<'a>(signals: &mut Signals, wanted: impl Iterator<Item = &'a ModelId>, now: Timestamp) {
    for id in wanted {
        let unknown = || Asked { at: now, ..Asked::default() };
        let asked = signals.asked.entry(id.clone()).or_insert_with(unknown);
        asked.backlog_tokens = asked.backlog_tokens.max(1.0);
        asked.waits_at = Some(now);
        asked.held = true;
    }
}

fn sums(model: &ModelDemand, started: SystemTime, at: Timestamp) -> Sums {
    Sums {
        at,
        started,
        arrived: model.arrived,
        prompt_tokens: model.arrived_tokens,
        uncached_tokens: model.uncached_tokens.unwrap_or(model.arrived_tokens),
        output_tokens: model.output_tokens,
        judged: model.judged,
    }
}

fn remember(past: &mut VecDeque<Sums>, now: Sums) {
    // Sums that began again, or fell, say nothing together with those before.
    if past.back().is_some_and(|last| last.started != now.started || last.arrived > now.arrived) {
        past.clear();
    }
    if past.back().is_none_or(|last| last.at < now.at) {
        past.push_back(now);
    }
    let old = |sums: &Sums| now.at.since(sums.at).is_some_and(|age| age >= WINDOW);
    while past.get(1).is_some_and(old) {
        past.pop_front();
    }
}

fn asked(model: &ModelDemand, past: &VecDeque<Sums>, at: Timestamp) -> Asked {
    let ends = past.front().zip(past.back());
    let apart = ends.and_then(|(first, last)| last.at.since(first.at)).unwrap_or(Micros::ZERO);
    // Without an engine nothing is read or written, however short the look; what came waits.
    let none = (model.engines == 0).then_some(0.0);
    let rate = |sum: fn(&Sums) -> u64| {
        let (first, last) = ends?;
        let seconds = apart.get() as f64 / 1e6;
        let rate = || sum(last).saturating_sub(sum(first)) as f64 / seconds;
        if apart >= SHORTEST { Some(rate()) } else { none }
    };
    let waits = model.backlog_tokens > 0 || model.unread_tokens > 0;
    Asked {
        at,
        waits_at: waits.then_some(at),
        sources: Sources::default(),
        prompt_rate: rate(|sums| sums.uncached_tokens),
        output_rate: rate(|sums| sums.output_tokens),
        // What waits is work, however much of it a cache may have.
        backlog_tokens: (model.backlog_tokens as f64 * uncached_share(ends, model))
            .max(model.backlog_tokens.min(1) as f64),
        unread_tokens: model.unread_tokens as f64,
        in_flight: model.in_flight as f64,
        held_tokens: model.held_tokens as f64,
        judged: Some((model.judged as f64, model.missed as f64)),
        shape: shape(ends, model),
        held: model.held > 0,
    }
}

/// The part of prompt tokens that no cache has: of the window, or of all time if nothing came in it.
/// What waits is taken to be like what came.
fn uncached_share(ends: Option<(&Sums, &Sums)>, model: &ModelDemand) -> f64 {
    let Some(uncached) = model.uncached_tokens else { return 1.0 };
    let share = |uncached: u64, all: u64| (all > 0).then(|| uncached as f64 / all as f64);
    let of_window = ends.and_then(|(first, last)| {
        let all = last.prompt_tokens.saturating_sub(first.prompt_tokens);
        share(last.uncached_tokens.saturating_sub(first.uncached_tokens), all)
    });
    of_window.or_else(|| share(uncached, model.arrived_tokens)).unwrap_or(1.0).min(1.0)
}

/// Mean tokens of prompts and answers: of all time while that is short, and of the window later, if
/// anything ended in it.
fn shape(ends: Option<(&Sums, &Sums)>, model: &ModelDemand) -> Option<Means> {
    let mean = |tokens: u64, count: u64| (count > 0).then(|| tokens as f64 / count as f64);
    let answered = model.judged as f64;
    let of_window = ends.filter(|_| answered >= Means::SETTLED).and_then(|(first, last)| {
        let ended = last.judged.saturating_sub(first.judged);
        Some(Means {
            prompt: mean(
                last.prompt_tokens.saturating_sub(first.prompt_tokens),
                last.arrived.saturating_sub(first.arrived),
            )?,
            output: mean(last.output_tokens.saturating_sub(first.output_tokens), ended)?,
            answered,
        })
    });
    of_window.or_else(|| {
        Some(Means {
            prompt: mean(model.arrived_tokens, model.arrived)?,
            output: mean(model.output_tokens, model.judged)?,
            answered,
        })
    })
}
