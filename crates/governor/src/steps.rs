//! The steps from what runs to what should run.
//!
//! Replicas that do not serve yet go first, the youngest of them first; then the one with the
//! least in flight. A replica that served is drained and deleted only when it is seen to be empty:
//! removing at random killed running work in most rivals (kubernetes/kubernetes#45509,
//! ray-project/ray#43034, knative/serving#13075).
//!
//! Those that do not serve although they should are made up for by others (`VariantState::spare`), and go
//! when enough serve; those that cannot be made up for are replaced one by one.

use crate::memory::VariantMemory;
use crate::variant_state::{PURCHASES, VariantState, replicas};
use flyball_core::decision::{Action, Target};
use flyball_core::ids::ReplicaId;
use flyball_core::snapshot::{Replica, ReplicaState};
use flyball_core::units::{Micros, Timestamp};
use std::collections::BTreeSet;

/// Replicas asked for so recently may not be seen yet. After it, what is missing was lost.
const SEEN_AFTER: Micros = Micros::from_seconds(60);

/// What is known beside the variant itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene {
    pub(crate) now: Timestamp,
    /// Removes nothing that serves or starts.
    pub(crate) blind: bool,
    /// Whether a replica of the model serves that will stay.
    pub(crate) serves: bool,
}

/// What one variant should have, and the steps to get there.
pub(crate) fn target(
    variant: VariantState<'_>,
    memory: Option<&mut VariantMemory>,
    scene: Scene,
) -> Target {
    let actions = memory.map_or_else(Vec::new, |memory| steps(&variant, memory, scene));
    // Whoever goes by these steps is counted where it goes, and no longer as one to make up for.
    let goes = actions.iter().filter_map(going).filter(|id| variant.is_failing(id)).count() as u32;
    Target {
        unconstrained: replicas(variant.recommended),
        replicas: replicas(variant.target),
        spares: replicas((variant.spared + variant.replaced).saturating_sub(goes)),
        variant: variant.id,
        actions,
    }
}

fn steps(variant: &VariantState<'_>, memory: &mut VariantMemory, scene: Scene) -> Vec<Action> {
    let mut actions = Vec::new();
    for (id, replica) in &variant.observed.replicas {
        if replica.state == ReplicaState::Draining && replica.is_safe_to_delete() {
            actions.push(Action::Delete { replica: id.clone() });
        }
    }
    let gone = let_go(variant, scene);
    actions.extend(gone.iter().map(|id| go(variant, id)));
    let live = variant.live();
    if variant.target < live && !scene.blind {
        let count = (live - variant.target) as usize;
        remove(variant, count, &gone, &mut memory.leaving, &mut actions);
    } else if variant.target > live {
        start(variant, scene.now, &mut actions);
    }
    let goes: BTreeSet<&ReplicaId> = actions.iter().filter_map(going).collect();
    let stays = variant.sick.iter().copied().filter(|id| !goes.contains(id));
    let candidates = stays.filter_map(|id| Some((id, variant.observed.replicas.get(id)?)));
    let left_over = variant.sick.len() as u32 > variant.spared;
    let replaced = memory.starts.replace(candidates, left_over, scene.now);
    actions.extend(replaced.map(|replica| Action::Replace { replica }));
    actions
}

/// Those that do not serve, or will not for long, and are made up for.
fn let_go<'a>(variant: &VariantState<'a>, scene: Scene) -> Vec<&'a ReplicaId> {
    let enough = variant.ready >= variant.target && !scene.blind;
    let state = |id: &ReplicaId| variant.observed.replicas.get(id).map(|replica| replica.state);
    let mut gone = Vec::new();
    for id in &variant.gone {
        let leaves = state(id) == Some(ReplicaState::Leaving);
        if (leaves && scene.serves) || (!leaves && enough) {
            gone.push(*id);
        }
    }
    // One that served is told to drain at once: it may take a while to be seen to be empty.
    for id in variant.sick.iter().take(variant.spared as usize) {
        let served = state(id) == Some(ReplicaState::Unready);
        if (served && !scene.blind) || enough {
            gone.push(*id);
        }
    }
    gone
}

