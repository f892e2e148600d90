//! Requests of Tenants with limits and budgets: a real gateway over HTTP, emulated engines, and an operator that divides,
//! over a real connection.

use super::quotas::{Leader, Memory};
use super::rig::PATIENCE;
use flyball_emulator::{Emulator, EmulatorSettings, RunningEmulator};
use flyball_engines::Engine as Kind;
use flyball_fleet::{FleetEndpoint, FoundEngines, Listing};
use flyball_gateway::link::OperatorLink;
use flyball_gateway::meter::Finished;
use flyball_gateway::serve::{self, Listener, RunningGateway};
use flyball_gateway::settings::{GatewaySettingsFile, Operator};
use flyball_gateway::tenants::{TenantReading, TenantReadings};
use flyball_proving::http::{self, BodyReader, header_of};
use flyball_resources::Tenant;
use flyball_resources::resolve::{self, ResolvedTenant, TenantId};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

const KEY: &str = "a secret of the team";

struct Quiet;

impl Listener for Quiet {
    fn finished(&self, _: &Finished<'_>) {}
    fn cancelled(&self, _: &Arc<FleetEndpoint>) {}
}

/// A Tenant with this spec, and a key.
fn tenant(spec: &Value) -> Tenant {
    let sha256: String = Sha256::digest(KEY).iter().map(|byte| format!("{byte:02x}")).collect();
    let mut spec = spec.clone();
    spec["models"] = json!(["*"]);
    spec["keys"] = json!([{"name": "app", "id": "k3J9xQ2mZa", "sha256": sha256}]);
    serde_json::from_value(json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "Tenant",
        "metadata": {"name": "team", "namespace": "ml"}, "spec": spec,
    }))
    .unwrap()
}

/// One gateway before one engine, and the operator that divides.
struct Rig {
    gateway: Arc<RunningGateway>,
    engine: RunningEmulator,
    leader: Leader,
    talking: JoinHandle<()>,
}

/// What came back.
#[derive(Debug)]
struct Came {
    status: u16,
    head: String,
    body: String,
}

impl Rig {
    async fn of(spec: &Value) -> Self {
        let tenant = tenant(spec);
        let resolved: BTreeMap<TenantId, ResolvedTenant> = resolve::resolve([&tenant]);
        let store = Arc::new(Memory::default());
        let leader = Leader::of("127.0.0.1:0".parse().unwrap(), &store, &resolved).await;
        let engine = Emulator::start(EmulatorSettings::quick()).unwrap();
        let mut settings = GatewaySettingsFile { threads: 1, ..GatewaySettingsFile::default() };
        settings.listen.set_port(0);
        // Nobody is let in without a key, though none is in the settings.
        settings.tenants.watch = true;
        let gateway = Arc::new(serve::start(&settings, Arc::new(Quiet)).unwrap());
        let found = FoundEngines {
            name: engine.address.to_string(),
            address: engine.address,
            draining: false,
            engine: Kind::Vllm,
            uid: None,
        };
        gateway.list(&Listing { models: [("emulated".to_owned(), vec![found])].into() });
        let reading = TenantReading::of(&tenant);
        gateway.admit(&TenantReadings::from([("ml/team".to_owned(), reading)]));
        let address = format!("http://{}", leader.address());
        let operator = Operator { address, ..Operator::default() };
        let link = OperatorLink::new(operator, Arc::clone(&gateway), "1.2.3").named("gateway-0");
        let talking = tokio::spawn(async move { link.talk(std::future::pending()).await });
        Self { gateway, engine, leader, talking }
    }

