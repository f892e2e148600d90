//! A budget that several gateways spend from, through the deaths of gateways and leaders.
//!
//! The messages go over real connections; the clock is the real one, so nothing here says how fast anything is. What is
//! held is a sum: nobody passes on more than the budget, and in the end nothing is left that a request could use.

use super::rig::{Office, PATIENCE};
use flyball_fleet::FleetEndpoint;
use flyball_gateway::link::OperatorLink;
use flyball_gateway::meter::Finished;
use flyball_gateway::quota::{AHEAD, GatewayQuota, QuotaEstimate, QuotaRefusal};
use flyball_gateway::serve::{self, Listener};
use flyball_gateway::settings::{GatewaySettingsFile, Operator};
use flyball_operator::lead::Fence;
use flyball_operator::link::Auth;
use flyball_operator::quota::{Pods, RecordStore, StoreError, keep};
use flyball_quota::{Amount, BankRecord, TokenUsage};
use flyball_resources::Tenant;
use flyball_resources::resolve::{self, ResolvedTenant, TenantAccess, TenantId};
use futures::future::BoxFuture;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::task::{JoinHandle, JoinSet};

const BUDGET: u64 = 400_000;
const PROMPT: u64 = 50;

struct Deaf;

impl Listener for Deaf {
    fn finished(&self, _: &Finished<'_>) {}
    fn cancelled(&self, _: &Arc<FleetEndpoint>) {}
}

/// The record, and who may write over which version.
#[derive(Default)]
pub(super) struct Memory(Mutex<(BankRecord, u64)>);

impl RecordStore for Memory {
    fn read(&self) -> BoxFuture<'_, Result<(BankRecord, Option<String>), StoreError>> {
        let (record, version) = self.0.lock().unwrap().clone();
        Box::pin(async move { Ok((record, Some(version.to_string()))) })
    }

    fn write<'a>(
        &'a self,
        record: &'a BankRecord,
        version: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        let mut stored = self.0.lock().unwrap();
        let written = if version == Some(stored.1.to_string().as_str()) {
            *stored = (record.clone(), stored.1 + 1);
            Ok(Some(stored.1.to_string()))
        } else {
            Err(StoreError::Moved)
        };
        Box::pin(async move { written })
    }
}

/// No gateway is a pod here.
struct NoPods;

impl Pods for NoPods {
    fn absent(&self, names: BTreeSet<String>) -> Option<BTreeSet<String>> {
        Some(names)
    }
}

/// An operator that leads.
pub(super) struct Leader {
    office: Office,
    keeping: JoinHandle<()>,
}

impl Leader {
    async fn begins(address: SocketAddr, store: &Arc<Memory>) -> Self {
        Self::of(address, store, &tenants()).await
    }

    /// One that divides what these Tenants have.
    pub(super) async fn of(
        address: SocketAddr,
        store: &Arc<Memory>,
        tenants: &BTreeMap<TenantId, ResolvedTenant>,
    ) -> Self {
        let office = Office::open_at(address, Auth::default()).await;
        let (quota, store, fence) = (office.link.quota(), Arc::clone(store), Fence::default());
        quota.set_tenants(resolve::budgets(tenants), resolve::rate_limits(tenants));
        fence.lead(Instant::now(), 10 * PATIENCE);
        let keeping = tokio::spawn(async move { keep(&quota, &*store, &fence, &NoPods).await });
        Self { office, keeping }
    }

    /// Where gateways reach it.
    pub(super) const fn address(&self) -> SocketAddr {
        self.office.address
    }

    /// What is spent of the first budget.
    pub(super) fn status(&self) -> Amount {
        let status = self.office.link.quota().status();
        status.into_values().next().map_or(Amount::ZERO, |status| status.spent)
    }

    async fn dies(self) -> SocketAddr {
        let address = self.office.address;
        self.keeping.abort();
        self.office.dies().await;
        address
    }
}

fn tenants() -> BTreeMap<TenantId, ResolvedTenant> {
    let object = json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "Tenant",
        "metadata": {"name": "team", "namespace": "ml"},
        "spec": {"models": ["*"], "budgets": [
            {"name": "all", "tokens": BUDGET, "period": "None"},
        ]},
    });
    let tenant: Tenant = serde_json::from_value(object).unwrap();
    resolve::resolve([&tenant])
}

/// A gateway of which only the link and the quotas are used.
struct Gateway {
    quota: Arc<GatewayQuota>,
    talking: JoinHandle<()>,
}

impl Gateway {
    fn begins(name: &str, operator: SocketAddr) -> Self {
        let mut settings = GatewaySettingsFile { threads: 1, ..GatewaySettingsFile::default() };
        settings.listen.set_port(0);
        let running = Arc::new(serve::start(&settings, Arc::new(Deaf)).unwrap());
        let quota = running.quota();
        let tenants = tenants();
        quota.set_tenants(tenants.values().filter_map(|tenant| tenant.access.as_ref()));
        let operator = Operator { address: format!("http://{operator}"), ..Operator::default() };
        let link = OperatorLink::new(operator, running, "1.2.3").named(name);
        let talking = tokio::spawn(async move { link.talk(std::future::pending()).await });
        Self { quota, talking }
    }
}

