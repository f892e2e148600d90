//! Connections to engines: made, kept for the next request, and cut when a client hangs up.

use super::outgoing::Outgoing;
use flyball_fleet::FleetEndpoint;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;

/// How long an idle connection is kept. vLLM and llama-server close theirs after five seconds, and
/// a request that meets the closing is sent twice.
const IDLE: Duration = Duration::from_secs(4);

/// Idle connections kept by one thread for one engine, and for all.
const IDLE_PER_ENGINE: usize = 128;
const IDLE_IN_ALL: usize = 8_192;

/// A connection to an engine that carries one request at a time. Dropped, it is cut: that is how
/// an engine learns that nobody waits any more.
#[derive(Debug)]
pub(crate) struct Connection {
    sender: http1::SendRequest<Outgoing>,
    task: Option<AbortHandle>,
    slot: u32,
    /// Whether it carried a request before.
    pub(crate) reused: bool,
}

/// Connections without a request, of one thread.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    idle: Mutex<Idle>,
}

#[derive(Debug, Default)]
struct Idle {
    by_slot: BTreeMap<u32, Vec<(Instant, Connection)>>,
    count: usize,
}

impl Connection {
    /// A new one.
    pub(crate) async fn open(endpoint: &Arc<FleetEndpoint>, within: Duration) -> io::Result<Self> {
        let connecting = tokio::time::timeout(within, TcpStream::connect(endpoint.address));
        let stream = connecting.await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::Builder::new()
            .handshake(TokioIo::new(stream))
            .await
            .map_err(io::Error::other)?;
        let task = tokio::spawn(async move {
            // Errors reach the request through its sender.
            let _ = connection.await;
        });
        let task = Some(task.abort_handle());
        Ok(Self { sender, task, slot: endpoint.slot, reused: false })
    }

    /// Sends a request and waits for the head of its answer.
    pub(crate) async fn send(
        &mut self,
        request: Request<Outgoing>,
    ) -> hyper::Result<Response<Incoming>> {
        self.sender.send_request(request).await
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

impl Pool {
    /// A connection that is idle and, as far as known, open.
    pub(crate) fn take(&self, slot: u32, now: Instant) -> Option<Connection> {
        let mut idle = self.lock();
        let idle = &mut *idle;
        let list = idle.by_slot.get_mut(&slot)?;
        // The newest first: the others may then grow old and go.
        while let Some((since, mut connection)) = list.pop() {
            idle.count -= 1;
            if now.saturating_duration_since(since) < IDLE && connection.sender.is_ready() {
                connection.reused = true;
                return Some(connection);
            }
        }
        None
    }

    /// Keeps a connection whose answer has been read to its end, which came at this moment.
    pub(crate) fn put(&self, connection: Connection, now: Instant) {
        if connection.sender.is_closed() {
            return;
        }
        let mut idle = self.lock();
        if idle.count >= IDLE_IN_ALL {
            return;
        }
        let list = idle.by_slot.entry(connection.slot).or_default();
        if list.len() < IDLE_PER_ENGINE {
            list.push((now, connection));
            idle.count += 1;
        }
    }

    /// Closes what has been idle for too long.
    pub(crate) fn sweep(&self) {
        let mut idle = self.lock();
        let mut count = 0;
        idle.by_slot.retain(|_, list| {
            list.retain(|(since, _)| since.elapsed() < IDLE);
            count += list.len();
            !list.is_empty()
        });
        idle.count = count;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
