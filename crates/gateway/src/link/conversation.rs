//! One talk with the operator, from connecting to its end.

use super::connect::{Stream, connect, token};
use super::{Came, OperatorLink};
use flyball_resources::stream::{Down, MAX_BYTES, PATH, Protocol, Up};
use futures::future::{BoxFuture, Fuse, FutureExt as _};
use futures::stream::unfold;
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, timeout};
use tonic::body::Body;
use tonic::client::{Grpc, GrpcService};
use tonic::metadata::MetadataValue;
use tonic::{Code, Status, Streaming};
use tonic_prost::ProstCodec;

/// To connect, and for an answer to the hello.
const PATIENCE: Duration = Duration::from_secs(5);

/// Between two reports.
const EACH: Duration = Duration::from_secs(1);

/// Between two looks at limits and budgets. Who waits for more is told of at once.
const QUOTA: Duration = Duration::from_millis(250);

/// Without a word for so long, the operator is unreachable: it speaks every second.
const SILENT: Duration = Duration::from_secs(10);

/// Words that wait to be sent: reports of a few seconds, and wakes of many models at once.
const WORDS: usize = 1_024;

/// Bytes that may be under way to us: orders for a large cluster.
const WINDOW: u32 = 1 << 20;

/// What happens in a talk.
enum Event {
    /// The operator said something, or hung up.
    Received(Box<Result<Down, Ended>>),
    /// It is time to say how things stand.
    Report,
    /// The same of limits and budgets.
    Quota { all: bool },
}

/// Why a talk is over.
#[derive(Debug, thiserror::Error)]
pub(super) enum Ended {
    /// No connection, or no certificate for it.
    #[error("no connection: {0}; hint: check operator.address and that the operator runs")]
    Connect(#[source] io::Error),
    /// The token cannot be read.
    #[error("cannot read the token: {0}; hint: mount the file in operator.token_file")]
    Token(#[source] io::Error),
    /// No answer in time.
    #[error("no answer in time")]
    Late,
    /// It does not want to talk.
    #[error("refused: {0}")]
    Refused(String),
    /// It speaks something else.
    #[error(
        "the operator uses version {0} of this stream and the gateway {ours}; hint: run both from \
         releases whose major version is the same",
        ours = Protocol::OURS
    )]
    Incompatible(Protocol),
    /// It said nothing for long.
    #[error("no message for {} s", SILENT.as_secs())]
    Silent,
    /// The connection broke.
    #[error("connection lost: {0}")]
    Broken(String),
    /// It asks to come again.
    #[error("the operator requested a reconnect")]
    Again,
}

impl Ended {
    /// Whether that is nothing to speak of.
    pub(super) const fn is_usual(&self) -> bool {
        matches!(self, Self::Again)
    }

    const fn came(&self) -> Came {
        match self {
            Self::Connect(_) | Self::Late | Self::Silent | Self::Broken(_) | Self::Again => {
                Came::Unreachable
            }
            Self::Token(_) | Self::Refused(_) => Came::Refused,
            Self::Incompatible(_) => Came::Incompatible,
        }
    }
}

impl OperatorLink {
    /// Talks until it is over. Whether it ever was a talk, and why it is over.
    pub(super) async fn converse(&self) -> (Came, Ended) {
        match self.begin().await {
            Ok(mut talk) => (Came::Welcomed, self.go_on(&mut talk).await),
            Err(ended) => (ended.came(), ended),
        }
    }

    /// Says hello and waits for a welcome.
    async fn begin(&self) -> Result<Talk, Ended> {
        let token = token(&self.settings).map_err(Ended::Token)?;
        let stream = within(connect(&self.settings)).await?.map_err(Ended::Connect)?;
        let (mouth, words) = mpsc::channel(WORDS);
        let hello = Up { hello: Some(self.hello.clone()), ..Up::default() };
        mouth.try_send(hello).map_err(|_| Ended::Late)?;
        let (send, line) = within(open(stream)).await??;
        let grpc = grpc(&send, &self.settings.address)?;
        let mut talk = Talk { line, _send: send, inbound: None };
        let inbound = talk.drive(ask(grpc, words, token)).await?;
        talk.inbound = Some(inbound);
        let first = talk.next(PATIENCE).await?;
        let protocol = first.welcome.as_ref().and_then(|welcome| welcome.protocol);
        let protocol = protocol.unwrap_or_default();
        if !protocol.is_understood() {
            return Err(Ended::Incompatible(protocol));
        }
        self.standing.welcomed();
        self.speak(mouth);
        self.take(first);
        Ok(talk)
    }

