//! Requests that say two things about their own length or shape. Whatever the gateway makes of one,
//! an engine gets at most one request, with the path and the body that were checked, and nothing of
//! the head that was not meant for it (reliability.md T-17, T-18).

use crate::engine::{Does, Engine};
use crate::rig::{LONG, PLAIN, Rig, chat};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// An engine gets it once, whole.
    Once,
    /// No engine hears of it.
    Refused,
}
use Fate::{Once, Refused};

const LINE: &str = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n";

/// What an attacker would like to get past the checks.
const HIDDEN: &str = "GET /admin HTTP/1.1\r\nhost: x\r\n\r\n";

/// The body in one chunk.
fn chunked(extension: &str, trailers: &str) -> String {
    format!("{:x}{extension}\r\n{PLAIN}\r\n0\r\n{trailers}\r\n", PLAIN.len())
}

fn length() -> usize {
    PLAIN.len()
}

fn headed(headers: &str, body: &str) -> String {
    format!("{LINE}{headers}\r\n{body}")
}

/// Two lengths, or two ways to tell one.
fn lengths() -> Vec<(&'static str, Fate, String)> {
    let n = length();
    let te = "transfer-encoding: chunked\r\n";
    let with = |value: &str| headed(&format!("content-length: {value}\r\n"), PLAIN);
    let encoded = |line: &str| headed(&format!("{line}\r\n"), &chunked("", ""));
    vec![
        ("CL.TE, no body", Refused, headed(&format!("content-length: 6\r\n{te}"), "0\r\n\r\nG")),
        ("TE.CL, no body", Refused, headed(&format!("{te}content-length: 4\r\n"), "0\r\n\r\n")),
        ("CL.0", Refused, headed("content-length: 0\r\n", HIDDEN)),
        ("no length", Refused, headed("", &format!("{PLAIN}{HIDDEN}"))),
        (
            "two lengths",
            Refused,
            headed(&format!("content-length: {n}\r\ncontent-length: 5\r\n"), PLAIN),
        ),
        ("a list of lengths", Refused, with(&format!("{n}, 5"))),
        ("a sign", Refused, with(&format!("+{n}"))),
        ("negative", Refused, with("-1")),
        ("hexadecimal", Refused, with("0x39")),
        ("two numbers", Refused, with(&format!("{n} {n}"))),
        ("18 EB", Refused, with("18446744073709551615")),
        ("beyond 18 EB", Refused, with("99999999999999999999")),
        ("TE of another name", Refused, encoded("transfer-encoding: xchunked")),
        ("TE not last", Refused, encoded("transfer-encoding: chunked, identity")),
        ("TE.TE", Refused, encoded("transfer-encoding: chunked\r\ntransfer-encoding: cow")),
        ("TE with a space before the colon", Refused, encoded("transfer-encoding : chunked")),
        (
            "TE in HTTP/1.0",
            Refused,
            encoded("transfer-encoding: chunked").replace("HTTP/1.1", "HTTP/1.0"),
        ),
        ("TE in capitals", Once, encoded("Transfer-Encoding: CHUNKED")),
        ("TE behind a tab", Once, encoded("transfer-encoding:\tchunked")),
    ]
}

/// Chunks that are none.
fn chunks() -> Vec<(&'static str, Fate, String)> {
    let te = "transfer-encoding: chunked\r\n";
    let n = length();
    vec![
        ("plain", Once, headed(te, &chunked("", ""))),
        ("an extension", Once, headed(te, &chunked(";a=b", ""))),
        ("trailers", Once, headed(te, &chunked("", "content-length: 5\r\nx-evil: 1\r\n"))),
        ("a line feed in an extension", Refused, headed(te, &chunked(";a\nb", ""))),
        (
            "an endless extension",
            Refused,
            headed(te, &chunked(&format!(";{}", "a".repeat(64 << 10)), "")),
        ),
        ("18 EB", Refused, headed(te, &format!("ffffffffffffffff\r\n{PLAIN}\r\n0\r\n\r\n"))),
        (
            "beyond 18 EB",
            Refused,
            headed(te, &format!("ffffffffffffffff0\r\n{PLAIN}\r\n0\r\n\r\n")),
        ),
        ("negative", Refused, headed(te, &format!("-{n:x}\r\n{PLAIN}\r\n0\r\n\r\n"))),
        ("0x", Refused, headed(te, &format!("0x{n:x}\r\n{PLAIN}\r\n0\r\n\r\n"))),
        ("no size", Refused, headed(te, &format!("\r\n{PLAIN}\r\n0\r\n\r\n"))),
        ("longer than it says", Refused, headed(te, &format!("5\r\n{PLAIN}\r\n0\r\n\r\n"))),
        ("no end", Refused, headed(te, &format!("{n:x}\r\n{PLAIN}\r\n"))),
    ]
}

