//! Tells whoever listens what is stored in the cache and what is forgotten, as vLLM does.
//!
//! A ZeroMQ publisher (ZMTP 3.0 over TCP, without encryption) with messages of three parts: the
//! topic, a number that counts up (8 bytes, the highest first) and a batch as MessagePack: time,
//! events, rank. The events are maps, as since vLLM's #42892 (June 2026), or arrays, as before. A
//! subscriber that is too slow misses batches, and sees it by the numbers.

use flyball_simulator::engine::BlockChange;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Batches that wait for a slow subscriber; the oldest go.
const BATCHES: usize = 1_024;

/// How often the cache is looked at. vLLM tells after each step.
pub(crate) const EVERY: Duration = Duration::from_millis(20);

/// The shape of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventShape {
    /// A map with a `type`: vLLM since June 2026.
    #[default]
    Map,
    /// An array that begins with its name: vLLM before.
    Array,
}

/// One message: its number, and the batch.
type Message = Arc<(u64, Vec<u8>)>;

/// Publishes what becomes of blocks.
#[derive(Debug)]
pub(crate) struct Publisher {
    messages: broadcast::Sender<Message>,
    next: AtomicU64,
    shape: EventShape,
    block_tokens: u32,
}

impl Publisher {
    pub(crate) fn new(shape: EventShape, block_tokens: u32) -> Self {
        let messages = broadcast::Sender::new(BATCHES);
        Self { messages, next: AtomicU64::new(0), shape, block_tokens }
    }

    /// One batch of changes, at this time in seconds.
    pub(crate) fn publish(&self, changes: &[BlockChange], at: f64) {
        if changes.is_empty() {
            return;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let batch = batch(changes, at, self.shape, self.block_tokens);
        // Nobody listening is fine.
        let _ = self.messages.send(Arc::new((number, batch)));
    }

    /// Takes subscribers for ever.
    pub(crate) async fn serve(self: Arc<Self>, listener: TcpListener) {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(EVERY).await;
                continue;
            };
            let messages = self.messages.subscribe();
            // Whoever hangs up ends its own task.
            tokio::spawn(async move {
                let _ = send(stream, messages).await;
            });
        }
    }
}

async fn send(
    mut stream: TcpStream,
    mut messages: broadcast::Receiver<Message>,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.write_all(&greeting()).await?;
    let mut theirs = [0; 64];
    stream.read_exact(&mut theirs).await?;
    let mut ready = b"\x05READY\x0bSocket-Type\0\0\0\x03PUB".to_vec();
    ready.splice(0..0, [0x04, ready.len() as u8]);
    stream.write_all(&ready).await?;
    let (mut reader, mut writer) = stream.split();
    // Its READY and what it subscribes to; it gets everything. The end of what it says is the end.
    let listening = async {
        let mut ignored = [0; 256];
        while reader.read(&mut ignored).await? > 0 {}
        Ok(())
    };
    let telling = async {
        loop {
            let message = match messages.recv().await {
                Ok(message) => message,
                Err(RecvError::Lagged(_)) => continue,
                Err(RecvError::Closed) => return Ok(()),
            };
            let (number, batch) = &*message;
            let mut bytes = Vec::with_capacity(batch.len() + 32);
            frame(b"", true, &mut bytes);
            frame(&number.to_be_bytes(), true, &mut bytes);
            frame(batch, false, &mut bytes);
            writer.write_all(&bytes).await?;
        }
    };
    tokio::select! {
        ended = listening => ended,
        ended = telling => ended,
    }
}

/// What both sides begin with: signature, version 3.0, mechanism `NULL`, not a server.
fn greeting() -> [u8; 64] {
    let mut greeting = [0; 64];
    (greeting[0], greeting[9], greeting[10]) = (0xff, 0x7f, 3);
    greeting[12..16].copy_from_slice(b"NULL");
    greeting
}

fn frame(body: &[u8], more: bool, into: &mut Vec<u8>) {
    let more = u8::from(more);
    match u8::try_from(body.len()) {
        Ok(length) => into.extend_from_slice(&[more, length]),
        Err(_) => {
            into.push(more | 0x02);
            into.extend_from_slice(&(body.len() as u64).to_be_bytes());
        }
    }
    into.extend_from_slice(body);
}

fn batch(changes: &[BlockChange], at: f64, shape: EventShape, block_tokens: u32) -> Vec<u8> {
    let mut out = vec![0x93, 0xcb];
    out.extend_from_slice(&at.to_be_bytes());
    array(changes.len(), &mut out);
    for change in changes {
        event(*change, shape, block_tokens, &mut out);
    }
    out.push(0);
    out
}

/// Token ids are zeros: nobody here has any, and nobody may need them.
fn event(change: BlockChange, shape: EventShape, block_tokens: u32, out: &mut Vec<u8>) {
    let (name, block) = match change {
        BlockChange::Stored(block) => ("BlockStored", block),
        BlockChange::Removed(block) => ("BlockRemoved", block),
    };
    let stored = name == "BlockStored";
    let key = |key: &str, out: &mut Vec<u8>| {
        if shape == EventShape::Map {
            text(key, out);
        }
    };
    let fields: u8 = if stored { 8 } else { 3 };
    out.push(if shape == EventShape::Map { 0x80 } else { 0x90 } | fields);
    key("type", out);
    text(name, out);
    key("block_hashes", out);
    out.extend_from_slice(&[0x91, 0xcf]);
    out.extend_from_slice(&block.to_be_bytes());
    if stored {
        key("parent_block_hash", out);
        out.push(0xc0);
        key("token_ids", out);
        array(block_tokens as usize, out);
        out.extend(std::iter::repeat_n(0, block_tokens as usize));
        key("block_size", out);
        out.push(0xce);
        out.extend_from_slice(&block_tokens.to_be_bytes());
        key("lora_id", out);
        out.push(0xc0);
    }
    key("medium", out);
    text("GPU", out);
    if stored {
        key("lora_name", out);
        out.push(0xc0);
    }
}

fn array(length: usize, out: &mut Vec<u8>) {
    out.push(0xdd);
    out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
}

fn text(text: &str, out: &mut Vec<u8>) {
    // All of ours are shorter than 32 bytes.
    out.push(0xa0 | text.len() as u8);
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_messagepack_as_vllm_writes_it() {
        let changes = [BlockChange::Removed(7)];
        let array = batch(&changes, 1.5, EventShape::Array, 16);
        let expected = b"\x93\xcb\x3f\xf8\0\0\0\0\0\0\xdd\0\0\0\x01\x93\xacBlockRemoved\
            \x91\xcf\0\0\0\0\0\0\0\x07\xa3GPU\0";
        assert_eq!(array, expected);
        let map = batch(&changes, 1.5, EventShape::Map, 16);
        assert!(map[15..].starts_with(b"\x83\xa4type\xacBlockRemoved\xacblock_hashes\x91\xcf"));
    }

    #[test]
    fn long_frames_say_their_length_in_eight_bytes() {
        let mut bytes = Vec::new();
        frame(&[1; 300], true, &mut bytes);
        assert_eq!(bytes[..9], [3, 0, 0, 0, 0, 0, 0, 1, 44]);
        assert_eq!(bytes.len(), 309);
    }
}
