//! What is ours in a cluster, ModelServices and Tenants: one by its name, or all.

use std::fmt::Debug;
use std::time::Duration;

use flyball_core::ids::ModelId;
use flyball_resources::ModelService;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};
use kube::core::NamespaceResourceScope;
use serde::de::DeserializeOwned;

use crate::cluster::{Cluster, innermost};
use crate::flags::ClusterArgs;
use crate::output::{Exit, Failure, FailureCode, duration};

/// Objects of one page.
const PAGE: u32 = 500;

/// A kind of ours that is looked up by name, and the words about it.
pub(crate) trait Listed:
    kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
where
    Self: Clone + Debug + DeserializeOwned,
{
    /// One of it, as people say.
    const ONE: &'static str;
    /// The kind.
    const NAME: &'static str;
    /// In small letters and many, as in a right.
    const MANY: &'static str;
    /// What is said if the cluster does not know the kind.
    const NO_KIND: FailureCode;
    /// What is said if none has the name.
    const NO_SUCH: FailureCode;

    /// What to do if none of this name is there and none is called alike. `all` is how many there are.
    fn absent(name: &str, namespace: Option<&str>, all: usize) -> String;
}

impl Listed for ModelService {
    const ONE: &'static str = "model";
    const NAME: &'static str = "ModelService";
    const MANY: &'static str = "modelservices";
    const NO_KIND: FailureCode = FailureCode::NoModelServices;
    const NO_SUCH: FailureCode = FailureCode::NoSuchModel;

    fn absent(_: &str, _: Option<&str>, all: usize) -> String {
        match all {
            0 => {
                "there are none; docs/guides/operator.md shows how to adopt a Deployment".to_owned()
            }
            _ => "kubectl get modelservices -A lists them".to_owned(),
        }
    }
}

/// The model of this name, which may be `namespace/name`. Without a namespace all are looked at.
pub(crate) async fn find(
    cluster: &Cluster,
    args: &ClusterArgs,
    name: &str,
) -> Result<ModelService, Failure> {
    find_one(cluster, args, name).await
}

/// All models of a namespace, or of all that may be seen.
pub(crate) async fn list(
    cluster: &Cluster,
    namespace: Option<&str>,
    limit: Duration,
) -> Result<Vec<ModelService>, Failure> {
    list_all(cluster, namespace, limit).await
}

/// The one of this name, which may be `namespace/name`. Without a namespace all are looked at.
pub(crate) async fn find_one<K: Listed>(
    cluster: &Cluster,
    args: &ClusterArgs,
    name: &str,
) -> Result<K, Failure> {
    let (namespace, name) = match name.split_once('/') {
        Some((namespace, name)) => (Some(namespace.to_owned()), name),
        None => (args.namespace.clone(), name),
    };
    let full = format!("{}/{name}", namespace.as_deref().unwrap_or("any"));
    // Names of all kinds are made alike.
    if ModelId::new(namespace.as_deref().unwrap_or("any"), name).is_err() {
        return Err(Failure::new(Exit::Usage, format!("{full:?} is no name of a {}", K::ONE))
            .code(K::NO_SUCH)
            .hint("write NAME with -n NAMESPACE, or NAMESPACE/NAME"));
    }
    let found: Vec<K> = list_all(cluster, namespace.as_deref(), args.timeout).await?;
    let mut same: Vec<&K> = found.iter().filter(|one| one.name_any() == name).collect();
    match (same.pop(), same.is_empty()) {
        (Some(one), true) => Ok(one.clone()),
        (Some(one), false) => {
            let names = same.into_iter().chain([one]).map(full_name).collect::<Vec<_>>();
            Err(Failure::new(Exit::Usage, format!("several {}s are named {name}", K::ONE))
                .code(K::NO_SUCH)
                .because(format!("there are {}", names.join(", ")))
                .hint("choose the namespace with -n"))
        }
        (None, _) => Err(absent(name, namespace.as_deref(), &found)),
    }
}

/// All of a namespace, or of all that may be seen.
pub(crate) async fn list_all<K: Listed>(
    cluster: &Cluster,
    namespace: Option<&str>,
    limit: Duration,
) -> Result<Vec<K>, Failure> {
    let client = cluster.client.clone();
    match namespace {
        Some(namespace) => read(&Api::namespaced(client, namespace), limit).await,
        None => match read(&Api::all(client.clone()), limit).await {
            // Who may not see all namespaces is shown the own one.
            Err(Refused::Denied(_)) => read(&Api::default_namespaced(client), limit).await,
            other => other,
        },
    }
    .map_err(|refused| refused.failure::<K>(cluster))
}

/// `namespace/name`.
pub(crate) fn full_name(one: &impl kube::ResourceExt) -> String {
    format!("{}/{}", one.namespace().unwrap_or_default(), one.name_any())
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

    fn failure<K: Listed>(self, cluster: &Cluster) -> Failure {
        let cannot = |why: String| {
            Failure::new(Exit::Unknown, format!("{}s cannot be read", K::NAME))
                .at(cluster.address.clone())
                .because(why)
        };
        match self {
            Refused::NoKind => {
                Failure::new(Exit::Unknown, format!("the cluster has no {}s", K::NAME))
                    .at(cluster.address.clone())
                    .because("its API server does not know the kind")
                    .code(K::NO_KIND)
                    .hint(format!(
                        "install charts/flyball-crds; flyball explain {}",
                        K::NO_KIND.id()
                    ))
            }
            Refused::Denied(why) => cannot(why).hint(format!(
                "it takes the right to list {}.flyball.dev; -n names a namespace",
                K::MANY
            )),
            Refused::Other(why) => {
                cannot(why).hint("flyball check shows what is wrong with the cluster")
            }
        }
    }
}

async fn read<K: Listed>(api: &Api<K>, limit: Duration) -> Result<Vec<K>, Refused> {
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

fn absent<K: Listed>(name: &str, namespace: Option<&str>, all: &[K]) -> Failure {
    let place = namespace.map_or("any namespace".to_owned(), |one| format!("namespace {one}"));
    let failure = Failure::new(Exit::Usage, format!("there is no {} {name} in {place}", K::NAME))
        .code(K::NO_SUCH);
    let near = all
        .iter()
        .map(|one| (strsim::jaro_winkler(&one.name_any(), name), one))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match near {
        Some((_, one)) => failure.hint(format!("did you mean {}?", full_name(one))),
        None => failure.hint(K::absent(name, namespace, all.len())),
    }
}
