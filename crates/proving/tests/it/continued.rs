//! Engines that break off in the middle, and clients that do not notice.

use flyball_emulator::{Emulator, EmulatorSettings as Emulated, Faults};
use flyball_engines::Engine as Kind;
use flyball_fleet::{FleetEndpoint, FoundEngines, Listing};
use flyball_gateway::meter::{Finished, RequestOutcome};
use flyball_gateway::serve::{self, Listener};
use flyball_gateway::settings::GatewaySettingsFile;
use flyball_proving::http;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How requests ended, and how often each was continued.
#[derive(Default)]
struct Ear(Mutex<Vec<(RequestOutcome, u32)>>);

impl Listener for Ear {
    fn finished(&self, finished: &Finished<'_>) {
        self.0.lock().unwrap().push((finished.outcome, finished.continued));
    }

    fn cancelled(&self, _: &Arc<FleetEndpoint>) {}
}

/// The text and the usage that a client ends up with.
async fn ask(address: SocketAddr, path: &str, body: &Value) -> (String, Value) {
    let connection = http::post(address, path, &body.to_string()).await.unwrap();
    let answer = http::whole(connection).await.unwrap().body;
    assert!(answer.contains("data: [DONE]"), "{answer}");
    let data = answer.lines().filter_map(|line| line.strip_prefix("data: "));
    let events: Vec<Value> = data.filter_map(|json| serde_json::from_str(json).ok()).collect();
    let text = events.iter().filter_map(|event| {
        let choice = &event["choices"][0];
        choice["delta"]["content"].as_str().or(choice["text"].as_str())
    });
    (text.collect(), events.last().unwrap()["usage"].clone())
}

#[tokio::test]
async fn every_text_is_as_if_nothing_had_broken() {
    let cuts = Faults { truncate_after_tokens: Some(23), share: 0.5, ..Faults::default() };
    let bad = Emulator::start(Emulated { faults: cuts, ..Emulated::quick() }).unwrap();
    let good = Emulator::start(Emulated::quick()).unwrap();
    let mut settings = GatewaySettingsFile { threads: 1, ..GatewaySettingsFile::default() };
    settings.listen.set_port(0);
    let ear = Arc::new(Ear::default());
    let gateway = serve::start(&settings, Arc::clone(&ear) as Arc<dyn Listener>).unwrap();
    let found = [&bad, &good].map(|engine| FoundEngines {
        name: engine.address.to_string(),
        address: engine.address,
        draining: false,
        engine: Kind::Vllm,
        uid: None,
    });
    gateway.list(&Listing { models: [("emulated".to_owned(), found.into())].into() });
    let requests = 40;
    for number in 0..requests {
        let prompt = format!("a tale of {number}");
        let (path, mut body) = if number % 2 == 0 {
            let messages = json!([{"role": "user", "content": prompt}]);
            ("/v1/chat/completions", json!({"messages": messages}))
        } else {
            ("/v1/completions", json!({"prompt": prompt}))
        };
        body["model"] = json!("emulated");
        body["max_tokens"] = json!(60);
        body["stream"] = json!(true);
        body["stream_options"] = json!({"include_usage": true});
        let (through, usage) = ask(gateway.address(), path, &body).await;
        let (unbroken, unbroken_usage) = ask(good.address, path, &body).await;
        assert_eq!(through, unbroken);
        assert_eq!(usage["completion_tokens"], unbroken_usage["completion_tokens"]);
        // Of a completion the emulator cannot know which bytes of the prompt were its own words.
        if number % 2 == 0 {
            assert_eq!(usage["prompt_tokens"], unbroken_usage["prompt_tokens"]);
            assert_eq!(usage["total_tokens"], unbroken_usage["total_tokens"]);
        }
    }
    // The client has its answer a moment before it is counted.
    while ear.0.lock().unwrap().len() < requests || gateway.inside().requests > 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let finished = ear.0.lock().unwrap().clone();
    assert_eq!(finished.len(), requests);
    assert!(finished.iter().all(|(outcome, _)| *outcome == RequestOutcome::Answered));
    let continued: u32 = finished.iter().map(|(_, continued)| continued).sum();
    // Half of those that the bad one got, unless its breaker kept them away.
    println!("{continued} of {requests} streams were continued");
    assert!(continued >= 3, "{continued}");
    let in_flight: u32 = gateway.fleet().endpoints().map(|endpoint| endpoint.in_flight()).sum();
    assert_eq!((in_flight, gateway.inside().bytes), (0, 0));
}
