//! Fetches a key set: from the address of an issuer, from a file, or from the API server.
//!
//! All of it has one short time and a bound of bytes, and no redirect is followed: the address in the settings is what was
//! trusted.

use super::problem::FetchProblem;
use super::sources::FetchedKeySet;
use crate::settings::IssuerSettings;
use bytes::Bytes;
use flyball_identity::MAX_JWKS_BYTES;
use http::{Request, StatusCode, Uri, header};
use http_body::Body;
use http_body_util::{BodyExt as _, Empty, LengthLimitError, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use kube::Client;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::error::Error;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// For all of it, from looking up a name to the last byte.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Bytes of a head that are read.
const HEAD_BYTES: usize = 64 << 10;

/// Where the API server has its key set, and who it is.
const CLUSTER_KEYS: &str = "/openid/v1/jwks";
const CLUSTER_NAME: &str = "/.well-known/openid-configuration";

/// Bytes of an issuer, as a Tenant bounds them.
const ISSUER_BYTES: usize = 512;

/// Fetches the key set of an issuer. The client is for the API server; others need none.
pub(crate) async fn fetch(
    settings: &IssuerSettings,
    cluster: Option<&Client>,
) -> Result<FetchedKeySet, FetchProblem> {
    let fetching = async {
        if let Some(url) = &settings.jwks_url {
            let body = from_url(url, settings.ca.clone()).await?;
            return Ok(FetchedKeySet { issuer: None, body });
        }
        if let Some(file) = &settings.jwks_file {
            let body = from_file(file.clone()).await?;
            return Ok(FetchedKeySet { issuer: None, body });
        }
        let client = cluster.ok_or_else(|| FetchProblem::unreachable("no API server is known"))?;
        let issuer = match &settings.issuer {
            Some(_) => None,
            None => Some(named(&from_cluster(client, CLUSTER_NAME).await?)?),
        };
        Ok(FetchedKeySet { issuer, body: from_cluster(client, CLUSTER_KEYS).await? })
    };
    tokio::time::timeout(TIMEOUT, fetching).await.unwrap_or(Err(FetchProblem::Late))
}

async fn from_cluster(client: &Client, path: &str) -> Result<Bytes, FetchProblem> {
    let request = Request::get(path).body(kube::client::Body::from(Vec::new()));
    let request = request.map_err(FetchProblem::unreachable)?;
    let answer = client.send(request).await.map_err(FetchProblem::unreachable)?;
    whole(answer.status(), answer.into_body()).await
}

/// The issuer that a discovery document names.
fn named(document: &[u8]) -> Result<String, FetchProblem> {
    let document: serde_json::Value =
        serde_json::from_slice(document).map_err(|_| FetchProblem::Unnamed)?;
    let issuer = document["issuer"].as_str().filter(|one| (1..=ISSUER_BYTES).contains(&one.len()));
    issuer.map(str::to_owned).ok_or(FetchProblem::Unnamed)
}

async fn from_file(file: PathBuf) -> Result<Bytes, FetchProblem> {
    let reading = move || {
        let mut bytes = Vec::new();
        File::open(file)?.take(MAX_JWKS_BYTES as u64 + 1).read_to_end(&mut bytes)?;
        Ok::<_, std::io::Error>(Bytes::from(bytes))
    };
    let read = tokio::task::spawn_blocking(reading).await.map_err(FetchProblem::unreachable)?;
    read.map_err(|error| FetchProblem::File(error.to_string()))
}

async fn from_url(url: &str, ca: Option<PathBuf>) -> Result<Bytes, FetchProblem> {
    let uri: Uri = url.parse().map_err(FetchProblem::unreachable)?;
    // An IPv6 address stands in brackets, which are not part of it.
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let encrypted = uri.scheme_str() == Some("https");
    let port = uri.port_u16().unwrap_or(if encrypted { 443 } else { 80 });
    let stream = TcpStream::connect((host, port)).await.map_err(FetchProblem::unreachable)?;
    if !encrypted {
        return ask(&uri, stream).await;
    }
    let name = ServerName::try_from(host.to_owned()).map_err(FetchProblem::unreachable)?;
    // Certificates are read each time, so that those that were changed are used.
    let config = tokio::task::spawn_blocking(move || config(ca.as_deref())).await;
    let connector = TlsConnector::from(Arc::new(config.map_err(FetchProblem::unreachable)??));
    let stream = connector.connect(name, stream).await.map_err(FetchProblem::unreachable)?;
    ask(&uri, stream).await
}

async fn ask<S>(uri: &Uri, stream: S) -> Result<Bytes, FetchProblem>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut client = http1::Builder::new();
    client.max_buf_size(HEAD_BYTES);
    let (mut send, line) =
        client.handshake(TokioIo::new(stream)).await.map_err(FetchProblem::unreachable)?;
    let host = uri.authority().map_or("", |authority| authority.as_str());
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let request = Request::get(path)
        .header(header::HOST, host)
        .header(header::ACCEPT, "application/json")
        .header(header::CONNECTION, "close")
        .body(Empty::<Bytes>::new())
        .map_err(FetchProblem::unreachable)?;
    let exchange = async {
        let answer = send.send_request(request).await.map_err(FetchProblem::unreachable)?;
        whole(answer.status(), answer.into_body()).await
    };
    let (mut exchange, line) = (pin!(exchange), pin!(line));
    tokio::select! {
        answer = &mut exchange => answer,
        // What has arrived is still handed over after the connection has ended.
        _ = line => exchange.await,
    }
}

/// A body that is neither too long nor broken off.
async fn whole<B>(status: StatusCode, body: B) -> Result<Bytes, FetchProblem>
where
    B: Body,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    if status != StatusCode::OK {
        return Err(FetchProblem::Status(status.as_u16()));
    }
    let body = Limited::new(body, MAX_JWKS_BYTES).collect().await.map_err(|error| {
        if error.is::<LengthLimitError>() {
            FetchProblem::Long
        } else {
            FetchProblem::unreachable(error)
        }
    })?;
    Ok(body.to_bytes())
}

fn config(ca: Option<&Path>) -> Result<ClientConfig, FetchProblem> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(FetchProblem::unreachable)?
        .with_root_certificates(roots(ca)?)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn roots(ca: Option<&Path>) -> Result<RootCertStore, FetchProblem> {
    let found = match ca {
        Some(ca) => CertificateDer::pem_file_iter(ca)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| FetchProblem::File(format!("{}: {error}", ca.display())))?,
        // What of them cannot be read is not there; the rest may do.
        None => rustls_native_certs::load_native_certs().certs,
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found);
    if roots.is_empty() { Err(FetchProblem::NoRoots) } else { Ok(roots) }
}
