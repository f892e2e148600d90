//! The subscriber's side of ZeroMQ: ZMTP 3.0 over TCP, mechanism `NULL`, everything subscribed.
//!
//! By hand, because it is all that is needed of it, with a limit for each length that the other
//! side says (docs/decisions/0029).

use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// Bytes of one part of a message. A step of 8,192 tokens stores 512 blocks of 16 with their token
/// ids: 100 KB.
const PART_BYTES: u64 = 16 << 20;

/// Parts of one message; there are three.
const PARTS: usize = 8;

const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// A connection to a publisher.
#[derive(Debug)]
pub(super) struct Subscriber {
    stream: BufReader<TcpStream>,
}

impl Subscriber {
    /// Connects, greets and subscribes to everything.
    pub(super) async fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let mut stream = BufReader::new(stream);
        let mut ours = [0; 64];
        // Signature, version 3.0, mechanism, not a server.
        (ours[0], ours[9], ours[10]) = (0xff, 0x7f, 3);
        ours[12..16].copy_from_slice(b"NULL");
        stream.write_all(&ours).await?;
        let mut theirs = [0; 64];
        stream.read_exact(&mut theirs).await?;
        if theirs[0] != 0xff || theirs[9] & 1 == 0 || theirs[10] < 3 {
            return Err(wrong("no ZeroMQ 3 publisher answers there"));
        }
        if !theirs[12..32].starts_with(b"NULL\0") {
            return Err(wrong("the publisher requires encryption or a password"));
        }
        stream.write_all(b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03SUB").await?;
        // A message that begins with 1 subscribes to what follows; nothing is everything.
        stream.write_all(b"\0\x01\x01").await?;
        Ok(Self { stream })
    }

    /// The next message: its number and its batch. Others are passed over.
    pub(super) async fn next(&mut self) -> io::Result<(u64, Vec<u8>)> {
        loop {
            let mut parts = self.message().await?;
            let number = parts.get(1).and_then(|part| part.as_slice().try_into().ok());
            if let (3, Some(number), Some(batch)) = (parts.len(), number, parts.pop()) {
                return Ok((u64::from_be_bytes(number), batch));
            }
        }
    }

    async fn message(&mut self) -> io::Result<Vec<Vec<u8>>> {
        let mut parts = Vec::new();
        loop {
            let flags = self.stream.read_u8().await?;
            let length = match flags & LONG {
                0 => u64::from(self.stream.read_u8().await?),
                _ => self.stream.read_u64().await?,
            };
            if length > PART_BYTES || parts.len() >= PARTS {
                return Err(wrong("a message longer than an engine sends"));
            }
            let mut part = vec![0; length as usize];
            self.stream.read_exact(&mut part).await?;
            // Commands say nothing that a subscriber must hear.
            if flags & COMMAND != 0 {
                continue;
            }
            parts.push(part);
            if flags & MORE == 0 {
                return Ok(parts);
            }
        }
    }
}

fn wrong(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    /// A publisher that sends these bytes behind its greeting.
    async fn publisher(bytes: &'static [u8]) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut theirs = [0; 64 + 27 + 3];
            let mut greeting = theirs;
            (greeting[0], greeting[9], greeting[10], greeting[11]) = (0xff, 0x7f, 3, 1);
            greeting[12..16].copy_from_slice(b"NULL");
            stream.write_all(&greeting[..64]).await.unwrap();
            stream.read_exact(&mut theirs).await.unwrap();
            assert!(theirs[64..].starts_with(b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03SUB"));
            assert_eq!(theirs[64 + 27..], [0, 1, 1]);
            stream.write_all(bytes).await.unwrap();
        });
        address
    }

    #[tokio::test]
    async fn messages_of_three_parts_are_read_and_others_passed_over() {
        let bytes = b"\x04\x06\x05READY\x00\x02hi\
            \x01\x00\x01\x08\0\0\0\0\0\0\x01\x02\x00\x03abc\
            \x01\x03kv@\x01\x08\0\0\0\0\0\0\0\x07\x02\0\0\0\0\0\0\0\x02de";
        let mut subscriber = Subscriber::connect(publisher(bytes).await).await.unwrap();
        assert_eq!(subscriber.next().await.unwrap(), (258, b"abc".to_vec()));
        assert_eq!(subscriber.next().await.unwrap(), (7, b"de".to_vec()));
        assert!(subscriber.next().await.is_err());
    }

    #[tokio::test]
    async fn nobody_makes_it_hold_a_gigabyte() {
        let bytes = b"\x02\0\0\0\0\x40\0\0\0";
        let mut subscriber = Subscriber::connect(publisher(bytes).await).await.unwrap();
        let error = subscriber.next().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
