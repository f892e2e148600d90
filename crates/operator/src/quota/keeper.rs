//! Lets time pass, writes the record, and finds out which gateways are gone.

use super::TenantQuota;
use super::store::{RecordStore, StoreError};
use crate::lead::Fence;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use tokio::time::MissedTickBehavior;

/// Between two steps.
const STEP: Duration = Duration::from_millis(250);

/// Between two writes of the record, for all Tenants.
const WRITE: Duration = Duration::from_secs(5);

/// Between two writes while a request waits for one: it waits for two seconds.
const HURRY: Duration = Duration::from_millis(500);

/// Between two looks for gateways that are gone.
const TICK: Duration = Duration::from_secs(1);

/// Before a record that cannot be read is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// Which of these names no pod has; `None` if nobody knows.
pub trait Pods: Send + Sync {
    /// Those of these names that no pod has.
    fn absent(&self, names: BTreeSet<String>) -> Option<BTreeSet<String>>;
}

/// When what was done last.
struct Done {
    wrote: tokio::time::Instant,
    checked: tokio::time::Instant,
    version: Option<String>,
}

/// Gives out while this operator leads, and goes on with the record whenever it leads again. Ends never.
pub async fn keep(quota: &TenantQuota, store: &dyn RecordStore, fence: &Fence, pods: &dyn Pods) {
    let mut warned = None;
    loop {
        while !fence.may_write(Instant::now()) {
            tokio::time::sleep(STEP).await;
        }
        let ended = lead(quota, store, fence, pods).await;
        quota.lead(None);
        let text = ended.as_ref().err().map(ToString::to_string);
        match &ended {
            Ok(()) | Err(StoreError::NotLeading) => {}
            Err(error) if warned == text => tracing::debug!(%error, "cannot keep budgets"),
            Err(error) => tracing::error!(
                %error, "budgets and limits of Tenants are not given out; retrying"
            ),
        }
        warned = text;
        tokio::time::sleep(AGAIN).await;
    }
}

/// Gives out until this operator does not lead any more.
async fn lead(
    quota: &TenantQuota,
    store: &dyn RecordStore,
    fence: &Fence,
    pods: &dyn Pods,
) -> Result<(), StoreError> {
    // Where nothing is limited nothing is written.
    if !quota.is_needed() {
        return Ok(());
    }
    let (record, version) = store.read().await?;
    let Some(mut allocator) = quota.begin(record) else { return Ok(()) };
    // Before anything is given out, whoever led before cannot write any more.
    let first = allocator.first_record();
    let version = store.write(&first, version.as_deref()).await?;
    allocator.written(first, quota.now());
    tracing::info!(term = allocator.term(), "giving out budgets and limits of Tenants");
    quota.lead(Some(allocator));
    let now = tokio::time::Instant::now();
    // The first gateways need not wait for their place on the record.
    let wrote = now.checked_sub(WRITE).unwrap_or(now);
    let mut done = Done { wrote, checked: now, version };
    let mut steps = tokio::time::interval(STEP);
    steps.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while fence.may_write(Instant::now()) {
        tokio::select! {
            _ = steps.tick() => {}
            () = quota.short.notified(), if done.wrote.elapsed() >= HURRY => {}
        }
        step(quota, store, pods, &mut done).await?;
    }
    Ok(())
}

async fn step(
    quota: &TenantQuota,
    store: &dyn RecordStore,
    pods: &dyn Pods,
    done: &mut Done,
) -> Result<(), StoreError> {
    if done.checked.elapsed() >= TICK {
        done.checked = tokio::time::Instant::now();
        let silent = quota.step(|allocator, now| allocator.silent_pods(now)).unwrap_or_default();
        if let Some(absent) = pods.absent(silent) {
            quota.step(|allocator, now| allocator.give_up(&absent, now));
        }
    }
    if let Some(replies) = quota.step(super::allocator::Allocator::tick) {
        quota.send(replies);
    }
    let is_short = quota.step(|allocator, _| allocator.is_short()).unwrap_or_default();
    if done.wrote.elapsed() < if is_short { HURRY } else { WRITE } {
        return Ok(());
    }
    let Some(record) = quota.step(|allocator, _| allocator.due_record()).flatten() else {
        return Ok(());
    };
    done.wrote = tokio::time::Instant::now();
    match store.write(&record, done.version.as_deref()).await {
        Ok(version) => {
            done.version = version;
            if let Some(replies) = quota.step(|allocator, now| allocator.written(record, now)) {
                quota.send(replies);
            }
            Ok(())
        }
        // What is written still holds; what is not covered by it waits.
        Err(StoreError::Away(error)) => {
            tracing::warn!(error, "cannot write the record of budgets; retrying");
            Ok(())
        }
        Err(error) => Err(error),
    }
}
