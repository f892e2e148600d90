//! A hard budget at eight gateways, with an operator and an API server that are real: bursts, half of the clients hang
//! up, a gateway and the leader are killed, a gateway is cut off from the operator. The emulated engine counts what it
//! read and wrote; no more than the budget may be passed on, and nothing may be left over in the end.
//!
//! Gateways are processes of this machine. Each has a pod of its name that is never started, by which the operator knows
//! whether one that is silent is gone: without, it would wait ten minutes before it gives up what that one held.

mod beside;
mod client;

use super::limits::{Engine, gateway_with_pod};
use super::rig::{Setup, crds, operator};
use anyhow::{Context, Result, ensure};
use client::{Ask, Ended, Tally, lock};
use flyball_e2e::http::HttpAnswer;
use flyball_e2e::process::{ServiceProcess, metric};
use flyball_e2e::{Relay, Story, dynamic, figure, in_namespace, is_long, note, until};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, DeleteParams, ListParams};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const GATEWAYS: usize = 8;
/// Clients at each.
const CLIENTS: usize = 3;
const LONGEST: u64 = 600;
const BUDGET: u64 = 2_000_000;

/// Refusals in a row after which a client gives up.
const REFUSALS: u32 = 20;

const KEY: &str = "sk-budget-of-eight";

/// The longest that anything here may take.
const LONG: Duration = Duration::from_secs(300);

/// What a stream pays ahead, and what it begins with at least (docs/decisions/0053).
const AHEAD: u64 = 256;
const LEAST: u64 = AHEAD / 8;

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn gateways_spend_a_budget_to_its_end_and_never_beyond_whoever_dies() -> Result<()> {
    // Not yet in CI: its figures have to stand first. A gateway and a leader that die together take with them what the record
    // is ahead, an eighth of a budget that lasts for minutes only.
    if !is_long() {
        note("left out: only with --figure");
        return Ok(());
    }
    in_namespace(&[], async |story| {
        let mut team = Team::begins(story).await?;
        let done = team.spend().await;
        done.with_context(|| format!("the operator's log:\n{}", team.office.log()))
    })
    .await
}

/// All that is there.
struct Team<'a> {
    story: &'a Story,
    budget: u64,
    engine: Engine,
    office: ServiceProcess,
    link: SocketAddr,
    relay: Relay,
    gateways: Vec<ServiceProcess>,
    /// Where they are, for clients that are under way.
    addresses: Arc<Mutex<Vec<SocketAddr>>>,
    tally: Arc<Tally>,
    prompt_tokens: u64,
}

impl<'a> Team<'a> {
    async fn begins(story: &'a Story) -> Result<Self> {
        crds(story)?;
        let budget = BUDGET;
        let manifest = format!(
            "apiVersion: flyball.dev/v1alpha1\nkind: Tenant\nmetadata: {{ name: team }}\n\
             spec:\n  models: ['*']\n  budgets: [{{ name: all, tokens: {budget}, period: None }}]\n  \
             keys:\n  - {{ name: app, id: budgeteigh, sha256: {} }}\n",
            super::tenants::sha256(KEY)?
        );
        story.apply(&manifest)?;
        let engine = Engine::start(story)?;
        let (office, link) = operator(story, &Setup::default(), None)?;
        office.ready().await?;
        let relay = Relay::to(link).await?;
        let (mut gateways, mut addresses) = (Vec::new(), Vec::new());
        for number in 0..GATEWAYS {
            // The last goes through something that can be cut.
            let link = if number + 1 == GATEWAYS { relay.address } else { link };
            let (process, http) = gateway_with_pod(story, engine.address, link).await?;
            gateways.push(process);
            addresses.push(http);
        }
        for gateway in &gateways {
            gateway.ready().await?;
        }
        let addresses = Arc::new(Mutex::new(addresses));
        let tally = Arc::new(Tally::of(engine.address));
        let mut team = Self {
            story,
            budget,
            engine,
            office,
            link,
            relay,
            gateways,
            addresses,
            tally,
            prompt_tokens: 0,
        };
        let first = lock(&team.addresses)[0];
        team.prompt_tokens = first_answer(first, &team.tally).await?;
        Ok(team)
    }

    async fn spend(&mut self) -> Result<()> {
        let clients = clients(&self.addresses, &self.tally, self.prompt_tokens);
        self.used(0.2).await?;
        self.kill_a_gateway().await?;
        self.used(0.35).await?;
        self.kill_the_leader().await?;
        self.used(0.5).await?;
        self.relay.cut();
        self.used(0.7).await?;
        self.relay.mend();
        ended(clients).await?;
        let free = self.engine_is_free().await?;
        self.spend_the_rest().await?;
        self.judge(free).await
    }

