//! Beside the loop: what Tenants come to, for gateways and for whoever reads their statuses.

use crate::lead::Fence;
use crate::observe::Watches;
use crate::quota::{Pods, TenantQuota};
use crate::report::tenants::{self, SeenTenant};
use crate::report::{Board, StatusPublisher};
use flyball_resources::Tenant;
use flyball_resources::resolve::{self, ResolvedTenant, TenantId};
use futures::{StreamExt as _, stream};
use kube::ResourceExt as _;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::MissedTickBehavior;

/// Between two looks. Gateways learn of keys by themselves; this is for limits, budgets and statuses.
const TICK: Duration = Duration::from_secs(1);

/// Statuses that are written after one look. The rest is written after the next one: limits that change should not wait
/// for statuses.
const WRITES: usize = 64;

/// Writes at the same time.
const AT_ONCE: usize = 16;

/// Looks after Tenants.
pub(super) struct TenantWatch {
    pub(super) watches: Watches,
    pub(super) quota: Arc<TenantQuota>,
    pub(super) publisher: StatusPublisher,
    pub(super) fence: Fence,
    pub(super) board: Arc<Board>,
}

/// What was found at the last look.
#[derive(Default)]
struct Found {
    objects: Vec<Arc<Tenant>>,
    resolved: BTreeMap<TenantId, ResolvedTenant>,
    /// When each status was last written.
    written: BTreeMap<TenantId, Instant>,
}

impl TenantWatch {
    /// Looks again and again. Ends never.
    pub(super) async fn run(self) {
        self.watches.tenants_listed().await;
        let (mut found, mut is_first) = (Found::default(), true);
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if found.update(self.watches.tenants()) || std::mem::take(&mut is_first) {
                let (budgets, limits) =
                    (resolve::budgets(&found.resolved), resolve::rate_limits(&found.resolved));
                self.quota.set_tenants(budgets, limits);
            }
            if self.fence.may_write(Instant::now()) {
                self.publish(&mut found).await;
            } else {
                // Another operator leads and knows better.
                self.board.change(|shown| shown.budgets = Arc::default());
            }
        }
    }

    async fn publish(&self, found: &mut Found) {
        let (budgets, now) = (self.quota.status(), jiff::Timestamp::now());
        let seen = tenants::tenants(&found.objects, &found.resolved, &budgets, now);
        let shares = tenants::shares(&seen, &budgets);
        self.board.change(|shown| shown.budgets = Arc::new(shares));
        let written = &found.written;
        let news = seen.into_iter().filter(|seen| {
            let since = written.get(&seen.id).map(Instant::elapsed);
            tenants::is_news(seen.tenant.status.as_ref(), &seen.status, since)
        });
        let news: Vec<SeenTenant> = news.take(WRITES).collect();
        let written = stream::iter(news)
            .map(|seen| async move {
                for (reason, message) in tenants::turned(seen.tenant.status.as_ref(), &seen.status)
                {
                    self.publisher.happened(&*seen.tenant, reason, "Accept", &message).await;
                }
                (seen.id.clone(), self.publisher.tenant(&seen).await)
            })
            .buffer_unordered(AT_ONCE)
            .collect::<Vec<_>>()
            .await;
        for (id, written) in written {
            match written {
                Ok(()) => {
                    found.written.insert(id, Instant::now());
                    self.board.change(|shown| shown.wrote("status"));
                }
                Err(error) => super::publish::not_written(&self.board, &error),
            }
        }
    }
}

impl Found {
    /// Whether anything has changed.
    fn update(&mut self, mut objects: Vec<Arc<Tenant>>) -> bool {
        objects.sort_by_cached_key(|tenant| TenantId::of(tenant));
        let spec = |tenant: &Arc<Tenant>| (tenant.uid(), tenant.metadata.generation);
        let same = self.objects.iter().map(spec).eq(objects.iter().map(spec));
        self.objects = objects;
        if same {
            return false;
        }
        self.resolved = resolve::resolve(self.objects.iter().map(AsRef::as_ref));
        let resolved = &self.resolved;
        self.written.retain(|id, _| resolved.contains_key(id));
        true
    }
}

impl Pods for Watches {
    fn absent(&self, mut names: BTreeSet<String>) -> Option<BTreeSet<String>> {
        if !names.is_empty() {
            self.each_pod(|pod| {
                names.remove(&pod.name_any());
            });
        }
        Some(names)
    }
}
