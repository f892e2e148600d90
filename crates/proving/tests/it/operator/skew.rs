//! Stands between a gateway and an operator and makes each look to the other as if it were of another
//! version: there is only one version of the program, but what is sent can be changed on its way.

use anyhow::{Context, Result};
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use flyball_operator::link::stream::{Down, Protocol, Up};
use futures::stream::{BoxStream, StreamExt as _, unfold};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http2 as client;
use hyper::server::conn::http2 as server;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message as _;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// How the two differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Apart {
    /// Each says more than the other knows: fields, and messages of other kinds.
    Newer,
    /// Each leaves out what came last.
    Older,
    /// Another major version.
    Major,
}

/// A gateway's field that no version has.
const UNKNOWN_FIELD: u32 = 900;

type Body = StreamBody<BoxStream<'static, Result<Frame<Bytes>, Infallible>>>;

/// Stands between. Dropped, it is gone.
pub(super) struct Skew {
    /// Where the gateway connects.
    pub(super) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Skew {
    /// Before the operator at this address.
    pub(super) async fn before(operator: SocketAddr, apart: Apart) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let talk = service_fn(move |request| pass(request, operator, apart));
                let serving = server::Builder::new(TokioExecutor::new());
                tokio::spawn(serving.serve_connection(TokioIo::new(stream), talk));
            }
        });
        Ok(Self { address, task })
    }
}

impl Drop for Skew {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass(
    request: Request<Incoming>,
    operator: SocketAddr,
    apart: Apart,
) -> Result<Response<Body>> {
    let stream = TcpStream::connect(operator).await?;
    let (mut send, connection) =
        client::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().context("a request without a path")?.clone();
    parts.uri = Uri::builder()
        .scheme("http")
        .authority(operator.to_string())
        .path_and_query(path)
        .build()?;
    let changed_request =
        Request::from_parts(parts, changed(body, move |up| gateway_says(up, apart)));
    let answer = send.send_request(changed_request).await?;
    let (parts, body) = answer.into_parts();
    // The connection lives as long as somebody may ask on it.
    let body = changed(body, move |down| {
        let _connection = &send;
        operator_says(down, apart)
    });
    Ok(Response::from_parts(parts, body))
}

/// The messages of a body, each changed, in the frames of gRPC: a byte for how it is packed, four for its
/// length.
fn changed(
    mut body: Incoming,
    mut change: impl FnMut(&[u8]) -> Result<Vec<Vec<u8>>> + Send + 'static,
) -> Body {
    let (sender, frames_in) = mpsc::channel(16);
    tokio::spawn(async move {
        let mut came = BytesMut::new();
        while let Some(Ok(frame)) = body.frame().await {
            let Some(data) = frame.data_ref() else {
                sender.send(Ok(frame)).await?;
                continue;
            };
            came.extend_from_slice(data);
            while let Some(message) = first(&mut came) {
                for message in change(&message)? {
                    let mut out = BytesMut::with_capacity(message.len() + 5);
                    out.put_u8(0);
                    out.put_u32(u32::try_from(message.len())?);
                    out.extend_from_slice(&message);
                    sender.send(Ok(Frame::data(out.freeze()))).await?;
                }
            }
        }
        anyhow::Ok(())
    });
    let frames =
        unfold(
            frames_in,
            |mut frames_in| async move { Some((frames_in.recv().await?, frames_in)) },
        );
    StreamBody::new(frames.boxed())
}

fn first(came: &mut BytesMut) -> Option<BytesMut> {
    let length = came.get(1..5)?.get_u32() as usize;
    if came.len() < 5 + length {
        return None;
    }
    came.advance(5);
    Some(came.split_to(length))
}

fn gateway_says(message: &[u8], apart: Apart) -> Result<Vec<Vec<u8>>> {
    let mut up = Up::decode(message)?;
    if let Some(hello) = &mut up.hello {
        hello.protocol = Some(other(apart));
    }
    if apart == Apart::Older {
        let models = up.demand.iter_mut().flat_map(|demand| &mut demand.models);
        models.for_each(|model| model.held_tokens = 0);
    }
    if apart != Apart::Newer {
        return Ok(vec![up.encode_to_vec()]);
    }
    let mut messages = Vec::new();
    // More inside of what is known, more beside it, and after it something of another kind.
    let demand = up.demand.take();
    let mut message = up.encode_to_vec();
    if let Some(demand) = demand {
        put(&mut message, 2, &more(demand.encode_to_vec()));
    }
    messages.push(more(message));
    if up.hello.is_none() {
        messages.push(more(Vec::new()));
    }
    Ok(messages)
}

fn operator_says(message: &[u8], apart: Apart) -> Result<Vec<Vec<u8>>> {
    let mut down = Down::decode(message)?;
    let is_first = down.welcome.is_some();
    if let Some(welcome) = &mut down.welcome {
        welcome.protocol = Some(other(apart));
    }
    if apart == Apart::Older {
        down.orders.iter_mut().for_each(|orders| orders.program.clear());
    }
    if apart != Apart::Newer {
        return Ok(vec![down.encode_to_vec()]);
    }
    let orders = down.orders.take();
    let mut message = down.encode_to_vec();
    if let Some(orders) = orders {
        put(&mut message, 2, &more(orders.encode_to_vec()));
    }
    let mut messages = vec![more(message)];
    if !is_first {
        messages.push(more(Vec::new()));
    }
    Ok(messages)
}

const fn other(apart: Apart) -> Protocol {
    let Protocol { major, minor } = Protocol::OURS;
    match apart {
        Apart::Newer => Protocol { major, minor: minor + 1 },
        Apart::Older => Protocol { major, minor: minor.saturating_sub(1) },
        Apart::Major => Protocol { major: major + 1, minor },
    }
}

/// The same message with a field that nobody knows.
fn more(mut message: Vec<u8>) -> Vec<u8> {
    put(&mut message, UNKNOWN_FIELD, b"later");
    message
}

/// Appends a field of bytes. What comes later in a message holds.
fn put(message: &mut Vec<u8>, tag: u32, value: &[u8]) {
    prost::encoding::encode_key(tag, prost::encoding::WireType::LengthDelimited, message);
    prost::encoding::encode_varint(value.len() as u64, message);
    message.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use flyball_operator::link::stream::{Hello, ReportedDemand};

    #[test]
    fn a_newer_gateway_says_the_same_and_more() {
        let demand = Some(ReportedDemand { orders: 7, ..ReportedDemand::default() });
        let up = Up { demand, ..Up::default() };
        let changed_messages = gateway_says(&up.encode_to_vec(), Apart::Newer).unwrap();
        assert_eq!(changed_messages.len(), 2);
        assert!(changed_messages[0].len() > up.encoded_len());
        assert_eq!(Up::decode(&*changed_messages[0]).unwrap(), up);
        assert_eq!(Up::decode(&*changed_messages[1]).unwrap(), Up::default());
        let hello = Up { hello: Some(Hello::default()), ..Up::default() };
        let changed_messages = gateway_says(&hello.encode_to_vec(), Apart::Major).unwrap();
        let hello = Up::decode(&*changed_messages[0]).unwrap().hello.unwrap();
        assert!(!hello.protocol.unwrap().is_understood());
    }

    #[test]
    fn messages_are_found_in_frames_however_they_are_cut() {
        let mut came = BytesMut::from(&[0, 0, 0, 0, 2, 7][..]);
        assert!(first(&mut came).is_none());
        came.extend_from_slice(&[8, 0, 0]);
        assert_eq!(&first(&mut came).unwrap()[..], [7, 8]);
        assert_eq!(came.len(), 2);
    }
}
