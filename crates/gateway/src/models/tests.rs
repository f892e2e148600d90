//! ModelServices against the API server of a few lines.

use crate::models::{self, OfferedListing};
use crate::settings::{GatewaySettingsFile, KubernetesSettings, ModelSettings, WatchSetting};
use flyball_engines::Engine;
use flyball_fleet::discover::{DiscoveryStatus, Listing, Sought, watch};
use flyball_fleet::testing::{ApiServer, engine_pod, model_service, until};
use serde_json::{Value, json};
use tokio::sync::watch as channel;

/// Every ModelService is served.
pub(crate) fn everywhere() -> KubernetesSettings {
    KubernetesSettings { watch: WatchSetting::ModelServices, ..KubernetesSettings::default() }
}

#[tokio::test]
async fn one_that_cannot_be_read_keeps_no_other_from_being_served() {
    let (server, client) = ApiServer::start(Vec::new()).await;
    let mut later = model_service("later");
    later["spec"]["variants"][0]["engine"]["kind"] = json!("NotYetKnown");
    server.put("modelservices", vec![later, model_service("a")]);
    let (out, standing) =
        (channel::Sender::new(OfferedListing::default()), DiscoveryStatus::default());
    let settings = everywhere();
    let story = async { until("listed", || out.borrow().listed).await };
    tokio::select! {
        ended = models::watch(&settings, Some(client), &out, &standing) => panic!("{ended:?}"),
        () = story => {}
    }
    let (merged, names) = models::merge(&GatewaySettingsFile::default(), &out.borrow().objects);
    let served: Vec<&str> = merged.models.iter().map(|model| model.name.as_str()).collect();
    assert_eq!(served, ["a"]);
    assert_eq!(names.left_out_by_reason(), [0, 0, 0, 0, 1]);
}

#[tokio::test]
async fn one_that_cannot_be_read_any_more_is_served_as_it_was() {
    let (server, client) = ApiServer::start(Vec::new()).await;
    server.put("modelservices", vec![model_service("a")]);
    let (out, standing) =
        (channel::Sender::new(OfferedListing::default()), DiscoveryStatus::default());
    let settings = everywhere();
    let notes = || out.borrow().objects["team/a"].notes.clone();
    let story = async {
        until("listed", || out.borrow().listed).await;
        server.watched(1).await;
        let mut later = model_service("a");
        later["spec"]["variants"][0]["engine"]["kind"] = json!("NotYetKnown");
        server.send_event("MODIFIED", &later);
        until("noticed", || !notes().is_empty()).await;
        assert_eq!(out.borrow().objects["team/a"].names, ["a"]);
        assert!(notes()[0].contains("NotYetKnown"), "{:?}", notes());
        server.send_event("MODIFIED", &model_service("a"));
        until("mended", || notes().is_empty()).await;
    };
    tokio::select! {
        ended = models::watch(&settings, Some(client), &out, &standing) => panic!("{ended:?}"),
        () = story => {}
    }
}

#[tokio::test]
async fn engines_of_model_services_are_pods_and_a_model_without_any_is_listed_too() {
    let (server, client) = ApiServer::start(Vec::new()).await;
    server.put("pods", vec![engine_pod("p", "a"), engine_pod("other", "x")]);
    let adopted =
        json!({"spec": {"variants": [{"targetRef": {"kind": "Deployment", "name": "d"}}]}});
    let mut unread = model_service("unread");
    unread["spec"] = adopted["spec"].clone();
    let model = |object: Value| {
        let offer = models::served_of(&serde_json::from_value(object).unwrap());
        let settings = ModelSettings { name: offer.names[0].clone(), ..offer.settings };
        Sought::from(&settings)
    };
    let expected = [model(model_service("a")), model(model_service("asleep")), model(unread)];
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
        server.send_event("ADDED", &engine_pod("q", "asleep"));
        until("awake", || engines("asleep").is_some_and(|found| found.len() == 1)).await;
        let mut leaving = engine_pod("p", "a");
        leaving["metadata"]["deletionTimestamp"] = json!("2026-01-02T00:00:00Z");
        server.send_event("MODIFIED", &leaving);
        until("drains", || engines("a").unwrap()[0].draining).await;
    };
    tokio::select! {
        ended = watch(&expected, Some(client), &out, &standing) => panic!("{ended:?}"),
        () = story => {}
    }
    assert!(server.has_listed("flyball.dev%2Fmodel+in+%28a%2Casleep%29"), "one watch for both");
}
