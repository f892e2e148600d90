//! Health, metrics and the settings in use, on an address of their own.
//!
//! It only tells; nothing can be changed here (reliability.md T-10). It holds no secret: hashes of
//! keys are left out, and so is what an address carries before an `@`. Start at [`answer`], which
//! is the whole of it without a network.

use crate::admit::AdmittedDemand;
use crate::meter::{Meter, TenantsNow};
use crate::models::ModelNames;
use crate::settings::GatewaySettingsFile;
use crate::shadow::Shadows;
use crate::tokens::{KeySetNow, KeySetsNow};
use arc_swap::ArcSwap;
use bytes::Bytes;
use flyball_telemetry::metrics::{CONTENT_TYPE, Metrics};
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE as CONTENT_TYPE_HEADER};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

/// What is asked about.
pub struct GatewayAdminState {
    meter: Arc<Meter>,
    metrics: Metrics,
    settings: ArcSwap<GatewaySettingsFile>,
    ready: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
    demand: Box<dyn Fn() -> Vec<AdmittedDemand> + Send + Sync>,
    shadows: Option<Arc<Shadows>>,
    names: Option<Box<dyn Fn() -> Arc<ModelNames> + Send + Sync>>,
    tenants: Option<Box<dyn Fn() -> Option<TenantsNow> + Send + Sync>>,
}

/// Names that are not served which are said with readiness; `/config` has all.
const NOTES: usize = 3;

impl GatewayAdminState {
    /// `ready` says whether requests should come, or why not; `demand` what is wanted of each model.
    pub fn new(
        version: &'static str,
        meter: Arc<Meter>,
        settings: GatewaySettingsFile,
        ready: impl Fn() -> Result<(), String> + Send + Sync + 'static,
        demand: impl Fn() -> Vec<AdmittedDemand> + Send + Sync + 'static,
    ) -> Self {
        Self {
            metrics: Metrics::new(version).with(Arc::clone(&meter)),
            meter,
            settings: ArcSwap::from_pointee(settings),
            ready: Box::new(ready),
            demand: Box::new(demand),
            shadows: None,
            names: None,
            tenants: None,
        }
    }

    /// Tells also what became of the names of ModelServices.
    #[must_use]
    pub fn with_model_names(
        mut self,
        names: impl Fn() -> Arc<ModelNames> + Send + Sync + 'static,
    ) -> Self {
        self.names = Some(Box::new(names));
        self
    }

    /// Tells also what is known of Tenants, if they are watched.
    #[must_use]
    pub fn with_tenants(
        mut self,
        tenants: impl Fn() -> Option<TenantsNow> + Send + Sync + 'static,
    ) -> Self {
        self.tenants = Some(Box::new(tenants));
        self
    }

    fn tenants(&self) -> Option<TenantsNow> {
        self.tenants.as_ref().and_then(|tenants| tenants())
    }

    /// Tells also which policies would have been better.
    #[must_use]
    pub fn with_shadows(mut self, shadows: Arc<Shadows>) -> Self {
        self.metrics = self.metrics.with(Arc::clone(&shadows));
        self.shadows = Some(shadows);
        self
    }

    /// These settings are in use now.
    pub fn follow(&self, settings: &GatewaySettingsFile) {
        self.settings.store(Arc::new(settings.clone()));
    }
}

impl fmt::Debug for GatewayAdminState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("meter", &self.meter).finish_non_exhaustive()
    }
}

impl flyball_admin::AdminPages for GatewayAdminState {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        match *request.method() {
            Method::GET | Method::HEAD => answer(request.uri().path(), self),
            _ => only_get(),
        }
    }
}

