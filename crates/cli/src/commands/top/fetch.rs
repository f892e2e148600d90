//! Asks gateways for their state.

use std::time::Duration;

use flyball_admin::TOKEN_HEADER;
use flyball_gateway::state::{GatewayStateView, VERSION};
use kube::Client;
use kube::client::Body;
use serde::Deserialize;

use super::answer::{Asked, Top};
use crate::cluster::{anonymous, innermost};
use crate::output::{Exit, Failure, FailureCode, duration};

/// The gateways to ask.
pub(super) struct Gateways {
    all: Vec<(String, Client)>,
    /// What is shown to each.
    token: Option<String>,
    limit: Duration,
}

/// What every form of the page has.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

impl Gateways {
    pub(super) async fn new(
        urls: &[http::Uri],
        token: Option<String>,
        limit: Duration,
    ) -> Result<Gateways, Failure> {
        let mut all = Vec::with_capacity(urls.len());
        for url in urls {
            if url.scheme().is_none() || url.host().is_none() {
                return Err(Failure::new(Exit::Usage, "this is not the address of a gateway")
                    .at(url.to_string())
                    .hint("write it as http://127.0.0.1:9090: the admin address of its settings"));
            }
            let name = url.to_string().trim_end_matches('/').to_owned();
            all.push((name, anonymous(url.clone(), limit).await?));
        }
        Ok(Gateways { all, token, limit })
    }

    /// Asks all of them at once. Fails only if none answers.
    pub(super) async fn fetch(&self) -> Result<Top, Failure> {
        let questions = self.all.iter().map(|(_, client)| async {
            tokio::time::timeout(self.limit, ask(client, self.token.as_deref()))
                .await
                .unwrap_or_else(|_| Err(format!("no answer within {}", duration(self.limit))))
        });
        let answers = futures::future::join_all(questions).await;
        let mut sum = GatewayStateView::default();
        let mut queried = Vec::with_capacity(self.all.len());
        for ((url, _), answer) in self.all.iter().zip(answers) {
            let problem = match answer {
                Ok(state) => {
                    sum.join(state);
                    None
                }
                Err(problem) => Some(problem),
            };
            queried.push(Asked { url: url.clone(), problem });
        }
        if sum.gateways == 0 {
            return Err(nobody(&queried));
        }
        Ok(Top::new(queried, sum))
    }
}

fn nobody(queried: &[Asked]) -> Failure {
    let problem =
        |one: &Asked| format!("{}: {}", one.url, one.problem.as_deref().unwrap_or_default());
    let failure = Failure::new(Exit::Unknown, "cannot reach any gateway's admin API")
        .code(FailureCode::GatewayState)
        .hint("--gateway names the admin address of a gateway; flyball explain FLY-806");
    match queried {
        [one] => failure.at(one.url.clone()).because(one.problem.clone().unwrap_or_default()),
        _ => failure.problems(queried.iter().map(problem).collect()),
    }
}

async fn ask(client: &Client, token: Option<&str>) -> Result<GatewayStateView, String> {
    let request = http::Request::get("/state");
    let request = match token {
        Some(token) => request.header(TOKEN_HEADER, token),
        None => request,
    };
    let request = request.body(Body::empty());
    let request = request.map_err(|_| "its address makes no sense".to_owned())?;
    let response = client.send(request).await.map_err(|error| innermost(&error))?;
    let status = response.status().as_u16();
    let body = response.into_body().collect_bytes().await.map_err(|error| innermost(&error))?;
    match status {
        200 => read(&body),
        401 => {
            Err("it requires a token: set --token-file, or connect from its own machine (kubectl \
                 port-forward)"
                .to_owned())
        }
        403 => Err("it refuses the token".to_owned()),
        404 => Err("it has no /state: not the admin address, or an older gateway".to_owned()),
        _ => Err(format!("it answers with HTTP {status}")),
    }
}

fn read(body: &[u8]) -> Result<GatewayStateView, String> {
    let problem = serde_json::from_slice::<Versioned>(body);
    let other = |_| "what it answers is not the state of a gateway".to_owned();
    let Versioned { version } = problem.map_err(other)?;
    if version != VERSION {
        return Err(format!(
            "it writes version {version} of its state, this command reads version {VERSION}"
        ));
    }
    serde_json::from_slice(body).map_err(other)
}

#[cfg(test)]
#[test]
fn other_pages_and_other_versions_are_told_apart() {
    let problem = |text: &str| read(text.as_bytes()).expect_err("refused");
    assert!(problem("hello").contains("not the state of a gateway"));
    assert!(problem("{\"version\": 1}").contains("not the state of a gateway"));
    assert!(problem("{\"version\": 2}").contains("version 2"), "{}", problem("{\"version\": 2}"));
}
