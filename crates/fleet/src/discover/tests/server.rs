//! The watches of engines against an API server of a few lines.

use crate::discover::{DiscoveryStatus, Listing, Sought, watch};
use crate::testing::{ApiServer, llama_slice, until};
use kube::Client;
use std::time::Duration;
use tokio::sync::watch as channel;
use tokio::time::sleep;

fn model() -> Sought {
    let (name, service) = ("m".to_owned(), Some("team/llama:8000".to_owned()));
    Sought { name, service, ..Sought::default() }
}

fn names(listing: &channel::Sender<Listing>) -> Option<Vec<String>> {
    let listing = listing.borrow();
    Some(listing.models.get("m")?.iter().map(|found| found.name.clone()).collect())
}

/// Runs the story while models are watched.
async fn during(
    models: &[Sought],
    client: Client,
    out: &channel::Sender<Listing>,
    standing: &DiscoveryStatus,
    story: impl Future<Output = ()>,
) {
    tokio::select! {
        ended = watch(models, Some(client), out, standing) => panic!("{ended:?}"),
        () = story => {}
    }
}

#[tokio::test]
async fn engines_come_and_go_as_slices_change() {
    let (server, client) = ApiServer::start(vec![llama_slice(&["p"])]).await;
    let (out, standing) = (channel::Sender::new(Listing::default()), DiscoveryStatus::default());
    let named =
        |names: &[&str]| Some(names.iter().map(|n| format!("team/{n}")).collect::<Vec<_>>());
    during(&[model()], client, &out, &standing, async {
        until("listed", || names(&out) == named(&["p"])).await;
        server.watched(1).await;
        server.send_event("MODIFIED", &llama_slice(&["p", "qq"]));
        until("a new one", || names(&out) == named(&["p", "qq"])).await;
        server.send_event("MODIFIED", &llama_slice(&["qq"]));
        until("one is gone", || names(&out) == named(&["qq"])).await;
    })
    .await;
    assert!(server.has_listed("kubernetes.io%2Fservice-name+in+%28llama%29"));
}

#[tokio::test]
async fn an_empty_list_is_believed_when_the_api_server_says_so_itself() {
    let (server, client) = ApiServer::start(vec![llama_slice(&["p"])]).await;
    let (out, standing) = (channel::Sender::new(Listing::default()), DiscoveryStatus::default());
    during(&[model()], client, &out, &standing, async {
        until("listed", || names(&out).is_some()).await;
        server.watched(1).await;
        // The watch says that it is gone, the list that it is there.
        server.send_event("DELETED", &llama_slice(&["p"]));
        until("doubted", || standing.doubted_models() == 1).await;
        sleep(Duration::from_millis(200)).await;
        assert_eq!(names(&out).unwrap().len(), 1);
        server.put("endpointslices", Vec::new());
        until("believed", || names(&out) == Some(Vec::new())).await;
        until("no doubt", || standing.doubted_models() == 0).await;
        server.send_event("ADDED", &llama_slice(&["p"]));
        until("back", || names(&out).is_some_and(|names| names.len() == 1)).await;
    })
    .await;
}

#[tokio::test]
async fn the_last_listing_stays_while_the_api_server_is_away_and_over_a_restart() {
    let (server, client) = ApiServer::start(vec![llama_slice(&["p"])]).await;
    let (out, standing) = (channel::Sender::new(Listing::default()), DiscoveryStatus::default());
    let away = async {
        until("listed", || names(&out).is_some()).await;
        server.watched(1).await;
        server.go_down(true);
        until("noticed", || standing.failing_watches() == 1).await;
        assert_eq!(names(&out).unwrap().len(), 1);
    };
    during(&[model()], client.clone(), &out, &standing, away).await;
    assert_eq!(standing.failing_watches(), 0, "who is not polled does not fail");
    // Settings were read anew, still without an API server.
    let fixed = Sought {
        name: "fixed".to_owned(),
        endpoints: vec!["10.1.1.1:8000".parse().unwrap()],
        ..Sought::default()
    };
    let models = [model(), fixed];
    let restarted = async {
        until("static ones at once", || out.borrow().models.contains_key("fixed")).await;
        assert_eq!(names(&out).unwrap().len(), 1);
        server.go_down(false);
        server.put("endpointslices", vec![llama_slice(&["p", "qq"])]);
        until("listed again", || names(&out).unwrap().len() == 2).await;
    };
    during(&models, client, &out, &standing, restarted).await;
}
