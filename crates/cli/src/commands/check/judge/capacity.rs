//! Accelerators: how many of what, in which pool, and can they be used?

use std::collections::{BTreeMap, BTreeSet};

use super::{follows, unknown};
use crate::commands::check::answer::{AcceleratorGroup, Outcome, Status};
use crate::commands::check::codes::Code;
use crate::commands::check::facts::{AcceleratorNode, Devices, Fleet, Found};
use crate::output::plural;

/// More names than this help nobody; the rest is counted.
const NAMES_SHOWN: usize = 3;
/// One line for each kind and pool, up to a screenful. The JSON has all of them.
const GROUPS_SHOWN: usize = 12;

pub(super) fn judge(code: Code, found: &Found<Fleet>) -> Outcome {
    let fleet = match found {
        Found::Known(fleet) => fleet,
        missed if code == Code::Accelerators => return unknown(code, missed, "list nodes"),
        Found::Skipped => return unknown(code, found, ""),
        // One reason for four checks is told once.
        _ => return follows(code, Code::Accelerators, "the nodes could not be read"),
    };
    match code {
        Code::Accelerators => accelerators(fleet),
        _ if fleet.nodes.is_empty() => Outcome::new(code, Status::Skip, "no accelerators"),
        Code::AcceleratorLabels => labelled(
            code,
            fleet,
            |node| node.model.is_some(),
            "no label names the model",
            "Flyball does not know their speed and excludes them from plans",
            "nvidia.com/gpu.product=MODEL",
        ),
        Code::PoolLabels => labelled(
            code,
            fleet,
            |node| node.pool.is_some(),
            "no label names the pool",
            "they have no price and are not given to anyone",
            "flyball.dev/pool=NAME",
        ),
        _ => usable(fleet),
    }
}

fn accelerators(fleet: &Fleet) -> Outcome {
    let code = Code::Accelerators;
    if fleet.nodes.is_empty() {
        let nodes = plural(fleet.nodes_total, "node");
        return Outcome::new(code, Status::Warn, format!("none on {nodes}"))
            .effect("nothing to decide about until a node with accelerators joins")
            .hint("kubectl get nodes -o yaml | grep -E 'gpu|tpu|neuron|gaudi'");
    }
    let groups = groups(fleet);
    let devices: u32 = groups.iter().map(|group| group.devices).sum();
    let unread = unread(fleet);
    if let Some(first) = unread.first() {
        let known = plural(devices as usize, "device");
        let detail = format!("cannot read how many: {}; {known} on others", named(&unread));
        return Outcome::new(code, Status::Unknown, detail)
            .effect("Flyball does not count on what it cannot read")
            .hint(format!("kubectl describe node {}", first.name))
            .notes(lines(&groups));
    }
    let detail =
        format!("{} on {} of {}", plural(devices as usize, "device"), names(&fleet.nodes).len(), {
            plural(fleet.nodes_total, "node")
        });
    Outcome::new(code, Status::Ok, detail).notes(lines(&groups))
}

/// Nodes that advertise accelerators in numbers that are none.
fn unread(fleet: &Fleet) -> Vec<&AcceleratorNode> {
    fleet.nodes.iter().filter(|node| node.devices.is_none()).collect()
}

/// The fleet by kind and pool. Nodes without a label form groups of their own; nodes whose
/// devices cannot be counted are in none.
pub(super) fn groups(fleet: &Fleet) -> Vec<AcceleratorGroup> {
    let mut groups: BTreeMap<(&str, Option<&str>, Option<&str>), AcceleratorGroup> =
        BTreeMap::new();
    for node in &fleet.nodes {
        let Some(devices) = node.devices else { continue };
        let key = (node.resource.as_str(), node.model.as_deref(), node.pool.as_deref());
        let group = groups.entry(key).or_insert_with(|| AcceleratorGroup {
            resource: node.resource.clone(),
            model: node.model.clone(),
            pool: node.pool.clone(),
            nodes: 0,
            devices: 0,
            allocatable: 0,
        });
        group.nodes += 1;
        group.devices += devices.capacity;
        group.allocatable += devices.allocatable;
    }
    groups.into_values().collect()
}

