//! The external metrics API of Kubernetes for the real HPA: how many replicas somebody asks for, or how many requests
//! engines work on.
//!
//! Either llm-d's loop on latency: in its guide, recording rules reckon that number and KEDA hands it to the
//! HPA. Here the same formula (the simulator's, which is tested against the guide's) is fed from the real
//! Prometheus and from the Deployment's own status. Or Flyball's operator, as its page of metrics says, which
//! in a cluster Prometheus and its adapter would hand on. `signal` asks, `api` answers.

mod api;
mod signal;

use anyhow::{Context, Result};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::pki_types::PrivatePkcs8KeyDer;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Whom it asks, and where it answers.
#[derive(Clone, Debug, clap::Parser)]
pub struct ExternalPlan {
    /// Where the API server reaches it, over TLS
    #[arg(long)]
    pub listen: SocketAddr,
    /// Who asks for replicas
    #[command(subcommand)]
    pub source: ExternalSource,
}

/// Who asks for replicas.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum ExternalSource {
    /// llm-d's loop on latency, as `wanted-replicas`, and what engines work on, as `running-requests`
    Slo(Slo),
    /// Flyball's operator, as `flyball_model_recommended_replicas`
    Recommended {
        /// Where its metrics are
        #[arg(long)]
        operator: SocketAddr,
    },
}

/// What llm-d's loop needs.
#[derive(Clone, Debug, clap::Args)]
pub struct Slo {
    /// Prometheus
    #[arg(long)]
    pub prometheus: SocketAddr,
    /// An API server without authentication, such as `kubectl proxy`
    #[arg(long)]
    pub api: SocketAddr,
    /// The Deployment that is scaled
    #[arg(long)]
    pub deployment: String,
    /// What each namespace's model aims at: milliseconds to the first token and between tokens
    #[arg(long, value_name = "NAMESPACE=FIRST/BETWEEN", required = true, value_parser = objectives)]
    pub objectives: Vec<(String, ExternalObjectives)>,
}

/// What one model aims at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExternalObjectives {
    /// Milliseconds to the first token.
    pub first_token_ms: f64,
    /// Milliseconds between tokens.
    pub between_tokens_ms: f64,
}

fn objectives(text: &str) -> Result<(String, ExternalObjectives), String> {
    let read = || {
        let (namespace, times) = text.split_once('=')?;
        let (first, between) = times.split_once('/')?;
        let (first_token_ms, between_tokens_ms) = (first.parse().ok()?, between.parse().ok()?);
        Some((namespace.to_owned(), ExternalObjectives { first_token_ms, between_tokens_ms }))
    };
    read().ok_or_else(|| format!("{text:?} is not like ramp=3000/100"))
}

/// Requests that the engines of a namespace work on.
const RUNNING: &str = "running-requests";

impl ExternalSource {
    /// The metrics' names, as an HPA asks for them.
    const fn metrics(&self) -> &'static [&'static str] {
        match self {
            Self::Slo(_) => &["wanted-replicas", RUNNING],
            Self::Recommended { .. } => &[signal::RECOMMENDED],
        }
    }
}

/// Answers until it is ended.
pub async fn run(plan: ExternalPlan) -> Result<()> {
    let tls = acceptor()?;
    let listener = TcpListener::bind(plan.listen).await.context("listening for the API server")?;
    let plan = Arc::new(plan);
    loop {
        let (connection, _) = listener.accept().await?;
        let (tls, plan) = (tls.clone(), Arc::clone(&plan));
        tokio::spawn(async move {
            let Ok(secured) = tls.accept(connection).await else { return };
            let service = service_fn(|request| api::answer(&plan, request));
            let connection = hyper::server::conn::http1::Builder::new();
            // The API server hangs up as it likes.
            drop(connection.serve_connection(TokioIo::new(secured), service).await);
        });
    }
}

/// A certificate of its own making, which the APIService is told not to check: both ends are ours.
fn acceptor() -> Result<TlsAcceptor> {
    let made = rcgen::generate_simple_self_signed(vec!["external".to_owned()])?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let config = rustls::ServerConfig::builder_with_provider(
        rustls::crypto::ring::default_provider().into(),
    )
    .with_safe_default_protocol_versions()?
    .with_no_client_auth()
    .with_single_cert(vec![made.cert.der().clone()], key.into())?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
