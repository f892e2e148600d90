//! A limit of requests at eight gateways, with an operator and an API server that are real: more is asked for than the
//! limit allows, all of it at another gateway every five seconds; then less, while the operator is away for a minute.

use super::limits::{Engine, gateway_with_pod};
use super::rig::{Setup, crds, operator};
use anyhow::{Context, Result, bail, ensure};
use flyball_e2e::http::HttpAnswer;
use flyball_e2e::process::ServiceProcess;
use flyball_e2e::{Story, figure, in_namespace, is_long, note, until};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const GATEWAYS: usize = 8;
/// Requests that may be served in a minute: 375 at each gateway, which is what limits are made for (docs/decisions/0047).
const LIMIT: usize = 3_000;
const KEY: &str = "limit-of-eight";

const MINUTE: Duration = Duration::from_secs(60);
/// All traffic goes to another gateway so often.
const MOVES: Duration = Duration::from_secs(5);
/// Three times the limit, whole: a permit is free again 60.25 s after it was used (`flyball-quota`, `window.rs`).
const MOVING: Duration = Duration::from_secs(181);

/// The longest that anything else here may take.
const LONG: Duration = Duration::from_secs(120);

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn a_limit_holds_over_every_minute_while_traffic_moves_and_with_no_operator() -> Result<()> {
    if !is_long() {
        note("left out: it takes seven minutes; only with --figure");
        return Ok(());
    }
    in_namespace(&[], async |story| {
        let mut team = Team::begins(story).await?;
        let judged = team.judged().await;
        judged.with_context(|| format!("the operator's log:\n{}", team.office.log()))
    })
    .await
}

struct Team {
    _engine: Engine,
    office: ServiceProcess,
    gateways: Vec<(ServiceProcess, SocketAddr)>,
}

/// A request that was answered: when, and whether it was served.
#[derive(Clone, Copy)]
struct Answered {
    at: Duration,
    is_served: bool,
}

impl Team {
    async fn begins(story: &Story) -> Result<Self> {
        crds(story)?;
        story.apply(&format!(
            "apiVersion: flyball.dev/v1alpha1\nkind: Tenant\nmetadata: {{ name: team }}\n\
             spec:\n  models: ['*']\n  limits: {{ requestsPerMinute: {LIMIT} }}\n  \
             keys:\n  - {{ name: app, id: limiteight, sha256: {} }}\n",
            super::tenants::sha256(KEY)?
        ))?;
        let engine = Engine::start(story)?;
        let (office, link) = operator(story, &Setup::default(), None)?;
        office.ready().await?;
        let mut gateways = Vec::new();
        for _ in 0..GATEWAYS {
            gateways.push(gateway_with_pod(story, engine.address, link).await?);
        }
        for (gateway, _) in &gateways {
            gateway.ready().await?;
        }
        let team = Self { _engine: engine, office, gateways };
        team.divided().await?;
        Ok(team)
    }

    /// Waits until each gateway has its part: one that is new to the operator has a tenth of a limit, which is more than
    /// a gateway's part here.
    async fn divided(&self) -> Result<()> {
        for (_, http) in &self.gateways {
            until("a gateway to serve", LONG, async || Ok(is_served(*http).await?.then_some(())))
                .await?;
        }
        // Operators are told four times a second, and answer.
        tokio::time::sleep(Duration::from_secs(2)).await;
        Ok(())
    }

    async fn judged(&mut self) -> Result<()> {
        // What was used until here is free again.
        tokio::time::sleep(MINUTE + Duration::from_secs(1)).await;
        let moving =
            self.load(1.3, MOVING, |at, _| at.div_duration_f64(MOVES) as usize % GATEWAYS).await?;
        let most = most_in_a_minute(&moving);
        let served = moving.iter().filter(|one| one.is_served).count();
        let over = (100.0 * (most as f64 / LIMIT as f64 - 1.0)).max(0.0);
        let allowed = LIMIT as f64 * MOVING.div_duration_f64(MINUTE);
        let usable = 100.0 * served as f64 / allowed;
        note(&format!(
            "{} requests in {MOVING:?}, all at another gateway every {MOVES:?}: {served} served, {most} in the fullest \
             minute",
            moving.len(),
        ));
        let spread = |_: Duration, number: usize| number * 5 % GATEWAYS;
        let with = self.load(0.75, MINUTE + Duration::from_secs(1), spread).await?;
        self.office.kill()?;
        let without = self.load(0.75, MINUTE, spread).await?;
        // The first minute begins with permits that the load before it has used.
        let refused = without.iter().filter(|one| !one.is_served).count();
        note(&format!(
            "at three quarters of the limit: {} of {} refused with an operator, {refused} of {} in a minute without",
            with.iter().filter(|one| !one.is_served).count(),
            with.len(),
            without.len(),
        ));
        figure("tenants.rate_over_pct", over, "%", "<=1")?;
        figure("tenants.rate_usable_pct", usable, "%", ">=98")?;
        figure("tenants.rate_refused_without_operator", refused as f64, "requests", "=0")?;
        ensure!(over <= 1.0, "{most} requests were served within a minute");
        ensure!(usable >= 98.0, "only {served} were served");
        ensure!(refused == 0, "{refused} were refused that the limit allows");
        Ok(())
    }

    /// Requests at even times, so many times the limit, whatever becomes of those before them.
    async fn load(
        &self,
        of_limit: f64,
        long: Duration,
        gateway: impl Fn(Duration, usize) -> usize,
    ) -> Result<Vec<Answered>> {
        let between = MINUTE.div_f64(of_limit * LIMIT as f64);
        let mut times = tokio::time::interval(between);
        let (mut running, mut answered) = (JoinSet::new(), Vec::new());
        let began = Instant::now();
        for number in 0.. {
            times.tick().await;
            let now = began.elapsed();
            if now >= long {
                break;
            }
            let (_, http) = self.gateways[gateway(now, number)];
            running.spawn(async move {
                let is_served = is_served(http).await?;
                anyhow::Ok(Answered { at: began.elapsed(), is_served })
            });
            while let Some(one) = running.try_join_next() {
                answered.push(one??);
            }
        }
        while let Some(one) = running.join_next().await {
            answered.push(one??);
        }
        Ok(answered)
    }
}

/// Asks for one token. False if the limit is reached.
async fn is_served(gateway: SocketAddr) -> Result<bool> {
    let body = json!({
        "model": "m", "max_tokens": 1, "messages": [{ "role": "user", "content": "Hello" }],
    });
    let headers = format!("authorization: Bearer {KEY}\r\n");
    let path = "/v1/chat/completions";
    let (status, text) =
        HttpAnswer::with(gateway, path, &headers, Some(&body)).await?.whole().await?;
    let answer: Value = serde_json::from_str(&text).unwrap_or_default();
    match (status, answer["error"]["code"].as_str()) {
        (200, _) => Ok(true),
        (429, Some("rate_limit_exceeded")) => Ok(false),
        _ => bail!("status {status}: {text}"),
    }
}

/// Served requests in the fullest minute, wherever it begins.
fn most_in_a_minute(answered: &[Answered]) -> usize {
    let mut times: Vec<Duration> =
        answered.iter().filter(|one| one.is_served).map(|one| one.at).collect();
    times.sort();
    let until = |from: &Duration| times.partition_point(|at| *at < *from + MINUTE);
    times.iter().enumerate().map(|(at, from)| until(from) - at).max().unwrap_or(0)
}
