//! A server between a client and a real HTTP server, that lets answers through, or makes them old, wrong
//! or absent.

use crate::http::HttpAnswer;
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What happens to answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnswerFault {
    /// Nothing.
    #[default]
    None,
    /// Each question gets the answer that it got last.
    Stale,
    /// Connections are closed at once.
    Absent,
    /// Every number of Prometheus is none, except when it was seen.
    NotANumber,
}

/// Stands in front of one server. Dropped, it is gone.
pub struct AnswerLog {
    /// Where it listens.
    pub address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    upstream: SocketAddr,
    fault: Mutex<AnswerFault>,
    known: Mutex<BTreeMap<String, String>>,
}

impl AnswerLog {
    /// Of the server at this address.
    pub async fn of(upstream: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let shared =
            Arc::new(Shared { upstream, fault: Mutex::default(), known: Mutex::default() });
        let serving = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = Arc::clone(&serving);
                // A client that hangs up wants no answer.
                tokio::spawn(async move { shared.serve(stream).await.ok() });
            }
        });
        Ok(Self { address, shared, task })
    }

    /// From now on this happens.
    pub fn set(&self, fault: AnswerFault) {
        *self.shared.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
    }
}

impl Drop for AnswerLog {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    async fn serve(&self, mut stream: TcpStream) -> Result<()> {
        let (reads, mut writes) = stream.split();
        let mut lines = BufReader::new(reads).lines();
        // One request after the other, none with a body.
        while let Some(first) = lines.next_line().await? {
            let path = first.split(' ').nth(1).context("no request line")?.to_owned();
            while lines.next_line().await?.is_some_and(|line| !line.is_empty()) {}
            let Some(body) = self.answer(&path).await? else { return Ok(()) };
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            writes.write_all((head + &body).as_bytes()).await?;
        }
        Ok(())
    }

    async fn answer(&self, path: &str) -> Result<Option<String>> {
        let fault = *self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        match fault {
            AnswerFault::Absent => Ok(None),
            AnswerFault::Stale => Ok(self.known().get(path).cloned()),
            AnswerFault::None => self.ask(path).await.map(Some),
            AnswerFault::NotANumber => not_numbers(&self.ask(path).await?).map(Some),
        }
    }

    async fn ask(&self, path: &str) -> Result<String> {
        let (_, body) = HttpAnswer::of(self.upstream, path, None).await?.whole().await?;
        // Prometheus sends pieces where it does not know the length; JSON is on one line.
        let body = body.lines().filter(|line| line.starts_with('{')).collect::<String>();
        self.known().insert(path.to_owned(), body.clone());
        Ok(body)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, String>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_numbers(body: &str) -> Result<String> {
    let mut answer: Value = serde_json::from_str(body)?;
    for row in answer["data"]["result"].as_array_mut().into_iter().flatten() {
        if let Some(sample) = row.get_mut("value") {
            sample[1] = "NaN".into();
        }
        for sample in row.get_mut("values").and_then(Value::as_array_mut).into_iter().flatten() {
            sample[1] = "NaN".into();
        }
    }
    Ok(answer.to_string())
}

#[cfg(test)]
mod tests {
    #[test]
    fn samples_of_a_range_become_none_and_their_times_stay() {
        let body = r#"{"data":{"result":[{"metric":{"pod":"a"},"values":[[1,"7"],[2,"8"]]}]}}"#;
        let none = super::not_numbers(body).unwrap();
        assert_eq!(none.matches("NaN").count(), 2);
        assert!(none.contains("[1,") && none.contains("[2,") && !none.contains('7'));
    }

    #[test]
    fn numbers_become_none_and_their_labels_stay() {
        let body = r#"{"data":{"result":[{"metric":{"pod":"a"},"value":[1,"7"]}]}}"#;
        let none = super::not_numbers(body).unwrap();
        assert!(none.contains("NaN") && none.contains("\"a\"") && !none.contains('7'));
    }
}
