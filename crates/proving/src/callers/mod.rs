//! Several callers at once, each with its own key, rate, prompts and manners, in one process.
//!
//! `load` asks one question of a proxy: what a request costs. Here it is whether callers who share
//! engines are treated as they should be: who is answered, who is refused, how soon, and how that
//! changes over a run. A plan is a JSON file ([`CallersPlan`]), the answer one JSON object ([`CallersReport`]).
//!
//! It costs little, because it shares two cores with gateways and engines: connections are kept,
//! answers are not read as JSON, and text is cut from one pool. Start at [`run`]; `prompts` has what
//! requests say, `tally` what is counted.

mod plan;
mod prompts;
mod tally;

pub use plan::{
    CallerPlan, CallersPlan, Cancels, Conversations, Good, LoadStage, PlannedTokens, Sessions,
};
pub use tally::{Account, CallerCounts, CallerSeries, LatencyQuantiles};

use crate::history::End;
use crate::load::{Client, Histogram};
use anyhow::{Context, Result, ensure};
use prompts::{Pool, Prompts, Request};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tally::{Done, Tally};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

/// What a run found.
#[derive(Clone, Debug, Serialize)]
pub struct CallersReport {
    /// When it began, in seconds since 1970.
    pub started_unix: f64,
    /// From the first request to the last answer.
    pub seconds: f64,
    /// All callers together.
    pub all: Account,
    /// Callers of one group together.
    pub groups: BTreeMap<String, Account>,
    pub callers: Vec<Account>,
}

/// Runs to the end of the plan, and until the last answer.
pub async fn run(plan: CallersPlan) -> Result<CallersReport> {
    let problems = plan.problems();
    ensure!(problems.is_empty(), "the plan cannot be: {}", problems.join("; "));
    let pool = Pool::new(plan.seed);
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let started = Instant::now();
    let plan = Arc::new(plan);
    let mut asking = JoinSet::new();
    let mut callers = Vec::new();
    for index in 0..plan.callers.len() {
        let prompts = Prompts::new(&plan, index, &pool).context("a caller too many")?;
        let one = Arc::new(Asker {
            plan: Arc::clone(&plan),
            index,
            started,
            prompts: Mutex::new(prompts),
            tally: Mutex::new(Tally::new(&plan)),
            idle: plan.targets.iter().map(|_| Mutex::default()).collect(),
            turn: Mutex::new(index),
        });
        callers.push(Arc::clone(&one));
        asking.spawn(async move {
            if one.caller().concurrency.is_some() { one.closed().await } else { one.open().await }
        });
    }
    while let Some(ended) = asking.join_next().await {
        ended.context("a caller's task ended badly")??;
    }
    let (mut all, mut groups) = (Tally::default(), BTreeMap::<String, Tally>::new());
    let accounts = callers.iter().map(|one| {
        let tally = locked(&one.tally);
        all.add(&tally);
        if let Some(group) = &one.caller().group {
            groups.entry(group.clone()).or_default().add(&tally);
        }
        tally.account(&one.caller().name)
    });
    let accounts: Vec<Account> = accounts.collect();
    Ok(CallersReport {
        started_unix: since.as_secs_f64(),
        seconds: started.elapsed().as_secs_f64(),
        all: all.account("all"),
        groups: groups
            .into_iter()
            .map(|(name, some)| (name.clone(), some.account(&name)))
            .collect(),
        callers: accounts,
    })
}

/// One caller at work.
struct Asker {
    plan: Arc<CallersPlan>,
    index: usize,
    started: Instant,
    prompts: Mutex<Prompts>,
    tally: Mutex<Tally>,
    /// Clients without a request, by the gateway that they are connected to.
    idle: Vec<Mutex<Vec<Client>>>,
    /// The gateway whose turn it is.
    turn: Mutex<usize>,
}

impl Asker {
    fn caller(&self) -> &CallerPlan {
        &self.plan.callers[self.index]
    }

