//! What gateways say, by the model that it is about; endpoints into requests inside pods.

use super::demand::{Signals, Silent};
use super::facts::Facts;
use super::in_flight::{self, InFlight};
use super::names::Names;
use crate::link::{GatewayReport, ReportBook};
use crate::time;
use flyball_core::ids::ModelId;
use flyball_core::units::{Micros, Timestamp};
use flyball_estimator::CounterWindow;
use flyball_estimator::reading::{GatewayCounts, GatewayReading};
use flyball_resources::stream::{EndpointLoad, EndpointState, ModelDemand, PublicName};
use std::collections::{BTreeMap, BTreeSet};

/// What is remembered of gateways from look to look.
#[derive(Clone, Debug, Default)]
pub struct Gateways {
    /// What they counted in the last half minute, by gateway and model.
    past: BTreeMap<(String, PublicName), CounterWindow<GatewayCounts>>,
    /// Gateways that were seen to be pods.
    in_pods: BTreeSet<String>,
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
    /// `waited_for` are names without an engine that somebody waits for.
    pub fn add(
        &mut self,
        signals: &mut Signals,
        book: &ReportBook,
        waited_for: &BTreeSet<PublicName>,
        facts: &Facts,
        (now, max_age): (Timestamp, Micros),
    ) -> BTreeSet<String> {
        let left = self.left(book, facts);
        let pods = || facts.pods.values().flatten().filter(|pod| !pod.over);
        let uids: BTreeSet<&str> = pods().map(|pod| pod.uid.as_str()).collect();
        let ended = pods().filter(|pod| in_flight::has_ended(pod, now));
        let ended: BTreeSet<&str> = ended.map(|pod| pod.name.as_str()).collect();
        let names = Names::of(&facts.models);
        let mut windows = BTreeMap::new();
        let mut listed = Vec::new();
        for report in book.reports.iter().filter(|report| !left.contains(&report.gateway)) {
            let Some(at) = report.reported_at.map(time::of_system) else {
                signals.in_flight.gateway(&report.gateway, None);
                continue;
            };
            if now.apart(at) > max_age {
                signals.silent.push(Silent { gateway: report.gateway.clone(), since: Some(at) });
            }
            self.recall(report);
            for model in report.models.iter() {
                let place = (report.gateway.clone(), model.public_name());
                let past = self.past.remove(&place);
                let mut past = past.unwrap_or_else(|| CounterWindow::of(GatewayReading::WINDOW));
                past.add(at, time::of_system(report.started), counts(model));
                if let Some(id) = names.owner(&model.public_name()) {
                    let all = signals.gateways.entry(id.clone()).or_default();
                    all.push(reading(model, &past, at));
                }
                windows.insert(place, past);
            }
            if report.left_out > 0 {
                let owners = report.models.iter().map(|model| names.owner(&model.public_name()));
                listed.push(owners.flatten().collect());
            }
            if !ended.contains(report.gateway.as_str()) {
                inside(&mut signals.in_flight, report, at, &uids);
            }
        }
        self.past = windows;
        leave_out(signals, &listed);
        let waited_for = waited_for.iter().filter_map(|name| names.owner(name));
        signals.waited_for.extend(waited_for.cloned());
        left
    }

    /// Adds what a gateway counted between looks, or before this operator began.
    fn recall(&mut self, report: &GatewayReport) {
        let started = time::of_system(report.started);
        let mut before: Option<Timestamp> = None;
        for (at, models) in &report.past {
            let at = time::of_system(*at);
            for model in models.iter() {
                let place = (report.gateway.clone(), model.public_name());
                let empty = || CounterWindow::of(GatewayReading::WINDOW);
                let past = self.past.entry(place).or_insert_with(empty);
                // Until the moment before, nothing had changed.
                before.into_iter().for_each(|before| past.hold(before));
                past.add(at, started, counts(model));
            }
            before = Some(at);
        }
    }

    /// Gateways that were pods, are silent, and whose pods are gone with all their requests.
    fn left(&mut self, book: &ReportBook, facts: &Facts) -> BTreeSet<String> {
        let pods = facts.pods.values().flatten().filter(|pod| !pod.over);
        let pods: BTreeSet<&str> = pods.map(|pod| pod.name.as_str()).collect();
        let reports = book.reports.iter().map(|report| (&report.gateway, report.gone));
        let known = reports.chain(book.refused.iter().map(|name| (name, true)));
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
fn inside(in_flight: &mut InFlight, report: &GatewayReport, at: Timestamp, uids: &BTreeSet<&str>) {
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
        for id in signals.gateways.keys().filter(|id| !models.contains(id)) {
            *signals.left_out.entry(id.clone()).or_default() += 1;
        }
    }
}

fn counts(model: &ModelDemand) -> GatewayCounts {
    GatewayCounts {
        arrived: model.arrived,
        prompt_tokens: model.arrived_tokens,
        uncached_tokens: model.uncached_tokens,
        // Gateways that do not count answers count those that they judge.
        answered: model.answered.unwrap_or(model.judged),
        output_tokens: model.output_tokens,
        paced_tokens: model.paced_tokens,
        paced_micros: model.paced_micros,
        judged: model.judged,
        missed: model.missed,
    }
}

fn reading(
    model: &ModelDemand,
    past: &CounterWindow<GatewayCounts>,
    at: Timestamp,
) -> GatewayReading {
    GatewayReading {
        at,
        counts: past.clone(),
        waiting_tokens: model.backlog_tokens,
        unread_tokens: model.unread_tokens,
        held_tokens: model.held_tokens,
        in_flight: model.in_flight,
        engines: model.engines,
    }
}
