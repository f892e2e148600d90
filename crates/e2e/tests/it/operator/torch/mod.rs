//! Runs with a real PyTorch, data parallel over gloo, on the nodes of the test cluster.
//!
//! Where PyTorch is not in the cache these are left out (`cargo xtask e2e`). They take nodes away, so that nothing else may
//! run beside them.

mod faults;
mod gang;
mod ledger;
mod machines;
mod place;
mod ten;

use super::rig::{self, Setup};
use super::training::{condition, run};
use anyhow::{Context, Result, ensure};
use faults::{Fault, FaultKind, Plan};
use flyball_e2e::process::ServiceProcess;
use flyball_e2e::{Story, figure, in_namespace, is_long, note, until};
use gang::{Gang, SAVE_EVERY};
use ledger::{Counted, Ledger};
use machines::Machines;
use place::Place;
use serde_json::Value;
use std::time::{Duration, Instant};

/// Only so that it ends.
const LONG: Duration = Duration::from_secs(180);

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn a_run_survives_lost_nodes_notices_and_preemptions() -> Result<()> {
    let (Some(volume), Some(machines)) = (place::volume(), Machines::of_environment()?) else {
        note("left out: there is no PyTorch, or the nodes are not ours");
        return Ok(());
    };
    in_namespace(&[], async |story| {
        rig::crds(story)?;
        let place = Place::new(story, &volume, 2).await?;
        machines.are_spot(&story.cluster)?;
        let outcome = Box::pin(play(story, &place, &machines)).await;
        machines.are_as_before(&story.cluster)?;
        let removed = place.remove(story).await;
        outcome.and(removed)
    })
    .await
}

async fn play(story: &Story, place: &Place, machines: &Machines) -> Result<()> {
    let plan = if is_long() { Plan::long() } else { Plan::short() };
    let calm = Gang { name: "calm", steps: plan.steps, step_seconds: 0.0 };
    let began = Instant::now();
    story.apply(&calm.job_set(place)?.to_string())?;
    ends(story, &calm).await?;
    note(&format!("undisturbed: {} steps in {:?}", plan.steps, began.elapsed()));

    let (operator, _) = rig::operator(story, &Setup::default(), None)?;
    operator.ready().await?;
    let stormy = Gang { name: "stormy", steps: plan.steps, step_seconds: 0.1 };
    story.apply(&stormy.training_run(story).to_string())?;
    story.apply(&stormy.job_set(place)?.to_string())?;
    let ledger = Ledger { folder: place.runs.join(stormy.name) };
    let began = Instant::now();
    let faults = Box::pin(plan.suffer(story, machines, &stormy, &ledger)).await;
    let faults = faults.with_context(|| operator.log())?;
    ends(story, &stormy).await?;
    let seconds = began.elapsed().as_secs();
    note(&format!("disturbed: {} faults in {seconds} s", faults.len()));
    judge(story, &operator, &Ledger { folder: place.runs.join(calm.name) }, &ledger, &faults).await
}

async fn ends(story: &Story, gang: &Gang) -> Result<()> {
    let what = format!("{} to end", gang.name);
    until(&what, LONG, async || Ok(gang::ended(story, gang.name).await?.then_some(()))).await
}

/// What was promised.
async fn judge(
    story: &Story,
    operator: &ServiceProcess,
    calm: &Ledger,
    stormy: &Ledger,
    faults: &[Fault],
) -> Result<()> {
    let counted = ledger::count(&calm.lines()?, &stormy.lines()?);
    let status = complete(story, operator).await?;
    let of = |kind: FaultKind| faults.iter().filter(move |fault| fault.kind == kind);
    for kind in FaultKind::ALL {
        let repeated: Vec<u64> = of(kind).map(|fault| fault.repeated).collect();
        note(&format!("{kind:?}: {}, steps made again {repeated:?}", repeated.len()));
    }
    note(&format!("{counted:?}\nlost, by the operator: {}", status["lost"]));
    let beyond: u64 = counted.each.iter().map(|steps| steps.saturating_sub(SAVE_EVERY)).sum();
    ensure!((counted.different, counted.missing) == (0, 0), "other steps than undisturbed");
    ensure!(calm.weights()? == stormy.weights()?, "other weights than undisturbed");
    agrees(&counted, &status, faults)?;
    ensure!(of(FaultKind::Preempted).all(|fault| fault.repeated == 0), "a preempted run saves");
    figure("training.faults_survived", faults.len() as f64, "faults", ">=40")?;
    figure("training.steps_lost_beyond_interval", beyond as f64, "steps", "=0")?;
    ensure!(beyond == 0, "{beyond} steps beyond an interval");
    Ok(())
}

/// The operator counts what the run wrote down. A kill may fall between two writes of the same step: the line of the ledger
/// and the heartbeat.
fn agrees(counted: &Counted, status: &Value, faults: &[Fault]) -> Result<()> {
    let lost = status["lost"].as_array().into_iter().flatten();
    let lost: u64 = lost.filter_map(|one| one["steps"].as_u64()).sum();
    let between: u64 = faults.iter().map(|fault| fault.unreported).sum();
    let attempts = status["attemptCount"].as_u64();
    note(&format!("attempts {attempts:?}, steps lost {lost}, between two writes {between}"));
    ensure!(attempts == Some(counted.attempts), "{attempts:?} attempts, not {}", counted.attempts);
    let known = lost + between;
    ensure!(known == counted.repeated, "{known} steps lost, not {}", counted.repeated);
    Ok(())
}

/// The status of the run once it says that it is complete.
async fn complete(story: &Story, operator: &ServiceProcess) -> Result<Value> {
    let mut last = Value::Null;
    let found = until("the TrainingRun to be complete", LONG, async || {
        last = run(story, "stormy").await?;
        Ok((condition(&last, "Complete") == "RunComplete").then(|| last.clone()))
    });
    let found = found.await;
    found.with_context(|| format!("{last:#}\nthe operator's log:\n{}", operator.log()))
}
