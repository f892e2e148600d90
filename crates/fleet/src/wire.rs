//! One kept connection to one server, for one question at a time.
//!
//! The connection is driven only while a question is under way, so no task runs beside it. A
//! connection that the server closed meanwhile is noticed at the next question, which is then asked
//! again on a new one.

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use std::borrow::Cow;
use std::pin::Pin;
use std::time::Duration;
use tokio::net::TcpStream;

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// No connection.
    #[error("cannot connect: {0}")]
    Connect(#[from] std::io::Error),
    /// The connection broke.
    #[error("connection lost: {0}")]
    Broken(#[from] hyper::Error),
    /// A status that is no success.
    #[error("HTTP status {0}")]
    Status(StatusCode),
    /// The body broke off or is larger than it may be.
    #[error("the response body is incomplete or too large: {0}")]
    Body(String),
    /// No whole answer in time.
    #[error("no answer in time")]
    Late,
    /// An answer without what was asked for.
    #[error("the response lacks an expected field: {0}")]
    Useless(&'static str),
    /// A question that cannot be written.
    #[error("invalid request: {0}")]
    Question(#[from] http::Error),
}

impl WireError {
    /// Whether somebody is there and said something, if not what was asked for.
    pub const fn is_an_answer(&self) -> bool {
        matches!(self, Self::Status(_) | Self::Body(_) | Self::Useless(_))
    }
}

/// A place to ask, with its connection if there is one.
#[derive(Debug)]
pub struct Wire {
    /// Host and port.
    authority: String,
    open: Option<Open>,
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// How it is asked.
    pub method: Method,
    /// The path, with a query or not.
    pub path: Cow<'static, str>,
    /// What goes with it, as JSON.
    pub body: Bytes,
    /// The largest answer that is taken.
    pub limit: usize,
    /// For all of it, from connecting to the last byte.
    pub timeout: Duration,
}

#[derive(Debug)]
struct Open {
    send: SendRequest<Full<Bytes>>,
    line: Pin<Box<Connection<TokioIo<TcpStream>, Full<Bytes>>>>,
}

impl Wire {
    /// A server at this host and port, without a connection yet.
    pub const fn new(authority: String) -> Self {
        Self { authority, open: None }
    }

    /// Asks and returns the body of the answer.
    pub async fn ask(&mut self, question: &Question) -> Result<Bytes, WireError> {
        let answer = tokio::time::timeout(question.timeout, self.try_twice(question)).await;
        let answer = answer.unwrap_or(Err(WireError::Late));
        if answer.is_err() {
            // Whatever is still on its way belongs to the old question.
            self.open = None;
        }
        answer
    }

    async fn try_twice(&mut self, question: &Question) -> Result<Bytes, WireError> {
        if let Some(open) = self.open.take() {
            match self.once(open, question).await {
                // It may have been closed while nobody looked.
                Err(WireError::Broken(_)) => {}
                other => return other,
            }
        }
        let stream = TcpStream::connect(&self.authority).await?;
        stream.set_nodelay(true)?;
        let (send, line) = http1::handshake(TokioIo::new(stream)).await?;
        self.once(Open { send, line: Box::pin(line) }, question).await
    }

    /// One question on an open connection, which is kept if it can be used again.
    async fn once(&mut self, mut open: Open, question: &Question) -> Result<Bytes, WireError> {
        let request = Request::builder()
            .method(question.method.clone())
            .uri(&*question.path)
            .header(header::HOST, &self.authority)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(question.body.clone()))?;
        let Open { send, line } = &mut open;
        let exchange = async {
            send.ready().await?;
            let answer = send.send_request(request).await?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), question.limit).collect().await;
            let body = body.map_err(|error| WireError::Body(error.to_string()))?.to_bytes();
            if status.is_success() { Ok(body) } else { Err(WireError::Status(status)) }
        };
        let (answer, ended) = {
            tokio::pin!(exchange);
            tokio::select! {
                answer = &mut exchange => (answer, false),
                // What has arrived is still handed over after the connection has ended.
                _ = line.as_mut() => (exchange.await, true),
            }
        };
        if !ended && answer.is_ok() {
            self.open = Some(open);
        }
        answer
    }
}
