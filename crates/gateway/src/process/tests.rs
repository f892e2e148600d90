//! A process with an API server of a few lines: what one bad model does to the others.

use super::*;
use crate::discover::tests::server::{Server, model, until, with};
use http_body_util::BodyExt as _;
use tokio::task::JoinHandle;

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
    looking: JoinHandle<()>,
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.looking.abort();
        self.process.running.drain(Duration::ZERO);
    }
}

impl Rig {
    /// A gateway that began so long ago.
    async fn start(models: &[ModelSettings], age: Duration) -> Self {
        let (server, client) = Server::start(vec![with(&["p"])]).await;
        server.refuse("/namespaces/other/", 403);
        server.refuse("/inferencepools", 404);
        let settings = settings(models);
        let meter = Arc::new(Meter::quiet(&settings));
        let audit = Arc::new(Audit::open(None).unwrap());
        let verifier = Arc::new(verifier(&meter, &audit));
        let (bell, _calls) = wake::bell();
        let (of, checks) = (Arc::clone(&meter), Arc::clone(&verifier));
        let running =
            serve::start(&settings, Arc::new(Hub { meter: of, verifier: checks, bell })).unwrap();
        let mut process =
            Process::new(running, Arc::clone(&meter), audit, verifier, &settings, "1.2.3");
        process.client = Some(client);
        process.readiness = Readiness::since(Instant::now().checked_sub(age).unwrap());
        let process = Arc::new(process);
        let state = process.state(&settings, "1.2.3");
        let looks = Arc::clone(&process);
        meter.look_at(move || looks.now());
        let looking = tokio::spawn(Arc::clone(&process).discover());
        Self { process, state, looking }
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
    let (_, look) = rig.get("/state").await;
    let look: crate::state::GatewayStateView = serde_json::from_str(&look).unwrap();
    let trouble = |name: &str| {
        let model = look.models.iter().find(|model| model.name == name).unwrap();
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
    assert!(why.contains("forbidden: cannot look at endpointslices of other; hint:"), "{why}");
    assert!(!why.contains("not for you"), "the API server's words are not for everybody: {why}");
}
