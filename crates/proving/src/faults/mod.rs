//! The fault proxy: a TCP relay that breaks what it relays, byte for byte as a script says.
//!
//! The script is the simulator's ([`flyball_simulator::network`]), so that a fault that was found in
//! a virtual cluster can be played on real sockets. Connections are counted as they are accepted;
//! their number, the seed and the time since the start decide what happens to them. Start at
//! [`Proxy`].

mod relay;

use crate::sockets;
use flyball_simulator::network::Script;
use flyball_simulator::seconds::Seconds;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

/// What a proxy did so far. A run whose fault hit nothing proves nothing.
#[derive(Debug, Default)]
pub struct FaultCounts {
    /// Connections.
    pub connections: AtomicU64,
    /// Connections that had something coming.
    pub hit: AtomicU64,
    /// Steps other than writing that were taken: resets, closings, stalls, waits.
    pub steps: AtomicU64,
}

/// A relay to one address.
pub struct Proxy {
    listener: TcpListener,
    upstream: SocketAddr,
    script: Script,
    counts: Arc<FaultCounts>,
}

impl Proxy {
    /// Listens; nothing is relayed before [`Proxy::run`].
    pub fn bind(listen: SocketAddr, upstream: SocketAddr, script: Script) -> io::Result<Self> {
        let listener = sockets::listen(listen)?;
        Ok(Self { listener, upstream, script, counts: Arc::default() })
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// What it did so far.
    pub fn counts(&self) -> Arc<FaultCounts> {
        Arc::clone(&self.counts)
    }

    /// Relays until it is dropped.
    pub async fn run(self) -> io::Result<()> {
        let started = Instant::now();
        loop {
            let (client, _) = self.listener.accept().await?;
            client.set_nodelay(true)?;
            let number = self.counts.connections.fetch_add(1, Ordering::Relaxed);
            let at = Seconds(started.elapsed().as_secs_f64());
            let fate = self.script.fate(number, at);
            if !fate.is_harmless() {
                self.counts.hit.fetch_add(1, Ordering::Relaxed);
            }
            if fate.is_refused() {
                self.counts.steps.fetch_add(1, Ordering::Relaxed);
                reset(&client)?;
                continue;
            }
            let (upstream, counts) = (self.upstream, Arc::clone(&self.counts));
            tokio::spawn(async move {
                if fate.hangs() {
                    counts.steps.fetch_add(1, Ordering::Relaxed);
                    hold(client).await;
                } else {
                    // A side that goes away ends its connection and nothing else.
                    let _ = relay::run(client, upstream, &fate, &counts).await;
                }
            });
        }
    }
}

/// Longest time that something that hangs is kept. Whoever waits longer waits for ever.
const MOST_HELD: Duration = Duration::from_secs(600);

/// Reads nothing and says nothing, until the client is gone.
async fn hold(client: TcpStream) {
    let gone = async {
        let mut byte = [0; 1];
        // What the client has sent stays unread, so that only its end is noticed.
        while let Ok(count) = client.peek(&mut byte).await {
            if count == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let _ = tokio::time::timeout(MOST_HELD, gone).await;
}

/// The next close is a reset.
fn reset(stream: &TcpStream) -> io::Result<()> {
    socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO))
}
