//! Beside the loop: training runs. One that does not lead asks nobody and remembers nothing; it goes on from the statuses.

use super::kueue::{self, KueueWriter};
use crate::apply::{self, ApplyError};
use crate::lead::Fence;
use crate::loans::LoanBoard;
use crate::observe::{JobKind, JobWatches, Watches, WorkloadsOfRuns};
use crate::report::{Board, ShownRun, StatusPublisher};
use crate::runs::act::{self, RunStep};
use crate::runs::heartbeat::{self, HeartbeatAnswer, HeartbeatTurns};
use crate::runs::preempt::PreemptionPlace;
use crate::runs::{self, RunKey, RunReport, SeenRun, TrackedRun, ZoneHistory, loan};
use crate::settings::KueueSettings;
use crate::time;
use flyball_core::ids::RunId;
use flyball_core::units::Micros;
use flyball_resources::TrainingRun;
use futures::{StreamExt as _, stream};
use kube::{Client, ResourceExt as _};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::time::MissedTickBehavior;

/// Between two rounds: what a person who watches waits for.
const OBSERVE_EVERY: Duration = Duration::from_secs(5);

/// The same while machines are given back: somebody waits for them.
const RETURNING: Duration = Duration::from_secs(1);

/// The longest time until somebody decides again, as decisions count on it: an operator that restarts takes less.
const TICK: Micros = Micros::from_minutes(1);

/// Statuses that are written after one round. The rest is written after the next one.
const WRITES: usize = 100;

/// Characters of why a step was not made.
const WHY: usize = 300;

/// Writes at the same time.
const AT_ONCE: usize = 16;

/// Observes training runs and carries out what is decided about them.
pub(super) struct RunWatch {
    client: Client,
    watches: Watches,
    publisher: StatusPublisher,
    fence: Fence,
    board: Arc<Board>,
    loans: Arc<LoanBoard>,
    kueue: KueueWriter,
}

/// What is remembered from one round to the next.
struct Remembered {
    jobs: JobWatches,
    tracked: BTreeMap<RunKey, TrackedRun>,
    zones: ZoneHistory,
    turns: HeartbeatTurns,
    written: BTreeMap<RunKey, Instant>,
}

/// What was observed and decided in one round.
struct Round {
    seen: Vec<SeenRun>,
    frozen: bool,
    reports: Vec<RunReport>,
    places: BTreeMap<RunKey, PreemptionPlace>,
    /// How long observing and deciding took.
    took: [Duration; 2],
}

impl RunWatch {
    /// One that uses these.
    pub(super) fn of(
        client: &Client,
        watches: &Watches,
        publisher: &StatusPublisher,
        fence: &Fence,
        board: &Arc<Board>,
        loans: &Arc<LoanBoard>,
        settings: KueueSettings,
    ) -> Self {
        let board = Arc::clone(board);
        Self {
            client: client.clone(),
            watches: watches.clone(),
            publisher: publisher.clone(),
            fence: fence.clone(),
            loans: Arc::clone(loans),
            kueue: KueueWriter {
                client: client.clone(),
                fence: fence.clone(),
                board: Arc::clone(&board),
                settings,
            },
            board,
        }
    }

