//! A name that stands for two models: whether the shares are those that were set, whether sessions
//! stay where they were, and whether a mirror's answers stay away from clients.

use super::report::Report;
use super::rig::{Gateway, Kind, Rig, model};
use crate::figures::Op;
use crate::page::{Measured, measure};
use crate::programs::page::{of, total};
use crate::programs::running::{Cores, Running, get};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::fmt::Write;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

const STABLE: &str = "stable";
const CANARY: &str = "canary";
const SHADOW: &str = "shadow";
/// Of 100.
const CANARY_WEIGHT: u32 = 10;
/// Requests that are copied, in thousandths.
const COPIED: u32 = 100;

const SESSIONS: u64 = 1_000;
const EACH: u64 = 20;
const MIRRORED: u64 = 5_000;

/// A mirror needs an engine with a log, quick enough not to be in the way.
const MIRROR: Kind = Kind {
    model: "llama-3.1-8b",
    gpu: "h100",
    tensor: 1,
    max_running: 256,
    step_tokens: 8_192,
    speed_up: 20.0,
};

/// The three names that stand for models, and the models themselves.
fn settings(stable: SocketAddr, canary: SocketAddr, shadow: SocketAddr) -> String {
    let mut text = "\n[telemetry]\naccess_log = false\n".to_owned();
    for (name, address) in [(STABLE, stable), (CANARY, canary), (SHADOW, shadow)] {
        text += &model(name, &[address], "");
    }
    let arms = format!(
        "[[splits.arms]]\nmodel = \"{STABLE}\"\nknown_as = \"{STABLE}\"\nweight = {}\n\
         [[splits.arms]]\nmodel = \"{CANARY}\"\nknown_as = \"{CANARY}\"\nweight = {CANARY_WEIGHT}\n",
        100 - CANARY_WEIGHT
    );
    text += &format!("\n[[splits]]\nname = \"by-weight\"\n{arms}");
    text += &format!("\n[[splits]]\nname = \"sticky\"\nsticky = \"user\"\n{arms}");
    text += &format!(
        "\n[[splits]]\nname = \"mirrored\"\n{arms}[splits.mirror]\nmodel = \"{SHADOW}\"\n\
         known_as = \"{SHADOW}\"\nper_thousand = {COPIED}\n"
    );
    text
}

pub(super) fn measured(rig: &mut Rig) -> Result<Measured> {
    let requests: u64 = if rig.quick { 50_000 } else { 1_000_000 };
    let (_stable, stable) = upstream(rig, STABLE)?;
    let (_canary, canary) = upstream(rig, CANARY)?;
    let shadow = rig.engines(&MIRROR, SHADOW, 1)?;
    let shadow_address = shadow.addresses[0];
    let gateway = rig.gateway("split-gateway", &settings(stable, canary, shadow_address))?;

    eprintln!("split: {requests} requests by weight");
    let plan = plan(rig.seed, &gateway, "by-weight", requests, &json!({}));
    let report = rig.callers("split-weights", &plan)?;
    let weights = shares(&report, &gateway, requests)?;

    eprintln!("split: {SESSIONS} sessions");
    let sessions = json!({"sessions": {"count": SESSIONS}});
    let plan = self::plan(rig.seed + 1, &gateway, "sticky", SESSIONS * EACH, &sessions);
    let sticky = rig.callers("split-sticky", &plan)?;
    let moved = sticky.all_mixed();
    ensure!(sticky.callers[0].sessions as u64 == SESSIONS, "not every session was answered");

    eprintln!("split: {MIRRORED} requests with a mirror");
    let plan = self::plan(rig.seed + 2, &gateway, "mirrored", MIRRORED, &json!({}));
    let mirrored = rig.callers("split-mirror", &plan)?;
    let copies = copies(shadow_address)?;
    let strangers: u64 = named(&mirrored, |name| name != STABLE && name != CANARY);

    let mut text = format!(
        "Bare upstreams behind {STABLE} ({} of 100) and {CANARY} ({CANARY_WEIGHT}), one gateway.\n\n\
         | What | requests | found |\n|---|---|---|\n",
        100 - CANARY_WEIGHT
    );
    let error = 100.0 * (weights.share - f64::from(CANARY_WEIGHT) / 100.0).abs();
    let _ = writeln!(
        text,
        "| By weight, {:.0} requests/s | {requests} | {:.4} % to {CANARY}, {error:.4} points off; the \
         gateway's counts agree |\n\
         | Sticky by `user` | {} in {SESSIONS} sessions | {moved} sessions saw both; {:.1} % of \
         requests to {CANARY} |\n\
         | Mirror of {COPIED} in 1,000 | {MIRRORED} | {copies} copies reached its engine; {strangers} \
         answers of it reached a client |",
        weights.per_second,
        100.0 * weights.share,
        SESSIONS * EACH,
        100.0 * share_of(&sticky, CANARY),
    );
    ensure!(moved == 0, "{moved} of {SESSIONS} sticky sessions saw both arms");
    ensure!(strangers == 0, "{strangers} answers of the mirror reached a client");
    let expected = MIRRORED as f64 * f64::from(COPIED) / 1e3;
    ensure!(
        (copies - expected).abs() < expected / 2.0,
        "{copies} copies reached the mirror's engine, of {expected} expected"
    );
    let name = "admission.split_error_points";
    Ok(Measured { text, figures: vec![measure(name, error, "points", Op::AtMost, 0.1)] })
}

