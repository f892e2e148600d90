//! ModelServices against the API server of a few lines.

use super::server::{Server, until};
use crate::discover::models::{self, OfferedListing};
use crate::discover::{DiscoveryStatus, Listing, watch};
use crate::settings::{GatewaySettingsFile, KubernetesSettings, ModelSettings, WatchSetting};
use flyball_engines::Engine;
use serde_json::{Value, json};
use tokio::sync::watch as channel;

/// A ModelService of this name in `team`, with one engine that Flyball starts.
pub(crate) fn service(name: &str) -> Value {
    json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "ModelService",
        "metadata": {
            "name": name, "namespace": "team", "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"model": "org/m", "variants": [{"engine": {"kind": "VLLM", "image": "i"}}]},
    })
}

/// A pod that serves a model which Flyball started.
pub(crate) fn pod(name: &str, model: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "team", "resourceVersion": "1",
            "labels": {"flyball.dev/model": model, "flyball.dev/variant": "main"},
        },
        "status": {
            "podIP": "10.0.0.7",
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

pub(crate) fn everywhere() -> KubernetesSettings {
    KubernetesSettings { watch: WatchSetting::ModelServices, ..KubernetesSettings::default() }
}

fn offered(out: &channel::Sender<OfferedListing>) -> Vec<String> {
    out.borrow().offered.keys().cloned().collect()
}

#[tokio::test]
async fn model_services_come_and_go_and_stay_while_the_api_server_is_away() {
    let (server, client) = Server::start(Vec::new()).await;
    server.put("modelservices", vec![service("a")]);
    let (out, standing) =
        (channel::Sender::new(OfferedListing::default()), DiscoveryStatus::default());
    let settings = everywhere();
    let story = async {
        until("listed", || out.borrow().listed && offered(&out) == ["team/a"]).await;
        server.watched(1).await;
        server.tell("ADDED", &service("b"));
        until("a new one", || offered(&out) == ["team/a", "team/b"]).await;
        server.tell("DELETED", &service("b"));
        until("one is gone", || offered(&out) == ["team/a"]).await;
        server.go_down(true);
        until("noticed", || standing.failing_watches() == 1).await;
        assert_eq!(offered(&out), ["team/a"], "served on");
        server.go_down(false);
        // It begins again where it was.
        server.watched(2).await;
        server.tell("ADDED", &service("c"));
        until("back", || offered(&out) == ["team/a", "team/c"]).await;
    };
    tokio::select! {
        ended = models::watch(&settings, Some(client), &out, &standing) => panic!("{ended:?}"),
        () = story => {}
    }
}

#[tokio::test]
async fn that_all_are_gone_is_believed_when_the_api_server_says_so_itself() {
    let (server, client) = Server::start(Vec::new()).await;
    server.put("modelservices", vec![service("a")]);
    let (out, standing) =
        (channel::Sender::new(OfferedListing::default()), DiscoveryStatus::default());
    let settings = KubernetesSettings { namespaces: vec!["team".to_owned()], ..everywhere() };
    let story = async {
        until("listed", || !offered(&out).is_empty()).await;
        server.watched(1).await;
        // The watch says that it is gone, the list that it is there.
        server.tell("DELETED", &service("a"));
        let asked = || server.lists() >= 3;
        until("asked again and again", asked).await;
        assert_eq!(offered(&out), ["team/a"]);
        server.put("modelservices", Vec::new());
        until("believed", || offered(&out).is_empty()).await;
        assert!(out.borrow().listed);
        server.tell("ADDED", &service("a"));
        until("back", || offered(&out) == ["team/a"]).await;
    };
    tokio::select! {
        ended = models::watch(&settings, Some(client), &out, &standing) => panic!("{ended:?}"),
        () = story => {}
    }
}

#[tokio::test]
async fn one_that_cannot_be_read_keeps_no_other_from_being_served() {
    let (server, client) = Server::start(Vec::new()).await;
    let mut later = service("later");
    later["spec"]["variants"][0]["engine"]["kind"] = json!("NotYetKnown");
    server.put("modelservices", vec![later, service("a")]);
    let (out, standing) =
        (channel::Sender::new(OfferedListing::default()), DiscoveryStatus::default());
    let settings = everywhere();
    let story = async { until("listed", || out.borrow().listed).await };
    tokio::select! {
        ended = models::watch(&settings, Some(client), &out, &standing) => panic!("{ended:?}"),
        () = story => {}
    }
    let (merged, names) = models::merge(&GatewaySettingsFile::default(), &out.borrow().offered);
    let served: Vec<&str> = merged.models.iter().map(|model| model.name.as_str()).collect();
    assert_eq!(served, ["a"]);
    assert_eq!(names.left_out_by_reason(), [0, 0, 0, 0, 1]);
}

#[tokio::test]
async fn one_that_cannot_be_read_any_more_is_served_as_it_was() {
    let (server, client) = Server::start(Vec::new()).await;
    server.put("modelservices", vec![service("a")]);
    let (out, standing) =
        (channel::Sender::new(OfferedListing::default()), DiscoveryStatus::default());
    let settings = everywhere();
    let notes = || out.borrow().offered["team/a"].notes.clone();
    let story = async {
        until("listed", || out.borrow().listed).await;
        server.watched(1).await;
        let mut later = service("a");
        later["spec"]["variants"][0]["engine"]["kind"] = json!("NotYetKnown");
        server.tell("MODIFIED", &later);
        until("noticed", || !notes().is_empty()).await;
        assert_eq!(out.borrow().offered["team/a"].names, ["a"]);
        assert!(notes()[0].contains("NotYetKnown"), "{:?}", notes());
        server.tell("MODIFIED", &service("a"));
        until("mended", || notes().is_empty()).await;
    };
    tokio::select! {
        ended = models::watch(&settings, Some(client), &out, &standing) => panic!("{ended:?}"),
        () = story => {}
    }
}

#[tokio::test]
async fn engines_of_model_services_are_pods_and_a_model_without_any_is_listed_too() {
    let (server, client) = Server::start(Vec::new()).await;
    server.put("pods", vec![pod("p", "a"), pod("other", "x")]);
    let adopted =
        json!({"spec": {"variants": [{"targetRef": {"kind": "Deployment", "name": "d"}}]}});
    let mut unread = service("unread");
    unread["spec"] = adopted["spec"].clone();
    let model = |object: Value| {
        let offer = models::served_of(&serde_json::from_value(object).unwrap());
        ModelSettings { name: offer.names[0].clone(), ..offer.settings }
    };
    let wanted = [model(service("a")), model(service("asleep")), model(unread)];
    let (out, standing) = (channel::Sender::new(Listing::default()), DiscoveryStatus::default());
    let engines = |model: &str| out.borrow().models.get(model).cloned();
    let story = async {
        until("listed", || out.borrow().models.len() == 3).await;
        let [found] = &engines("a").unwrap()[..] else { panic!("{:?}", engines("a")) };
        assert_eq!(
            (found.name.as_str(), found.address.to_string()),
            ("team/p", "10.0.0.7:8000".to_owned())
        );
        assert_eq!((found.engine, found.draining), (Engine::Vllm, false));
        assert_eq!(engines("asleep"), Some(Vec::new()), "known, so that it can be woken");
        assert_eq!(engines("unread"), Some(Vec::new()));
        server.watched(1).await;
        server.tell("ADDED", &pod("q", "asleep"));
        until("awake", || engines("asleep").is_some_and(|found| found.len() == 1)).await;
        let mut leaving = pod("p", "a");
        leaving["metadata"]["deletionTimestamp"] = json!("2026-01-02T00:00:00Z");
        server.tell("MODIFIED", &leaving);
        until("drains", || engines("a").unwrap()[0].draining).await;
    };
    tokio::select! {
        ended = watch(&wanted, Some(client), &out, &standing) => panic!("{ended:?}"),
        () = story => {}
    }
    assert!(server.asked("flyball.dev%2Fmodel+in+%28a%2Casleep%29"), "one watch for both");
}