/// What happened.
#[derive(Debug, Default)]
struct Tally {
    /// Tokens of prompts that went to engines and of output that was passed on.
    used: AtomicU64,
    finished: AtomicU64,
    cancelled: AtomicU64,
    stopped: AtomicU64,
    refused: AtomicU64,
    put_off: AtomicU64,
}

impl Tally {
    fn count(of: &AtomicU64, count: u64) {
        of.fetch_add(count, Ordering::Relaxed);
    }

    /// One request. `false` if the budget is empty.
    async fn request(&self, quota: &Arc<GatewayQuota>, access: &TenantAccess, seed: u64) -> bool {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let estimate = QuotaEstimate {
            input: PROMPT,
            input_at_most: PROMPT,
            output: AHEAD,
            can_stop: true,
            prices: None,
        };
        let mut ticket = loop {
            match quota.admit(access, estimate).await {
                Ok(ticket) => break ticket.expect("a budget applies"),
                Err(QuotaRefusal::Budget(_)) => {
                    Self::count(&self.refused, 1);
                    return false;
                }
                Err(QuotaRefusal::Unknown { .. }) => Self::count(&self.put_off, 1),
                Err(other) => panic!("{other:?}"),
            }
        };
        ticket.begin();
        Self::count(&self.used, PROMPT);
        let (most, mut output) = (rng.random_range(1..3_000_u64), 0);
        while output < most {
            let next = (output + rng.random_range(1..200)).min(most);
            if !ticket.has_written(next) && ticket.pay(next).await.is_err() {
                // Up to the last token that is paid.
                Self::count(&self.used, ticket.paid() - output);
                Self::count(&self.stopped, 1);
                output = ticket.paid();
                break;
            }
            Self::count(&self.used, next - output);
            output = next;
            if rng.random_bool(0.05) {
                Self::count(&self.cancelled, 1);
                return true;
            }
            tokio::task::yield_now().await;
        }
        Self::count(&self.finished, 1);
        ticket.settle(TokenUsage { input: PROMPT, cached_input: 0, output });
        true
    }
}

/// Requests at all gateways, until so many tokens are used.
async fn load(gateways: &[Gateway], tally: &Arc<Tally>, until: u64) {
    let access = tenants().into_values().next().unwrap().access.unwrap();
    let mut workers = JoinSet::new();
    for (number, gateway) in gateways.iter().enumerate() {
        for worker in 0..8 {
            let (quota, tally, access) =
                (Arc::clone(&gateway.quota), Arc::clone(tally), access.clone());
            workers.spawn(async move {
                for round in 0.. {
                    let seed = until + (number * 1_000_000 + worker * 100_000 + round) as u64;
                    let goes_on = tally.request(&quota, &access, seed).await;
                    if !goes_on || tally.used.load(Ordering::Relaxed) >= until {
                        return;
                    }
                }
            });
        }
    }
    let all = async { while workers.join_next().await.is_some() {} };
    tokio::time::timeout(10 * PATIENCE, all).await.expect("requests end");
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::print_stderr, reason = "the numbers are what it is for")]
async fn a_budget_is_spent_to_the_last_request_and_never_exceeded_whoever_dies() {
    let (store, tally) = (Arc::new(Memory::default()), Arc::new(Tally::default()));
    let leader = Leader::begins("127.0.0.1:0".parse().unwrap(), &store).await;
    let address = leader.office.address;
    let mut gateways: Vec<Gateway> =
        (0..4).map(|number| Gateway::begins(&format!("gateway-{number}"), address)).collect();
    load(&gateways, &tally, BUDGET / 4).await;
    // A gateway dies with what it holds, and another process has its name.
    gateways[0].talking.abort();
    gateways[0] = Gateway::begins("gateway-0", address);
    load(&gateways, &tally, BUDGET / 2).await;
    // The leader dies, and the next goes on from the record.
    let address = leader.dies().await;
    let leader = Leader::begins(address, &store).await;
    load(&gateways, &tally, 2 * BUDGET).await;
    // What those who were refused saw others use is there again when these are over.
    let access = tenants().into_values().next().unwrap().access.unwrap();
    for (number, gateway) in gateways.iter().enumerate() {
        for round in 0_u64.. {
            let seed = 77 + number as u64 * 1_000 + round;
            if !tally.request(&gateway.quota, &access, seed).await {
                break;
            }
        }
    }
    let status = leader.office.link.quota().status().into_values().next().unwrap();
    let used = tally.used.load(Ordering::Relaxed);
    eprintln!("{BUDGET} tokens; {tally:?}; {status:?}; terms {}", store.0.lock().unwrap().0.term);
    let tokens = |amount: Amount| u64::try_from(amount.get()).unwrap();
    let (held, lost) = (tokens(status.held), tokens(status.written_off));
    let committed = tokens(status.spent) + held;
    assert!(used <= committed && committed <= BUDGET, "{used} used, {committed} committed");
    // A stream begins with an eighth of what is usually paid ahead, if there is no more.
    assert!(BUDGET - committed < PROMPT + AHEAD / 8, "{committed} committed");
    // A process that died may have used what it was granted last, so that a part of what is written off counts twice.
    assert!(
        committed <= used + lost + held,
        "{committed} committed, {used} used, {lost} written off"
    );
    assert!(
        tally.refused.load(Ordering::Relaxed) > 0 && tally.cancelled.load(Ordering::Relaxed) > 0
    );
    gateways.iter().for_each(|gateway| gateway.talking.abort());
}
