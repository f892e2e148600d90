//! One question over HTTP. Redirects are not followed, and no more is read than a heartbeat may have.

use super::{HeartbeatError, refusal};
use bytes::Bytes;
use flyball_resources::heartbeat::{
    HEARTBEAT_PATH, Heartbeat, HeartbeatInstructions, INSTRUCTIONS_PATH, MAX_BYTES,
};
use http::header::{CONNECTION, CONTENT_TYPE, HOST};
use http::{Request, request};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use tokio::net::TcpStream;

/// The heartbeat that is told there.
pub(super) async fn get(address: SocketAddr) -> Result<Heartbeat, HeartbeatError> {
    let request = Request::get(HEARTBEAT_PATH);
    let (status, body) = talk(address, request, Bytes::new()).await?;
    match status {
        200 => Heartbeat::read(&body)
            .map_err(|problem| HeartbeatError::NotAHeartbeat(address, refusal(&problem))),
        other => Err(HeartbeatError::Status(address, other)),
    }
}

/// Tells a run something. It may say that it was told something later already.
pub(super) async fn put(
    address: SocketAddr,
    instructions: &HeartbeatInstructions,
) -> Result<(), HeartbeatError> {
    let request = Request::put(INSTRUCTIONS_PATH).header(CONTENT_TYPE, "application/json");
    let (status, _) = talk(address, request, instructions.write().into()).await?;
    match status {
        200..300 => Ok(()),
        other => Err(HeartbeatError::Status(address, other)),
    }
}

/// One question, and the status and body of what is answered.
async fn talk(
    address: SocketAddr,
    request: request::Builder,
    body: Bytes,
) -> Result<(u16, Bytes), HeartbeatError> {
    let away = |why| HeartbeatError::Away(address, why);
    let stream = TcpStream::connect(address).await.map_err(|_| away("cannot connect"))?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|_| away("the connection broke"))?;
    let request = request
        .header(HOST, address.to_string())
        .header(CONNECTION, "close")
        .body(Full::new(body))
        .map_err(|_| away("the request cannot be written"))?;
    let talk = async {
        let response = sender.send_request(request).await.map_err(|_| away("it speaks no HTTP"))?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), MAX_BYTES).collect().await;
        let body = body.map_err(|_| away("its answer broke off or is too long"))?;
        Ok((status, body.to_bytes()))
    };
    // The connection is driven here and ends with the answer: nothing is left running.
    let mut talk = std::pin::pin!(talk);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        answer = &mut talk => answer,
        // It ends by itself only if the other side does; what was read by then counts.
        _ = &mut connection => talk.await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    /// A server that answers this to everybody.
    async fn serves(answer: String) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let answer = answer.clone();
                tokio::spawn(async move {
                    let mut question = [0; 1_024];
                    let _ = stream.read(&mut question).await;
                    let _ = stream.write_all(answer.as_bytes()).await;
                });
            }
        });
        address
    }

    fn response(status: &str, body: &str) -> String {
        format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    }

    #[tokio::test]
    async fn a_heartbeat_is_read_and_everything_else_is_said_in_words() {
        let beat = r#"{"version":1,"step":12,"at":"2026-11-15T14:00:00Z"}"#;
        let received = get(serves(response("200 OK", beat)).await).await.unwrap();
        assert_eq!(received.step, 12);
        let refused =
            async |answer: String| get(serves(answer).await).await.unwrap_err().to_string();
        let secret = refused(response("200 OK", "the secret")).await;
        assert!(
            !secret.contains("secret") && secret.contains("it is not a JSON object"),
            "{secret}"
        );
        let moved = refused(response("302 Found\r\nlocation: http://10.0.0.1/", "")).await;
        assert!(moved.ends_with("answered with status 302"), "{moved}");
        let long = refused(response("200 OK", &" ".repeat(MAX_BYTES + 1))).await;
        assert!(long.contains("too long"), "{long}");
        let odd = refused("220 mail.example.com ESMTP\r\n".to_owned()).await;
        assert!(odd.contains("it speaks no HTTP"), "{odd}");
    }
}
