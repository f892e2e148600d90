//! Load, upstream and fault proxy with each other, and the gateway with real engines, over loopback.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
#![expect(clippy::print_stdout, reason = "some tests say what they measured")]

mod callers;
mod continued;
mod fates;
mod hearing;
mod load;
mod operator;
mod preempted;
mod proven;
mod readings;
mod real_engines;

use flyball_proving::upstream::{Upstream, serve};
use std::net::SocketAddr;
use std::time::Duration;

/// A bare upstream whose streams have so many chunks, on a port of its own.
async fn upstream(chunks: u32) -> SocketAddr {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let pace = Duration::ZERO;
    let model = "mock".to_owned();
    tokio::spawn(serve(Upstream { listen: vec![address], model, chunks, pace }));
    // It listens as soon as its task has run once.
    while tokio::net::TcpStream::connect(address).await.is_err() {
        tokio::task::yield_now().await;
    }
    address
}