    /// Observes again and again. Ends never.
    pub(super) async fn run(self) {
        self.watches.runs_listed().await;
        let mut remembered = Remembered {
            jobs: self.watches.job_watches(),
            tracked: BTreeMap::new(),
            zones: ZoneHistory::default(),
            turns: HeartbeatTurns::default(),
            written: BTreeMap::new(),
        };
        let mut ticks = tokio::time::interval(OBSERVE_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let returning = remembered.tracked.values().any(|run| run.returning);
            tokio::select! {
                _ = ticks.tick() => {}
                () = self.loans.ordered() => {}
                () = tokio::time::sleep(RETURNING), if returning => {}
            }
            let runs = self.watches.runs();
            let wanted = runs.iter().flat_map(|run| runs::kinds(run));
            let wanted: BTreeSet<JobKind> =
                wanted.chain(kueue::kinds(&self.kueue.settings)).collect();
            remembered.jobs.want(wanted.into_iter()).await;
            if self.fence.may_write(Instant::now()) {
                let Round { seen, frozen, reports, places, took } =
                    self.observe(&runs, &mut remembered).await;
                self.offer(&reports);
                let began = Instant::now();
                // Whoever waits to start waits for nothing else.
                let gates = kueue::gates(&runs, &seen, &remembered.tracked, frozen);
                self.kueue.answer(&gates, &remembered.jobs).await;
                self.publish(&reports, &mut remembered.written).await;
                self.kueue.mark(&seen, &places, frozen, &remembered.jobs).await;
                self.act(seen, frozen, &mut remembered).await;
                let [observed, decided] = took;
                self.board.change(|shown| {
                    shown.runs = Arc::new(reports.iter().map(shown_run).collect());
                    shown.runs_took = Some([observed, decided, began.elapsed()]);
                });
            } else {
                // Another operator leads and knows better.
                remembered.tracked.clear();
                remembered.written.clear();
                self.loans.stand_by();
                self.board.change(|shown| {
                    shown.runs = Arc::default();
                    shown.runs_took = None;
                });
            }
        }
    }

    async fn observe(&self, all: &[Arc<TrainingRun>], remembered: &mut Remembered) -> Round {
        let began = Instant::now();
        let gangs = all.iter().map(|run| runs::gang_key(run)).collect();
        let facts = self.watches.run_facts(&gangs);
        let workloads = WorkloadsOfRuns::of_watches(&remembered.jobs);
        let now = time::of_system(SystemTime::now());
        remembered.keep(all, facts.pools.iter().map(|pool| pool.name_any()).collect());
        let zones = &mut remembered.zones;
        let seen: Vec<SeenRun> = all
            .iter()
            .filter_map(|run| runs::observe(run, &facts, &workloads, zones, now))
            .collect();
        let mut answers = heartbeat::collect(&self.client, &seen, &mut remembered.turns, now).await;
        // Asking takes time, and heartbeats are not from the future.
        let now = time::of_system(SystemTime::now());
        let observed = began.elapsed();
        let orders = self.loans.orders(now);
        let consider = |seen: &SeenRun| {
            let key = runs::key(&seen.run);
            let answer = answers.remove(&key).unwrap_or(HeartbeatAnswer::NotRequested);
            let tracked = remembered.tracked.entry(key.clone());
            let tracked = tracked.or_insert_with(|| TrackedRun::resume(&seen.run, now));
            let id = RunId::new(&key.0, &key.1).ok();
            let order = id.as_ref().and_then(|id| orders.get(id));
            let taken_back = loan::note(seen, tracked, order, now);
            let pool = seen.run.spec.pool.as_ref().and_then(|pool| pool.parse().ok());
            if let Some((pool, one)) = pool.zip(taken_back) {
                self.loans.took(&pool, one.took, one.promised);
            }
            runs::consider(seen, &answer, tracked, TICK, now)
        };
        let mut reports: Vec<RunReport> = seen.iter().map(consider).collect();
        let places = kueue::places(&mut reports, &workloads);
        let took = [observed, began.elapsed().saturating_sub(observed)];
        Round { seen, frozen: facts.frozen, reports, places, took }
    }

    /// Says who borrows, or would.
    fn offer(&self, reports: &[RunReport]) {
        let borrowers = reports.iter().filter_map(|report| {
            let id = RunId::new(&report.key.0, &report.key.1).ok()?;
            Some((id, report.borrower.clone()?))
        });
        self.loans.offer(borrowers.collect(), time::of_system(SystemTime::now()));
    }

