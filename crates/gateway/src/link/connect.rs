//! Connections to the operator, plain or encrypted. Certificates and tokens are read each time, so that
//! those that were changed are used.

use crate::settings::{Operator, OperatorTls};
use http::Uri;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::io;
use std::path::Path;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Bytes of a token file. Tokens of service accounts have about 1,200.
const TOKEN_BYTES: u64 = 16 << 10;

/// A connection.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// Opens a connection.
pub(super) async fn connect(settings: &Operator) -> io::Result<Box<dyn Stream>> {
    let uri: Uri = settings.address.parse().map_err(io::Error::other)?;
    let host = uri.host().unwrap_or_default();
    // An IPv6 address stands in brackets, which are not part of it.
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let encrypted = uri.scheme_str() == Some("https");
    let port = uri.port_u16().unwrap_or(if encrypted { 443 } else { 80 });
    let stream = TcpStream::connect((host, port)).await?;
    // A wake should not wait for more to send.
    stream.set_nodelay(true)?;
    let Some(tls) = settings.tls.as_ref().filter(|_| encrypted) else {
        return Ok(Box::new(stream));
    };
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let connector = TlsConnector::from(Arc::new(config(tls)?));
    Ok(Box::new(connector.connect(name, stream).await?))
}

/// The token to show, if the settings name one.
pub(super) fn token(settings: &Operator) -> io::Result<Option<String>> {
    let Some(path) = &settings.token_file else { return Ok(None) };
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|error| named(path, &error))?;
    io::Read::read_to_string(&mut io::Read::take(file, TOKEN_BYTES), &mut text)
        .map_err(|error| named(path, &error))?;
    Ok(Some(text.trim().to_owned()))
}

fn config(tls: &OperatorTls) -> io::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for root in pem(&tls.ca)? {
        roots.add(root).map_err(|error| named(&tls.ca, &error))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots);
    let mut config = match (&tls.certificate, &tls.key) {
        (Some(certificate), Some(key)) => {
            let chain = pem(certificate)?;
            let key = PrivateKeyDer::from_pem_file(key).map_err(|error| named(key, &error))?;
            let config = config.with_client_auth_cert(chain, key);
            config.map_err(|error| named(certificate, &error))?
        }
        _ => config.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

fn pem(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| named(path, &error))
}

fn named(path: &Path, error: &dyn std::fmt::Display) -> io::Error {
    io::Error::other(format!("{}: {error}", path.display()))
}
