//! From the spec of one Tenant to values.

use super::{
    ModelPattern, PICOS, TenantAccess, TenantBudget, TenantId, TenantKey, TenantLimits,
    TenantProblem, TenantProblems,
};
use crate::decimal;
use crate::tenant::{
    BudgetPeriod, KUBERNETES, TenantBudgetSpec, TenantKeySpec, TenantLimitsSpec, TenantMember,
    TenantSpec, WhenExhausted,
};
use flyball_core::reason::Reason;
use flyball_core::units::Timestamp;
use flyball_quota::{Amount, BudgetKey, BudgetSpec, BudgetUnit, Period, Scope};

/// What the spec says, below another. What cannot be understood is noted and left out: the schema lets little of it come
/// this far.
pub(super) fn read(
    id: &TenantId,
    spec: &TenantSpec,
    above: Option<&TenantAccess>,
    problems: &mut TenantProblems,
) -> TenantAccess {
    let path = match above {
        Some(above) => Scope::new(&format!("{}/{}", above.path, id.name)),
        None => Scope::new(&id.to_string()),
    };
    let limits = spec.limits.as_ref().map_or_else(TenantLimits::default, TenantLimitsSpec::values);
    let mut refused = |field: String, what: &str| {
        problems.note(TenantProblem::new(Reason::SpecRefused, field, what));
    };
    let budgets = spec.budgets.iter().filter_map(|spec| {
        let budget = budget(spec, &path);
        budget.map_err(|what| refused(format!("spec.budgets[{}]", spec.name), what)).ok()
    });
    let budgets = budgets.collect();
    let members = spec.members.iter().enumerate().filter(|(index, one)| {
        let fits = is_member(one);
        if !fits {
            let what = "must have `serviceAccounts` if its issuer is kubernetes, and else `claims`";
            refused(format!("spec.members[{index}]"), what);
        }
        fits
    });
    let members = members.map(|(_, one)| one.clone()).collect();
    let keys = spec.keys.iter().filter_map(|spec| {
        key(spec)
            .map_err(|(part, what)| refused(format!("spec.keys[{}].{part}", spec.name), what))
            .ok()
    });
    let keys = keys.collect();
    let models = spec.models.iter().enumerate().filter_map(|(index, text)| {
        let pattern = ModelPattern::read(text);
        if pattern.is_none() {
            refused(
                format!("spec.models[{index}]"),
                "must be a name, with one `*` at most, at its end",
            );
        }
        pattern
    });
    let models = models.collect();
    TenantAccess {
        depth: above.map_or(1, |above| above.depth + 1),
        path,
        limits,
        lowest: above.map_or(limits, |above| above.lowest.lowest(limits)),
        weight: u32::try_from(spec.weight).unwrap_or(1).max(1),
        // The later one is the lower one.
        priority_ceiling: above.map_or(spec.priority_ceiling, |above| {
            above.priority_ceiling.max(spec.priority_ceiling)
        }),
        cache_group: spec.cache_group.as_ref().map(|group| format!("{}/{group}", id.namespace)),
        models,
        keys,
        members,
        budgets,
    }
}

impl TenantLimitsSpec {
    fn values(&self) -> TenantLimits {
        // What cannot be is nothing, and not "unlimited".
        let value = |value: Option<i64>| value.map(|value| u64::try_from(value).unwrap_or(0));
        TenantLimits {
            requests_per_minute: value(self.requests_per_minute),
            input_tokens_per_minute: value(self.input_tokens_per_minute),
            output_tokens_per_minute: value(self.output_tokens_per_minute),
            concurrency: value(self.concurrency),
        }
    }
}

fn budget(spec: &TenantBudgetSpec, path: &Scope) -> Result<TenantBudget, &'static str> {
    let (unit, limit) = match (&spec.amount, spec.tokens) {
        (Some(amount), None) => {
            let micros = decimal::micros(amount).and_then(|micros| u128::try_from(micros).ok());
            let micros = micros.ok_or("must have an `amount` such as \"250.50\"")?;
            (BudgetUnit::Money, Amount::new(micros * PICOS))
        }
        (None, Some(tokens)) => {
            let tokens = u128::try_from(tokens).map_err(|_| "must have 0 `tokens` or more")?;
            (BudgetUnit::Tokens, Amount::new(tokens))
        }
        _ => return Err("must have exactly one of `amount` and `tokens`"),
    };
    let percents = spec.alert_percents.iter().filter_map(|percent| u32::try_from(*percent).ok());
    let mut alert_percents: Vec<u32> = percents.collect();
    alert_percents.sort_unstable();
    let key = BudgetKey { scope: path.clone(), name: spec.name.as_str().into() };
    let counts_only = spec.on_exhausted == WhenExhausted::Alert;
    let period = spec.period.of_quota();
    let spec_of_quota = BudgetSpec { key, unit, limit, period, counts_only };
    Ok(TenantBudget { spec: spec_of_quota, alert_percents, on_exhausted: spec.on_exhausted })
}

impl BudgetPeriod {
    /// As the bank counts it.
    pub const fn of_quota(self) -> Period {
        match self {
            Self::Day => Period::Day,
            Self::Week => Period::Week,
            Self::Month => Period::Month,
            Self::None => Period::Once,
        }
    }
}

/// Whether it says whom it means. One that does not would mean everybody who has a token of the issuer.
fn is_member(member: &TenantMember) -> bool {
    let of_kubernetes = member.issuer == KUBERNETES;
    let accounts = !member.service_accounts.is_empty();
    let claims = !member.claims.is_empty() && member.claims.values().all(|any| !any.is_empty());
    if of_kubernetes {
        accounts && member.claims.is_empty()
    } else {
        claims && !accounts && member.issuer.starts_with("https://")
    }
}

/// What is wrong is never shown: somebody may have written the key itself there.
fn key(spec: &TenantKeySpec) -> Result<TenantKey, (&'static str, &'static str)> {
    let is_id = spec.id.len() == 10 && spec.id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_id {
        return Err(("id", "must be ten letters and digits"));
    }
    let sha256 =
        digest(&spec.sha256).ok_or(("sha256", "must be 64 hexadecimal digits, small letters"))?;
    let moment = |text: &Option<String>, part: &'static str| {
        let wrong = (part, "must be a moment such as \"2026-11-20T18:00:00Z\"");
        text.as_deref().map(|text| moment(text).ok_or(wrong)).transpose()
    };
    Ok(TenantKey {
        name: spec.name.clone(),
        id: spec.id.clone(),
        sha256,
        not_before: moment(&spec.not_before, "notBefore")?,
        expires: moment(&spec.expires, "expires")?,
        disabled: spec.disabled,
    })
}

/// A moment before 1970 has passed as well as 1970 has.
fn moment(text: &str) -> Option<Timestamp> {
    let at = text.parse::<jiff::Timestamp>().ok()?;
    Some(Timestamp::from_micros(u64::try_from(at.as_microsecond()).unwrap_or(0)))
}

fn digest(text: &str) -> Option<[u8; 32]> {
    let nibble = |byte: &u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let bytes: Option<Vec<u8>> =
        pairs.iter().map(|[high, low]| Some((nibble(high)? << 4) | nibble(low)?)).collect();
    bytes?.try_into().ok()
}
