//! One script gives a request the same fate on real sockets and in the virtual cluster.

use super::upstream;
use clap::Parser;
use flyball_proving::faults::Proxy;
use flyball_proving::history::End;
use flyball_proving::load::{Bodies, Client, ClientOutcome, Habit, Histogram, LoadPlan};
use flyball_simulator::cluster::{self, AnsweredBy, Fault};
use flyball_simulator::network::Script;
use flyball_simulator::policy::{PolicyView, ScaleOrder, ScalingPolicy};
use flyball_simulator::scenario::Scenario;
use flyball_simulator::seconds::Seconds;
use std::net::SocketAddr;

/// Requests, one a second and one connection each.
const REQUESTS: u64 = 12;
/// Of an answer; the upstream's chunks have about as many bytes as the world's tokens.
const TOKENS: u32 = 50;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fared {
    Answered,
    Refused,
    Broken,
}

/// Asks through a proxy with this script, one connection after the other.
async fn on_sockets(script: &str) -> Vec<(Fared, ClientOutcome)> {
    let target = upstream(TOKENS).await;
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let proxy = Proxy::bind(any, target, Script::from_toml(script).unwrap()).unwrap();
    let address = proxy.address().unwrap();
    let relay = tokio::spawn(proxy.run());
    let text = format!("load --target {address} --stream --deadline-seconds 100");
    let plan = LoadPlan::parse_from(text.split(' '));
    let bodies = Bodies::new(&plan);
    let mut fared = Vec::new();
    for number in 0..REQUESTS {
        let mut client = Client::new(&plan, 0);
        let message = bodies.message(number);
        let outcome = client.ask(&message, Habit::Plain, &mut Histogram::default()).await;
        let how = match outcome.end {
            End::Whole => Fared::Answered,
            // The proxy resets what it refuses; the kernel had accepted it by then.
            End::Refused | End::Unanswered => Fared::Refused,
            End::Broken => Fared::Broken,
            other => panic!("{other:?} {outcome:?}"),
        };
        fared.push((how, outcome));
    }
    relay.abort();
    fared
}

struct Still;

impl ScalingPolicy for Still {
    fn name(&self) -> &str {
        "still"
    }

    fn interval(&self) -> Seconds {
        Seconds(60.0)
    }

    fn decide(&mut self, _: &PolicyView<'_>) -> ScaleOrder {
        ScaleOrder::Scale(vec![flyball_core::units::Replicas::new(1)])
    }
}

/// The same requests in a virtual cluster with this script.
fn in_the_cluster(script: &str) -> Vec<(Fared, Option<f64>)> {
    let scenario = Scenario::read(WORLD).unwrap();
    let mut setup = scenario.setup(&|name| Err(format!("no trace {name}"))).unwrap();
    setup.faults = vec![Fault::Network { script: Script::from_toml(script).unwrap() }];
    let run = cluster::run(&setup, &mut Still);
    assert_eq!(run.broken, []);
    let history = &run.histories[0];
    let ends = history.answers.iter().zip(&history.ends);
    ends.map(|((arrived, _), end)| match end {
        AnsweredBy::Finished { first, .. } => (Fared::Answered, Some((*first - *arrived).get())),
        AnsweredBy::Refused => (Fared::Refused, None),
        AnsweredBy::Killed => (Fared::Broken, None),
        AnsweredBy::HungUp => panic!("nobody hangs up here"),
    })
    .collect()
}

const WORLD: &str = r#"
name = "one"
about = "One replica, one short request a second."
length_seconds = 12
[[models]]
name = "team/chat"
replicas = { min = 1, max = 1 }
objectives = { first_token_ms = 2000, between_tokens_ms = 80, attainment_percent = 99 }
hold_seconds = 60
[models.traffic]
stages = [{ seconds = 12, rps = 1 }]
spacing = "even"
prompt = { mean = 180 }
output = { mean = 50 }
[[models.variants]]
name = "one"
pool = "pool"
gpus = 1
initial = 1
purchase = "on-demand"
cold_start = { warm_up = { seconds = 30 } }
linear = { step_ms = 1, prompt_token_us = 1, request_us = 1, cached_token_ns = 1, max_running = 128, step_tokens = 4096, cache_tokens = 400000 }
[[pools]]
name = "pool"
accelerator = "h100"
gpus_per_node = 1
nodes = { on-demand = 1 }
can_grow = false
limit_gpus = 1
node_supply = { seconds = 60 }
usd_cents_per_gpu_hour = { on-demand = 400 }
"#;

async fn both(script: &str) -> Vec<Fared> {
    let sockets: Vec<Fared> = on_sockets(script).await.into_iter().map(|(how, _)| how).collect();
    let cluster: Vec<Fared> = in_the_cluster(script).into_iter().map(|(how, _)| how).collect();
    assert_eq!(sockets, cluster, "{script}");
    assert_eq!(sockets.len() as u64, REQUESTS);
    sockets
}

#[tokio::test]
async fn refused_and_broken_requests_are_the_same_ones() {
    let fared = both("seed = 5\n[[rules]]\naction = \"refuse\"\nshare = 0.5").await;
    assert!(fared.contains(&Fared::Refused) && fared.contains(&Fared::Answered), "{fared:?}");
    let mixed = "seed = 9\n[[rules]]\naction = \"reset\"\nafter_bytes = 3000\nshare = 0.4\n\
                 [[rules]]\naction = \"refuse\"\nshare = 0.3";
    let fared = both(mixed).await;
    assert!(fared.contains(&Fared::Broken) && fared.contains(&Fared::Refused), "{fared:?}");
    // Behind the last byte of either answer there is nothing to break.
    let fared = both("[[rules]]\naction = \"truncate\"\nafter_bytes = 20000").await;
    assert_eq!(fared, vec![Fared::Answered; REQUESTS as usize]);
}

#[tokio::test]
async fn a_broken_answer_has_exactly_the_bytes_that_were_let_through() {
    let fared = on_sockets("[[rules]]\naction = \"truncate\"\nafter_bytes = 3000").await;
    for (how, outcome) in fared {
        assert_eq!(how, Fared::Broken);
        // Head and frames of chunks are not content.
        assert!(outcome.bytes < 3_000 && outcome.bytes > 2_500, "{outcome:?}");
        assert!(outcome.events > 0);
    }
}

#[tokio::test]
async fn a_delay_is_felt_in_both() {
    let script = "[[rules]]\ndirection = \"to-server\"\naction = \"delay\"\nmilliseconds = 60";
    for (how, first) in in_the_cluster(script) {
        assert_eq!(how, Fared::Answered);
        assert!(first.is_some_and(|first| (0.06..0.1).contains(&first)), "{first:?}");
    }
    let started = std::time::Instant::now();
    for (how, _) in on_sockets(script).await {
        assert_eq!(how, Fared::Answered);
    }
    assert!(started.elapsed().as_millis() >= 60 * u128::from(REQUESTS));
}
