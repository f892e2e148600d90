//! LiteLLM with the same clients, if it is installed: as many of its proxies, one Redis, and one of the proxies killed.
//!
//! The budget is that of a deployment, which its proxies count in Redis. Budgets of keys need its database client, whose
//! engine is no package of any registry. It is a fiftieth of ours: eight proxies on two cores pass on some hundred tokens
//! in a second, and take a minute to start.

use super::client::{Tally, lock};
use super::{Engine, GATEWAYS, KEY, LONG, clients, ended, first_answer};
use anyhow::Result;
use flyball_e2e::http::HttpAnswer;
use flyball_e2e::process::{RunningProgram, free};
use flyball_e2e::{Story, figure, in_namespace, note, until};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

/// Tokens, at a millionth of a dollar each.
const BUDGET: u64 = super::BUDGET / 50;

#[tokio::test]
#[ignore = "needs LiteLLM and redis-server: FLYBALL_E2E_LITELLM=PROGRAM cargo xtask e2e --figure litellm"]
async fn litellm_proxies_spend_a_budget_of_one_deployment() -> Result<()> {
    let Some(program) = std::env::var_os("FLYBALL_E2E_LITELLM").map(PathBuf::from) else {
        note("LiteLLM is left out: FLYBALL_E2E_LITELLM does not name its program");
        return Ok(());
    };
    in_namespace(&[], async |story| {
        let folder = std::env::temp_dir().join(format!("flyball-{}-litellm", story.namespace));
        std::fs::create_dir_all(&folder)?;
        let done = spend(story, &program, &folder).await;
        std::fs::remove_dir_all(&folder)?;
        done
    })
    .await
}

async fn spend(story: &Story, program: &Path, folder: &Path) -> Result<()> {
    let engine = Engine::start(story)?;
    let (_redis, redis) = redis(folder)?;
    let file = folder.join("litellm.yaml");
    std::fs::write(&file, settings(engine.address, redis))?;
    let (mut proxies, mut addresses) = (Vec::new(), Vec::new());
    for _ in 0..GATEWAYS {
        let address = free()?;
        proxies.push(proxy(program, &file, folder, address)?);
        addresses.push(address);
    }
    for address in &addresses {
        ready(*address).await?;
    }
    let tally = Arc::new(Tally::of(engine.address));
    let prompt_tokens = first_answer(addresses[0], &tally).await?;
    let addresses = Arc::new(Mutex::new(addresses));
    let running = clients(&addresses, &tally, prompt_tokens);
    until("a fifth of the budget to be used", LONG, async || {
        Ok((tally.used() >= BUDGET / 5).then_some(()))
    })
    .await?;
    drop(proxies.remove(0));
    let address = free()?;
    proxies.push(proxy(program, &file, folder, address)?);
    ready(address).await?;
    lock(&addresses)[0] = address;
    ended(running).await?;
    let counted = tally.counted().await?;
    let over = counted.saturating_sub(BUDGET) as f64 / (GATEWAYS * super::CLIENTS) as f64;
    let count = |of: &std::sync::atomic::AtomicU64| of.load(Ordering::Relaxed);
    note(&format!(
        "LiteLLM, budget {BUDGET}: the engine counted {counted}, clients {}; {} finished, {} hung up, {} stopped, {} \
         refused ({} with money left), {} broken",
        tally.used(),
        count(&tally.finished),
        count(&tally.hung_up),
        lock(&tally.stops).len(),
        lock(&tally.refusals).len(),
        tally.refused_with_money_left(BUDGET, 2 * prompt_tokens),
        count(&tally.broken),
    ));
    figure("tenants.litellm_overshoot_tokens", over, "tokens", ">=0")
}

fn redis(folder: &Path) -> Result<(RunningProgram, SocketAddr)> {
    let address = free()?;
    let mut command = Command::new("redis-server");
    command.args(["--bind", "127.0.0.1", "--port", &address.port().to_string()]);
    command.args(["--save", "", "--appendonly", "no", "--dir"]).arg(folder);
    Ok((started(&mut command, folder, "redis")?, address))
}

fn proxy(
    program: &Path,
    file: &Path,
    folder: &Path,
    address: SocketAddr,
) -> Result<RunningProgram> {
    let port = address.port().to_string();
    let mut command = Command::new(program);
    command.args(["--host", "127.0.0.1", "--port", &port, "--num_workers", "1"]);
    command.args(["--telemetry", "False", "--config"]).arg(file);
    // Without these it asks the network for a list of prices, and logs every request.
    command.env("LITELLM_LOCAL_MODEL_COST_MAP", "True").env("LITELLM_LOG", "ERROR");
    command.env("LITELLM_MODE", "PRODUCTION");
    started(&mut command, folder, &port)
}

fn started(command: &mut Command, folder: &Path, name: &str) -> Result<RunningProgram> {
    let log = std::fs::File::create(folder.join(format!("{name}.log")))?;
    RunningProgram::start(command.stdout(log.try_clone()?).stderr(log))
}

async fn ready(address: SocketAddr) -> Result<()> {
    until("LiteLLM to be ready", LONG, async || {
        let Ok(answer) = HttpAnswer::of(address, "/health/liveliness", None).await else {
            return Ok(None);
        };
        Ok(answer.whole().await.is_ok_and(|(status, _)| status == 200).then_some(()))
    })
    .await
}

fn settings(engine: SocketAddr, redis: SocketAddr) -> String {
    let dollars = BUDGET as f64 / 1e6;
    format!(
        "model_list:\n- model_name: m\n  model_info: {{ id: m }}\n  litellm_params:\n    \
         {{ model: openai/m, api_base: 'http://{engine}/v1', api_key: none, input_cost_per_token: 0.000001,\n      \
         output_cost_per_token: 0.000001, max_budget: {dollars}, budget_duration: 1d }}\n\
         router_settings: {{ redis_host: 127.0.0.1, redis_port: {}, num_retries: 0 }}\n\
         litellm_settings: {{ telemetry: false, request_timeout: 300 }}\n\
         general_settings: {{ master_key: {KEY} }}\n",
        redis.port()
    )
}
