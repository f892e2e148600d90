//! The port on which the engine of a pod answers. Pure.

use flyball_engines::Engine;
use k8s_openapi::api::core::v1::{Container, PodSpec};

/// By convention the name of the port that takes requests.
const HTTP: &str = "http";

/// The port of the first container, which is the engine: what its arguments say, else the port that is named
/// `http`, else its only one, else what its engine takes where nothing is said.
pub(super) fn port(spec: &PodSpec, args: &[String], kind: Option<Engine>) -> Option<u16> {
    let declared = spec.containers.first().and_then(declared);
    of_args(args).or(declared).or_else(|| kind.map(|kind| kind.facts().port))
}

/// The number behind `--port`. Of several the last, as parsers have it; one that only a shell knows is none.
fn of_args(args: &[String]) -> Option<u16> {
    let mut words = args.iter().flat_map(|arg| arg.split_whitespace());
    let mut last = None;
    while let Some(word) = words.next() {
        match word.strip_prefix("--port") {
            Some("") => last = words.next().and_then(|port| port.parse().ok()),
            Some(rest) if rest.starts_with('=') => last = rest[1..].parse().ok(),
            _ => {}
        }
    }
    last.filter(|port| *port > 0)
}

fn declared(container: &Container) -> Option<u16> {
    let tcp = |protocol: Option<&str>| protocol.is_none_or(|protocol| protocol == "TCP");
    let ports = container.ports.iter().flatten().filter(|port| tcp(port.protocol.as_deref()));
    let ports: Vec<_> = ports.collect();
    let named = ports.iter().find(|port| port.name.as_deref() == Some(HTTP));
    let only = ports.first().filter(|_| ports.len() == 1);
    named.or(only).and_then(|port| u16::try_from(port.container_port).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn found(ports: Value, args: &[&str], kind: Option<Engine>) -> Option<u16> {
        let container = json!({"name": "engine", "ports": ports});
        let spec = serde_json::from_value(json!({"containers": [container]})).unwrap();
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        port(&spec, &args, kind)
    }

    #[test]
    fn arguments_come_before_declared_ports_and_these_before_the_engines_own() {
        let http = json!([
            {"containerPort": 9000, "name": "metrics"}, {"containerPort": 8001, "name": "http"},
        ]);
        let sglang = Some(Engine::Sglang);
        assert_eq!(found(http.clone(), &["--port", "8002"], sglang), Some(8002));
        assert_eq!(found(http.clone(), &["sh", "-c", "vllm serve m --port=7"], sglang), Some(7));
        assert_eq!(found(http.clone(), &["--port=1", "--port", "2"], None), Some(2), "the last");
        assert_eq!(
            found(http.clone(), &["--port", "$PORT"], sglang),
            Some(8001),
            "nobody knows it"
        );
        assert_eq!(found(http, &["--port-of-others=3"], sglang), Some(8001));
        assert_eq!(found(json!([{"containerPort": 8003}]), &[], sglang), Some(8003));
        assert_eq!(found(json!([]), &[], sglang), Some(30_000));
    }

    #[test]
    fn what_is_not_clear_is_unknown() {
        let two = json!([{"containerPort": 1}, {"containerPort": 2, "name": "other"}]);
        assert_eq!(found(two, &[], None), None);
        let gossip = json!([{"containerPort": 1, "protocol": "UDP"}]);
        assert_eq!(found(gossip, &[], None), None);
        assert_eq!(found(json!(null), &["--port", "0"], None), None);
    }
}
