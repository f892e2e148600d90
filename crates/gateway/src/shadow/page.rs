//! What is told of it: metrics, and JSON for people and programs.

use super::Shadows;
use flyball_routing::shadow::{ShadowReport, ShadowStatus};
use flyball_telemetry::metrics::{Metric, MetricsSource, Page};
use serde_json::{Value, json};
use std::fmt;
use std::sync::atomic::Ordering::Relaxed;

impl Shadows {
    /// All reports as JSON. What is not known yet is `null`.
    pub fn json(&self) -> String {
        let models: Vec<Value> =
            self.known.reports().iter().map(|(model, report)| entry(model, report)).collect();
        let value = json!({ "models": models, "dropped": self.dropped() });
        format!("{value:#}\n")
    }

    /// Messages that found the queue full.
    pub(super) fn dropped(&self) -> u64 {
        self.known.dropped.load(Relaxed)
    }
}

fn entry(model: &str, report: &ShadowReport) -> Value {
    let scored = report.requests > 0;
    let policy = |one: &ShadowStatus| {
        json!({
            "policy": one.policy.name(),
            "ttftSeconds": scored.then_some(one.first_seconds),
            "hitShare": scored.then_some(one.hit_share),
            "regretSeconds": scored.then_some(one.regret_seconds),
            "regretMarginSeconds": one.regret_off,
            "sure": one.is_sure(),
        })
    };
    let rates = &report.rates;
    json!({
        "model": model,
        "live": report.policies.first().map(|one| one.policy.name()),
        "best": report.best().filter(|_| scored).map(flyball_routing::RoutingPolicy::name),
        "policies": report.policies.iter().map(policy).collect::<Vec<_>>(),
        "requests": report.requests,
        "seconds": report.seconds,
        "measuredTtftSeconds": report.measured_seconds,
        "predictionError": report.error,
        "engines": {
            "secondsPerPrompt": rates.timed.then_some(rates.per_prompt),
            "secondsPerPromptToken": rates.timed.then_some(rates.per_prompt_token),
            "secondsPerOutputToken": rates.timed.then_some(rates.per_output_token),
            "cacheTokens": rates.sized.then_some(rates.cache_tokens),
            "cacheTokensAssumed": (!rates.sized).then_some(rates.cache_tokens),
        },
    })
}

impl MetricsSource for Shadows {
    fn write(&self, page: &mut Page<'_>) -> fmt::Result {
        let reports = self.known.reports().clone();
        let scored = || reports.iter().filter(|(_, report)| report.requests > 0);
        let each = |value: fn(&ShadowStatus) -> Option<f64>| {
            scored().flat_map(move |(model, report)| {
                let values = report.policies.iter().map(move |one| (one.policy, value(one)));
                values.filter_map(move |(policy, value)| Some(([&**model, policy.name()], value?)))
            })
        };
        page.gauge(Metric::GatewayShadowRegret, each(|one| Some(one.regret_seconds)))?;
        page.gauge(Metric::GatewayShadowRegretMargin, each(|one| one.regret_off))?;
        page.gauge(Metric::GatewayShadowFirst, each(|one| Some(one.first_seconds)))?;
        page.gauge(Metric::GatewayShadowHitShare, each(|one| Some(one.hit_share)))?;
        let errors = scored().filter_map(|(model, report)| Some(([&**model], report.error?)));
        page.gauge(Metric::GatewayShadowError, errors)?;
        page.counter(Metric::GatewayShadowDropped, [([""; 0], self.dropped())])
    }
}