fn lines(groups: &[AcceleratorGroup]) -> Vec<String> {
    let model = |group: &AcceleratorGroup| {
        group.model.clone().unwrap_or_else(|| format!("{} <unlabelled>", group.resource))
    };
    let width = groups.iter().map(|group| model(group).chars().count()).max().unwrap_or(0);
    let mut lines: Vec<String> = groups
        .iter()
        .take(GROUPS_SHOWN)
        .map(|group| {
            let pool = group.pool.as_deref().unwrap_or("<none>");
            let nodes = plural(group.nodes as usize, "node");
            format!("{:>5} x {:width$}  pool {pool}, {nodes}", group.devices, model(group))
        })
        .collect();
    if groups.len() > GROUPS_SHOWN {
        lines.push(format!("and {} more; -o json has all", groups.len() - GROUPS_SHOWN));
    }
    lines
}

fn labelled(
    code: Code,
    fleet: &Fleet,
    has: impl Fn(&AcceleratorNode) -> bool,
    lacks: &str,
    effect: &str,
    label: &str,
) -> Outcome {
    let without: Vec<&AcceleratorNode> = fleet.nodes.iter().filter(|node| !has(node)).collect();
    let Some(first) = without.first() else {
        return Outcome::new(code, Status::Ok, plural(names(&fleet.nodes).len(), "node"));
    };
    Outcome::new(code, Status::Warn, format!("{lacks}: {}", named(&without)))
        .effect(effect)
        .hint(format!("kubectl label node {} {label}", first.name))
}

fn usable(fleet: &Fleet) -> Outcome {
    let code = Code::AcceleratorsUsable;
    let down: Vec<&AcceleratorNode> = fleet.nodes.iter().filter(|node| !node.ready).collect();
    let cordoned: Vec<&AcceleratorNode> =
        fleet.nodes.iter().filter(|node| node.ready && node.cordoned).collect();
    let withheld = |node: &AcceleratorNode| node.devices.map_or(0, Devices::withheld);
    let broken: Vec<&AcceleratorNode> =
        fleet.nodes.iter().filter(|node| node.ready && withheld(node) > 0).collect();
    let Some(first) = down.first().or(cordoned.first()).or(broken.first()) else {
        if !unread(fleet).is_empty() {
            return follows(code, Code::Accelerators, "not all devices could be counted");
        }
        return Outcome::new(code, Status::Ok, "all nodes ready and open, all devices healthy");
    };
    let mut found = Vec::new();
    if !down.is_empty() {
        found.push(format!("not ready: {}", named(&down)));
    }
    if !cordoned.is_empty() {
        found.push(format!("cordoned: {}", named(&cordoned)));
    }
    if !broken.is_empty() {
        let lost: u32 = broken.iter().map(|node| withheld(node)).sum();
        let lost = plural(lost as usize, "device");
        found.push(format!("{lost} withheld as unhealthy on {}", named(&broken)));
    }
    Outcome::new(code, Status::Warn, found.join("; "))
        .effect("Flyball does not count on them")
        .hint(format!("kubectl describe node {}", first.name))
}

/// Each node once, though it may advertise several resources.
fn names<'a>(nodes: impl IntoIterator<Item = &'a AcceleratorNode>) -> BTreeSet<&'a str> {
    nodes.into_iter().map(|node| node.name.as_str()).collect()
}

fn named(nodes: &[&AcceleratorNode]) -> String {
    let names = names(nodes.iter().copied());
    let count = plural(names.len(), "node");
    let shown: Vec<&str> = names.iter().copied().take(NAMES_SHOWN).collect();
    let more = names.len() - shown.len();
    let and = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{count} ({}{and})", shown.join(", "))
}