    async fn go_on(&self, talk: &mut Talk) -> Ended {
        let mut each = tokio::time::interval(EACH);
        each.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut quotas = tokio::time::interval(QUOTA);
        quotas.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last_received = Instant::now();
        loop {
            let event = tokio::select! {
                down = talk.next(SILENT) => Event::Received(Box::new(down)),
                _ = each.tick() => Event::Report,
                _ = quotas.tick() => Event::Quota { all: true },
                () = self.quota.due() => Event::Quota { all: false },
            };
            match event {
                Event::Report if last_received.elapsed() >= SILENT => return Ended::Silent,
                Event::Report => self.report(),
                Event::Quota { all } => self.report_quota(all),
                Event::Received(down) => match *down {
                    Ok(down) => {
                        last_received = Instant::now();
                        self.take(down);
                    }
                    Err(ended) => return ended,
                },
            }
        }
    }
}

/// What drives the connection. Once it is over it stays silent.
type Line = Fuse<BoxFuture<'static, Result<(), hyper::Error>>>;

/// A talk under way.
struct Talk {
    line: Line,
    /// Without it the connection is taken for one that nobody needs.
    _send: SendRequest<Body>,
    inbound: Option<Streaming<Down>>,
}

impl Talk {
    /// The next word of the operator.
    async fn next(&mut self, patience: Duration) -> Result<Down, Ended> {
        let Some(inbound) = self.inbound.as_mut() else { return Err(Ended::Again) };
        let hearing = async {
            match inbound.message().await {
                Ok(Some(down)) => Ok(down),
                Ok(None) => Err(Ended::Again),
                Err(status) => Err(ended(&status)),
            }
        };
        driven(&mut self.line, patience, hearing).await
    }

    /// Waits for something that needs the connection.
    async fn drive<T>(&mut self, work: impl Future<Output = Result<T, Ended>>) -> Result<T, Ended> {
        driven(&mut self.line, PATIENCE, work).await
    }
}

/// Drives the connection until the work is done. What came before the connection broke is worth more
/// than that it broke.
async fn driven<T>(
    line: &mut Line,
    patience: Duration,
    work: impl Future<Output = Result<T, Ended>>,
) -> Result<T, Ended> {
    let both = async {
        tokio::pin!(work);
        tokio::select! {
            biased;
            done = &mut work => done,
            broken = line => work.now_or_never().unwrap_or_else(|| {
                Err(Ended::Broken(match broken {
                    Ok(()) => "it was closed".to_owned(),
                    Err(error) => error.to_string(),
                }))
            }),
        }
    };
    timeout(patience, both).await.map_err(|_| Ended::Late)?
}

async fn within<T>(work: impl Future<Output = T>) -> Result<T, Ended> {
    timeout(PATIENCE, work).await.map_err(|_| Ended::Late)
}

async fn open(stream: Box<dyn Stream>) -> Result<(SendRequest<Body>, Line), Ended> {
    let (send, connection) = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| Ended::Broken(error.to_string()))?;
    let line: BoxFuture<'static, _> = Box::pin(connection);
    Ok((send, line.fuse()))
}

fn grpc(send: &SendRequest<Body>, address: &str) -> Result<Grpc<Wire>, Ended> {
    let origin: Uri = address.parse().map_err(|_| Ended::Connect(io::Error::other("no URL")))?;
    let grpc = Grpc::with_origin(Wire(send.clone()), origin);
    Ok(grpc.max_decoding_message_size(MAX_BYTES).max_encoding_message_size(MAX_BYTES))
}

/// Asks to talk.
async fn ask(
    mut grpc: Grpc<Wire>,
    words: mpsc::Receiver<Up>,
    token: Option<String>,
) -> Result<Streaming<Down>, Ended> {
    let words = unfold(words, |mut words| async move { Some((words.recv().await?, words)) });
    let mut request = tonic::Request::new(words);
    if let Some(token) = token {
        let mut value = MetadataValue::try_from(format!("Bearer {token}"))
            .map_err(|_| Ended::Token(io::Error::other("it is not plain text")))?;
        value.set_sensitive(true);
        request.metadata_mut().insert("authorization", value);
    }
    grpc.ready().await.map_err(|error| Ended::Broken(error.to_string()))?;
    let codec = ProstCodec::<Up, Down>::default();
    let path = http::uri::PathAndQuery::from_static(PATH);
    let answer = grpc.streaming(request, path, codec).await;
    Ok(answer.map_err(|status| ended(&status))?.into_inner())
}

fn ended(status: &Status) -> Ended {
    let text = format!("{:?}: {}", status.code(), status.message());
    match status.code() {
        Code::Unauthenticated
        | Code::PermissionDenied
        | Code::FailedPrecondition
        | Code::InvalidArgument
        | Code::ResourceExhausted
        | Code::Unimplemented
        | Code::Aborted => Ended::Refused(text),
        _ => Ended::Broken(text),
    }
}

/// The connection as tonic wants it.
struct Wire(SendRequest<Body>);

impl GrpcService<Body> for Wire {
    type ResponseBody = Incoming;
    type Error = hyper::Error;
    type Future = BoxFuture<'static, Result<Response<Incoming>, hyper::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}
