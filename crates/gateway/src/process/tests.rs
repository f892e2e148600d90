//! A process with an API server of a few lines: what one bad model does to the others.

use super::*;

mod tenants;
mod tokens;

use crate::models::tests::everywhere;
use flyball_fleet::testing::{ApiServer, engine_pod, llama_slice, model_service, until};
use http_body_util::BodyExt as _;
use serde_json::json;
use tokio::task::JoinHandle;

/// A model whose engines are listed.
fn model() -> ModelSettings {
    let (name, service) = ("m".to_owned(), Some("team/llama:8000".to_owned()));
    ModelSettings { name, service, ..ModelSettings::default() }
}

/// A model whose namespace answers 403.
fn forbidden() -> ModelSettings {
    let service = Some("other/llama:8000".to_owned());
    ModelSettings { name: "forbidden".to_owned(), service, ..ModelSettings::default() }
}

/// A model whose kind the API server does not have.
fn unknown_kind() -> ModelSettings {
    let pool = Some("team/llama".to_owned());
    ModelSettings { name: "pooled".to_owned(), pool, ..ModelSettings::default() }
}

fn settings(models: &[ModelSettings]) -> GatewaySettingsFile {
    let listen = ([127, 0, 0, 1], 0).into();
    GatewaySettingsFile {
        listen,
        threads: 1,
        models: models.to_vec(),
        ..GatewaySettingsFile::default()
    }
}

struct Rig {
    process: Arc<Process>,
    state: Arc<admin::GatewayAdminState>,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        self.process.running.drain(Duration::ZERO);
    }
}

impl Rig {
    /// A gateway that began so long ago.
    async fn start(models: &[ModelSettings], age: Duration) -> Self {
        let (server, client) = ApiServer::start(vec![llama_slice(&["p"])]).await;
        server.refuse("/namespaces/other/", 403);
        server.refuse("/inferencepools", 404);
        Self::of(&settings(models), client, age)
    }

    /// The same with these settings and this way to the API server.
    fn of(settings: &GatewaySettingsFile, client: kube::Client, age: Duration) -> Self {
        let meter = Arc::new(Meter::quiet(settings));
        let audit = Arc::new(Audit::open(None).unwrap());
        let verifier = Arc::new(verifier(&meter, &audit));
        let (bell, _calls) = wake::bell();
        let (of, checks) = (Arc::clone(&meter), Arc::clone(&verifier));
        let refusals = Arc::new(RefusedKeys::default());
        let hub = Hub { meter: of, verifier: checks, bell, refusals: Arc::clone(&refusals) };
        let running = serve::start(settings, Arc::new(hub)).unwrap();
        let desks = Desks { meter: Arc::clone(&meter), audit, verifier, refusals };
        let mut process = Process::new(running, desks, settings, "1.2.3");
        process.client = Some(client);
        process.readiness = Readiness::since(Instant::now().checked_sub(age).unwrap());
        process.readiness.await_model_services(settings.kubernetes.watches());
        let process = Arc::new(process);
        let state = process.state(settings, "1.2.3");
        let observed = Arc::clone(&process);
        meter.observe_with(move || observed.now());
        let tasks = vec![
            tokio::spawn(Arc::clone(&process).discover()),
            tokio::spawn(Arc::clone(&process).list()),
            tokio::spawn(Arc::clone(&process).admit_tenants()),
            tokio::spawn(Arc::clone(&process).watch_tenants()),
            tokio::spawn(Arc::clone(&process).tend_tenants()),
            tokio::spawn(Arc::clone(&process).keep_key_sets()),
            tokio::spawn(Arc::clone(&process).watch_offered()),
            tokio::spawn(Arc::clone(&process).serve_offered(Arc::clone(&state))),
        ];
        Self { process, state, tasks }
    }

