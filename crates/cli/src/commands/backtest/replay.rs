//! Replays every policy with every seed, on all cores, and says how far it is.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use flyball_simulator::fluid::{self, Keep};

use super::answer::HullView;
use super::args::ReplayArgs;
use super::collect::Played;
use super::ground::Ground;
use super::optimum;
use super::policies::Named;
use super::recorded::Recorded;
use crate::output::Progress;

pub(super) const CLAIRVOYANT: &str = "clairvoyant";

/// What came of everything: the clairvoyant first.
pub(super) struct Replayed {
    pub(super) played: Vec<Played>,
    pub(super) hull: Vec<HullView>,
}

/// One replay: a policy, or the clairvoyant before all of them, and a seed.
#[derive(Clone, Copy)]
struct Job {
    player: usize,
    seed: usize,
}

pub(super) fn seeds(args: &ReplayArgs) -> Vec<u64> {
    (1..=args.seeds).collect()
}

pub(super) fn all(
    ground: &Ground,
    args: &ReplayArgs,
    policies: &[Named],
    progress: &Progress,
) -> Replayed {
    let seeds = seeds(args);
    let mut played = vec![Played {
        name: CLAIRVOYANT.to_owned(),
        clairvoyant: true,
        outcomes: vec![Default::default(); seeds.len()],
        decisions: Vec::new(),
    }];
    played.extend(policies.iter().map(|policy| Played {
        name: policy.name.clone(),
        clairvoyant: false,
        outcomes: vec![Default::default(); seeds.len()],
        decisions: Vec::new(),
    }));
    // The first seed of each comes first: it also keeps its minutes, and so takes longest.
    let jobs: Vec<Job> = (0..seeds.len())
        .flat_map(|seed| (0..played.len()).map(move |player| Job { player, seed }))
        .collect();
    let (total, names): (usize, Vec<String>) =
        (jobs.len(), played.iter().map(|one| one.name.clone()).collect());
    let results = Mutex::new(Replayed { played, hull: Vec::new() });
    let next = AtomicUsize::new(0);
    let (done, finished) = mpsc::channel();
    let workers = thread::available_parallelism().map_or(1, usize::from).min(total);
    thread::scope(|scope| {
        for _ in 0..workers {
            let (done, jobs, results, next, seeds) = (done.clone(), &jobs, &results, &next, &seeds);
            scope.spawn(move || {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    one(ground, args, policies, seeds, *job, results);
                    // Nobody listens only if the command is being ended.
                    let _ = done.send(job.player);
                }
            });
        }
        drop(done);
        for (count, player) in finished.iter().enumerate() {
            progress.say(&bar(count + 1, total, &names[player]));
        }
    });
    results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// `backtest [#######.............] 7 of 12, hpa`.
fn bar(count: usize, total: usize, name: &str) -> String {
    const WIDTH: usize = 20;
    let full = count * WIDTH / total.max(1);
    format!(
        "backtest [{}{}] {count} of {total} replays, {name}",
        "#".repeat(full),
        ".".repeat(WIDTH - full)
    )
}

fn one(
    ground: &Ground,
    args: &ReplayArgs,
    policies: &[Named],
    seeds: &[u64],
    job: Job,
    results: &Mutex<Replayed>,
) {
    let keep = Keep { timeline: job.seed == 0, decisions: false };
    let world = ground.world(args, seeds[job.seed], keep);
    let mut decisions = Vec::new();
    let mut hull = Vec::new();
    let outcome = match job.player.checked_sub(1) {
        None => {
            let (outcome, found) = optimum::play(&world, args.misses, job.seed == 0);
            hull = found;
            outcome
        }
        Some(policy) => {
            let mut recorded = Recorded::new(policies[policy].make());
            let outcome = fluid::run(&world, &mut recorded);
            decisions = recorded.decisions;
            outcome
        }
    };
    let mut results = results.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.played[job.player].outcomes[job.seed] = outcome;
    if job.seed == 0 {
        results.played[job.player].decisions = decisions;
        if job.player == 0 {
            results.hull = hull;
        }
    }
}
