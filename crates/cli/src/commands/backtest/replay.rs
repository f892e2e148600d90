//! Replays every policy with every seed, on all cores, and says how far it is.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use flyball_simulator::fluid::{self, Keep};
use flyball_simulator::score::Outcome;

use super::answer::{DecisionView, HullView};
use super::args::ReplayArgs;
use super::collect::Played;
use super::ground::Ground;
use super::optimum;
use super::policies::Named;
use super::recorded::Recorded;
use super::requests;
use crate::output::Progress;

pub(super) const CLAIRVOYANT: &str = "clairvoyant";

/// What came of everything: the clairvoyant first.
pub(super) struct Replayed {
    pub(super) played: Vec<Played>,
    pub(super) hull: Vec<HullView>,
    /// What is left to gain for who does not know the future.
    pub(super) causal: Option<HullView>,
}

/// What came of one replay.
struct Came {
    outcome: Outcome,
    decisions: Vec<DecisionView>,
    hull: Vec<HullView>,
}

pub(super) fn seeds(args: &ReplayArgs) -> Vec<u64> {
    (1..=args.seeds).collect()
}

/// The clairvoyant and every policy, with every seed.
pub(super) fn all(
    ground: &Ground,
    args: &ReplayArgs,
    policies: &[Named],
    progress: &Progress,
) -> Replayed {
    let seeds = seeds(args);
    let clairvoyant = (CLAIRVOYANT.to_owned(), true);
    let named = policies.iter().map(|policy| (policy.name.clone(), false));
    let players: Vec<(String, bool)> = std::iter::once(clairvoyant).chain(named).collect();
    // The first seed of each comes first: it also keeps its minutes, and so takes longest.
    let came = parallel(players.len() * seeds.len(), progress, "backtest", |job| {
        let (seed, player) = (job / players.len(), job % players.len());
        one(ground, args, player.checked_sub(1).map(|at| &policies[at]), seeds[seed], seed == 0)
    });
    let mut replayed = Replayed {
        played: Vec::new(),
        hull: Vec::new(),
        causal: seeds.first().map(|seed| {
            let world = ground.world(args, *seed, Keep::default());
            optimum::without_the_future(&world, args.misses)
        }),
    };
    for (name, clairvoyant) in &players {
        let (name, clairvoyant) = (name.clone(), *clairvoyant);
        replayed.played.push(Played { name, clairvoyant, ..Played::default() });
    }
    for (job, came) in came.into_iter().enumerate() {
        let played = &mut replayed.played[job % players.len()];
        played.outcomes.push(came.outcome);
        if job < players.len() {
            played.decisions = came.decisions;
        }
        if job == 0 {
            replayed.hull = came.hull;
        }
    }
    replayed
}

/// Does all jobs, as many at once as there are cores, and gives what they came to in order.
pub(in crate::commands) fn parallel<T: Send>(
    jobs: usize,
    progress: &Progress,
    command: &str,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let (done, finished) = mpsc::channel();
    let mut came: Vec<Option<T>> = Vec::new();
    came.resize_with(jobs, || None);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from).min(jobs) {
            let (done, next, work) = (done.clone(), &next, &work);
            scope.spawn(move || {
                loop {
                    let job = next.fetch_add(1, Ordering::Relaxed);
                    // Nobody listens only if the command is being ended.
                    if job >= jobs || done.send((job, work(job))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(done);
        for (count, (job, result)) in finished.iter().enumerate() {
            came[job] = Some(result);
            progress.show(&bar(command, count + 1, jobs));
        }
    });
    came.into_iter().flatten().collect()
}

/// `backtest [#######.............] 7 of 12 replays`.
fn bar(command: &str, count: usize, total: usize) -> String {
    const WIDTH: usize = 20;
    let full = count * WIDTH / total.max(1);
    let (done, open) = ("#".repeat(full), ".".repeat(WIDTH - full));
    format!("{command} [{done}{open}] {count} of {total} replays")
}

fn one(ground: &Ground, args: &ReplayArgs, policy: Option<&Named>, seed: u64, keep: bool) -> Came {
    let world = ground.world(args, seed, Keep { timeline: keep, decisions: false });
    match policy {
        None => {
            let (outcome, hull) = optimum::play(&world, keep);
            Came { outcome, decisions: Vec::new(), hull }
        }
        Some(policy) => {
            let mut recorded = Recorded::new(policy.make());
            let outcome = match ground.by_request {
                true => requests::play(ground, args, &world, &mut recorded),
                false => fluid::run(&world, &mut recorded),
            };
            Came { outcome, decisions: recorded.decisions, hull: Vec::new() }
        }
    }
}

#[cfg(test)]
#[test]
fn jobs_come_back_in_order() {
    let quiet = crate::output::Printer {
        format: crate::output::Format::Table,
        color: crate::output::Color::Never,
        quiet: true,
        progress: false,
    };
    let squares = parallel(100, &quiet.progress(), "backtest", |job| job * job);
    assert!(squares.iter().enumerate().all(|(job, square)| *square == job * job));
    assert_eq!(squares.len(), 100);
    assert_eq!(bar("backtest", 5, 10), "backtest [##########..........] 5 of 10 replays");
}
