//! ModelServices of a cluster: one by its name, or all.

use std::time::Duration;

use flyball_core::ids::ModelId;
use flyball_resources::ModelService;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};

use crate::cluster::{Cluster, innermost};
use crate::flags::ClusterArgs;
use crate::output::{Exit, Failure, FailureCode, duration};

/// ModelServices of one page.
const PAGE: u32 = 500;

/// The model of this name, which may be `namespace/name`. Without a namespace all are looked at.
pub(crate) async fn find(
    cluster: &Cluster,
    args: &ClusterArgs,
    name: &str,
) -> Result<ModelService, Failure> {
    let (namespace, name) = match name.split_once('/') {
        Some((namespace, name)) => (Some(namespace.to_owned()), name),
        None => (args.namespace.clone(), name),
    };
    let full = format!("{}/{name}", namespace.as_deref().unwrap_or("any"));
    if ModelId::new(namespace.as_deref().unwrap_or("any"), name).is_err() {
        return Err(Failure::new(Exit::Usage, format!("{full:?} is no name of a model"))
            .code(FailureCode::NoSuchModel)
            .hint("write NAME with -n NAMESPACE, or NAMESPACE/NAME"));
    }
    let found = list(cluster, namespace.as_deref(), args.timeout).await?;
    let mut same: Vec<&ModelService> = found.iter().filter(|one| one.name_any() == name).collect();
    match (same.pop(), same.is_empty()) {
        (Some(one), true) => Ok(one.clone()),
        (Some(one), false) => {
            let names = same.into_iter().chain([one]).map(full_name).collect::<Vec<_>>();
            Err(Failure::new(Exit::Usage, format!("several models are named {name}"))
                .code(FailureCode::NoSuchModel)
                .because(format!("there are {}", names.join(", ")))
                .hint("choose the namespace with -n"))
        }
        (None, _) => Err(absent(name, namespace.as_deref(), &found)),
    }
}

/// All models of a namespace, or of all that may be seen.
pub(crate) async fn list(
    cluster: &Cluster,
    namespace: Option<&str>,
    limit: Duration,
) -> Result<Vec<ModelService>, Failure> {
    let client = cluster.client.clone();
    match namespace {
        Some(namespace) => read(&Api::namespaced(client, namespace), limit).await,
        None => match read(&Api::all(client.clone()), limit).await {
            // Who may not see all namespaces is shown the own one.
            Err(Refused::Denied(_)) => read(&Api::default_namespaced(client), limit).await,
            other => other,
        },
    }
    .map_err(|refused| refused.failure(cluster))
}

/// `namespace/name`.
pub(crate) fn full_name(model: &ModelService) -> String {
    format!("{}/{}", model.namespace().unwrap_or_default(), model.name_any())
}

/// Why the API server gave nothing.
enum Refused {
    NoKind,
    Denied(String),
    Other(String),
}

impl Refused {
    fn of(error: &kube::Error) -> Refused {
        match error {
            kube::Error::Api(status) => match status.code {
                404 => Refused::NoKind,
                403 => Refused::Denied(status.message.clone()),
                _ => Refused::Other(status.message.clone()),
            },
            other => Refused::Other(innermost(other)),
        }
    }

    fn failure(self, cluster: &Cluster) -> Failure {
        match self {
            Refused::NoKind => Failure::new(Exit::Unknown, "the cluster has no ModelServices")
                .at(cluster.address.clone())
                .because("its API server does not know the kind")
                .code(FailureCode::NoModelServices)
                .hint("install charts/flyball-crds; flyball explain FLY-901"),
            Refused::Denied(why) => cannot(cluster, why)
                .hint("it takes the right to list modelservices.flyball.dev; -n names a namespace"),
            Refused::Other(why) => {
                cannot(cluster, why).hint("flyball check shows what is wrong with the cluster")
            }
        }
    }
}

fn cannot(cluster: &Cluster, why: String) -> Failure {
    Failure::new(Exit::Unknown, "ModelServices cannot be read")
        .at(cluster.address.clone())
        .because(why)
}

async fn read(api: &Api<ModelService>, limit: Duration) -> Result<Vec<ModelService>, Refused> {
    let mut all = Vec::new();
    let mut page = ListParams::default().limit(PAGE);
    loop {
        let list = match tokio::time::timeout(limit, api.list(&page)).await {
            Ok(Ok(list)) => list,
            Ok(Err(error)) => return Err(Refused::of(&error)),
            Err(_) => return Err(Refused::Other(format!("no answer within {}", duration(limit)))),
        };
        all.extend(list.items);
        match list.metadata.continue_ {
            Some(token) if !token.is_empty() => page = page.continue_token(&token),
            _ => return Ok(all),
        }
    }
}

fn absent(name: &str, namespace: Option<&str>, all: &[ModelService]) -> Failure {
    let place = namespace.map_or("any namespace".to_owned(), |one| format!("namespace {one}"));
    let failure = Failure::new(Exit::Usage, format!("there is no ModelService {name} in {place}"))
        .code(FailureCode::NoSuchModel);
    let near = all
        .iter()
        .map(|one| (strsim::jaro_winkler(&one.name_any(), name), one))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match (near, all.len()) {
        (Some((_, one)), _) => failure.hint(format!("did you mean {}?", full_name(one))),
        (None, 0) => {
            failure.hint("there are none; docs/guides/operator.md shows how to adopt a Deployment")
        }
        (None, _) => failure.hint("kubectl get modelservices -A lists them"),
    }
}
