//! How the operator is asked: at an address, or through the API server's service proxy.
//!
//! The operator asks for a token. On the way through the API server nothing of ours is left that would do
//! (`authorization` is taken away, and certificates end there), and the cluster's own token is nothing to
//! hand out. So one is made for this purpose: for the account `NAME-admin-client`, which may do nothing else, and
//! for the audience `flyball-admin`. Whoever may make one may ask.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use flyball_admin::{AUDIENCE, TOKEN_HEADER, admin_client_of};
use flyball_resources::admin_api::{Changes, Decisions, WhatIfOutcome};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Service, ServiceAccount};
use kube::api::{Api, ListParams, PostParams};
use kube::client::Body;
use kube::{Client, ResourceExt as _};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::cluster::{Cluster, anonymous, innermost};
use crate::flags::ClusterArgs;
use crate::output::{Exit, Failure, FailureCode, duration};

/// By which the operator's Service is found.
const LABELS: &str = "app.kubernetes.io/name=flyball,app.kubernetes.io/component=operator";

/// Of several operators behind one Service only the one that leads can answer, and whoever is asked
/// is up to chance: of two, one in a thousand questions finds nobody in so many tries.
const TRIES: usize = 10;

/// The status of an answer from an operator that does not lead.
const MISDIRECTED: u16 = 421;

/// How long a token holds: the least that an API server gives.
const TOKEN_SECONDS: i64 = 600;

/// Where the operator is.
#[derive(Debug, Args)]
pub(crate) struct ReachArgs {
    /// Admin address of the operator, or its Service as NAMESPACE/NAME; discovered by labels if not
    /// set
    #[arg(long, value_name = "PLACE", env = "FLYBALL_OPERATOR", hide_env_values = true)]
    #[arg(value_parser = place)]
    pub(crate) operator: Option<Place>,

    #[command(flatten)]
    pub(crate) token: TokenArgs,
}

/// What is shown to an admin address.
#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    /// File with a token for the admin address. If not set, a token is requested when the connection
    /// goes through the API server
    #[arg(long, value_name = "FILE", env = "FLYBALL_TOKEN_FILE", hide_env_values = true)]
    pub(crate) token_file: Option<PathBuf>,
}

impl TokenArgs {
    /// The token of the file, if one is named.
    pub(crate) fn read(&self) -> Result<Option<String>, Failure> {
        let Some(file) = &self.token_file else { return Ok(None) };
        let wrong = |why: String| {
            Failure::new(Exit::Usage, "the token cannot be read")
                .at(file.display().to_string())
                .because(why)
                .hint("--token-file names a file with nothing but the token")
        };
        let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
        let token = text.trim();
        match http::HeaderValue::from_str(token) {
            Ok(_) if !token.is_empty() => Ok(Some(token.to_owned())),
            _ => Err(wrong("it is empty, or has more than a token".to_owned())),
        }
    }
}

/// Where somebody says that it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// An address that can be reached from here.
    Address(http::Uri),
    /// A Service that the API server is asked for: who may not list Services can still be let in.
    Service { namespace: String, name: String },
}

/// `http://127.0.0.1:9090`, or `flyball-system/flyball-operator`.
fn place(text: &str) -> Result<Place, String> {
    let wrong = || "write it as http://127.0.0.1:9090 or as NAMESPACE/NAME".to_owned();
    if let Some((namespace, name)) = text.split_once('/')
        && [namespace, name].iter().all(|part| is_name(part))
    {
        return Ok(Place::Service { namespace: namespace.to_owned(), name: name.to_owned() });
    }
    let address: http::Uri = text.parse().map_err(|_| wrong())?;
    match (address.scheme(), address.host()) {
        (Some(_), Some(_)) => Ok(Place::Address(address)),
        _ => Err(wrong()),
    }
}

/// Whether this can be the name of a namespace or a Service.
fn is_name(text: &str) -> bool {
    let of_label = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(of_label)
}

