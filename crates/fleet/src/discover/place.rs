//! Where a model's engines are to be looked for.

use super::DiscoveryProblem;
use flyball_engines::Engine;
use kube::core::Selector;
use std::net::SocketAddr;

/// A model whose engines are looked for. Exactly one of the four places is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sought {
    /// The model's name.
    pub name: String,
    /// Addresses of engines.
    pub endpoints: Vec<SocketAddr>,
    /// `namespace/name:port` of a Service. The port is a number or a name.
    pub service: Option<String>,
    /// `namespace/name` of an `InferencePool`.
    pub pool: Option<String>,
    /// The pods of a ModelService.
    pub pods: Option<PodsPlace>,
    /// What the engines are. Pods of a ModelService say it by variant.
    pub engine: Engine,
}

/// Where a model's engines are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiscoveryPlace {
    /// At these addresses.
    Static(Vec<SocketAddr>),
    /// Behind a Service.
    Service(ServicePlace),
    /// In an `InferencePool`.
    Pool(InferencePoolPlace),
    /// The pods of a ModelService.
    Pods(PodsPlace),
}

/// A port of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServicePlace {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Which of its ports.
    pub port: Port,
}

/// A port as EndpointSlices have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Port {
    /// The number on which the engine listens. EndpointSlices do not have the Service's own.
    Number(u16),
    /// The name of the Service's port.
    Name(String),
}

/// An `InferencePool`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InferencePoolPlace {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// The pods of a ModelService.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodsPlace {
    /// Their namespace.
    pub namespace: String,
    /// Those of each variant.
    pub variants: Vec<VariantPlace>,
}

/// The pods of one variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariantPlace {
    /// Which pods.
    pub selector: Selector,
    /// The port of the engines.
    pub port: u16,
    /// Whether a pod that declares a port named `http` answers on that one.
    pub named_port: bool,
    /// What they are.
    pub engine: Engine,
}

impl DiscoveryPlace {
    /// The place that a model names.
    pub fn of(model: &Sought) -> Result<Self, DiscoveryProblem> {
        if let Some(pods) = &model.pods {
            return Ok(Self::Pods(pods.clone()));
        }
        match (model.endpoints.is_empty(), &model.service, &model.pool) {
            (false, None, None) => Ok(Self::Static(model.endpoints.clone())),
            (true, Some(service), None) => read_service(service).ok_or_else(|| DiscoveryProblem::Place {
                model: model.name.clone(),
                what: format!("service {service:?} is invalid"),
                hint: "write namespace/name:port, the port as the engine's number or by its name",
            }),
            (true, None, Some(pool)) => match read_name(pool) {
                Some((namespace, name)) => Ok(Self::Pool(InferencePoolPlace { namespace, name })),
                None => Err(DiscoveryProblem::Place {
                    model: model.name.clone(),
                    what: format!("pool {pool:?} is invalid"),
                    hint: "write namespace/name",
                }),
            },
            _ => Err(DiscoveryProblem::Place {
                model: model.name.clone(),
                what: "exactly one of endpoints, service and pool must be set".to_owned(),
                hint: "set one of them",
            }),
        }
    }
}

fn read_service(text: &str) -> Option<DiscoveryPlace> {
    let (name, port) = text.rsplit_once(':')?;
    let (namespace, name) = read_name(name)?;
    let port = match port.parse::<u16>() {
        Ok(0) => return None,
        Ok(number) => Port::Number(number),
        Err(_) => Port::Name(label(port)?),
    };
    Some(DiscoveryPlace::Service(ServicePlace { namespace, name, port }))
}

fn read_name(text: &str) -> Option<(String, String)> {
    let (namespace, name) = text.split_once('/')?;
    // A dot is allowed in the names of pools, which are DNS subdomains.
    let name = name.split('.').all(|part| label(part).is_some()).then(|| name.to_owned())?;
    Some((label(namespace)?, name))
}

/// A DNS label: what names in Kubernetes are made of. They go into paths and selectors, so nothing
/// else may pass.
fn label(text: &str) -> Option<String> {
    let edge = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let bytes = text.as_bytes();
    let inside = |byte: &u8| edge(Some(byte)) || *byte == b'-';
    let good = bytes.len() <= 63 && edge(bytes.first()) && edge(bytes.last());
    (good && bytes.iter().all(inside)).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(text: &str) -> Result<DiscoveryPlace, DiscoveryProblem> {
        DiscoveryPlace::of(&Sought { service: Some(text.to_owned()), ..Sought::default() })
    }

    fn pool(text: &str) -> Result<DiscoveryPlace, DiscoveryProblem> {
        DiscoveryPlace::of(&Sought { pool: Some(text.to_owned()), ..Sought::default() })
    }

    #[test]
    fn services_have_a_namespace_a_name_and_a_port() {
        let Ok(DiscoveryPlace::Service(found)) = service("team-a/llama:8000") else { panic!() };
        assert_eq!((&*found.namespace, &*found.name), ("team-a", "llama"));
        assert_eq!(found.port, Port::Number(8000));
        let Ok(DiscoveryPlace::Service(found)) = service("team-a/llama:http") else { panic!() };
        assert_eq!(found.port, Port::Name("http".to_owned()));
        for wrong in [
            "llama:8000",
            "a/llama",
            "a/llama:",
            "a/llama:0",
            "a/b/c:80",
            "A/b:80",
            "a/b,c:1",
            "a/:80",
        ] {
            assert!(service(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn pools_have_a_namespace_and_a_name() {
        assert!(matches!(pool("a/llama.v1"), Ok(DiscoveryPlace::Pool(_))));
        for wrong in ["llama", "a/", "/a", "a/b:80", "a/../b"] {
            assert!(pool(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn exactly_one_place_is_said() {
        assert!(DiscoveryPlace::of(&Sought::default()).is_err());
        let both = Sought {
            service: Some("a/b:1".to_owned()),
            pool: Some("a/b".to_owned()),
            ..Sought::default()
        };
        assert!(DiscoveryPlace::of(&both).unwrap_err().to_string().contains("exactly one"));
    }
}
