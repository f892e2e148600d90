//! What a Tenant comes to, in the words of the API.

use super::{KeyState, PICOS, ResolvedTenant, TenantBudget};
use crate::conditions::{self, ConditionKind, ConditionValue};
use crate::tenant::{KeyCounts, TenantBudgetStatus, TenantStatus};
use crate::{decimal, rfc3339};
use flyball_core::reason::Reason;
use flyball_core::units::{Micros, Timestamp};
use flyball_quota::{Amount, BudgetKey, BudgetStatus, BudgetUnit, Period, PeriodId};
use std::collections::BTreeMap;

/// Problems in the message of a condition.
const LISTED: usize = 4;

impl ResolvedTenant {
    /// Its status as it is to be stored, after the one before it. A budget that the bank does not know yet is left out.
    pub fn status(
        &self,
        before: Option<&TenantStatus>,
        generation: Option<i64>,
        budgets: &BTreeMap<BudgetKey, BudgetStatus>,
        now: jiff::Timestamp,
    ) -> TenantStatus {
        let at = Timestamp::from_micros(u64::try_from(now.as_microsecond()).unwrap_or(0));
        let stands = self.budgets(budgets, at);
        let conditions: Vec<_> = [self.ready()].into_iter().chain(within_budget(&stands)).collect();
        let before = before.map_or(&[][..], |status| status.conditions.as_slice());
        TenantStatus {
            observed_generation: generation,
            path: self.access.as_ref().map(|access| access.path.to_string()),
            keys: Some(self.key_counts(at)),
            budgets: stands,
            conditions: conditions::merge(before, &conditions, generation, now),
        }
    }

    /// Whether everything about it holds.
    pub fn ready(&self) -> ConditionValue {
        let kind = ConditionKind::Ready;
        let problems = self.problems.first();
        let Some(first) = problems.first() else {
            let message = "its keys and members are accepted".to_owned();
            return ConditionValue {
                kind,
                so: Some(true),
                reason: Reason::TenantAccepted,
                message,
            };
        };
        let listed: Vec<String> = problems.iter().take(LISTED).map(ToString::to_string).collect();
        let rest = problems.len() - listed.len() + self.problems.more();
        let more = if rest == 0 { String::new() } else { format!("; and {rest} more") };
        let message = format!("{}{more}", listed.join("; "));
        ConditionValue { kind, so: Some(false), reason: first.reason, message }
    }

    /// Its keys at this moment.
    pub fn key_counts(&self, now: Timestamp) -> KeyCounts {
        let mut counts = KeyCounts { refused: small(self.refused_keys), ..KeyCounts::default() };
        for key in self.access.iter().flat_map(|access| &access.keys) {
            let count = match key.state(now) {
                KeyState::Valid => &mut counts.valid,
                KeyState::Pending => &mut counts.pending,
                KeyState::Expired => &mut counts.expired,
                KeyState::Disabled => &mut counts.disabled,
            };
            *count += 1;
        }
        counts
    }

    fn budgets(
        &self,
        states: &BTreeMap<BudgetKey, BudgetStatus>,
        now: Timestamp,
    ) -> Vec<TenantBudgetStatus> {
        let own = self.access.iter().flat_map(|access| &access.budgets);
        let mut known: Vec<(&TenantBudget, &BudgetStatus)> =
            own.filter_map(|budget| Some((budget, states.get(&budget.spec.key)?))).collect();
        known.sort_by_key(|(_, state)| left_per_million(state));
        known.into_iter().map(|(budget, state)| budget.status(state, now)).collect()
    }
}

/// What people should hear of budgets, the worst reason first. Nothing in it moves with every token that is spent: each
/// change is written.
fn within_budget(budgets: &[TenantBudgetStatus]) -> Option<ConditionValue> {
    let reason = |budget: &TenantBudgetStatus| match (budget.alert_percent, &budget.empty_at) {
        _ if budget.is_exhausted() => Some(Reason::TenantBudgetExhausted),
        (Some(_), _) => Some(Reason::TenantBudgetAlert),
        (None, Some(_)) => Some(Reason::TenantBudgetForecast),
        (None, None) => None,
    };
    let limited: Vec<(Reason, String)> =
        budgets.iter().filter_map(|one| Some((reason(one)?, one.in_words()))).collect();
    let (reason, _) = limited.iter().min_by_key(|(reason, _)| *reason)?;
    let message = limited.iter().take(LISTED).map(|(_, text)| text.as_str()).collect::<Vec<_>>();
    Some(ConditionValue {
        kind: ConditionKind::WithinBudget,
        so: Some(false),
        reason: *reason,
        message: message.join("; "),
    })
}

