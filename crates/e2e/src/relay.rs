//! A TCP relay that can be cut: what a network does between two machines, on one.

use anyhow::Result;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// A relay to one address. Dropped, it closes every connection.
pub struct Relay {
    /// Where it listens.
    pub address: SocketAddr,
    open: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Relay {
    /// Relays to this address.
    pub async fn to(upstream: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (open, opened) = watch::channel(true);
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(connection(client, upstream, opened.clone()));
                while connections.try_join_next().is_some() {}
            }
        });
        Ok(Self { address, open, task })
    }

    /// From now on nothing goes through. Connections stay: as on a real network, nobody is told, and
    /// what is sent meanwhile arrives once the relay is whole again.
    pub fn cut(&self) {
        self.open.send_replace(false);
    }

    /// Everything goes through again.
    pub fn mend(&self) {
        self.open.send_replace(true);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn connection(client: TcpStream, upstream: SocketAddr, mut open: watch::Receiver<bool>) {
    if open.wait_for(|open| *open).await.is_err() {
        return;
    }
    let Ok(server) = TcpStream::connect(upstream).await else { return };
    let (client_reads, client_writes) = client.into_split();
    let (server_reads, server_writes) = server.into_split();
    let asks = copy(client_reads, server_writes, open.clone());
    let answers = copy(server_reads, client_writes, open);
    // Whoever hangs up ends its own direction; the other ends by itself.
    let _ = tokio::join!(asks, answers);
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut open: watch::Receiver<bool>,
) -> Result<()> {
    let mut piece = vec![0; 16 << 10];
    loop {
        let count = from.read(&mut piece).await?;
        open.wait_for(|open| *open).await?;
        if count == 0 {
            to.shutdown().await?;
            return Ok(());
        }
        to.write_all(&piece[..count]).await?;
    }
}
