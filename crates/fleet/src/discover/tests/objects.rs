//! Objects of any kind against the API server of a few lines.

use crate::discover::DiscoveryStatus;
use crate::discover::objects::{self, ObjectListing, ObjectView, ObjectWatch};
use crate::testing::{ApiServer, model_service, until};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::json;
use tokio::sync::watch as channel;

/// An object's model, if it says one, and otherwise what it said last.
#[derive(Clone, Debug, PartialEq)]
struct Model(Option<String>);

impl ObjectView for Model {
    fn read(object: &DynamicObject) -> Self {
        Self(object.data["spec"]["model"].as_str().map(str::to_owned))
    }

    fn after(&self, last: Option<&Self>) -> Self {
        Self(self.0.clone().or_else(|| last?.0.clone()))
    }
}

/// ModelServices in these namespaces.
fn watched(namespaces: &[String]) -> ObjectWatch<'_> {
    let kind = GroupVersionKind::gvk("flyball.dev", "v1alpha1", "ModelService");
    ObjectWatch { kind: ApiResource::from_gvk_with_plural(&kind, "modelservices"), namespaces }
}

fn known(out: &channel::Sender<ObjectListing<Model>>) -> Vec<String> {
    out.borrow().objects.keys().cloned().collect()
}

#[tokio::test]
async fn objects_come_and_go_and_stay_while_the_api_server_is_away() {
    let (server, client) = ApiServer::start(Vec::new()).await;
    server.put("modelservices", vec![model_service("a")]);
    let (out, standing) =
        (channel::Sender::new(ObjectListing::default()), DiscoveryStatus::default());
    let target = watched(&[]);
    let story = async {
        until("listed", || out.borrow().listed && known(&out) == ["team/a"]).await;
        assert_eq!(out.borrow().objects["team/a"], Model(Some("org/m".to_owned())));
        server.watched(1).await;
        server.send_event("ADDED", &model_service("b"));
        until("a new one", || known(&out) == ["team/a", "team/b"]).await;
        server.send_event("DELETED", &model_service("b"));
        until("one is gone", || known(&out) == ["team/a"]).await;
        server.go_down(true);
        until("noticed", || standing.failing_watches() == 1).await;
        assert_eq!(known(&out), ["team/a"], "it stays");
        server.go_down(false);
        // It begins again where it was.
        server.watched(2).await;
        server.send_event("ADDED", &model_service("c"));
        until("back", || known(&out) == ["team/a", "team/c"]).await;
    };
    tokio::select! {
        ended = objects::watch(&target, Some(client), &out, &standing) => panic!("{ended:?}"),
        () = story => {}
    }
}

#[tokio::test]
async fn that_all_are_gone_is_believed_when_the_api_server_says_so_itself() {
    let (server, client) = ApiServer::start(Vec::new()).await;
    server.put("modelservices", vec![model_service("a")]);
    let (out, standing) =
        (channel::Sender::new(ObjectListing::default()), DiscoveryStatus::default());
    let namespaces = ["team".to_owned()];
    let target = watched(&namespaces);
    let story = async {
        until("listed", || !known(&out).is_empty()).await;
        server.watched(1).await;
        // The watch says that it is gone, the list that it is there.
        server.send_event("DELETED", &model_service("a"));
        let listed_again = || server.lists() >= 3;
        until("asked again and again", listed_again).await;
        assert_eq!(known(&out), ["team/a"]);
        server.put("modelservices", Vec::new());
        until("believed", || known(&out).is_empty()).await;
        assert!(out.borrow().listed);
        server.send_event("ADDED", &model_service("a"));
        until("back", || known(&out) == ["team/a"]).await;
    };
    tokio::select! {
        ended = objects::watch(&target, Some(client), &out, &standing) => panic!("{ended:?}"),
        () = story => {}
    }
}

#[tokio::test]
async fn what_an_object_said_last_may_stay() {
    let (server, client) = ApiServer::start(Vec::new()).await;
    server.put("modelservices", vec![model_service("a"), model_service("b")]);
    let (out, standing) =
        (channel::Sender::new(ObjectListing::default()), DiscoveryStatus::default());
    let target = watched(&[]);
    let model = |key: &str| out.borrow().objects.get(key).cloned();
    let story = async {
        until("listed", || known(&out) == ["team/a", "team/b"]).await;
        server.watched(1).await;
        let (mut silent, mut other) = (model_service("a"), model_service("b"));
        silent["spec"] = json!({});
        other["spec"]["model"] = json!("org/n");
        server.send_event("MODIFIED", &silent);
        server.send_event("MODIFIED", &other);
        until("changed", || model("team/b") == Some(Model(Some("org/n".to_owned())))).await;
        assert_eq!(model("team/a"), Some(Model(Some("org/m".to_owned()))));
    };
    tokio::select! {
        ended = objects::watch(&target, Some(client), &out, &standing) => panic!("{ended:?}"),
        () = story => {}
    }
}