struct Shares {
    /// Of the canary.
    share: f64,
    per_second: f64,
}

/// The canary's share, as clients saw it; the gateway's own counts must agree.
fn shares(report: &Report, gateway: &Gateway, requests: u64) -> Result<Shares> {
    let whole = &report.all.whole;
    ensure!(
        whole.answered == requests,
        "answered {} of {requests}: {}",
        whole.answered,
        whole.refusals()
    );
    let page = get(gateway.admin, "/metrics")?;
    for arm in [STABLE, CANARY] {
        let labels = [format!("model=\"{arm}\""), "outcome=\"answered\"".to_owned()];
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        let counted = of(&page, "flyball_gateway_requests_total", &labels).unwrap_or(0.0);
        let seen = named(report, |name| name == arm);
        ensure!(counted == seen as f64, "the gateway counted {counted} for {arm}, clients {seen}");
    }
    Ok(Shares {
        share: share_of(report, CANARY),
        per_second: whole.answered as f64 / report.seconds,
    })
}

fn named(report: &Report, pick: impl Fn(&str) -> bool) -> u64 {
    report.all.models.iter().filter(|(name, _)| pick(name)).map(|(_, count)| count).sum()
}

fn share_of(report: &Report, model: &str) -> f64 {
    named(report, |name| name == model) as f64 / named(report, |_| true).max(1) as f64
}

/// Requests that the mirror's engine has ended. Copies may still be under way when the last client
/// was answered.
fn copies(shadow: SocketAddr) -> Result<f64> {
    let mut last = -1.0;
    loop {
        let page = get(shadow, "/metrics")?;
        let now = total(&page, "vllm:request_success_total").context("no count at the mirror")?;
        if now == last {
            return Ok(now);
        }
        last = now;
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn plan(seed: u64, gateway: &Gateway, name: &str, requests: u64, more: &Value) -> Value {
    let mut caller = json!({
        "name": "client", "model": name, "concurrency": 32, "requests": requests,
        "prompt_tokens": [20, 60], "output_tokens": [8, 8], "streams": 0.0,
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        caller[key] = value.clone();
    }
    json!({
        "targets": [gateway.listen], "seconds": 3_600, "seed": seed, "names_models": true,
        "callers": [caller],
    })
}

fn upstream(rig: &mut Rig, model: &str) -> Result<(Running, SocketAddr)> {
    let address = rig.ports.next()?;
    let mut command = Command::new(rig.program("proving-upstream"));
    command.args(["--listen", &address.to_string(), "--model", model]);
    let name = format!("upstream-{model}");
    let mut running = Running::start(&name, &command, Cores::All, &rig.folder)?;
    running.ready(address, "/health", Duration::from_secs(20))?;
    Ok((running, address))
}

impl Report {
    /// Sessions that saw more than one model.
    fn all_mixed(&self) -> usize {
        self.callers.iter().map(|account| account.mixed_sessions).sum()
    }
}
