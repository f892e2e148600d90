//! One client of a gateway: it streams an answer, and counts what is passed on to it.

use anyhow::{Result, bail};
use flyball_e2e::process::metric;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Longer than any answer is silent: money is waited for 2 s, a connection that is cut off 30 s.
const SILENCE: Duration = Duration::from_secs(240);

/// How a request ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// With `[DONE]`.
    Finished,
    /// The client hung up.
    HungUp,
    /// The budget was exhausted in the middle of it: so long after the last part of the answer.
    Stopped(Duration),
    /// The budget was exhausted before it began.
    Refused,
    /// Nobody could tell in time.
    PutOff,
    /// The gateway is gone.
    Broken,
}

/// What all clients have had together.
#[derive(Debug)]
pub(super) struct Tally {
    engine: SocketAddr,
    /// Tokens of prompts that were let in, and of output that was passed on.
    pub(super) used: AtomicU64,
    /// Requests that wait or run.
    pub(super) open: AtomicU64,
    pub(super) finished: AtomicU64,
    pub(super) hung_up: AtomicU64,
    pub(super) put_off: AtomicU64,
    pub(super) broken: AtomicU64,
    /// Milliseconds from the last part of an answer to its typed end, for each that was stopped.
    pub(super) stops: Mutex<Vec<f64>>,
    /// Tokens that the engine had counted and requests that were open whenever somebody was refused. What a client that
    /// hung up was not shown any more is paid too, so that clients do not know what is used.
    pub(super) refusals: Mutex<Vec<(u64, u64)>>,
}

impl Tally {
    pub(super) fn of(engine: SocketAddr) -> Self {
        let (used, open) = (AtomicU64::new(0), AtomicU64::new(0));
        let [finished, hung_up, put_off, broken] = std::array::from_fn(|_| AtomicU64::new(0));
        let (stops, refusals) = (Mutex::default(), Mutex::default());
        Self { engine, used, open, finished, hung_up, put_off, broken, stops, refusals }
    }

    /// Tokens that the engine has read and written.
    pub(super) async fn counted(&self) -> Result<u64> {
        let read = metric(self.engine, "vllm:prompt_tokens_total").await?;
        Ok((read + metric(self.engine, "vllm:generation_tokens_total").await?) as u64)
    }

    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Refusals while more of the budget was left than every client together could have paid ahead, `each` of them so much.
    pub(super) fn refused_with_money_left(&self, budget: u64, each: u64) -> usize {
        let all = (super::GATEWAYS * super::CLIENTS) as u64 * each;
        let left = |(counted, open): &&(u64, u64)| budget.saturating_sub(counted + open * each);
        lock(&self.refusals).iter().filter(|one| left(one) > all).count()
    }

    /// Sends one request and notes how it ended.
    pub(super) async fn request(&self, gateway: SocketAddr, ask: &Ask) -> Result<Ended> {
        self.open.fetch_add(1, Ordering::Relaxed);
        let ended = ask.send(gateway, &self.used).await;
        let open = self.open.fetch_sub(1, Ordering::Relaxed) - 1;
        // A gateway that is killed refuses connections, resets them, or ends them in the middle.
        let ended = ended.or_else(|error| {
            if error.is::<std::io::Error>() { Ok(Ended::Broken) } else { Err(error) }
        })?;
        let count = |of: &AtomicU64| _ = of.fetch_add(1, Ordering::Relaxed);
        match ended {
            Ended::Finished => count(&self.finished),
            Ended::HungUp => count(&self.hung_up),
            Ended::PutOff => count(&self.put_off),
            Ended::Broken => count(&self.broken),
            Ended::Stopped(after) => lock(&self.stops).push(after.as_secs_f64() * 1e3),
            Ended::Refused => {
                let counted = self.counted().await?;
                lock(&self.refusals).push((counted, open));
            }
        }
        Ok(ended)
    }
}

pub(super) fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// What is asked for.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) key: &'static str,
    pub(super) prompt: String,
    /// Tokens that its prompt comes to.
    pub(super) prompt_tokens: u64,
    pub(super) max_tokens: u64,
    /// Hangs up after so many tokens.
    pub(super) hangs_up_after: Option<u64>,
}

impl Ask {
    async fn send(&self, gateway: SocketAddr, used: &AtomicU64) -> Result<Ended> {
        let mut stream = TcpStream::connect(gateway).await?;
        let body = json!({
            "model": "m", "max_tokens": self.max_tokens, "stream": true,
            "messages": [{ "role": "user", "content": self.prompt }],
        });
        let body = body.to_string();
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: story\r\nconnection: close\r\n\
             authorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            self.key,
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).await?;
        let (mut answer, mut piece) = (Answer::default(), [0; 16 << 10]);
        loop {
            let count = match tokio::time::timeout(SILENCE, stream.read(&mut piece)).await {
                Ok(read) => read?,
                Err(_) => bail!("silent after {} tokens", answer.tokens),
            };
            if count == 0 {
                return answer.ends();
            }
            let before = answer.tokens;
            let let_in = answer.status.is_none();
            let ended = answer.read(&String::from_utf8_lossy(&piece[..count]));
            if let_in && answer.status == Some(200) {
                used.fetch_add(self.prompt_tokens, Ordering::Relaxed);
            }
            used.fetch_add(answer.tokens - before, Ordering::Relaxed);
            if let Some(ended) = ended {
                return Ok(ended);
            }
            if self.hangs_up_after.is_some_and(|after| answer.tokens >= after) {
                return Ok(Ended::HungUp);
            }
        }
    }
}

/// An answer as far as it has come.
#[derive(Default)]
struct Answer {
    text: String,
    /// Where the first line begins that is not whole yet.
    from: usize,
    status: Option<u16>,
    tokens: u64,
    last: Option<Instant>,
}

impl Answer {
    fn read(&mut self, piece: &str) -> Option<Ended> {
        self.text.push_str(piece);
        while let Some(length) = self.text[self.from..].find('\n') {
            let line = self.text[self.from..self.from + length].trim_end().to_owned();
            self.from += length + 1;
            if self.status.is_none() {
                self.status = line.split(' ').nth(1).and_then(|word| word.parse().ok());
            }
            let Some(data) = line.strip_prefix("data: ") else { continue };
            if data == "[DONE]" {
                return Some(Ended::Finished);
            }
            let event: Value = serde_json::from_str(data).unwrap_or_default();
            if event["error"]["code"] == "insufficient_quota" {
                return Some(Ended::Stopped(self.last.map(|at| at.elapsed()).unwrap_or_default()));
            }
            let text = event["choices"][0]["delta"]["content"].as_str();
            if text.is_some_and(|text| !text.is_empty()) {
                self.tokens += 1;
                self.last = Some(Instant::now());
            }
        }
        None
    }

    /// The connection was closed.
    fn ends(&self) -> Result<Ended> {
        match self.status {
            Some(200) | None => Ok(Ended::Broken),
            Some(429) if self.text.contains("\"insufficient_quota\"") => Ok(Ended::Refused),
            Some(503) if self.text.contains("\"quota_unknown\"") => Ok(Ended::PutOff),
            // LiteLLM's words, whatever its status.
            Some(400..) if self.text.contains("crossed budget") => Ok(Ended::Refused),
            Some(_) => bail!("an answer that nobody expected: {}", self.text),
        }
    }
}