    /// Waits until so much of the budget is used.
    async fn used(&self, share: f64) -> Result<()> {
        let tokens = (self.budget as f64 * share) as u64;
        let what = format!("{tokens} tokens to be used");
        until(&what, LONG, async || Ok((self.tally.used() >= tokens).then_some(()))).await
    }

    async fn kill_a_gateway(&mut self) -> Result<()> {
        self.gateways[0].kill()?;
        let pods: Api<Pod> =
            Api::namespaced(self.story.cluster.client.clone(), &self.story.namespace);
        pods.delete(self.gateways[0].name(), &DeleteParams::default().grace_period(0)).await?;
        let (process, http) = gateway_with_pod(self.story, self.engine.address, self.link).await?;
        process.ready().await?;
        (self.gateways[0], lock(&self.addresses)[0]) = (process, http);
        Ok(())
    }

    async fn kill_the_leader(&mut self) -> Result<()> {
        self.office.kill()?;
        let (next, _) = operator(self.story, &Setup::default(), Some(self.link))?;
        next.ready().await?;
        self.office = next;
        Ok(())
    }

    /// How long the engine works on after the last client is gone.
    async fn engine_is_free(&self) -> Result<Duration> {
        let began = Instant::now();
        while self.engine_counts("vllm:num_requests_running").await? > 0.0 {
            ensure!(began.elapsed() < LONG, "the engine works on for nobody");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(began.elapsed())
    }

    /// Small requests at every gateway until none is served: what those who were refused saw others use is there again.
    async fn spend_the_rest(&self) -> Result<()> {
        let ask = ask(0, self.prompt_tokens, LEAST, None);
        until("every gateway to refuse", LONG, async || {
            let (addresses, mut refused) = (lock(&self.addresses).clone(), 0);
            for gateway in addresses {
                let ended = self.tally.request(gateway, &ask).await?;
                refused += usize::from(matches!(ended, Ended::Refused));
            }
            Ok((refused == GATEWAYS).then_some(()))
        })
        .await
    }

    async fn judge(&self, free: Duration) -> Result<()> {
        let engine = self.tally.counted().await?;
        let lost = self.written_off().await?;
        let (tally, budget) = (&self.tally, self.budget);
        let streams = (GATEWAYS * CLIENTS) as f64;
        let over = engine.saturating_sub(budget) as f64 / streams;
        // Each that is open has paid its prompt, perhaps twice as much as it comes to, and what it is ahead.
        let each = 2 * self.prompt_tokens + AHEAD;
        let refusals = lock(&tally.refusals).clone();
        let wrong = tally.refused_with_money_left(budget - lost.min(budget), each);
        let mut stops = lock(&tally.stops).clone();
        stops.sort_by(f64::total_cmp);
        let stop = stops.get(stops.len().saturating_sub(1 + stops.len() / 100)).copied();
        note(&format!(
            "budget {budget}: the engine counted {engine}, clients {}; {lost} written off; {} finished, {} hung up, {} \
             stopped, {} refused ({wrong} with money left), {} put off, {} broken; stopped after {stop:?} ms (p99), the \
             engine was free after {} ms",
            tally.used(),
            tally.finished.load(Ordering::Relaxed),
            tally.hung_up.load(Ordering::Relaxed),
            stops.len(),
            refusals.len(),
            tally.put_off.load(Ordering::Relaxed),
            tally.broken.load(Ordering::Relaxed),
            free.as_millis(),
        ));
        figure("tenants.overshoot_tokens", over, "tokens", "<=100")?;
        figure("tenants.false_refusals", wrong as f64, "requests", "=0")?;
        if let Some(stop) = stop {
            figure("tenants.stop_ms", stop, "ms", "<=250")?;
        }
        ensure!(over <= 100.0, "{over} tokens too many for each running stream");
        ensure!(wrong == 0, "refused with money left");
        ensure!(!stops.is_empty(), "no stream was ended by the budget");
        ensure!(tally.hung_up.load(Ordering::Relaxed) > 0, "no client hung up");
        self.nothing_is_left().await
    }

    /// The Tenant's own status says that nothing is left that a request could use.
    async fn nothing_is_left(&self) -> Result<()> {
        let (client, namespace) = (&self.story.cluster.client, Some(self.story.namespace.as_str()));
        let tenants = dynamic(client, namespace, "flyball.dev/v1alpha1", "Tenant");
        let most = 2 * self.prompt_tokens + LEAST;
        until("a status that says that nothing is left", LONG, async || {
            let tenant = tenants.get("team").await?.data;
            let left = tenant["status"]["budgets"][0]["left"].as_str();
            let left: u64 = left.context("a status without a budget")?.parse()?;
            Ok((left <= most).then_some(()))
        })
        .await
    }

    async fn engine_counts(&self, name: &str) -> Result<f64> {
        metric(self.engine.address, name).await
    }

    /// Tokens that the operator granted to gateways that are gone, of which nobody knows whether they were used.
    async fn written_off(&self) -> Result<u64> {
        let maps: Api<ConfigMap> =
            Api::namespaced(self.story.cluster.client.clone(), &self.story.namespace);
        let all = maps.list(&ListParams::default()).await?.items;
        let record = all.iter().find_map(|map| map.data.as_ref()?.get("record.json"));
        let record: Value = serde_json::from_str(record.context("no record of budgets")?)?;
        let text = record["budgets"][0][5].as_str().context("a record without budgets")?;
        Ok(text.parse()?)
    }
}

/// Waits until a gateway serves on the budget. Tokens of the prompt that everybody sends.
async fn first_answer(http: SocketAddr, tally: &Tally) -> Result<u64> {
    let body = json!({
        "model": "m", "max_tokens": 1,
        "messages": [{ "role": "user", "content": prompt(0) }],
    });
    let headers = format!("authorization: Bearer {KEY}\r\n");
    until("the first answer on a budget", LONG, async || {
        let path = "/v1/chat/completions";
        let answer = HttpAnswer::with(http, path, &headers, Some(&body)).await?;
        let (status, text) = answer.whole().await?;
        if status != 200 {
            return Ok(None);
        }
        let answer: Value = serde_json::from_str(&text)?;
        let tokens = answer["usage"]["prompt_tokens"].as_u64().context("no usage")?;
        tally.used.fetch_add(tokens + 1, Ordering::Relaxed);
        Ok(Some(tokens))
    })
    .await
}

/// All clients, at work.
fn clients(
    addresses: &Arc<Mutex<Vec<SocketAddr>>>,
    tally: &Arc<Tally>,
    prompt_tokens: u64,
) -> JoinSet<Result<()>> {
    let mut clients = JoinSet::new();
    for gateway in 0..GATEWAYS {
        for number in 0..CLIENTS {
            let (addresses, tally) = (Arc::clone(addresses), Arc::clone(tally));
            let client = Client { gateway, number, addresses, tally };
            clients.spawn(async move { client.work(prompt_tokens).await });
        }
    }
    clients
}

/// Waits until every client has given up.
async fn ended(mut clients: JoinSet<Result<()>>) -> Result<()> {
    let all = async {
        while let Some(ended) = clients.join_next().await {
            ended??;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(4 * LONG, all).await.context("requests do not end")?
}

/// A client that asks one gateway for one answer after the other until the budget is exhausted.
struct Client {
    gateway: usize,
    number: usize,
    addresses: Arc<Mutex<Vec<SocketAddr>>>,
    tally: Arc<Tally>,
}

impl Client {
    async fn work(self, prompt_tokens: u64) -> Result<()> {
        let mut draw = Draw((self.gateway * CLIENTS + self.number) as u64);
        let mut refused = 0;
        loop {
            let max_tokens = 1 + draw.below(LONGEST);
            let hangs_up_after = (draw.below(2) == 0).then(|| 1 + draw.below(max_tokens));
            let ask = ask(self.number, prompt_tokens, max_tokens, hangs_up_after);
            let gateway = lock(&self.addresses)[self.gateway];
            match self.tally.request(gateway, &ask).await? {
                // Each refusal is noted and judged. So many in a row are the end.
                Ended::Refused if refused == REFUSALS => return Ok(()),
                Ended::Refused => {
                    refused += 1;
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                Ended::PutOff | Ended::Broken => {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                Ended::Finished | Ended::HungUp | Ended::Stopped(_) => refused = 0,
            }
        }
    }
}

fn ask(number: usize, prompt_tokens: u64, max_tokens: u64, hangs_up_after: Option<u64>) -> Ask {
    Ask { key: KEY, prompt: prompt(number), prompt_tokens, max_tokens, hangs_up_after }
}

/// As long for everybody.
fn prompt(number: usize) -> String {
    format!("Tell client {number} a story of eight gateways and one budget.")
}

/// SplitMix64.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}
