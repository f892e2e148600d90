//! Requests, and an operator that says what it is told to.

use super::*;
use flyball_quota::{BudgetKey, TokenPrices, TokenUsage};
use flyball_resources::Tenant;
use flyball_resources::resolve::{ResolvedTenant, TenantId, resolve};
use flyball_resources::stream::{
    EmptyBudget, LeaseGrant, LeaseRecall, LeaseUnit, ShareKind, ShareOrder, SpentBudget, WideAmount,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

type Resolved = BTreeMap<TenantId, ResolvedTenant>;

fn tenants(spec: &Value) -> Resolved {
    let mut spec = spec.clone();
    spec["models"] = json!(["*"]);
    let object = json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "Tenant",
        "metadata": {"name": "team", "namespace": "ml"}, "spec": spec,
    });
    let tenant: Tenant = serde_json::from_value(object).unwrap();
    resolve([&tenant])
}

fn of(spec: &Value) -> (Arc<GatewayQuota>, TenantAccess) {
    let (quota, tenants) = (GatewayQuota::default(), tenants(spec));
    let access = tenants.into_values().next().unwrap().access.unwrap();
    quota.set_tenants([&access].into_iter());
    (Arc::new(quota), access)
}

fn tokens() -> Value {
    json!({"budgets": [{"name": "month", "tokens": 10_000, "period": "Month"}]})
}

fn rate(limits: &Value) -> Value {
    json!({ "limits": limits })
}

const fn estimate(input: u64) -> QuotaEstimate {
    QuotaEstimate { input, input_at_most: input, output: AHEAD, can_stop: false, prices: None }
}

fn grant(quota: &GatewayQuota, granted: u64) {
    let granted = Some(WideAmount { high: 0, low: granted });
    let unit = LeaseUnit::Tokens.into();
    let grant = LeaseGrant { scope: "ml/team".to_owned(), unit, granted, unlimited: false };
    quota.follow(&QuotaOrders { term: 1, grants: vec![grant], ..QuotaOrders::default() }).unwrap();
}

fn empty(quota: &GatewayQuota, number: u64) {
    let empty = EmptyBudget {
        scope: "ml/team".to_owned(),
        unit: LeaseUnit::Tokens.into(),
        number,
        budget_scope: "ml/team".to_owned(),
        budget: "month".to_owned(),
        limit: Some(WideAmount { high: 0, low: 10_000 }),
        spent: Some(WideAmount { high: 0, low: 9_990 }),
        resets_at_ms: Some(1_800_000_000_000),
    };
    quota.follow(&QuotaOrders { term: 1, empty: vec![empty], ..QuotaOrders::default() }).unwrap();
}

fn permits(quota: &GatewayQuota, kind: ShareKind, granted: u64) {
    let share = ShareOrder {
        scope: "ml/team".to_owned(),
        kind: kind.into(),
        granted: Some(granted),
        returned: None,
    };
    quota.follow(&QuotaOrders { term: 1, shares: vec![share], ..QuotaOrders::default() }).unwrap();
}

/// What is spent and paid ahead, as the operator is told.
fn counts(quota: &GatewayQuota) -> (u64, u64) {
    quota.report_anew();
    let report = quota.report(true).unwrap();
    let lease = &report.leases[0];
    (lease.spent.unwrap().low, lease.reserved.unwrap().low)
}