    /// So many at once; each asks again when it was answered.
    async fn closed(self: Arc<Self>) -> Result<()> {
        let seconds = self.plan.seconds;
        let until = self.caller().until_seconds.unwrap_or(seconds).min(seconds);
        let (from, until) = (self.at(self.caller().from_seconds), self.at(until));
        let again = Duration::from_millis(self.caller().again_ms);
        let mut workers = JoinSet::new();
        for _ in 0..self.caller().concurrency.unwrap_or(0) {
            let one = Arc::clone(&self);
            workers.spawn(async move {
                sleep_until(from).await;
                while Instant::now() < until {
                    let Some(request) = locked(&one.prompts).next() else { break };
                    let end = one.ask(request, Instant::now()).await;
                    if !matches!(end, End::Whole | End::Cancelled) {
                        sleep(again).await;
                    }
                }
            });
        }
        while let Some(ended) = workers.join_next().await {
            ended.context("a worker's task ended badly")?;
        }
        Ok(())
    }

    /// At a rate, whether or not earlier ones were answered. A request counts from the moment at
    /// which the timer woke, which is up to a millisecond late and no fault of the target.
    async fn open(self: Arc<Self>) -> Result<()> {
        let mut chance = Pcg64Mcg::seed_from_u64(self.plan.seed ^ (self.index as u64) << 32);
        let places = Arc::new(Semaphore::new(self.caller().most_open));
        let mut asking = JoinSet::new();
        'stages: for (from, until, rate) in self.caller().rates(self.plan.seconds) {
            let mut next = from + distance(&mut chance, rate);
            while next < until {
                sleep_until(self.at(next)).await;
                let due = Instant::now();
                while asking.try_join_next().is_some() {}
                let now = self.started.elapsed().as_secs_f64();
                while next <= now && next < until {
                    next += distance(&mut chance, rate);
                    let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                        locked(&self.tally).unsent();
                        continue;
                    };
                    let Some(request) = locked(&self.prompts).next() else { break 'stages };
                    let one = Arc::clone(&self);
                    asking.spawn(async move {
                        one.ask(request, due).await;
                        drop(place);
                    });
                }
            }
        }
        while let Some(ended) = asking.join_next().await {
            ended.context("a request's task ended badly")?;
        }
        Ok(())
    }

    /// One request, to its end, on a connection that is free or new.
    async fn ask(&self, request: Request, due: Instant) -> End {
        let target = {
            let mut turn = locked(&self.turn);
            *turn += 1;
            *turn % self.idle.len()
        };
        let idle_one = locked(&self.idle[target]).pop();
        let mut client = idle_one.unwrap_or_else(|| self.client(target));
        let outcome = client.ask(&request.message, request.habit, &mut Histogram::default()).await;
        let ended = Instant::now();
        let done = Done {
            request: &request,
            outcome: &outcome,
            good: self.caller().good,
            started: self.started,
            due,
            ended,
        };
        locked(&self.tally).count(&done);
        // One that had to look elsewhere is not where it was put.
        if matches!(outcome.end, End::Whole | End::Status) && outcome.tries == 1 {
            locked(&self.idle[target]).push(client);
        }
        outcome.end
    }

    fn client(&self, target: usize) -> Client {
        let deadline = Duration::from_secs_f64(self.plan.deadline_seconds);
        let client = Client::to(self.plan.targets.clone(), target, deadline);
        if self.plan.names_models { client.naming() } else { client }
    }

    fn at(&self, seconds: f64) -> Instant {
        self.started + Duration::from_secs_f64(seconds.max(0.0))
    }
}

/// Seconds to the next request.
fn distance(chance: &mut Pcg64Mcg, rate: f64) -> f64 {
    let uniform: f64 = chance.random_range(f64::MIN_POSITIVE..1.0);
    // A rate of 0 is never.
    -uniform.ln() / rate
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