/// What is said at this path.
pub fn answer(path: &str, state: &GatewayAdminState) -> Response<Full<Bytes>> {
    match path {
        // Answering is the proof.
        "/healthz" => text(StatusCode::OK, "ok\n"),
        "/readyz" => match (state.ready)() {
            Ok(()) => text(StatusCode::OK, format!("ok\n{}", notes(state))),
            Err(reason) => text(StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {reason}\n")),
        },
        "/metrics" => match state.metrics.encode() {
            Ok(page) => with(StatusCode::OK, CONTENT_TYPE, page),
            Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, "cannot write metrics\n"),
        },
        "/demand" => {
            let demand = serde_json::json!({"version": 1, "models": (state.demand)()});
            with(StatusCode::OK, "application/json", format!("{demand:#}\n"))
        }
        "/state" => with(StatusCode::OK, "application/json", glance(state)),
        "/config" => with(StatusCode::OK, "application/json", config(state)),
        "/shadow" => {
            let json = state.shadows.as_ref().map_or_else(|| "{}\n".to_owned(), |all| all.json());
            with(StatusCode::OK, "application/json", json)
        }
        _ => {
            let paths =
                "known paths: /healthz, /readyz, /metrics, /demand, /state, /config and /shadow\n";
            text(StatusCode::NOT_FOUND, paths)
        }
    }
}

/// What is not served though a ModelService asks for it: no reason to send requests elsewhere.
fn notes(state: &GatewayAdminState) -> String {
    name_notes(state) + &tenant_notes(state)
}

/// Who is let in, and who is not though a Tenant asks for it. Everybody may read this: reasons, and not what stands in
/// a Tenant.
fn tenant_notes(state: &GatewayAdminState) -> String {
    let Some(TenantsNow { report, age, key_sets }) = state.tenants() else { return String::new() };
    let age = age.map_or("of unknown age".to_owned(), |age| format!("{} s old", age.as_secs()));
    let (accepted, refused) = (report.accepted, report.refused);
    let mut lines = format!("note: {accepted} Tenants accepted, {refused} refused; list {age}\n");
    for trouble in report.troubles.iter().filter(|trouble| !trouble.accepted).take(NOTES) {
        lines += &format!("note: {trouble}\n");
    }
    lines + &key_set_notes(&key_sets)
}

/// Whose tokens may be refused soon, or are already. Which issuer that is, the settings say.
fn key_set_notes(now: &KeySetsNow) -> String {
    let failing = now.sets.iter().filter(|set| set.trouble.is_some());
    let note = |set: &KeySetNow| match set.age {
        Some(age) => format!("note: {} not fetched; keys {} s old\n", set.setting, age.as_secs()),
        None => format!("note: {} not fetched; no keys\n", set.setting),
    };
    failing.take(NOTES).map(note).collect()
}

fn name_notes(state: &GatewayAdminState) -> String {
    let Some(names) = state.names.as_ref().map(|names| names()) else { return String::new() };
    let mut lines: Vec<String> =
        names.left_out.iter().take(NOTES).map(|left| format!("note: {left}\n")).collect();
    if names.left_out.len() > NOTES {
        lines.push(format!("note: and {} more names\n", names.left_out.len() - NOTES));
    }
    lines.concat()
}

fn glance(state: &GatewayAdminState) -> String {
    let now = state.meter.state(SystemTime::now());
    // Numbers, texts and lists of them can always be written.
    serde_json::to_string(&now).unwrap_or_default() + "\n"
}

fn config(state: &GatewayAdminState) -> String {
    let mut settings = state.settings.load().as_ref().clone();
    let operator = settings.operator.as_mut().map(|operator| &mut operator.address);
    let addresses = [&mut settings.collector, &mut settings.telemetry.otlp];
    let addresses = addresses.into_iter().filter_map(Option::as_mut).chain(operator);
    addresses.for_each(|address| *address = without_user(address));
    let reload = state.meter.reload();
    let names = state.names.as_ref().map(|names| names());
    let value = serde_json::json!({
        "settings": settings,
        "warnings": settings.warnings(),
        "modelServices": names.as_deref(),
        "tenants": state.tenants().map(|now| serde_json::json!({
            "ageSeconds": now.age.map(|age| age.as_secs()), "report": &*now.report,
            "keySets": now.key_sets.sets,
        })),
        "reload": {
            "successful": reload.successful,
            "goodSince": time(reload.good_since),
            "tried": time(reload.tried),
            "problems": reload.problems,
            "needsRestart": reload.needs_restart,
        },
    });
    format!("{value:#}\n")
}