fn start(variant: &VariantState<'_>, now: Timestamp, actions: &mut Vec<Action>) {
    // What was asked for before and is not there is on its way, or was lost and is asked for
    // again. Without the wait every look would ask once more.
    let recent = |at: Timestamp| now.since(at).is_none_or(|age| age < SEEN_AFTER);
    let on_its_way =
        variant.last.is_some_and(|last| recent(last.since) || last.started.is_some_and(recent));
    let there = if on_its_way { variant.baseline.max(variant.live()) } else { variant.live() };
    let mut count = variant.target.saturating_sub(there);
    for (purchase, bought) in PURCHASES.into_iter().zip(variant.buys) {
        let part = bought.min(count);
        if part > 0 {
            actions.push(Action::Start { count: replicas(part), purchase });
            count -= part;
        }
    }
    if count > 0 {
        let offered =
            variant.offers.iter().enumerate().filter_map(|(n, price)| Some((n, (*price)?)));
        // Spot is bought only where the mix says so.
        let firm = offered.filter(|(n, _)| *n != 2).min_by(|a, b| a.1.total_cmp(&b.1));
        let purchase = PURCHASES[firm.map_or(1, |(n, _)| n)];
        actions.push(Action::Start { count: replicas(count), purchase });
    }
}

fn remove(
    variant: &VariantState<'_>,
    count: usize,
    gone: &[&ReplicaId],
    leaving: &mut Vec<ReplicaId>,
    actions: &mut Vec<Action>,
) {
    leaving.retain(|id| !gone.contains(&id));
    // Those that were told to go and are still there come first, or two would go for one.
    if leaving.len() < count {
        let more = count - leaving.len();
        let stays = |id: &ReplicaId, replica: &Replica| {
            replica.state != ReplicaState::Draining && !leaving.contains(id) && !gone.contains(&id)
        };
        let all = variant.observed.replicas.iter();
        let mut candidates: Vec<_> = all.filter(|(id, replica)| stays(id, replica)).collect();
        candidates.sort_by_key(|(id, replica)| rank(variant, id, replica));
        leaving.extend(candidates.into_iter().take(more).map(|(id, _)| id.clone()));
    }
    let there = |id: &&ReplicaId| variant.observed.replicas.contains_key(*id);
    actions.extend(leaving.iter().take(count).filter(there).map(|id| go(variant, id)));
}

/// The step by which a replica goes.
fn go(variant: &VariantState<'_>, id: &ReplicaId) -> Action {
    let replica = id.clone();
    let safe = variant.observed.replicas.get(id).is_some_and(Replica::is_safe_to_delete);
    if safe { Action::Delete { replica } } else { Action::Drain { replica } }
}

const fn going(action: &Action) -> Option<&ReplicaId> {
    match action {
        Action::Drain { replica } | Action::Delete { replica } => Some(replica),
        Action::Start { .. } | Action::Replace { .. } => None,
    }
}

type Rank<'a> = (u8, u32, u64, i64, u64, &'a ReplicaId);

/// Smallest goes first: what does not come up, then what is not yet on a node, then starting, then
/// what served and does not now, then the slowest of those that are slow, then with least in flight; among equals the dearer, then the
/// younger, which has the least in its cache.
fn rank<'a>(variant: &VariantState<'_>, id: &'a ReplicaId, replica: &Replica) -> Rank<'a> {
    let stage = match replica.state {
        ReplicaState::Failed => 0,
        ReplicaState::Starting if variant.is_failing(id) => 0,
        ReplicaState::Pending => 1,
        ReplicaState::Starting => 2,
        ReplicaState::Unready | ReplicaState::Lost | ReplicaState::Leaving => 3,
        ReplicaState::Ready | ReplicaState::Draining => 4,
    };
    let busy = match stage {
        3 | 4 => replica.in_flight.last_seen().map_or(u64::MAX, |count| count.get()),
        _ => 0,
    };
    let place = replica.purchase.and_then(|paid| PURCHASES.iter().position(|p| *p == paid));
    let price = place.and_then(|place| variant.offers[place]).unwrap_or(0.0);
    let speed = variant.observed.slow.get(id).copied().unwrap_or(1_000_000);
    (stage, speed, busy, -(price as i64), u64::MAX - replica.since.as_micros(), id)
}
