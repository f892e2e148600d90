//! An API server of canned answers: enough of one for `flyball check` to ask all its questions.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

/// What to do with a request.
pub(crate) enum Reply {
    Json(Value),
    Text(&'static str),
    /// A status other than 200, with the words of the server.
    Status(u16, &'static str),
    /// Keep the connection open and say nothing.
    Silence,
}

/// Answers every request by its path, query included, until the tests end.
pub(crate) fn start(reply: fn(&str) -> Reply) -> String {
    start_reading(move |path, _| reply(path))
}

/// The same, by its headers too, in small letters.
pub(crate) fn start_reading(
    reply: impl Fn(&str, &str) -> Reply + Clone + Send + 'static,
) -> String {
    start_with(move |request| reply(&request.path, &request.headers))
}

/// A whole request.
pub(crate) struct ReceivedRequest {
    pub(crate) method: String,
    /// With its query.
    pub(crate) path: String,
    /// In small letters.
    pub(crate) headers: String,
    pub(crate) body: Vec<u8>,
}

/// The same, by all of a request.
pub(crate) fn start_with(
    reply: impl Fn(&ReceivedRequest) -> Reply + Clone + Send + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let reply = reply.clone();
            std::thread::spawn(move || answer(stream, reply));
        }
    });
    address
}

fn answer(mut stream: TcpStream, reply: impl Fn(&ReceivedRequest) -> Reply) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ').map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let (mut length, mut headers) = (0, String::new());
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        headers += &header.to_lowercase();
        match header.trim().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().ok()?;
            }
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (status, body) = match reply(&ReceivedRequest { method, path, headers, body }) {
        Reply::Json(value) => (200, value.to_string()),
        Reply::Text(text) => (200, text.to_owned()),
        Reply::Status(code, words) => {
            let reason = if code == 404 { "NotFound" } else { "x" };
            let body = json!({"kind": "Status", "code": code, "message": words, "reason": reason});
            (code, body.to_string())
        }
        Reply::Silence => {
            std::thread::sleep(std::time::Duration::from_secs(60));
            return None;
        }
    };
    let date = jiff::Timestamp::now().strftime("%a, %d %b %Y %H:%M:%S GMT");
    let head = format!("HTTP/1.1 {status} X\r\nDate: {date}\r\nContent-Length: {}", body.len());
    write!(stream, "{head}\r\nConnection: close\r\n\r\n{body}").ok()
}

/// A cluster with everything, its nodes in two pages.
pub(crate) fn healthy(path: &str) -> Reply {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let group = |name: &str, version: &str| json!({"name": name, "versions": [{"groupVersion": format!("{name}/{version}"), "version": version}]});
    match path {
        "/version" => Reply::Json(json!({
            "major": "1", "minor": "36+", "gitVersion": "v1.36.1", "gitCommit": "", "gitTreeState": "",
            "buildDate": "", "goVersion": "", "compiler": "", "platform": "",
        })),
        "/apis" => Reply::Json(json!({"groups": [
            group("kueue.x-k8s.io", "v1beta1"),
            group("jobset.x-k8s.io", "v1alpha2"),
            group("metrics.k8s.io", "v1beta1"),
        ]})),
        "/apis/metrics.k8s.io/v1beta1" => {
            Reply::Json(json!({"groupVersion": "metrics.k8s.io/v1beta1", "resources": []}))
        }
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" => {
            Reply::Json(json!({"spec": {}, "status": {"allowed": true}}))
        }
        "/apis/apps/v1/deployments" => {
            let name = if query.contains("kueue") { "kueue" } else { "jobset" };
            Reply::Json(json!({"metadata": {}, "items": [deployment(name)]}))
        }
        "/api/v1/services" => Reply::Json(json!({"metadata": {}, "items": [{
            "metadata": {"namespace": "monitoring", "name": "prometheus"},
            "spec": {"ports": [{"name": "http-web", "port": 9090}]},
        }]})),
        "/api/v1/namespaces/monitoring/services/http:prometheus:9090/proxy/api/v1/status/buildinfo" => {
            Reply::Json(json!({"status": "success", "data": {"version": "3.5.0"}}))
        }
        "/api/v1/nodes" if query.contains("continue=") => {
            Reply::Json(json!({"metadata": {}, "items": [node("gpu-2")]}))
        }
        "/api/v1/nodes" => {
            Reply::Json(json!({"metadata": {"continue": "more"}, "items": [node("gpu-1")]}))
        }
        _ => Reply::Status(404, "not found"),
    }
}

pub(crate) fn deployment(name: &str) -> Value {
    let container = json!({"name": "manager", "image": format!("example.test/{name}:v9.9.9")});
    json!({
        "metadata": {"namespace": format!("{name}-system"), "name": format!("{name}-controller-manager")},
        "spec": {"selector": {}, "template": {"spec": {"containers": [container]}}},
        "status": {
            "availableReplicas": 1, "conditions": [{"type": "Available", "status": "True"}],
        },
    })
}

fn node(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {
            "nvidia.com/gpu.product": "H100", "flyball.dev/pool": "serving",
        }},
        "status": {
            "capacity": {"nvidia.com/gpu": "8"}, "allocatable": {"nvidia.com/gpu": "8"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}