impl TenantBudgetStatus {
    /// Whether nothing is left.
    pub fn is_exhausted(&self) -> bool {
        self.left.chars().all(|one| matches!(one, '0' | '.'))
    }

    /// How it stands, to the day.
    pub fn in_words(&self) -> String {
        let day = |at: &str| at.split('T').next().unwrap_or(at).to_owned();
        let resets = match &self.resets_at {
            Some(at) => format!("it resets on {}", day(at)),
            None => "it never resets".to_owned(),
        };
        let name = &self.name;
        match (self.is_exhausted(), self.alert_percent, &self.empty_at) {
            (true, ..) => format!("budget {name} is exhausted; {resets}"),
            (_, Some(percent), Some(empty)) => format!(
                "budget {name} has reached {percent} % and at this rate ends on {}; {resets}",
                day(empty)
            ),
            (_, Some(percent), None) => format!("budget {name} has reached {percent} %; {resets}"),
            (_, None, Some(empty)) => {
                format!("budget {name} at this rate ends on {}; {resets}", day(empty))
            }
            (_, None, None) => format!("budget {name} lasts; {resets}"),
        }
    }
}

impl TenantBudget {
    /// How it stands.
    pub fn status(&self, state: &BudgetStatus, now: Timestamp) -> TenantBudgetStatus {
        let left = state.limit.less(state.spent);
        let (period, id) = (self.spec.period, state.period);
        let (began, resets) = (began(period, id), period.end(id));
        let empty = began.and_then(|began| empty_at(state.spent, left, began, now));
        TenantBudgetStatus {
            name: self.spec.key.name.to_string(),
            spent: text(state.spent, self.spec.unit),
            left: text(left, self.spec.unit),
            began_at: began.map(rfc3339),
            resets_at: resets.map(rfc3339),
            empty_at: empty
                .filter(|empty| resets.is_none_or(|resets| *empty < resets))
                .map(rfc3339),
            alert_percent: self.alert(state),
        }
    }

    /// The highest share that was reached, of those that are worth a word.
    fn alert(&self, state: &BudgetStatus) -> Option<i32> {
        let reached =
            |percent: &&u32| state.spent.times(100) >= state.limit.times(u64::from(**percent));
        let highest = self.alert_percents.iter().rfind(reached)?;
        i32::try_from(*highest).ok()
    }
}

fn left_per_million(state: &BudgetStatus) -> u128 {
    state.limit.less(state.spent).times(1_000_000).get() / state.limit.get().max(1)
}

/// A period begins where the one before it ends.
fn began(period: Period, id: PeriodId) -> Option<Timestamp> {
    period.end(PeriodId(id.0.checked_sub(1)?))
}

/// When nothing is left, if it goes on as since the beginning.
fn empty_at(spent: Amount, left: Amount, began: Timestamp, now: Timestamp) -> Option<Timestamp> {
    // Before, a single request would say when the month's money ends.
    let elapsed = now.since(began).filter(|elapsed| *elapsed >= Micros::HOUR)?;
    if left.is_zero() {
        return None;
    }
    let rest = left.times(elapsed.get()).get().checked_div(spent.get())?;
    Some(now.saturating_add(Micros::new(u64::try_from(rest).unwrap_or(u64::MAX))))
}

fn text(amount: Amount, unit: BudgetUnit) -> String {
    match unit {
        BudgetUnit::Tokens => amount.get().to_string(),
        BudgetUnit::Money => {
            decimal::text(i64::try_from(amount.get() / PICOS).unwrap_or(i64::MAX), 2)
        }
    }
}

fn small(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