/// The number of the next ask, and what it lacks.
async fn next_ask(quota: &GatewayQuota) -> (u64, u64) {
    loop {
        quota.due().await;
        let report = quota.report(false).unwrap();
        if let Some(ask) = report.asks.first() {
            return (ask.number, ask.lacking.unwrap().low);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_tenant_without_limits_is_let_in_and_nothing_is_counted() {
    let (quota, access) = of(&json!({}));
    assert!(quota.admit(&access, estimate(1_000_000)).await.unwrap().is_none());
    assert_eq!(quota.report(true), None);
    assert_eq!(quota.left(&access), None);
}

#[tokio::test(start_paused = true)]
async fn before_a_request_is_refused_the_operator_is_asked_and_waited_for() {
    let (quota, access) = of(&tokens());
    let began = Instant::now();
    let refused = quota.admit(&access, estimate(100)).await.unwrap_err();
    assert_eq!(refused, QuotaRefusal::Unknown { retry_after: AGAIN });
    assert_eq!(began.elapsed(), PATIENCE, "nobody answers");
    let (admitted, ()) = tokio::join!(quota.admit(&access, estimate(100)), async {
        assert_eq!(next_ask(&quota).await.1, 100 + AHEAD);
        tokio::time::sleep(PATIENCE / 2).await;
        grant(&quota, 500);
    });
    assert_eq!(counts(&quota), (0, 100 + AHEAD));
    drop(admitted.unwrap());
    let began = Instant::now();
    quota.admit(&access, estimate(100)).await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO, "what is here is not asked for");
}

#[tokio::test(start_paused = true)]
async fn who_asked_is_refused_if_nothing_is_left_and_the_next_is_asked_for() {
    let (quota, access) = of(&tokens());
    quota.follow(&QuotaOrders { term: 1, ..QuotaOrders::default() }).unwrap();
    let operator = async {
        let (first, lacking) = next_ask(&quota).await;
        assert_eq!(lacking, 5_000 + AHEAD);
        empty(&quota, first);
        let (second, lacking) = next_ask(&quota).await;
        assert_eq!(lacking, 10 + AHEAD);
        // An answer to what nobody asks any more.
        empty(&quota, first);
        grant(&quota, 10 + AHEAD);
        assert!(second > first);
    };
    let (large, small) =
        (quota.admit(&access, estimate(5_000)), quota.admit(&access, estimate(10)));
    let (large, small, ()) = tokio::join!(large, small, operator);
    let QuotaRefusal::Budget(empty) = large.unwrap_err() else { panic!() };
    let key = BudgetKey { scope: Scope::new("ml/team"), name: "month".into() };
    assert_eq!((empty.budget, empty.spent), (key, Amount::new(9_990)));
    assert!(small.is_ok());
}

#[tokio::test(start_paused = true)]
async fn all_who_waited_when_it_was_asked_and_need_no_less_are_refused_at_once() {
    let (quota, access) = of(&tokens());
    quota.follow(&QuotaOrders { term: 1, ..QuotaOrders::default() }).unwrap();
    let requests = (0..50).map(|_| quota.admit(&access, estimate(100)));
    let operator = async {
        let (number, _) = next_ask(&quota).await;
        empty(&quota, number);
    };
    let (refused, ()) = tokio::join!(futures::future::join_all(requests), operator);
    let all = refused.iter().filter(|one| matches!(one, Err(QuotaRefusal::Budget(_)))).count();
    assert_eq!(all, 50, "{:?}", refused.last());
    // Whoever comes later may find that something was given back.
    let operator = async {
        next_ask(&quota).await;
        grant(&quota, 1_000);
    };
    let (later, ()) = tokio::join!(quota.admit(&access, estimate(100)), operator);
    assert!(later.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_request_is_settled_once_whatever_becomes_of_it() {
    let (quota, access) = of(&tokens());
    grant(&quota, 2_000);
    let ticket = quota.admit(&access, estimate(100)).await.unwrap().unwrap();
    drop(ticket);
    assert_eq!(counts(&quota), (0, 0), "it never went to an engine");
    let mut ticket = quota.admit(&access, estimate(100)).await.unwrap().unwrap();
    ticket.begin();
    assert!(ticket.has_written(30));
    drop(ticket);
    assert_eq!(counts(&quota), (130, 0), "its client hung up");
    let mut ticket = quota.admit(&access, estimate(100)).await.unwrap().unwrap();
    assert!(ticket.has_written(20));
    ticket.settle(TokenUsage { input: 90, cached_input: 40, output: 21 });
    assert_eq!(counts(&quota), (130 + 111, 0), "as the engine says");
    let waits = quota.admit(&access, estimate(5_000));
    assert!(tokio::time::timeout(PATIENCE / 2, waits).await.is_err());
    assert_eq!(counts(&quota), (241, 0), "its client hung up while it waited");
    let report = quota.report(true).unwrap();
    assert_eq!(report.asks.iter().filter(|ask| ask.lacking.unwrap().low > 0).count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_stream_pays_ahead_and_ends_after_the_last_token_that_is_paid() {
    let (quota, access) = of(&tokens());
    grant(&quota, 100 + 2 * AHEAD);
    let mut ticket = quota.admit(&access, estimate(100)).await.unwrap().unwrap();
    assert!(ticket.has_written(AHEAD / 2 - 1));
    assert_eq!(ticket.paid(), AHEAD, "half of it is there");
    assert!(ticket.has_written(AHEAD / 2));
    assert_eq!(ticket.paid(), 2 * AHEAD, "more is paid before it is needed");
    assert!(ticket.has_written(2 * AHEAD));
    assert!(!ticket.has_written(2 * AHEAD + 1));
    let (paid, ()) = tokio::join!(ticket.pay(2 * AHEAD + 1), async {
        next_ask(&quota).await;
        grant(&quota, 100 + 3 * AHEAD);
    });
    assert_eq!((paid, ticket.paid()), (Ok(()), 3 * AHEAD));
    let (paid, ()) = tokio::join!(ticket.pay(3 * AHEAD + 1), async {
        // Less and less is asked for, so that nothing is left over.
        for lacking in [AHEAD, AHEAD / 8, 4] {
            let (number, amount) = next_ask(&quota).await;
            assert_eq!(amount, lacking);
            empty(&quota, number);
        }
    });
    assert!(matches!(paid, Err(QuotaRefusal::Budget(_))));
    drop(ticket);
    assert_eq!(counts(&quota), (100 + 2 * AHEAD + 1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_may_finish_is_counted_beyond_its_budget() {
    let budget = json!([{"name": "month", "tokens": 10_000, "period": "Month",
        "onExhausted": "FinishRunning"}]);
    let (quota, access) = of(&json!({ "budgets": budget }));
    grant(&quota, 100 + AHEAD);
    let mut ticket = quota.admit(&access, estimate(100)).await.unwrap().unwrap();
    assert!(!ticket.has_written(AHEAD + 1));
    let (paid, ()) = tokio::join!(ticket.pay(AHEAD + 1), async {
        for _ in 0..3 {
            let (number, _) = next_ask(&quota).await;
            empty(&quota, number);
        }
    });
    assert_eq!(paid, Ok(()));
    assert!(ticket.has_written(5_000));
    drop(ticket);
    assert_eq!(counts(&quota), (5_100, 0));
}

#[tokio::test(start_paused = true)]
async fn money_is_counted_by_the_prices_of_the_model_and_a_model_without_is_not_served_on_it() {
    let budget = json!([{"name": "month", "amount": "1", "period": "Month"}]);
    let (quota, access) = of(&json!({ "budgets": budget }));
    assert_eq!(quota.admit(&access, estimate(1)).await.unwrap_err(), QuotaRefusal::NoPrice);
    let prices = TokenPrices { input: 3, cached_input: 1, output: 15 };
    let estimate = QuotaEstimate { prices: Some(prices), ..estimate(100) };
    let (ticket, ()) = tokio::join!(quota.admit(&access, estimate), async {
        quota.due().await;
        let ask = quota.report(false).unwrap().asks.remove(0);
        assert_eq!(ask.lacking.unwrap().low, 3 * 100 + 15 * AHEAD);
        let granted = Some(WideAmount { high: 0, low: 10_000 });
        let grant = LeaseGrant { scope: ask.scope, unit: ask.unit, granted, unlimited: false };
        let orders = QuotaOrders { term: 1, grants: vec![grant], ..QuotaOrders::default() };
        quota.follow(&orders).unwrap();
    });
    ticket.unwrap().unwrap().settle(TokenUsage { input: 100, cached_input: 60, output: 7 });
    assert_eq!(counts(&quota), (40 * 3 + 60 + 7 * 15, 0));
}

#[tokio::test(start_paused = true)]
async fn without_an_operator_a_gateway_counts_by_itself_and_says_when_to_come_again() {
    let (quota, access) = of(&rate(&json!({"requestsPerMinute": 3})));
    for _ in 0..3 {
        quota.admit(&access, estimate(1)).await.unwrap();
    }
    let refused = quota.admit(&access, estimate(1)).await.unwrap_err();
    let QuotaRefusal::Rate { key, limit, retry_after } = refused else { panic!("{refused:?}") };
    assert_eq!((key.kind, limit), (RateKind::Requests, 3));
    assert_eq!(retry_after.as_secs(), 60);
    tokio::time::advance(retry_after).await;
    quota.admit(&access, estimate(1)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn permits_of_the_operator_are_waited_for_and_then_used() {
    let (quota, access) = of(&rate(&json!({"concurrency": 20})));
    permits(&quota, ShareKind::Concurrency, 1);
    let first = quota.admit(&access, estimate(1)).await.unwrap().unwrap();
    let (second, ()) = tokio::join!(quota.admit(&access, estimate(1)), async {
        quota.due().await;
        let share = quota.report(false).unwrap().shares.remove(0);
        assert_eq!((share.used, share.waiting), (1, 1));
        permits(&quota, ShareKind::Concurrency, 2);
    });
    let second = second.unwrap();
    let (third, ()) = tokio::join!(quota.admit(&access, estimate(1)), async {
        tokio::time::sleep(PATIENCE / 2).await;
        drop(first);
    });
    third.unwrap();
    drop(second);
    quota.admit(&access, estimate(1)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn tokens_of_prompts_and_answers_are_limited_and_corrected_by_what_the_engine_says() {
    let limits = json!({"inputTokensPerMinute": 1_000, "outputTokensPerMinute": 100});
    let (quota, access) = of(&rate(&limits));
    let refused = quota.admit(&access, estimate(1_001)).await.unwrap_err();
    assert!(matches!(refused, QuotaRefusal::TooLarge { limit: 1_000, .. }));
    let ticket = quota.admit(&access, estimate(900)).await.unwrap().unwrap();
    assert!(quota.admit(&access, estimate(200)).await.is_err());
    ticket.settle(TokenUsage { input: 500, cached_input: 0, output: 99 });
    let ticket = quota.admit(&access, estimate(200)).await.unwrap().unwrap();
    ticket.settle(TokenUsage { input: 200, cached_input: 0, output: 1 });
    let refused = quota.admit(&access, estimate(1)).await.unwrap_err();
    let QuotaRefusal::Rate { key, .. } = refused else { panic!("{refused:?}") };
    assert_eq!(key.kind, RateKind::OutputTokens);
}

#[tokio::test(start_paused = true)]
async fn what_a_long_request_did_not_need_is_not_taken_from_what_others_used_since() {
    let (quota, access) = of(&rate(&json!({"inputTokensPerMinute": 1_000})));
    let long = quota.admit(&access, estimate(900)).await.unwrap().unwrap();
    tokio::time::advance(Duration::from_secs(61)).await;
    let other = quota.admit(&access, estimate(1_000)).await.unwrap().unwrap();
    long.settle(TokenUsage { input: 100, cached_input: 0, output: 1 });
    let refused = quota.admit(&access, estimate(200)).await;
    assert!(matches!(refused, Err(QuotaRefusal::Rate { .. })), "{refused:?}");
    drop(other);
}

#[tokio::test(start_paused = true)]
async fn what_nobody_has_paid_ahead_is_given_back_when_it_is_recalled() {
    let (quota, access) = of(&tokens());
    grant(&quota, 1_000);
    let ticket = quota.admit(&access, estimate(100)).await.unwrap().unwrap();
    let recall = LeaseRecall { scope: "ml/team".to_owned(), unit: LeaseUnit::Tokens.into() };
    let orders = |term| QuotaOrders {
        term,
        recalls: vec![recall.clone()],
        recall: 7,
        ..QuotaOrders::default()
    };
    quota.follow(&orders(0)).unwrap();
    assert_eq!(quota.report(true).unwrap().recalled, 0, "another leads");
    quota.follow(&orders(1)).unwrap();
    quota.due().await;
    let report = quota.report(false).unwrap();
    assert_eq!((report.recalled, report.term), (7, 1));
    assert_eq!(report.leases[0].returned.unwrap().low, 1_000 - 100 - AHEAD);
    ticket.settle(TokenUsage { input: 100, cached_input: 0, output: 10 });
    assert_eq!(counts(&quota), (110, 0));
}

#[tokio::test(start_paused = true)]
async fn everything_is_reported_once_and_anew_to_another_leader() {
    let (quota, access) = of(&tokens());
    let report = quota.report(true).unwrap();
    assert!(report.complete && report.leases.is_empty() && !report.accounts.is_empty());
    grant(&quota, 1_000);
    let _ticket = quota.admit(&access, estimate(100)).await.unwrap().unwrap();
    assert!(!quota.report(false).unwrap().complete, "not all of it was looked at");
    assert_eq!(quota.report(true).unwrap().leases.len(), 1);
    assert_eq!(quota.report(true).unwrap().leases.len(), 0, "it was just reported");
    quota.report_anew();
    let report = quota.report(true).unwrap();
    assert_eq!((report.leases.len(), report.complete, report.term), (1, true, 1));
    assert!(quota.report(true).unwrap().leases.is_empty());
    quota.follow(&QuotaOrders { term: 2, ..QuotaOrders::default() }).unwrap();
    let report = quota.report(true).unwrap();
    assert_eq!((report.leases.len(), report.term, report.recalled), (1, 2, 0));
}

#[tokio::test(start_paused = true)]
async fn with_an_exhausted_budget_that_allows_it_requests_run_on_idle_capacity_and_cost_nothing() {
    let budget = json!([{"name": "month", "tokens": 10_000, "period": "Month",
        "onExhausted": "IdleOnly"}]);
    let (quota, access) = of(&json!({"budgets": budget, "limits": {"concurrency": 1}}));
    quota.follow(&QuotaOrders { term: 1, ..QuotaOrders::default() }).unwrap();
    let (ticket, ()) = tokio::join!(quota.admit(&access, estimate(100)), async {
        // For all of it, and for its beginning.
        for _ in 0..2 {
            let (number, _) = next_ask(&quota).await;
            empty(&quota, number);
        }
    });
    let mut ticket = ticket.unwrap().unwrap();
    assert!(ticket.is_idle() && !ticket.is_metered());
    assert!(ticket.has_written(100_000), "nobody pays for it");
    // Limits hold for it all the same.
    let (refused, ()) = tokio::join!(quota.admit(&access, estimate(100)), async {
        tokio::time::sleep(PATIENCE).await;
    });
    assert!(matches!(refused, Err(QuotaRefusal::Rate { .. })), "{refused:?}");
    ticket.settle(TokenUsage { input: 100, cached_input: 0, output: 100_000 });
    assert_eq!(counts(&quota), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn what_runs_on_idle_capacity_counts_for_limits_though_no_engine_says_how_long_it_was() {
    let budget = json!([{"name": "month", "tokens": 10_000, "period": "Month",
        "onExhausted": "IdleOnly"}]);
    let limits = json!({"inputTokensPerMinute": 1_000});
    let (quota, access) = of(&json!({ "budgets": budget, "limits": limits }));
    permits(&quota, ShareKind::InputTokens, 1_000);
    let (ticket, ()) = tokio::join!(quota.admit(&access, estimate(600)), async {
        for _ in 0..2 {
            let (number, _) = next_ask(&quota).await;
            empty(&quota, number);
        }
    });
    let mut ticket = ticket.unwrap().unwrap();
    assert!(ticket.is_idle() && ticket.has_written(5_000));
    drop(ticket);
    let refused = quota.admit(&access, estimate(600)).await;
    assert!(matches!(refused, Err(QuotaRefusal::Rate { .. })), "{refused:?}");
    assert_eq!(counts(&quota), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_not_free_because_it_may_be_longer_than_what_is_left() {
    for when in ["IdleOnly", "FinishRunning"] {
        let budget =
            json!([{"name": "month", "tokens": 10_000, "period": "Month", "onExhausted": when}]);
        let (quota, access) = of(&json!({ "budgets": budget }));
        grant(&quota, 1_000);
        let long = QuotaEstimate { output: 50_000, ..estimate(100) };
        let (ticket, ()) = tokio::join!(quota.admit(&access, long), async {
            let (number, lacking) = next_ask(&quota).await;
            assert_eq!(lacking, 50_100 - 1_000);
            empty(&quota, number);
        });
        let ticket = ticket.unwrap().unwrap();
        assert!(!ticket.is_idle(), "{when}: something is left");
        ticket.settle(TokenUsage { input: 100, cached_input: 0, output: 400 });
        assert_eq!(counts(&quota), (500, 0));
    }
}

#[test]
fn requests_run_on_idle_capacity_only_if_those_above_allow_it_too() {
    let tenant = |name: &str, parent: Option<&str>, when: &str| -> Tenant {
        let budget =
            json!([{"name": "month", "tokens": 10, "period": "Month", "onExhausted": when}]);
        serde_json::from_value(json!({
            "apiVersion": "flyball.dev/v1alpha1", "kind": "Tenant",
            "metadata": {"name": name, "namespace": "ml"},
            "spec": {"models": ["*"], "parent": parent, "budgets": budget},
        }))
        .unwrap()
    };
    for (above, may) in
        [("Refuse", false), ("FinishRunning", false), ("IdleOnly", true), ("Alert", true)]
    {
        let tenants = [tenant("org", None, above), tenant("team", Some("org"), "IdleOnly")];
        let resolved = resolve(&tenants);
        let accesses: Vec<_> = resolved.values().filter_map(|one| one.access.as_ref()).collect();
        let team = accesses.iter().max_by_key(|one| one.depth).unwrap();
        let table = QuotaTable::of(accesses.iter().copied(), |_| None);
        let key = BudgetKey { scope: team.path.clone(), name: "month".into() };
        assert_eq!(table.applies(&team.path).unwrap().may_idle(&key), may, "{above}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_only_warns_is_counted_and_nobody_waits_for_it() {
    let budget =
        json!([{"name": "month", "tokens": 10, "period": "Month", "onExhausted": "Alert"}]);
    let (quota, access) = of(&json!({ "budgets": budget }));
    let began = Instant::now();
    let mut ticket = quota.admit(&access, estimate(100)).await.unwrap().unwrap();
    assert!(ticket.has_written(5_000));
    ticket.settle(TokenUsage { input: 100, cached_input: 0, output: 5_000 });
    assert_eq!(began.elapsed(), Duration::ZERO, "no operator was asked");
    assert_eq!(counts(&quota), (5_100, 0));
    assert_eq!(
        quota.terms(&access).map(|terms| terms.is_hard),
        Some(false),
        "an answer may be as long as it likes"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_left_is_that_of_the_tightest_limit_and_says_when_all_of_it_is_free() {
    let limits = json!({"requestsPerMinute": 10, "inputTokensPerMinute": 1_000});
    let (quota, access) = of(&rate(&limits));
    let ticket = quota.admit(&access, estimate(600)).await.unwrap();
    let left = quota.left(&access).unwrap();
    let requests = left.requests.unwrap();
    assert_eq!((requests.limit, requests.remaining), (10, 9));
    assert_eq!(requests.reset.get(), 60_250_000);
    assert_eq!(left.input_tokens.map(|left| left.remaining), Some(400));
    assert_eq!((left.output_tokens, left.concurrency), (None, None));
    drop(ticket);
    let described = quota.describe(&access, SystemTime::UNIX_EPOCH);
    assert_eq!(described["tenant"], "ml/team");
    assert_eq!(described["limits"][0]["remaining_here"], 9);
}

#[tokio::test(start_paused = true)]
async fn what_all_have_spent_is_told_until_the_period_is_over() {
    let (quota, access) = of(&tokens());
    let seconds = |at: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(at);
    let spent = |at| quota.describe(&access, seconds(at))["budgets"][0]["spent"].clone();
    assert_eq!(spent(1_799_000_000), Value::Null, "nobody has said so");
    let spending = SpentBudget {
        budget_scope: "ml/team".to_owned(),
        budget: "month".to_owned(),
        spent: Some(WideAmount { high: 0, low: 4_000 }),
        resets_at_ms: Some(1_800_000_000_000),
    };
    let orders = QuotaOrders { term: 1, spent: vec![spending], ..QuotaOrders::default() };
    quota.follow(&orders).unwrap();
    assert_eq!(spent(1_799_000_000), "4000");
    let budget = quota.describe(&access, seconds(1_799_000_000))["budgets"][0].clone();
    assert_eq!((&budget["left"], &budget["limit"]), (&json!("6000"), &json!("10000")));
    assert_eq!(spent(1_800_000_000), Value::Null, "another period has begun");
}