    /// Does the next step of each run whose mode is Act.
    async fn act(&self, seen: Vec<SeenRun>, frozen: bool, remembered: &mut Remembered) {
        for seen in seen {
            let key = runs::key(&seen.run);
            let now = time::of_system(SystemTime::now());
            let tracked = remembered.tracked.get_mut(&key);
            let Some(tracked) = tracked else { continue };
            let step = match seen.run.spec.borrow {
                true => loan::next_step(&seen, tracked, frozen, now),
                false => act::next_step(&seen, tracked, frozen, now),
            };
            let Some(step) = step else { continue };
            let done = self.step(&key.0, &step, &remembered.jobs).await;
            let run = format!("{}/{}", key.0, key.1);
            tracked.refused = done.as_ref().err().cloned();
            match (&done, step) {
                (Ok(()), step) => {
                    tracing::info!(run, step = step.name(), "step of a training run done");
                    self.board.change(|shown| shown.wrote(step.name()));
                    tracked.did(&step, now);
                }
                (Err(why), step) => {
                    tracked.did_not(&step, now);
                    tracing::warn!(run, step = step.name(), why, "step of a training run not done");
                }
            }
        }
    }

    async fn step(&self, namespace: &str, step: &RunStep, jobs: &JobWatches) -> Result<(), String> {
        let (client, fence) = (&self.client, &self.fence);
        match step {
            RunStep::Apply(object) => apply::make_object(client, fence, object)
                .await
                .map_err(|error| self.not_done(&error)),
            RunStep::Activate { workload, active } => {
                let resource = jobs.resource(JobKind::Workload);
                let resource = resource.ok_or_else(|| "Kueue is not installed".to_owned())?;
                let place = (namespace, workload.as_str());
                let done = apply::kueue::activate(client, fence, place, &resource, *active).await;
                done.map_err(|error| self.not_done(&error))
            }
            RunStep::Save { address, instructions } => {
                if !fence.may_write(Instant::now()) {
                    return Err("this operator does not lead".to_owned());
                }
                heartbeat::instruct(*address, instructions).await
            }
        }
    }

    fn not_done(&self, error: &ApplyError) -> String {
        self.board.change(|shown| shown.failed("apply", error.name()));
        // Webhooks repeat the whole object.
        error.to_string().chars().take(WHY).collect()
    }

    async fn publish(&self, reports: &[RunReport], written: &mut BTreeMap<RunKey, Instant>) {
        let news = reports.iter().filter(|report| {
            let since = written.get(&report.key).map(Instant::elapsed);
            runs::is_news(report.run.status.as_ref(), &report.status, since)
        });
        let news: Vec<RunReport> = news.take(WRITES).cloned().collect();
        let written_now = stream::iter(news)
            .map(|report| async move {
                for (reason, message) in runs::turned(report.run.status.as_ref(), &report.status) {
                    self.publisher.happened(&*report.run, reason, "Decide", &message).await;
                }
                (report.key.clone(), self.publisher.run(&report.run, &report.status).await)
            })
            .buffer_unordered(AT_ONCE)
            .collect::<Vec<_>>()
            .await;
        for (key, done) in written_now {
            match done {
                Ok(()) => {
                    written.insert(key, Instant::now());
                    self.board.change(|shown| shown.wrote("status"));
                }
                Err(error) => super::publish::not_written(&self.board, &error),
            }
        }
    }
}

impl Remembered {
    /// Forgets runs that are gone, or that are others of the same name.
    fn keep(&mut self, all: &[Arc<TrainingRun>], pools: BTreeSet<String>) {
        let uids: BTreeMap<RunKey, String> =
            all.iter().map(|run| (runs::key(run), run.uid().unwrap_or_default())).collect();
        self.tracked.retain(|key, tracked| uids.get(key) == Some(&tracked.uid));
        self.turns.keep(|key| uids.contains_key(key));
        self.written.retain(|key, _| uids.contains_key(key));
        self.zones.keep(&pools);
    }
}

fn shown_run(report: &RunReport) -> ShownRun {
    ShownRun {
        namespace: report.key.0.clone(),
        name: report.key.1.clone(),
        state: report.state,
        step: report.status.progress.as_ref().and_then(|progress| progress.step),
        saved_age_seconds: report.saved_age_seconds,
        slack_seconds: report.slack_seconds,
        goodput: report.goodput,
        pods: report.pods,
        hourly_cost: report.hourly_cost,
        suggested_save_seconds: report.status.suggested_save_seconds,
    }
}
