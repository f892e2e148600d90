//! One of several operators leads, by a Lease.
//!
//! A leader that cannot renew stops writing before another may begin: its own clock says when, from the
//! moment at which it *sent* the renewal that succeeded. No write begins in the last third of a lease, and
//! none is waited for beyond its end. Beyond that every write of a number carries the version of what it
//! was decided on (see `apply`), so that a leader whose clock stood still is refused.

use crate::settings;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, ObjectMeta, PostParams};
use kube::{Client, Error};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The share of a lease after which its holder stops writing, in percent. The rest is for a write that
/// is under way.
const WRITING_PERCENT: u32 = 66;

/// Until when this operator may write.
#[derive(Clone, Debug, Default)]
pub struct Fence(Arc<Mutex<Option<Term>>>);

/// A lease as its holder's clock has it.
#[derive(Clone, Copy, Debug)]
struct Term {
    /// No write begins after this.
    writes: Instant,
    /// Another may lead from here on.
    ends: Instant,
}

/// Why a write was not made, or not known to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwritten {
    /// This operator does not lead.
    NotLeading,
    /// There was no answer in time.
    Late,
}

impl Fence {
    /// Whether a write may begin now.
    pub fn may_write(&self, now: Instant) -> bool {
        self.term().is_some_and(|term| now < term.writes)
    }

    /// Makes a write if one may begin, and gives it up after `most` or when another may lead: one that
    /// goes in two steps would otherwise take its second beside the next leader.
    pub async fn within<T>(
        &self,
        most: Duration,
        write: impl Future<Output = T>,
    ) -> Result<T, Unwritten> {
        let now = Instant::now();
        let term = self.term().filter(|term| now < term.writes).ok_or(Unwritten::NotLeading)?;
        let left = term.ends.saturating_duration_since(now);
        tokio::time::timeout(most.min(left), write).await.map_err(|_| Unwritten::Late)
    }

    /// Leads for the length of a lease that was asked for at this moment.
    pub fn lead(&self, began: Instant, length: Duration) {
        let writes = began + length * WRITING_PERCENT / 100;
        self.set(Some(Term { writes, ends: began + length }));
    }

    fn set(&self, term: Option<Term>) {
        if let Ok(mut fence) = self.0.lock() {
            *fence = term;
        }
    }

    fn term(&self) -> Option<Term> {
        self.0.lock().ok().and_then(|term| *term)
    }
}

/// Tries to lead, again and again, and sets the fence. Ends never.
pub async fn lead(client: Client, settings: settings::Lease, me: String, fence: Fence) {
    let leases: Api<Lease> = Api::namespaced(client, &settings.namespace);
    let length = Duration::from_secs(u64::from(settings.seconds));
    // Watched by our own clock: those of two machines need not agree.
    let mut other: Option<(String, Instant)> = None;
    loop {
        let began = Instant::now();
        let held =
            tokio::time::timeout(length / 3, hold(&leases, &settings, &me, &mut other)).await;
        match held {
            Ok(Ok(true)) => {
                if !fence.may_write(began) {
                    tracing::info!(lease = settings.name, "this operator is the leader");
                }
                fence.lead(began, length);
            }
            Ok(Ok(false)) => fence.set(None),
            // The fence stands until it falls by itself.
            Ok(Err(error)) => tracing::warn!(%error, "cannot renew the leader lease"),
            Err(_) => tracing::warn!("the leader lease was not renewed in time"),
        }
        tokio::time::sleep(length / 4).await;
    }
}

/// Gives the lease back, so that the next need not wait.
pub async fn leave(client: Client, settings: &settings::Lease, me: &str) -> Result<(), Error> {
    let leases: Api<Lease> = Api::namespaced(client, &settings.namespace);
    let Some(mut lease) = leases.get_opt(&settings.name).await? else { return Ok(()) };
    let spec = lease.spec.get_or_insert_default();
    if spec.holder_identity.as_deref() == Some(me) {
        spec.holder_identity = None;
        leases.replace(&settings.name, &PostParams::default(), &lease).await?;
    }
    Ok(())
}

async fn hold(
    leases: &Api<Lease>,
    settings: &settings::Lease,
    me: &str,
    other: &mut Option<(String, Instant)>,
) -> Result<bool, Error> {
    let now = MicroTime(jiff::Timestamp::now());
    let Some(mut lease) = leases.get_opt(&settings.name).await? else {
        let lease = Lease {
            metadata: ObjectMeta { name: Some(settings.name.clone()), ..ObjectMeta::default() },
            spec: Some(spec(settings, me, &now, 0)),
        };
        return taken(leases.create(&PostParams::default(), &lease).await);
    };
    let held = lease.spec.clone().unwrap_or_default();
    let holder = held.holder_identity.clone().filter(|holder| !holder.is_empty());
    let mine = holder.as_deref() == Some(me);
    if let Some(holder) = holder.filter(|_| !mine) {
        // Its renewals are watched, not read: what counts is that the lease did not change for its
        // whole length by this clock.
        let version =
            format!("{holder} {}", lease.metadata.resource_version.clone().unwrap_or_default());
        match other {
            Some((seen, since)) if *seen == version => {
                let length = u64::try_from(held.lease_duration_seconds.unwrap_or(15)).unwrap_or(15);
                if since.elapsed() < Duration::from_secs(length) {
                    return Ok(false);
                }
            }
            _ => {
                *other = Some((version, Instant::now()));
                return Ok(false);
            }
        }
    }
    let transitions = held.lease_transitions.unwrap_or(0) + i32::from(!mine);
    let acquired = held.acquire_time.filter(|_| mine);
    lease.spec = Some(LeaseSpec {
        acquire_time: acquired.or_else(|| Some(now.clone())),
        ..spec(settings, me, &now, transitions)
    });
    taken(leases.replace(&settings.name, &PostParams::default(), &lease).await)
}

/// Somebody else was quicker: not an error.
fn taken<T>(written: Result<T, Error>) -> Result<bool, Error> {
    match written {
        Ok(_) => Ok(true),
        Err(Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error),
    }
}

fn spec(settings: &settings::Lease, me: &str, now: &MicroTime, transitions: i32) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(me.to_owned()),
        lease_duration_seconds: i32::try_from(settings.seconds).ok(),
        acquire_time: Some(now.clone()),
        renew_time: Some(now.clone()),
        lease_transitions: Some(transitions),
        ..LeaseSpec::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(15);

    #[tokio::test(start_paused = true)]
    async fn a_write_is_given_up_when_another_may_lead() {
        let (fence, hangs) = (Fence::default(), || std::future::pending::<()>());
        assert_eq!(fence.within(LEASE, hangs()).await, Err(Unwritten::NotLeading));
        let ago = |seconds| Instant::now().checked_sub(Duration::from_secs(seconds)).unwrap();
        // Renewed five seconds ago: it may begin, and has ten seconds, less what passes here meanwhile.
        let (renewed, began) = (ago(5), tokio::time::Instant::now());
        fence.lead(renewed, LEASE);
        assert_eq!(fence.within(LEASE, hangs()).await, Err(Unwritten::Late));
        let took = began.elapsed();
        assert!(took < LEASE && took + renewed.elapsed() >= LEASE, "{took:?}");
        fence.lead(ago(5), LEASE);
        assert_eq!(fence.within(LEASE, async { 7 }).await, Ok(7));
        fence.lead(ago(10), LEASE);
        assert_eq!(fence.within(LEASE, async { 7 }).await, Err(Unwritten::NotLeading));
    }
}
