//! HTTP as a client of the gateway speaks it, byte by byte: what is asked here is when bytes come
//! and how a stream ends, and a client library would hide both.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Longer than any answer of a story is silent: one waits a minute for its engine.
const LIMIT: Duration = Duration::from_secs(240);

/// An answer that is being read, on a connection of its own. Dropped, it hangs up.
pub struct HttpAnswer {
    stream: TcpStream,
    text: String,
    sent: Instant,
}

impl HttpAnswer {
    /// Sends a GET, or a POST if there is a body.
    pub async fn of(address: SocketAddr, path: &str, body: Option<&Value>) -> Result<Self> {
        Self::with(address, path, "", body).await
    }

    /// The same with these headers, each with its end of line.
    pub async fn with(
        address: SocketAddr,
        path: &str,
        headers: &str,
        body: Option<&Value>,
    ) -> Result<Self> {
        let mut stream = TcpStream::connect(address).await.context("could not connect")?;
        let body = body.map(Value::to_string).unwrap_or_default();
        let method = if body.is_empty() { "GET" } else { "POST" };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: story\r\nconnection: close\r\n\
             {headers}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.context("could not send")?;
        Ok(Self { stream, text: String::new(), sent: Instant::now() })
    }

    /// Reads until so many events have come; the time since the request was sent.
    pub async fn events(&mut self, number: usize) -> Result<Duration> {
        while self.data().count() < number {
            ensure!(self.more().await?, "ended before event {number}: {}", self.text);
        }
        Ok(self.sent.elapsed())
    }

    /// Reads to the end of a stream and checks that it is whole.
    pub async fn finish(&mut self) -> Result<()> {
        while self.more().await? {}
        ensure!(self.status()? == 200, "{}", self.text);
        ensure!(self.data().last() == Some("[DONE]"), "broken off: {}", self.last_words());
        Ok(())
    }

    /// Reads to the end of an answer that is not a stream.
    pub async fn whole(mut self) -> Result<(u16, String)> {
        while self.more().await? {}
        let (_, body) = self.text.split_once("\r\n\r\n").context("an answer without a head")?;
        Ok((self.status()?, body.to_owned()))
    }

    /// The text that the stream's events carry.
    pub fn content(&self) -> String {
        let events = self.data().filter_map(|data| serde_json::from_str::<Value>(data).ok());
        let texts = events.map(|e| e["choices"][0]["delta"]["content"].as_str().map(str::to_owned));
        texts.flatten().collect()
    }

    /// Comments that a stream had before its first event.
    pub fn comments_before_events(&self) -> usize {
        let before = self.text.split("data: ").next().unwrap_or_default();
        let body = before.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        body.lines().filter(|line| line.starts_with(':')).count()
    }

    fn status(&self) -> Result<u16> {
        let word = self.text.split(' ').nth(1).context("no status line")?;
        Ok(word.parse()?)
    }

    fn data(&self) -> impl Iterator<Item = &str> {
        self.text.lines().filter_map(|line| line.strip_prefix("data: "))
    }

    fn last_words(&self) -> &str {
        let from = self.text.len().saturating_sub(400);
        self.text.get(from..).unwrap_or(&self.text)
    }

    async fn more(&mut self) -> Result<bool> {
        let mut piece = [0; 16 << 10];
        let read = tokio::time::timeout(LIMIT, self.stream.read(&mut piece));
        let read = read.await.with_context(|| format!("silent: {}", self.last_words()))??;
        self.text.push_str(&String::from_utf8_lossy(&piece[..read]));
        Ok(read > 0)
    }
}

/// Asks for JSON and gets it, or says what came instead.
pub async fn json(address: SocketAddr, path: &str, body: Option<&Value>) -> Result<Value> {
    let (status, text) = HttpAnswer::of(address, path, body).await?.whole().await?;
    ensure!(status == 200, "{path}: status {status}: {text}");
    serde_json::from_str(&text).with_context(|| format!("{path}: not JSON: {text}"))
}
