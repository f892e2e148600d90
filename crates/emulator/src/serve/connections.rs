//! Accepting connections, and letting go of them.

use super::Shared;
use super::routes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

/// Connections at once. One that comes above that is closed.
const MOST_CONNECTIONS: usize = 32_768;

/// After an error of accepting (no more file descriptors, mostly), before the next try.
const PAUSE: Duration = Duration::from_millis(50);

/// Whether an engine takes connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Open,
    /// No new ones; those that are open end after the request under way.
    Draining,
}

/// Accepts until draining, then waits for all connections to end. Dropping it closes them at once.
pub(crate) async fn accept(
    listener: TcpListener,
    shared: Arc<Shared>,
    mut phase: watch::Receiver<Phase>,
) {
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if open.len() < MOST_CONNECTIONS => {
                    open.spawn(connection(stream, Arc::clone(&shared), phase.clone()));
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(PAUSE).await;
                }
            },
            Some(_) = open.join_next() => {}
            _ = phase.changed() => break,
        }
    }
    drop(listener);
    while open.join_next().await.is_some() {}
}

async fn connection(stream: TcpStream, shared: Arc<Shared>, mut phase: watch::Receiver<Phase>) {
    // A token is smaller than a packet and must not wait for the next one.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let close = Arc::new(Notify::new());
    let service = service_fn(|request| {
        let (shared, close) = (Arc::clone(&shared), Arc::clone(&close));
        async move { Ok::<_, std::convert::Infallible>(routes::route(&shared, close, request).await) }
    });
    let mut served = pin!(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    loop {
        tokio::select! {
            result = served.as_mut() => {
                if let Err(error) = result {
                    tracing::debug!(%error, "connection ended");
                }
                return;
            }
            () = close.notified() => served.as_mut().graceful_shutdown(),
            Ok(()) = phase.changed() => served.as_mut().graceful_shutdown(),
        }
    }
}