    async fn asks(&self, path: &str, body: &Value) -> Came {
        let text = body.to_string();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-api-key: {KEY}\r\n\
             content-length: {}\r\n\r\n{text}",
            text.len()
        );
        exchange(self.gateway.address(), &head).await
    }

    async fn chats(&self, body: Value) -> Came {
        let mut body = body;
        body["model"] = json!("emulated");
        body["messages"] = json!([{"role": "user", "content": "Tell me a story."}]);
        self.asks("/v1/chat/completions", &body).await
    }

    /// Until the operator can give out: a gateway has to stand on its record first.
    async fn until_it_grants(&self) {
        let waiting = async {
            while self.chats(json!({"max_tokens": 1})).await.status != 200 {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.expect("in the end");
    }

    /// What the operator knows of the first budget, once nothing of it is paid ahead and it is enough. A report may be
    /// late on a full machine, so that nothing else is waited for.
    async fn spent(&self, enough: impl Fn(u64) -> bool) -> u64 {
        let waiting = async {
            loop {
                let in_flight: u32 =
                    self.gateway.fleet().endpoints().map(|one| one.in_flight()).sum();
                let spent = u64::try_from(self.leader.status().get()).unwrap();
                if in_flight == 0 && self.gateway.inside().requests == 0 && enough(spent) {
                    return spent;
                }
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        let came = tokio::time::timeout(PATIENCE, waiting).await;
        came.unwrap_or_else(|_| panic!("it stays at {}", self.leader.status().get()))
    }

    /// Prompt and output tokens that the engine itself counts.
    async fn engine_tokens(&self) -> u64 {
        let head = "GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        let page = exchange(self.engine.address, head).await.body;
        let sum = |name: &str| {
            let lines = page.lines().filter(|line| line.starts_with(name));
            lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum::<f64>()
        };
        (sum("vllm:prompt_tokens_total") + sum("vllm:generation_tokens_total")) as u64
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.talking.abort();
    }
}

impl Came {
    fn header(&self, name: &str) -> Option<&str> {
        header_of(self.head.as_bytes(), name)
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }

    fn events(&self) -> Vec<Value> {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        data.filter_map(|json| serde_json::from_str(json).ok()).collect()
    }

    /// Events with a part of the answer.
    fn tokens(&self) -> u64 {
        let is_part = |event: &&Value| {
            event["choices"][0]["delta"]["content"].as_str().is_some_and(|text| !text.is_empty())
        };
        self.events().iter().filter(is_part).count() as u64
    }
}

async fn exchange(address: SocketAddr, request: &str) -> Came {
    let mut connection = TcpStream::connect(address).await.unwrap();
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    let reading = connection.read_to_end(&mut bytes);
    tokio::time::timeout(PATIENCE, reading).await.expect("an answer").unwrap();
    let head = http::answer_head(&bytes).unwrap().unwrap();
    let (mut body, mut reader) = (Vec::new(), BodyReader::new(head.framing));
    reader.feed(&bytes[head.bytes..], |content| body.extend_from_slice(content)).unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    Came { status: head.status, head: text(&bytes[..head.bytes]), body: text(&body) }
}

fn budget(tokens: u64, when: &str) -> Value {
    json!({"budgets": [
        {"name": "month", "tokens": tokens, "period": "Month", "onExhausted": when},
    ]})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_ends_after_the_last_token_that_is_paid_and_the_next_request_is_refused() {
    let rig = Rig::of(&budget(1_000, "Refuse")).await;
    rig.until_it_grants().await;
    let came = rig.chats(json!({"stream": true, "max_tokens": 16_000})).await;
    assert_eq!(came.status, 200);
    let last = came.events().pop().unwrap();
    assert_eq!(last["error"]["code"], "insufficient_quota", "{last}");
    assert_eq!(last["error"]["flyball"]["budget"], "month");
    assert!(!came.body.contains("[DONE]"));
    let passed = came.tokens();
    assert!((500..1_000).contains(&passed), "{passed} tokens were passed on");
    // The engine writes on until it hears that nobody pays, and one read may bring more than a few of its tokens: how
    // many in time is for the story on the cluster to measure, in money.
    let spent = rig.spent(|spent| spent >= 900).await;
    assert!(spent < 2_000, "{spent} of 1000 tokens spent");
    assert!(rig.engine_tokens().await < 15_000, "its answer was cut");
    let refused = rig.chats(json!({"stream": true, "max_tokens": 4_000})).await;
    assert_eq!((refused.status, refused.header("x-should-retry")), (429, Some("false")));
    assert_eq!(refused.header("retry-after"), None);
    let error = &refused.json()["error"];
    assert_eq!(
        (&error["code"], &error["type"]),
        (&json!("insufficient_quota"), &json!("insufficient_quota"))
    );
    assert!(error["flyball"]["resets_at"].as_str().unwrap().ends_with("T00:00:00Z"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_is_paid_as_its_engine_counts_it_and_clients_see_usage_only_if_they_ask() {
    let rig = Rig::of(&budget(1_000_000, "Refuse")).await;
    rig.until_it_grants().await;
    let usage =
        |came: &Came| came.events().iter().filter(|event| event["usage"].is_object()).count();
    let came = rig.chats(json!({"stream": true, "max_tokens": 50})).await;
    assert!(came.body.contains("[DONE]") && usage(&came) == 0, "{came:?}");
    let options = json!({"include_usage": false, "other": 1});
    let body = json!({"stream": true, "max_tokens": 50, "stream_options": options});
    assert_eq!(usage(&rig.chats(body).await), 0);
    let options = json!({"include_usage": true});
    let body = json!({"stream": true, "max_tokens": 50, "stream_options": options});
    assert_eq!(usage(&rig.chats(body).await), 1);
    let written = rig.engine_tokens().await;
    assert_eq!(rig.spent(|spent| spent >= written).await, written);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn anthropics_clients_read_the_same_in_their_own_words() {
    let rig = Rig::of(&budget(600, "Refuse")).await;
    rig.until_it_grants().await;
    let body = json!({
        "model": "emulated", "max_tokens": 4_000, "stream": true,
        "messages": [{"role": "user", "content": "Tell me a story."}],
    });
    let came = rig.asks("/v1/messages", &body).await;
    assert_eq!(came.status, 200);
    assert!(came.body.contains("event: error"), "{}", came.body);
    assert!(came.body.contains("billing_error") && !came.body.contains("message_stop"));
    let refused = rig.asks("/v1/messages", &body).await;
    assert_eq!((refused.status, refused.header("x-should-retry")), (402, Some("false")));
    assert_eq!(refused.json()["error"]["type"], "billing_error");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_cannot_be_stopped_is_paid_before_it_begins_or_told_what_would_fit() {
    let rig = Rig::of(&budget(2_000, "Refuse")).await;
    rig.until_it_grants().await;
    let refused = rig.chats(json!({})).await;
    let error = refused.json();
    assert_eq!((refused.status, &error["error"]["code"]), (429, &json!("request_exceeds_budget")));
    let fits = error["error"]["flyball"]["max_tokens"].as_u64().unwrap();
    assert!((1_000..2_000).contains(&fits), "{fits}");
    let came = rig.chats(json!({ "max_tokens": fits })).await;
    assert_eq!(came.status, 200);
    let usage = &came.json()["usage"];
    let used = usage["total_tokens"].as_u64().unwrap();
    assert!(rig.spent(|spent| spent >= used).await <= 100 + used, "{used} used");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_happens_when_a_budget_is_exhausted_is_for_its_owner_to_say() {
    let rig = Rig::of(&budget(600, "FinishRunning")).await;
    rig.until_it_grants().await;
    let body = json!({"stream": true, "max_tokens": 1_500});
    let came = rig.chats(body.clone()).await;
    assert!(came.body.contains("[DONE]") && came.tokens() > 1_000, "it may finish");
    assert_eq!(rig.chats(body.clone()).await.status, 429);

    let rig = Rig::of(&budget(300, "IdleOnly")).await;
    rig.until_it_grants().await;
    for _ in 0..3 {
        let came = rig.chats(body.clone()).await;
        assert!(came.body.contains("[DONE]") && came.tokens() > 1_000, "{came:?}");
    }
    assert!(
        rig.spent(|spent| spent >= 300).await < 1_700,
        "what runs on idle capacity costs nothing"
    );

    let rig = Rig::of(&budget(300, "Alert")).await;
    let came = rig.chats(body).await;
    assert!(came.body.contains("[DONE]") && came.tokens() > 1_000, "nobody waits for a grant");
    rig.spent(|spent| spent > 1_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_hold_and_every_answer_says_what_is_left() {
    let limits = json!({"requestsPerMinute": 20, "concurrency": 8});
    let rig = Rig::of(&json!({ "limits": limits })).await;
    let (mut served, mut refused) = (0, None);
    for _ in 0..40 {
        let came = rig.chats(json!({"max_tokens": 1})).await;
        assert_eq!(came.header("x-ratelimit-limit-requests"), Some("20"), "{came:?}");
        match came.status {
            200 => served += 1,
            429 => refused = Some(came),
            _ => panic!("{came:?}"),
        }
        if served == 20 && refused.is_some() {
            break;
        }
    }
    let refused = refused.expect("there is a limit");
    assert!(served <= 20, "{served}");
    let error = &refused.json()["error"];
    assert_eq!(
        (&error["code"], &error["type"]),
        (&json!("rate_limit_exceeded"), &json!("rate_limit_exceeded"))
    );
    let millis: u64 = refused.header("retry-after-ms").unwrap().parse().unwrap();
    let seconds: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert_eq!(seconds, millis.div_ceil(1_000));
    assert_eq!(refused.header("x-should-retry"), None);
    assert_eq!(refused.header("x-ratelimit-remaining-requests"), Some("0"));
    let head = format!(
        "GET /v1/flyball/limits HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-api-key: {KEY}\r\n\r\n"
    );
    let limits = exchange(rig.gateway.address(), &head).await.json();
    assert_eq!((&limits["tenant"], &limits["limits"][0]["limit"]), (&json!("ml/team"), &json!(20)));
}
