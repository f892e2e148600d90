//! Certificates.

use crate::settings::Tls;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// What opens encrypted connections, with HTTP/2 preferred.
pub(crate) fn acceptor(tls: &Tls) -> io::Result<TlsAcceptor> {
    let named = |path: &std::path::Path, error: &dyn std::fmt::Display| {
        io::Error::other(format!("{}: {error}", path.display()))
    };
    let chain = CertificateDer::pem_file_iter(&tls.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| named(&tls.certificate, &error))?;
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(|error| named(&tls.key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| named(&tls.certificate, &error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