/// Heads that are none.
fn heads() -> Vec<(&'static str, Fate, String)> {
    let n = length();
    let with = |headers: &str| headed(&format!("{headers}content-length: {n}\r\n"), PLAIN);
    let line = |line: &str| format!("{line}\r\nhost: x\r\ncontent-length: {n}\r\n\r\n{PLAIN}");
    vec![
        ("obs-fold", Refused, with("x-a: 1\r\n y: 2\r\n")),
        ("a return in a value", Refused, with("x-a: 1\rx-b: 2\r\n")),
        ("NUL in a value", Refused, with("x-a: 1\0\r\n")),
        ("no colon", Refused, with("x-a\r\n")),
        ("an empty name", Refused, with(": 1\r\n")),
        ("a space in a name", Refused, with("x a: 1\r\n")),
        ("65 headers", Refused, with(&"x-a: 1\r\n".repeat(65))),
        ("a head of 200 KB", Refused, with(&format!("x-a: {}\r\n", "a".repeat(200 << 10)))),
        ("another version", Refused, line("POST /v1/chat/completions HTTP/1.7")),
        ("a word too many", Refused, line("POST /v1/chat/completions HTTP/1.1 HTTP/1.1")),
        ("another path", Refused, line("POST //v1/chat/completions HTTP/1.1")),
        ("dots", Refused, line("POST /v1/../v1/chat/completions HTTP/1.1")),
        ("percent", Refused, line("POST /v1/chat%2fcompletions HTTP/1.1")),
        ("CONNECT", Refused, line("CONNECT x:80 HTTP/1.1")),
        ("a bare line feed", Once, with("x-a: 1\r\n").replace("\r\n", "\n")),
        ("an absolute target", Once, line("POST http://evil/v1/chat/completions HTTP/1.1")),
        ("two hosts", Once, with("host: evil\r\n")),
        ("an upgrade", Once, with("connection: upgrade\r\nupgrade: h2c\r\n")),
        (
            "headers of a proxy",
            Once,
            with("connection: x-request-id\r\nx-forwarded-for: 1\r\nx-evil: 1\r\n"),
        ),
        ("an id with tricks", Once, with("x-request-id: a b\tc\r\n")),
    ]
}

#[tokio::test]
async fn an_engine_gets_one_request_or_none() {
    let cases = lengths().into_iter().chain(chunks()).chain(heads());
    let surprises: Vec<String> =
        futures::future::join_all(cases.map(surprises_of)).await.into_iter().flatten().collect();
    assert!(surprises.is_empty(), "{}", surprises.join("\n"));
}

async fn surprises_of((name, fate, request): (&str, Fate, String)) -> Vec<String> {
    let engine = Engine::start(Does::Answers(200, "{}")).await;
    // A request that promises more than it sends ends by its time; all others long before.
    let rig = Rig::start(&[&engine], |settings| {
        let timeouts = &mut settings.timeouts;
        (timeouts.head_ms, timeouts.body_idle_ms, timeouts.keep_alive_ms) = (6_000, 6_000, 6_000);
    });
    let answer = sent(&rig, &request).await;
    let got = engine.requests();
    let first = answer.split("\r\n").next().unwrap_or_default();
    let as_expected = match fate {
        Once => got.len() == 1 && first == "HTTP/1.1 200 OK",
        Refused => got.is_empty() && first != "HTTP/1.1 200 OK",
    };
    let mut surprises = Vec::new();
    if !as_expected {
        surprises.push(format!("{name}: {fate:?}, but {} sent, {first:?}", got.len()));
    }
    for request in got {
        let lower = request.to_lowercase();
        let body = request.ends_with(&format!("\r\n\r\n{PLAIN}"));
        let head = request.starts_with("POST /v1/chat/completions HTTP/1.1\r\n");
        let evil = ["evil", "chunked", "x-a:", "a b"].iter().any(|word| lower.contains(word));
        if !body || !head || evil || request.matches("HTTP/1.1").count() != 1 {
            surprises.push(format!("{name}: the engine got {request:?}"));
        }
    }
    surprises
}

/// Sends bytes and a request behind them that asks to close, and reads all that comes.
async fn sent(rig: &Rig, request: &str) -> String {
    let last = "GET /v1/models HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let mut stream = rig.connect().await;
    // A gateway that refuses early closes before it has read all.
    let _ = stream.write_all(format!("{request}{last}").as_bytes()).await;
    let mut answer = Vec::new();
    let reading = stream.read_to_end(&mut answer);
    let _ = tokio::time::timeout(LONG, reading).await.expect("an end");
    String::from_utf8_lossy(&answer).into_owned()
}

/// CVE-2023-44487: streams opened and reset at once cost the client nothing and the server a lot.
#[tokio::test]
async fn rapid_reset_ends_the_connection_and_harms_nobody() {
    let engine = Engine::start(Does::Answers(200, "{}")).await;
    let rig = Rig::start(&[&engine], |_| {});
    let mut attack = rig.connect().await;
    let mut frames = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    frames.extend(frame(4, 0, 0, &[]));
    // :method POST and :scheme http by their numbers, path and authority in full.
    let mut head = vec![0x83, 0x86, 0x04, 20];
    head.extend(b"/v1/chat/completions");
    head.extend([0x01, 1, b'x']);
    for stream in (1..20_000).step_by(2) {
        frames.extend(frame(1, 4, stream, &head));
        frames.extend(frame(3, 0, stream, &8_u32.to_be_bytes()));
    }
    let (mut read, mut write) = attack.split();
    let mut got = Vec::new();
    let attacking = async {
        let _ = write.write_all(&frames).await;
    };
    let reading = read.read_to_end(&mut got);
    let both = async { tokio::join!(attacking, reading) };
    tokio::time::timeout(LONG, both).await.expect("the gateway hangs up").1.ok();
    assert_eq!(engine.requests().len(), 0);
    assert!(rig.whole(&chat(PLAIN)).await.starts_with("HTTP/1.1 200"));
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}