/// An operator that can be asked.
pub(crate) struct Operator {
    client: Client,
    /// Before every path.
    base: String,
    /// How people would name it.
    place: String,
    /// What is shown to it.
    token: Option<String>,
    limit: Duration,
}

impl Operator {
    pub(crate) async fn reach(
        args: &ReachArgs,
        cluster: Option<&Cluster>,
        global: &ClusterArgs,
    ) -> Result<Operator, Failure> {
        let limit = global.timeout;
        let token = args.token.read()?;
        if let Some(Place::Address(url)) = &args.operator {
            let client = anonymous(url.clone(), limit).await?;
            let place = url.to_string().trim_end_matches('/').to_owned();
            return Ok(Operator { client, base: String::new(), place, token, limit });
        }
        let connected;
        let cluster = match cluster {
            Some(cluster) => cluster,
            None => {
                connected = crate::cluster::connect(global).await?;
                &connected
            }
        };
        let (namespace, name) = match &args.operator {
            Some(Place::Service { namespace, name }) => (namespace.clone(), name.clone()),
            _ => {
                let service = service(cluster, limit).await?;
                (service.namespace().unwrap_or_default(), service.name_any())
            }
        };
        let base = format!("/api/v1/namespaces/{namespace}/services/http:{name}:admin/proxy");
        let place = format!("service {namespace}/{name}");
        let token = match token {
            Some(token) => Some(token),
            None => made(cluster, &namespace, &name, limit).await,
        };
        Ok(Operator { client: cluster.client.clone(), base, place, token, limit })
    }

    /// Past decisions of one model or of all, oldest first.
    pub(crate) async fn decisions(&self, model: Option<&str>) -> Result<Decisions, Failure> {
        let query = model.map(|model| format!("?model={model}")).unwrap_or_default();
        let request = || http::Request::get(format!("{}/decisions{query}", self.base));
        self.ask(request, Vec::new()).await
    }

    /// What would be.
    pub(crate) async fn what_if(&self, changes: &Changes) -> Result<WhatIfOutcome, Failure> {
        let body = serde_json::to_vec(changes).map_err(|error| self.silent(error.to_string()))?;
        let request = || {
            http::Request::post(format!("{}/whatif", self.base))
                .header(http::header::CONTENT_TYPE, "application/json")
        };
        self.ask(request, body).await
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        request: impl Fn() -> http::request::Builder,
        body: Vec<u8>,
    ) -> Result<T, Failure> {
        let answer = async {
            let mut answer = self.once(request(), body.clone()).await?;
            for _ in 1..TRIES {
                if answer.0 != MISDIRECTED {
                    break;
                }
                answer = self.once(request(), body.clone()).await?;
            }
            Ok(answer)
        };
        let answer = tokio::time::timeout(self.limit, answer).await;
        let answer =
            answer.unwrap_or_else(|_| Err(format!("no answer within {}", duration(self.limit))));
        let (status, body) = answer.map_err(|why| self.silent(why))?;
        match status {
            200 => serde_json::from_slice(&body).map_err(|error| {
                self.silent(format!("its answer cannot be read ({error}): of another release?"))
            }),
            422 => Err(Failure::new(Exit::Usage, "that cannot be imagined")
                .at(self.place.clone())
                .problems(words(&body).lines().map(str::to_owned).collect())),
            _ => Err(self.silent(problem_text(status, &words(&body)))),
        }
    }

    async fn once(
        &self,
        request: http::request::Builder,
        body: Vec<u8>,
    ) -> Result<(u16, Vec<u8>), String> {
        let request = match &self.token {
            Some(token) => request.header(TOKEN_HEADER, token),
            None => request,
        };
        let request = request.body(Body::from(body));
        let request = request.map_err(|_| "its address makes no sense".to_owned())?;
        let response = self.client.send(request).await.map_err(|error| innermost(&error))?;
        let status = response.status().as_u16();
        let body = response.into_body().collect_bytes().await.map_err(|error| innermost(&error))?;
        Ok((status, body.to_vec()))
    }

