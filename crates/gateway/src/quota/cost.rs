//! What limits and budgets cost a request. Not part of a usual run: it needs an optimised build. `cargo xtask bench
//! tenants --parts cost` starts it and reads what it says.

use super::*;
use flyball_quota::TokenUsage;
use flyball_resources::Tenant;
use flyball_resources::resolve::resolve;
use flyball_resources::stream::{LeaseGrant, LeaseUnit, ShareKind, ShareOrder, WideAmount};
use serde_json::json;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

const REQUESTS: u32 = 20_000;
/// So many times all of them: the kernel's own clock is a few milliseconds behind.
const TURNS: u32 = 20;

#[test]
#[ignore = "measures time: needs an optimised build"]
#[expect(clippy::print_stdout, reason = "the figures are what this is for")]
fn admission_costs_the_same_however_many_tenants_lie_above_each_other() {
    let one = micros(1);
    let deepest = micros(flyball_resources::resolve::MAX_DEPTH);
    println!("admission below one Tenant, us: {one:.3}");
    println!("admission below the most Tenants, us: {deepest:.3}");
}

/// Processor time of one request from admission to settlement, below so many Tenants, each with a limit and a budget.
fn micros(levels: usize) -> f64 {
    let (quota, access) = below(levels);
    (0..REQUESTS).for_each(|_| request(&quota, &access));
    let before = processor_seconds();
    for _ in 0..TURNS {
        (0..REQUESTS).for_each(|_| request(&quota, &access));
    }
    (processor_seconds() - before) * 1e6 / f64::from(TURNS) / f64::from(REQUESTS)
}

fn request(quota: &Arc<GatewayQuota>, access: &TenantAccess) {
    let estimate = QuotaEstimate {
        input: 100,
        input_at_most: 120,
        output: AHEAD,
        can_stop: true,
        prices: None,
    };
    let admitted = pin!(quota.admit(access, estimate));
    // What is here is not asked for.
    let Poll::Ready(Ok(Some(ticket))) = admitted.poll(&mut Context::from_waker(Waker::noop()))
    else {
        panic!("not let in")
    };
    ticket.settle(TokenUsage { input: 100, cached_input: 0, output: 50 });
}

fn below(levels: usize) -> (Arc<GatewayQuota>, TenantAccess) {
    let tenant = |level: usize| -> Tenant {
        let mut spec = json!({
            "models": ["*"], "limits": {"concurrency": 1_000_000},
            "budgets": [{"name": "all", "tokens": 1_000_000_000_000_u64, "period": "None"}],
        });
        if level > 0 {
            spec["parent"] = json!(format!("t{}", level - 1));
        }
        serde_json::from_value(json!({
            "apiVersion": "flyball.dev/v1alpha1", "kind": "Tenant",
            "metadata": {"name": format!("t{level}"), "namespace": "ml"}, "spec": spec,
        }))
        .unwrap()
    };
    let tenants: Vec<Tenant> = (0..levels).map(tenant).collect();
    let resolved: Vec<TenantAccess> =
        resolve(&tenants).into_values().filter_map(|one| one.access).collect();
    assert_eq!(resolved.len(), levels);
    let access = resolved.iter().max_by_key(|one| one.depth).unwrap().clone();
    let quota = Arc::new(GatewayQuota::default());
    quota.set_tenants(resolved.iter());
    let granted = Some(WideAmount { high: 0, low: 1_000_000_000_000 });
    let unit = LeaseUnit::Tokens.into();
    let lease = LeaseGrant { scope: access.path.to_string(), unit, granted, unlimited: false };
    let share = |one: &TenantAccess| ShareOrder {
        scope: one.path.to_string(),
        kind: ShareKind::Concurrency.into(),
        granted: Some(1_000_000),
        returned: None,
    };
    let shares = resolved.iter().map(share).collect();
    let orders = QuotaOrders { term: 1, grants: vec![lease], shares, ..QuotaOrders::default() };
    quota.follow(&orders).unwrap();
    (quota, access)
}

/// Of this thread. Wall time on a shared machine says little.
fn processor_seconds() -> f64 {
    // Before it gives the processor away, the kernel does not say all of it.
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}
