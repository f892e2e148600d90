//! Asks the cluster. All effects of `flyball check` are here.
//!
//! First one question: does the API server answer? If not, nothing else is asked, for every
//! answer would be the same. Then all others at once. Each has one time limit, however many
//! requests it needs, so that the whole takes about two limits and never hangs. Nodes are the
//! exception: they are read in pages with a limit for each, and only the fields that are looked at
//! are kept, so ten thousand of them are fine.

mod access;
mod nodes;
mod parts;
mod prometheus;
mod server;

use std::time::Duration;

use kube::core::params::ListParams;
use kube::{Client, core::Request};
use serde::de::DeserializeOwned;

use super::Selection;
use super::codes::Code;
use super::facts::{Facts, Found};
use crate::cluster::{Cluster, innermost};

/// What to ask for, and how patiently.
pub(super) struct Questions<'a> {
    pub(super) selection: &'a Selection,
    /// For one request.
    pub(super) limit: Duration,
    pub(super) namespace: Option<&'a str>,
    pub(super) prometheus: Option<&'a http::Uri>,
}

pub(super) async fn gather(cluster: &Cluster, questions: &Questions<'_>) -> Facts {
    let mut facts = Facts::unasked(cluster.address.clone());
    facts.namespace = questions.namespace.map(str::to_owned);
    let (client, limit) = (&cluster.client, questions.limit);
    facts.server = capped(limit, server::reach(client, limit)).await;
    let reached = matches!(&facts.server, Found::Known(_) | Found::Denied(_));
    if !reached {
        return facts;
    }
    let runs = |code| questions.selection.runs(code);
    let (clock, access, parts, prometheus, fleet) = futures::join!(
        when(runs(Code::ClockSkew), server::clock(client, limit)),
        access::ask(client, questions),
        parts::find(client, questions),
        when(runs(Code::Prometheus), prometheus::find(client, questions)),
        when(runs_capacity(questions.selection), nodes::list(client, limit)),
    );
    facts.clock = clock;
    facts.access = access;
    (facts.kueue, facts.jobset, facts.metrics) = parts;
    facts.prometheus = prometheus;
    facts.fleet = fleet;
    facts
}

fn runs_capacity(selection: &Selection) -> bool {
    [Code::Accelerators, Code::AcceleratorLabels, Code::PoolLabels, Code::AcceleratorsUsable]
        .into_iter()
        .any(|code| selection.runs(code))
}

async fn when<T>(is_selected: bool, question: impl Future<Output = Found<T>>) -> Found<T> {
    if is_selected { question.await } else { Found::Skipped }
}

/// Several requests that together answer one question.
async fn capped<T>(limit: Duration, question: impl Future<Output = Found<T>>) -> Found<T> {
    tokio::time::timeout(limit, question).await.unwrap_or(Found::TimedOut(limit))
}

/// One request with its time limit.
async fn within<T>(
    limit: Duration,
    question: impl Future<Output = Result<T, kube::Error>>,
) -> Found<T> {
    match tokio::time::timeout(limit, question).await {
        Ok(Ok(value)) => Found::Known(value),
        Ok(Err(error)) => missed(&error),
        Err(_) => Found::TimedOut(limit),
    }
}

fn missed<T>(error: &kube::Error) -> Found<T> {
    match error {
        kube::Error::Api(status) => match status.code {
            // Who we are is in doubt, so this says nothing about what we may do.
            401 => Found::Failed("credentials are not accepted (HTTP 401)".to_owned()),
            403 => Found::Denied(refusal(&status.message)),
            404 => Found::Absent,
            _ => Found::Failed(problem_text(status.code, &status.message)),
        },
        other => Found::Failed(innermost(other)),
    }
}

/// The server names the user at length; the part that helps is at the end.
fn refusal(message: &str) -> String {
    message.split_once(" is forbidden: ").map_or(message, |(_, why)| why).to_owned()
}

/// `503, no endpoints available`: a code always, words if there are any, on one line.
fn problem_text(code: u16, message: &str) -> String {
    match message.lines().next().map(str::trim).unwrap_or_default() {
        "" => format!("HTTP {code}"),
        words => format!("HTTP {code}, {}", words.trim_matches('"')),
    }
}

/// Whether this error of the API server says for certain that nobody stands behind a service.
/// Every other 429 or 5xx may be a moment of overload somewhere on the way, which tells nothing.
fn no_one_there(code: u16, message: &str) -> bool {
    code == 503 && message.contains("no endpoints")
}

/// How many objects one page holds; the API server's own clients use the same.
const PAGE: u32 = 500;

/// Reads a list page by page, each with its own limit, and hands every page to `take`.
async fn pages<T: DeserializeOwned>(
    client: &Client,
    limit: Duration,
    path: &str,
    mut params: ListParams,
    mut take: impl FnMut(Vec<T>),
) -> Found<()> {
    params.limit = Some(PAGE);
    loop {
        let request = match Request::new(path).list(&params) {
            Ok(request) => request,
            Err(error) => return Found::Failed(error.to_string()),
        };
        let page: ListPage<T> = match within(limit, client.request(request)).await {
            Found::Known(page) => page,
            other => return other.missed().unwrap_or(Found::Skipped),
        };
        take(page.items);
        match page.metadata.next {
            Some(token) if !token.is_empty() => params.continue_token = Some(token),
            _ => return Found::Known(()),
        }
    }
}

#[derive(serde::Deserialize)]
struct ListPage<T> {
    #[serde(default)]
    metadata: ListMeta,
    items: Vec<T>,
}

#[derive(Default, serde::Deserialize)]
struct ListMeta {
    #[serde(rename = "continue")]
    next: Option<String>,
}