    fn silent(&self, why: String) -> Failure {
        Failure::new(Exit::Unknown, "the operator does not answer")
            .at(self.place.clone())
            .because(why)
            .code(FailureCode::NoOperator)
            .hint("--operator names it as NAMESPACE/NAME or by address; flyball explain FLY-902")
    }
}

/// A token for whoever is behind this Service. None if it may not be made: an operator that takes no token
/// answers all the same, and one that does says what is missing.
async fn made(cluster: &Cluster, namespace: &str, name: &str, limit: Duration) -> Option<String> {
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client.clone(), namespace);
    let spec = TokenRequestSpec {
        audiences: Some(vec![AUDIENCE.to_owned()]),
        expiration_seconds: Some(TOKEN_SECONDS),
        ..TokenRequestSpec::default()
    };
    let (account, params) = (admin_client_of(name), PostParams::default());
    let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
    let made = accounts.create_token_request(&account, &params, &request);
    let made = tokio::time::timeout(limit, made).await.ok()?.ok()?;
    made.status?.token
}

/// The operator's Service.
pub(crate) async fn service(cluster: &Cluster, limit: Duration) -> Result<Service, Failure> {
    let params = ListParams::default().labels(LABELS);
    let api: Api<Service> = Api::all(cluster.client.clone());
    let nobody = |why: String| {
        Failure::new(Exit::Unknown, "no operator was found")
            .at(cluster.address.clone())
            .because(why)
            .code(FailureCode::NoOperator)
            .hint("--operator names it as NAMESPACE/NAME or by address; flyball explain FLY-902")
    };
    let list = match tokio::time::timeout(limit, api.list(&params)).await {
        Ok(Ok(list)) => list,
        Ok(Err(kube::Error::Api(status))) => return Err(nobody(status.message.clone())),
        Ok(Err(error)) => return Err(nobody(innermost(&error))),
        Err(_) => return Err(nobody(format!("no answer within {}", duration(limit)))),
    };
    let admin = |service: &Service| {
        let ports = service.spec.as_ref().and_then(|spec| spec.ports.as_deref());
        ports.unwrap_or_default().iter().any(|port| port.name.as_deref() == Some("admin"))
    };
    list.items
        .into_iter()
        .find(admin)
        .ok_or_else(|| nobody(format!("no Service has the labels {LABELS} and a port `admin`")))
}

/// The API server wraps its words in a Status; the operator just says them.
fn words(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Refusal {
        message: String,
    }
    match serde_json::from_slice::<Refusal>(body) {
        Ok(status) => status.message,
        Err(_) => String::from_utf8_lossy(body).trim().to_owned(),
    }
}

fn problem_text(status: u16, words: &str) -> String {
    match (status, words.lines().next().unwrap_or_default()) {
        (404 | 405, _) => {
            format!("HTTP {status}: not an operator's admin address, or an older one")
        }
        // No token was made, and the operator asks for one.
        (401, words) => format!(
            "HTTP 401, {words}; you need permission to create a token of the service account \
             NAME-admin-client, which the chart grants to rbac.adminClients"
        ),
        (_, "") => format!("HTTP {status}"),
        (_, words) => format!("HTTP {status}, {words}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_is_named_by_address_or_by_service() {
        let service =
            Place::Service { namespace: "flyball-system".into(), name: "flyball-operator".into() };
        assert_eq!(place("flyball-system/flyball-operator"), Ok(service));
        let address = Place::Address("http://127.0.0.1:9090".parse().unwrap());
        assert_eq!(place("http://127.0.0.1:9090"), Ok(address));
        for wrong in ["127.0.0.1:9090", "flyball-operator", "a/b/c", "/b", "A/b"] {
            assert!(place(wrong).is_err(), "{wrong}");
        }
    }
}
