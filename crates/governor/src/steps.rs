//! The steps from what runs to what should run.
//!
//! Replicas that do not serve yet go first, the youngest of them first; then the one with the
//! least in flight. A replica that serves is drained and deleted only when it is seen to be empty:
//! removing at random killed running work in most rivals (kubernetes/kubernetes#45509,
//! ray-project/ray#43034, knative/serving#13075).

use crate::lane::{Lane, PURCHASES, replicas};
use flyball_core::decision::Action;
use flyball_core::ids::ReplicaId;
use flyball_core::snapshot::{Replica, ReplicaState};
use flyball_core::units::{Micros, Timestamp};

/// Replicas asked for so recently may not be seen yet. After it, what is missing was lost.
const SEEN_AFTER: Micros = Micros::from_seconds(60);

/// The steps for one variant. `blind` removes nothing that serves or starts.
pub(crate) fn steps(
    lane: &Lane<'_>,
    leaving: &mut Vec<ReplicaId>,
    now: Timestamp,
    blind: bool,
) -> Vec<Action> {
    let mut actions = Vec::new();
    for (id, replica) in &lane.variant.replicas {
        if replica.state == ReplicaState::Draining && replica.is_safe_to_delete() {
            actions.push(Action::Delete { replica: id.clone() });
        }
    }
    let live = lane.live();
    if lane.target < live && !blind {
        remove(lane, (live - lane.target) as usize, leaving, &mut actions);
    } else if lane.target > live {
        start(lane, now, &mut actions);
    }
    actions
}

fn start(lane: &Lane<'_>, now: Timestamp, actions: &mut Vec<Action>) {
    // What was asked for before and is not there is on its way, or was lost and is asked for
    // again. Without the wait every look would ask once more.
    let recent = |at: Timestamp| now.since(at).is_none_or(|age| age < SEEN_AFTER);
    let on_its_way =
        lane.last.is_some_and(|last| recent(last.since) || last.started.is_some_and(recent));
    let there = if on_its_way { lane.baseline.max(lane.live()) } else { lane.live() };
    let mut count = lane.target.saturating_sub(there);
    for (purchase, bought) in PURCHASES.into_iter().zip(lane.buys) {
        let part = bought.min(count);
        if part > 0 {
            actions.push(Action::Start { count: replicas(part), purchase });
            count -= part;
        }
    }
    if count > 0 {
        let offered = lane.offers.iter().enumerate().filter_map(|(n, price)| Some((n, (*price)?)));
        // Spot is bought only where the mix says so.
        let firm = offered.filter(|(n, _)| *n != 2).min_by(|a, b| a.1.total_cmp(&b.1));
        let purchase = PURCHASES[firm.map_or(1, |(n, _)| n)];
        actions.push(Action::Start { count: replicas(count), purchase });
    }
}

fn remove(lane: &Lane<'_>, count: usize, leaving: &mut Vec<ReplicaId>, actions: &mut Vec<Action>) {
    // Those that were told to go and are still there come first, or two would go for one.
    if leaving.len() < count {
        let more = count - leaving.len();
        let mut candidates: Vec<(&ReplicaId, &Replica)> = lane
            .variant
            .replicas
            .iter()
            .filter(|(id, replica)| {
                replica.state != ReplicaState::Draining && !leaving.contains(id)
            })
            .collect();
        candidates.sort_by_key(|(id, replica)| rank(lane, id, replica));
        leaving.extend(candidates.into_iter().take(more).map(|(id, _)| id.clone()));
    }
    for id in leaving.iter().take(count) {
        let Some(replica) = lane.variant.replicas.get(id) else { continue };
        let replica = if replica.is_safe_to_delete() {
            Action::Delete { replica: id.clone() }
        } else {
            Action::Drain { replica: id.clone() }
        };
        actions.push(replica);
    }
}

type Rank<'a> = (u8, u64, i64, u64, &'a ReplicaId);

/// Smallest goes first: not yet on a node, then starting, then with least in flight; among equals
/// the dearer, then the younger, which has the least in its cache.
fn rank<'a>(lane: &Lane<'_>, id: &'a ReplicaId, replica: &Replica) -> Rank<'a> {
    let stage = match replica.state {
        ReplicaState::Pending => 0,
        ReplicaState::Starting => 1,
        ReplicaState::Ready | ReplicaState::Draining => 2,
    };
    let busy = match stage {
        2 => replica.in_flight.last_seen().map_or(u64::MAX, |count| count.get()),
        _ => 0,
    };
    let place = replica.purchase.and_then(|paid| PURCHASES.iter().position(|p| *p == paid));
    let price = place.and_then(|place| lane.offers[place]).unwrap_or(0.0);
    (stage, busy, -(price as i64), u64::MAX - replica.since.as_micros(), id)
}
