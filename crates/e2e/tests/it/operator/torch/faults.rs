//! What happens to a run, when, and what it lost by that.

use super::LONG;
use super::gang::{self, Gang, SAVE_EVERY};
use super::ledger::{Ledger, StepLine};
use super::machines::{Machines, node};
use anyhow::{Context, Result, ensure};
use flyball_e2e::{Story, dynamic, note, until};
use kube::api::DeleteParams;
use std::time::{Duration, Instant};

/// For how long a node that died is gone: the operator looks every five seconds.
const GONE: Duration = Duration::from_secs(6);

/// The shortest notice of a cloud: Google's and Azure's.
const SHORTEST_NOTICE: Duration = Duration::from_secs(30);

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultKind {
    /// A node dies without a word.
    NodeLost,
    /// A node is taken after a notice, on which the operator has the run save.
    Notice,
    /// Kueue gives the machines to somebody who is worth more.
    Preempted,
}

impl FaultKind {
    pub(super) const ALL: [Self; 3] = [Self::NodeLost, Self::Notice, Self::Preempted];
}

/// What happened, and what it cost.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) kind: FaultKind,
    /// Steps that were made again after it.
    pub(super) repeated: u64,
    /// Steps of the ledger that the heartbeat did not have yet.
    pub(super) unreported: u64,
}

/// What happens to a run, and how many steps it takes for that.
pub(super) struct Plan {
    pub(super) steps: u64,
    kinds: Vec<FaultKind>,
    chance: Chance,
}

impl Plan {
    /// One of each.
    pub(super) fn short() -> Self {
        Self::of([1, 1, 1], 420)
    }

    /// Twenty nodes, twenty notices and some preemptions.
    pub(super) fn long() -> Self {
        Self::of([20, 20, 3], 4_000)
    }

    fn of(numbers: [usize; 3], steps: u64) -> Self {
        let each = FaultKind::ALL.into_iter().zip(numbers);
        let mut kinds: Vec<_> = each.flat_map(|(kind, many)| vec![kind; many]).collect();
        let mut chance = Chance(1);
        for place in (1..kinds.len()).rev() {
            kinds.swap(place, chance.below(place as u64 + 1) as usize);
        }
        Self { steps, kinds, chance }
    }

    /// All of it, one after the other.
    pub(super) async fn suffer(
        mut self,
        story: &Story,
        machines: &Machines,
        gang: &Gang,
        ledger: &Ledger,
    ) -> Result<Vec<Fault>> {
        let mut scene = Scene { story, machines, gang, ledger, number: 0 };
        let mut faults = Vec::new();
        for kind in std::mem::take(&mut self.kinds) {
            scene.number += 1;
            // Up to one and a half intervals: some attempts save nothing, some twice.
            let steps = 1 + self.chance.below(SAVE_EVERY * 3 / 2);
            let (fault, seconds) = Box::pin(scene.one(kind, steps, &mut self.chance)).await?;
            note(&format!("{}: {fault:?}, {seconds:.1} s until its next step", scene.number));
            faults.push(fault);
        }
        Ok(faults)
    }
}

/// Where faults happen.
struct Scene<'a> {
    story: &'a Story,
    machines: &'a Machines,
    gang: &'a Gang,
    ledger: &'a Ledger,
    number: usize,
}

impl Scene<'_> {
    /// One fault after so many steps more, and how long the run took to go on.
    async fn one(&self, kind: FaultKind, steps: u64, chance: &mut Chance) -> Result<(Fault, f64)> {
        let before = self.ledger.lines()?.len() as u64;
        until("further steps", LONG, async || {
            Ok((self.ledger.lines()?.len() as u64 >= before + steps).then_some(()))
        })
        .await?;
        tokio::time::sleep(Duration::from_millis(chance.below(50))).await;
        let attempt = self.last()?.attempt;
        match kind {
            FaultKind::NodeLost => {
                let pod = self.victim(chance).await?;
                self.machines.die(&self.story.cluster, &pod, GONE).await?;
            }
            FaultKind::Notice => Box::pin(self.reclaim(chance)).await?,
            FaultKind::Preempted => Box::pin(self.preempt()).await?,
        }
        Box::pin(self.went_on(kind, &attempt)).await
    }

    /// A pod of the run, whose node it is about.
    async fn victim(&self, chance: &mut Chance) -> Result<k8s_openapi::api::core::v1::Pod> {
        let mut pods = self.gang.pods(self.story).await?;
        ensure!(pods.len() == 2, "{} pods", pods.len());
        pods.sort_by_key(|pod| node(pod).map(str::to_owned).ok());
        Ok(pods.swap_remove(chance.below(2) as usize))
    }

    /// The provider gives notice, the operator has the run save, and the machine goes.
    async fn reclaim(&self, chance: &mut Chance) -> Result<()> {
        let (cluster, pod) = (&self.story.cluster, self.victim(chance).await?);
        let last = self.last()?.step;
        self.machines.notice(cluster, &pod, true)?;
        let began = Instant::now();
        // Its own checkpoints are at whole intervals.
        let asked = loop {
            let saved = self.ledger.saved()?;
            if saved > last && saved % SAVE_EVERY != 0 {
                break true;
            }
            if began.elapsed() > SHORTEST_NOTICE {
                break false;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        let seconds = began.elapsed().as_secs_f64();
        tokio::time::sleep(Duration::from_millis(chance.below(1_000))).await;
        self.machines.kill(&pod)?;
        self.machines.notice(cluster, &pod, false)?;
        ensure!(asked, "no save within the notice");
        note(&format!("saved {seconds:.1} s after the notice"));
        Ok(())
    }

    /// Somebody worth more comes, takes the machines, and ends.
    async fn preempt(&self) -> Result<()> {
        let name = format!("valuable-{}", self.number);
        self.story.apply(&gang::valuable(self.story, &name).to_string())?;
        until("who is worth more to end", LONG, async || {
            Ok(gang::ended(self.story, &name).await?.then_some(()))
        })
        .await?;
        let (client, namespace) = (&self.story.cluster.client, Some(self.story.namespace.as_str()));
        let sets = dynamic(client, namespace, "jobset.x-k8s.io/v1alpha2", "JobSet");
        sets.delete(&name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Waits for the first step of the attempt after this one.
    async fn went_on(&self, kind: FaultKind, attempt: &str) -> Result<(Fault, f64)> {
        let began = Instant::now();
        let mut reported = 0;
        let next = until("the next attempt", LONG, async || {
            reported = self.ledger.reported(attempt)?.unwrap_or(reported);
            let lines = self.ledger.lines()?;
            let last = lines.iter().rposition(|line| line.attempt == attempt);
            let last = last.context("an attempt without a line")?;
            Ok(lines.get(last + 1).map(|next| (lines[last].step, next.step)))
        });
        let (last, next) = next.await?;
        let fault = Fault {
            kind,
            repeated: (last + 1).saturating_sub(next),
            unreported: last.saturating_sub(reported),
        };
        Ok((fault, began.elapsed().as_secs_f64()))
    }

    fn last(&self) -> Result<StepLine> {
        self.ledger.lines()?.pop().context("an empty ledger")
    }
}

/// Numbers by a seed: splitmix64.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }
}
