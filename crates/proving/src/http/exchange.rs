//! One question on a connection of its own, which the other side closes after its answer.

use super::{BodyReader, answer_head};
use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// An answer that was read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WholeAnswer {
    /// Its status.
    pub status: u16,
    /// Its body, without framing.
    pub body: String,
}

/// Asks for a page.
pub async fn get(address: SocketAddr, path: &str) -> io::Result<WholeAnswer> {
    let mut connection = TcpStream::connect(address).await?;
    let head = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    connection.write_all(head.as_bytes()).await?;
    whole(connection).await
}

/// Sends JSON to a path; the answer comes on the connection.
pub async fn post(address: SocketAddr, path: &str, json: &str) -> io::Result<TcpStream> {
    let mut connection = TcpStream::connect(address).await?;
    connection.set_nodelay(true)?;
    send(&mut connection, address, path, json).await?;
    Ok(connection)
}

/// Sends JSON on a connection that is there.
pub async fn send(
    connection: &mut TcpStream,
    host: SocketAddr,
    path: &str,
    json: &str,
) -> io::Result<()> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        json.len()
    );
    connection.write_all(head.as_bytes()).await?;
    connection.write_all(json.as_bytes()).await
}

/// The answer on a connection. One that ends early is an error.
pub async fn whole(mut connection: TcpStream) -> io::Result<WholeAnswer> {
    let mut bytes = Vec::new();
    connection.read_to_end(&mut bytes).await?;
    parse(&bytes)
}

fn parse(bytes: &[u8]) -> io::Result<WholeAnswer> {
    let head = answer_head(bytes).map_err(io::Error::other)?;
    let head = head.ok_or(io::ErrorKind::UnexpectedEof)?;
    let (mut body, mut reader) = (Vec::new(), BodyReader::new(head.framing));
    reader
        .feed(&bytes[head.bytes..], |content| body.extend_from_slice(content))
        .map_err(io::Error::other)?;
    if !reader.closed() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let body = String::from_utf8_lossy(&body).into_owned();
    Ok(WholeAnswer { status: head.status, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_however_it_says_how_long_it_is() {
        let framed = [
            "content-length: 5\r\n\r\nhello",
            "transfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
            "\r\nhello",
        ];
        for rest in framed {
            let answer = parse(format!("HTTP/1.1 200 OK\r\n{rest}").as_bytes()).unwrap();
            assert_eq!(answer, WholeAnswer { status: 200, body: "hello".to_owned() }, "{rest}");
        }
    }

    #[test]
    fn an_answer_that_ends_early_is_an_error() {
        let cut = [
            "",
            "HTTP/1.1 200",
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhell",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n",
        ];
        for text in cut {
            let error = parse(text.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{text}");
        }
    }
}
