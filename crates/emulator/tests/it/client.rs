//! A client as plain as can be: one connection a request, and every line with its time.

use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Only so that a test that hangs ends.
pub(crate) const LONG: Duration = Duration::from_secs(120);

/// An answer that came to its end.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// Whether the body came to the end that its head promised.
    pub(crate) whole: bool,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// What stands after `data: ` in each event.
    pub(crate) fn events(&self) -> Vec<String> {
        let text = self.text();
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(str::to_owned).collect()
    }
}

pub(crate) async fn get(to: SocketAddr, path: &str) -> Answer {
    let mut open = Open::send(to, "GET", path, "").await;
    open.rest().await
}

pub(crate) async fn post(to: SocketAddr, path: &str, body: &Value) -> Answer {
    let mut open = Open::send(to, "POST", path, &body.to_string()).await;
    open.rest().await
}

/// A request under way.
pub(crate) struct Open {
    stream: BufReader<TcpStream>,
    status: u16,
    head: String,
    /// Whether some of the body was read before, so that chunks cannot be told apart any more.
    begun: bool,
}

impl Open {
    /// Sends a request. Dropping it hangs up.
    pub(crate) async fn send(to: SocketAddr, method: &str, path: &str, body: &str) -> Self {
        let mut stream = TcpStream::connect(to).await.unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {to}\r\nx-request-id: the-one\r\n\
             connection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body.as_bytes()).await.unwrap();
        Self { stream: BufReader::new(stream), status: 0, head: String::new(), begun: false }
    }

    /// Reads up to the end of the head.
    pub(crate) async fn head(&mut self) -> u16 {
        while !self.head.ends_with("\r\n\r\n") {
            let read = timeout(LONG, self.stream.read_line(&mut self.head)).await.unwrap().unwrap();
            assert!(read > 0, "closed in its head: {:?}", self.head);
        }
        self.status = self.head.split(' ').nth(1).unwrap().parse().unwrap();
        self.status
    }

    /// Reads until so many events are there.
    pub(crate) async fn events(&mut self, count: usize) {
        if self.status == 0 {
            self.head().await;
        }
        self.begun = true;
        let (mut seen, mut line) = (0, String::new());
        while seen < count {
            line.clear();
            let read = timeout(LONG, self.stream.read_line(&mut line)).await.unwrap().unwrap();
            assert!(read > 0, "closed after {seen} events");
            seen += usize::from(line.starts_with("data: "));
        }
    }

    /// Reads to the end.
    pub(crate) async fn rest(&mut self) -> Answer {
        if self.status == 0 {
            self.head().await;
        }
        let mut body = Vec::new();
        let read = timeout(LONG, self.stream.read_to_end(&mut body)).await.unwrap();
        let head = self.head.to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let (body, whole) = match length {
            Some(length) => {
                let whole = body.len() == length.parse::<usize>().unwrap();
                (body, whole)
            }
            None if self.begun => {
                let whole = body.ends_with(b"0\r\n\r\n");
                (body, whole)
            }
            None => unchunk(&body),
        };
        Answer { status: self.status, head: self.head.clone(), body, whole: whole && read.is_ok() }
    }
}

/// Takes chunks apart, and says whether the last one was there.
fn unchunk(mut bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") {
        let size = std::str::from_utf8(&bytes[..end]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        bytes = &bytes[end + 2..];
        if size == 0 {
            return (body, true);
        }
        let have = size.min(bytes.len());
        body.extend_from_slice(&bytes[..have]);
        bytes = bytes.get(size + 2..).unwrap_or_default();
    }
    (body, false)
}