    async fn get(&self, path: &str) -> (u16, String) {
        let response = admin::answer(path, &self.state);
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    /// Waits until the engines of so many models cannot be looked for.
    async fn failing(&self, models: usize) {
        let failing = || self.process.discovering.failing_models().len() == models;
        until("failing", failing).await;
    }
}

const WARM: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_reload_with_models_that_cannot_be_looked_for_leaves_the_gateway_ready_and_names_them() {
    let rig = Rig::start(&[model()], Duration::ZERO).await;
    until("ready", || rig.process.ready().is_ok()).await;
    rig.process.change(&settings(&[model(), forbidden(), unknown_kind()]), &rig.state);
    rig.failing(2).await;
    assert_eq!(rig.get("/readyz").await, (200, "ok\n".to_owned()));
    let (_, page) = rig.get("/metrics").await;
    for (model, failing) in [("m", "0.0"), ("forbidden", "1.0"), ("pooled", "1.0")] {
        let line =
            format!("flyball_gateway_model_discovery_failing{{model=\"{model}\"}} {failing}\n");
        assert!(page.contains(&line), "{line}{page}");
    }
    let (_, view) = rig.get("/state").await;
    let view: crate::state::GatewayStateView = serde_json::from_str(&view).unwrap();
    let trouble = |name: &str| {
        let model = view.models.iter().find(|model| model.name == name).unwrap();
        model.trouble.clone().unwrap_or_default()
    };
    assert_eq!(trouble("m"), "");
    assert!(trouble("forbidden").contains("endpointslices of other"), "{}", trouble("forbidden"));
    assert!(trouble("forbidden").contains("hint: the Role in docs/guides/gateway.md"));
    assert!(trouble("pooled").contains("hint: is the kind installed?"), "{}", trouble("pooled"));
}

#[tokio::test]
async fn at_a_first_start_one_bad_model_does_not_keep_the_others_from_being_served() {
    let rig = Rig::start(&[model(), forbidden(), unknown_kind()], WARM).await;
    until("ready", || rig.process.ready().is_ok()).await;
    rig.failing(2).await;
    assert_eq!(rig.get("/readyz").await.0, 200);
    assert_eq!(rig.process.listing.borrow().models.keys().collect::<Vec<_>>(), ["m"]);
}

#[tokio::test]
async fn a_gateway_with_nothing_to_serve_is_not_ready_and_says_what_to_do() {
    let rig = Rig::start(&[forbidden()], WARM).await;
    rig.failing(1).await;
    let (status, why) = rig.get("/readyz").await;
    assert_eq!(status, 503);
    assert!(why.contains("forbidden: cannot watch endpointslices of other; hint:"), "{why}");
    assert!(!why.contains("not for you"), "the API server's words are not for everybody: {why}");
}

/// Names that are served, with what they are served from.
fn served(rig: &Rig) -> Vec<(String, Option<String>)> {
    let from = |model: &ModelSettings| Some(model.model_service.as_ref()?.name.clone());
    let settings = rig.process.models.borrow();
    settings.models.iter().map(|model| (model.name.clone(), from(model))).collect()
}

fn pair(name: &str, from: Option<&str>) -> (String, Option<String>) {
    (name.to_owned(), from.map(str::to_owned))
}

#[tokio::test]
async fn a_model_service_is_served_without_a_word_in_the_settings() {
    let (server, client) = ApiServer::start(Vec::new()).await;
    let settings = GatewaySettingsFile { kubernetes: everywhere(), ..settings(&[]) };
    let rig = Rig::of(&settings, client, WARM);
    until("ready without a model", || rig.process.ready().is_ok()).await;
    server.put("pods", vec![engine_pod("p", "demo")]);
    server.watched(1).await;
    let mut demo = model_service("demo");
    demo["spec"]["names"] = json!(["demo", "Demo/Also"]);
    demo["spec"]["objectives"] = json!({"firstTokenMilliseconds": 500});
    server.send_event("ADDED", &demo);
    until("served", || engines(&rig) == ["10.0.0.7:8000"]).await;
    assert_eq!(rig.process.running.namespace("demo").as_deref(), Some("team"));
    let (_, config) = rig.get("/config").await;
    let config: serde_json::Value = serde_json::from_str(&config).unwrap();
    assert_eq!(config["modelServices"]["served"], 2);
    assert_eq!(config["settings"]["models"][0]["model_service"]["variants"][0]["port"], 8000);
    assert_eq!(config["settings"]["splits"][0]["name"], "Demo/Also");
    // A file that is read anew does not forget it, and a change of its status alone changes nothing.
    rig.process.change(&GatewaySettingsFile { threads: 7, ..settings }, &rig.state);
    assert_eq!(served(&rig), [pair("demo", Some("demo"))]);
    server.send_event("DELETED", &demo);
    until("gone", || served(&rig).is_empty()).await;
    until("and its engines", || engines(&rig).is_empty()).await;
    assert!(rig.process.ready().is_ok(), "who was ready stays so");
}

#[tokio::test]
async fn a_name_that_is_claimed_twice_is_served_once_and_told_of() {
    let (server, client) = ApiServer::start(vec![llama_slice(&["p"])]).await;
    let mut younger = model_service("younger");
    younger["metadata"]["creationTimestamp"] = json!("2026-02-01T00:00:00Z");
    younger["spec"]["names"] = json!(["older", "m"]);
    server.put("modelservices", vec![model_service("older"), younger]);
    let settings = GatewaySettingsFile { kubernetes: everywhere(), ..settings(&[model()]) };
    let rig = Rig::of(&settings, client, Duration::ZERO);
    until("served", || served(&rig).len() == 2 && rig.process.ready().is_ok()).await;
    assert_eq!(served(&rig), [pair("m", None), pair("older", Some("older"))]);
    let (status, body) = rig.get("/readyz").await;
    assert_eq!(status, 200);
    let notes: Vec<&str> = body.lines().collect();
    assert_eq!((notes.len(), notes[0]), (3, "ok"), "{body}");
    assert!(
        notes[1].contains("\"m\" of ModelService team/younger") && notes[1].contains("settings")
    );
    assert!(notes[2].contains("ModelService team/older is older"), "{body}");
    let (_, page) = rig.get("/metrics").await;
    for (state, count) in
        [("served", "1.0"), ("settings", "1.0"), ("older", "1.0"), ("limit", "0.0")]
    {
        let line = format!("flyball_gateway_model_service_names{{state=\"{state}\"}} {count}\n");
        assert!(page.contains(&line), "{line}{page}");
    }
    let (_, view) = rig.get("/state").await;
    assert!(view.contains("name-conflicts"), "{view}");
    // The older one goes, and the other has the name.
    server.send_event("DELETED", &model_service("older"));
    until("the name is passed on", || served(&rig).contains(&pair("older", Some("younger")))).await;
}

#[tokio::test]
async fn without_the_right_to_look_the_file_is_served_and_nothing_else_says_ready() {
    let (server, client) = ApiServer::start(vec![llama_slice(&["p"])]).await;
    server.refuse("/modelservices", 403);
    let both = GatewaySettingsFile { kubernetes: everywhere(), ..settings(&[model()]) };
    let rig = Rig::of(&both, client.clone(), WARM);
    until("ready", || rig.process.ready().is_ok()).await;
    let alone = GatewaySettingsFile { kubernetes: everywhere(), ..settings(&[]) };
    let rig = Rig::of(&alone, client, WARM);
    until("noticed", || rig.process.discovering.failing_watches() == 1).await;
    let why = rig.process.ready().unwrap_err();
    assert!(why.contains("modelservices; hint: the Role"), "{why}");
}

fn engines(rig: &Rig) -> Vec<String> {
    let fleet = rig.process.running.fleet();
    fleet.endpoints().map(|endpoint| endpoint.address.to_string()).collect()
}

#[tokio::test]
async fn while_the_api_server_is_away_models_are_served_on_and_a_new_gateway_is_not_ready() {
    let (server, client) = ApiServer::start(Vec::new()).await;
    server.put("modelservices", vec![model_service("demo")]);
    server.put("pods", vec![engine_pod("p", "demo")]);
    let settings = GatewaySettingsFile { kubernetes: everywhere(), ..settings(&[]) };
    let rig = Rig::of(&settings, client.clone(), WARM);
    until("served", || engines(&rig) == ["10.0.0.7:8000"]).await;
    server.watched(2).await;
    server.go_down(true);
    until("noticed", || rig.process.discovering.failing_watches() == 2).await;
    rig.process.change(&GatewaySettingsFile { threads: 7, ..settings.clone() }, &rig.state);
    assert_eq!(served(&rig), [pair("demo", Some("demo"))]);
    assert_eq!(engines(&rig), ["10.0.0.7:8000"]);
    assert!(rig.process.ready().is_ok());
    // One that starts now knows no model: others should have the requests.
    let new = Rig::of(&settings, client, WARM);
    until("noticed", || new.process.discovering.failing_watches() == 1).await;
    let (status, why) = new.get("/readyz").await;
    assert_eq!(status, 503);
    assert!(why.contains("ModelServices: cannot watch modelservices; hint: it retries"), "{why}");
    server.go_down(false);
    until("back", || engines(&new) == ["10.0.0.7:8000"] && new.process.ready().is_ok()).await;
}

#[tokio::test]
async fn without_a_word_of_kubernetes_the_api_server_is_not_asked() {
    let (server, client) = ApiServer::start(Vec::new()).await;
    server.put("modelservices", vec![model_service("demo")]);
    let fixed = ModelSettings {
        name: "fixed".to_owned(),
        endpoints: vec!["10.1.1.1:8000".parse().unwrap()],
        ..ModelSettings::default()
    };
    let rig = Rig::of(&settings(&[fixed]), client, Duration::ZERO);
    until("ready", || rig.process.ready().is_ok()).await;
    until("served", || engines(&rig) == ["10.1.1.1:8000"]).await;
    assert_eq!(served(&rig), [pair("fixed", None)]);
    assert_eq!((server.lists(), server.watches()), (0, 0));
    assert_eq!(rig.get("/readyz").await, (200, "ok\n".to_owned()));
}

#[tokio::test]
async fn a_change_that_moves_no_engine_begins_no_watch_anew() {
    let (server, client) = ApiServer::start(Vec::new()).await;
    server.put("modelservices", vec![model_service("demo")]);
    let settings = GatewaySettingsFile { kubernetes: everywhere(), ..settings(&[]) };
    let rig = Rig::of(&settings, client, WARM);
    until("ready", || rig.process.ready().is_ok()).await;
    server.watched(2).await;
    let mut faster = model_service("demo");
    faster["spec"]["objectives"] = json!({"firstTokenMilliseconds": 200});
    server.send_event("MODIFIED", &faster);
    let objective = || rig.process.models.borrow().models[0].first_token_ms;
    until("taken in", || objective() == Some(200)).await;
    // Another model needs one: that none began before shows then.
    server.send_event("ADDED", &model_service("other"));
    server.watched(3).await;
    until("both", || served(&rig).len() == 2).await;
    assert_eq!(server.watches(), 3);
}