fn time(at: SystemTime) -> String {
    jiff::Timestamp::try_from(at).unwrap_or_default().to_string()
}

/// `http://user:secret@host` without what is before the `@`.
fn without_user(address: &str) -> String {
    match address.split_once("://") {
        Some((scheme, rest)) if rest.contains('@') => {
            let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
            format!("{scheme}://(hidden)@{host}")
        }
        _ => address.to_owned(),
    }
}

fn only_get() -> Response<Full<Bytes>> {
    let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    response
}

fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    with(status, "text/plain; charset=utf-8", body)
}

fn with(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE_HEADER, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Key;
    use crate::settings::reload::Reload;
    use flyball_admin::Guard;
    use http_body_util::BodyExt as _;
    use std::sync::atomic::{AtomicBool, Ordering};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    fn state(ready: Arc<AtomicBool>) -> GatewayAdminState {
        let mut settings = GatewaySettingsFile::default();
        settings.keys.push(Key {
            name: "search".to_owned(),
            sha256: "canary".repeat(8),
            requests_per_minute: Some(5),
            ..Key::default()
        });
        settings.telemetry.otlp = Some("https://user:canary@tempo:4317".to_owned());
        let meter = Arc::new(Meter::quiet(&settings));
        let ready = move || match ready.load(Ordering::Relaxed) {
            true => Ok(()),
            false => Err("no model is listed".to_owned()),
        };
        GatewayAdminState::new("1.2.3", meter, settings, ready, Vec::new)
    }

    async fn get(path: &str, state: &GatewayAdminState) -> (u16, String) {
        let response = answer(path, state);
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn it_lives_before_it_is_ready() {
        let ready = Arc::new(AtomicBool::new(false));
        let state = state(Arc::clone(&ready));
        assert_eq!(get("/healthz", &state).await.0, 200);
        let (status, why) = get("/readyz", &state).await;
        assert_eq!((status, why.as_str()), (503, "not ready: no model is listed\n"));
        ready.store(true, Ordering::Relaxed);
        assert_eq!(get("/readyz", &state).await.0, 200);
        assert_eq!(get("/", &state).await.0, 404);
    }

    #[tokio::test]
    async fn settings_and_the_last_reload_are_shown_without_a_secret() {
        let state = state(Arc::default());
        let mut reload = Reload::good(SystemTime::UNIX_EPOCH);
        reload.successful = false;
        reload.problems.push("FLY-802 line 3 treads: is not a setting".to_owned());
        state.meter.reloaded(reload);
        let (status, body) = get("/config", &state).await;
        assert_eq!(status, 200);
        assert!(!body.contains("canary"), "{body}");
        let value: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(value["settings"]["keys"][0]["name"], "search");
        assert_eq!(value["settings"]["telemetry"]["otlp"], "https://(hidden)@tempo:4317");
        assert_eq!(value["reload"]["successful"], false);
        assert_eq!(value["reload"]["goodSince"], "1970-01-01T00:00:00Z");
        let (_, view) = get("/state", &state).await;
        let view: crate::state::GatewayStateView = serde_json::from_str(&view).unwrap();
        assert_eq!((view.version, view.troubles[0].what.as_str()), (1, "reload-failed"));
        let (_, page) = get("/metrics", &state).await;
        assert!(page.contains("\nflyball_gateway_config_last_reload_successful 0.0\n"), "{page}");
    }

    #[tokio::test]
    async fn it_answers_over_the_network_and_changes_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(state(Arc::default()));
        let server = tokio::spawn(flyball_admin::serve(listener, state, Guard::default()));
        for (request, expected) in [
            ("GET /healthz", "HTTP/1.1 200"),
            ("POST /config", "HTTP/1.1 405"),
            ("nonsense", "HTTP/1.1 400"),
        ] {
            let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
            let head = format!("{request} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with(expected), "{request}: {answer}");
        }
        server.abort();
    }
}
