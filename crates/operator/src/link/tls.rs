//! Certificates, read again when their files change.

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use tokio_rustls::TlsAcceptor;

/// PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The chain of this side, its own first.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Who signs the certificates of gateways. With it each must show one.
    pub ca: Option<PathBuf>,
}

/// What opens encrypted connections, as the files were when they were last good.
pub(super) struct Door {
    files: Files,
    changed: Vec<Option<SystemTime>>,
    acceptor: TlsAcceptor,
}

impl Door {
    /// Of these files, which must be good now.
    pub(super) fn open(files: Files) -> io::Result<Self> {
        let (changed, acceptor) = (changed(&files), acceptor(&files)?);
        Ok(Self { files, changed, acceptor })
    }

    /// For the next connection. Files that were changed and are no good do not close the door: what was
    /// read before holds.
    pub(super) fn acceptor(&mut self) -> TlsAcceptor {
        let now = changed(&self.files);
        if now != self.changed {
            match acceptor(&self.files) {
                Ok(new) => {
                    self.acceptor = new;
                    tracing::info!("certificates reloaded");
                }
                Err(error) => tracing::error!(
                    %error,
                    "new certificates are invalid; keeping the previous ones"
                ),
            }
            self.changed = now;
        }
        self.acceptor.clone()
    }
}

fn changed(files: &Files) -> Vec<Option<SystemTime>> {
    let time = |path: &Path| std::fs::metadata(path).and_then(|file| file.modified()).ok();
    let paths = [Some(&files.certificate), Some(&files.key), files.ca.as_ref()];
    paths.into_iter().flatten().map(|path| time(path)).collect()
}

fn acceptor(files: &Files) -> io::Result<TlsAcceptor> {
    let named = |path: &Path, error: &dyn std::fmt::Display| {
        io::Error::other(format!("{}: {error}", path.display()))
    };
    let pem = |path: &Path| {
        CertificateDer::pem_file_iter(path)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| named(path, &error))
    };
    let chain = pem(&files.certificate)?;
    let key =
        PrivateKeyDer::from_pem_file(&files.key).map_err(|error| named(&files.key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    let config = match &files.ca {
        None => config.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for root in pem(path)? {
                roots.add(root).map_err(|error| named(path, &error))?;
            }
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            config.with_client_cert_verifier(verifier.map_err(|error| named(path, &error))?)
        }
    };
    let mut config =
        config.with_single_cert(chain, key).map_err(|error| named(&files.certificate, &error))?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
