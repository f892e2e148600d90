//! Sockets as the programs here need them: many at once, from several addresses, without delay.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Connections that wait to be accepted. 10,000 clients connect within a second or two.
const BACKLOG: u32 = 16_384;

/// Listens, with room for a rush of clients.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Connects from the `source`-th loopback address: one pair of addresses has only some 28,000
/// ports.
pub async fn connect(address: SocketAddr, source: u8) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    if source > 0 {
        let from = Ipv4Addr::new(127, 0, 0, 1 + source);
        socket.bind(SocketAddr::new(IpAddr::V4(from), 0))?;
    }
    let stream = socket.connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
