//! How many prompt tokens a step of an engine should hold.
//!
//! A step with a prompt is a pause for every answer beside it. On recorded code (28 tokens per answer) steps of 1,024
//! tokens instead of 8,192 let a replica carry 3.3 and 4.4 times as much, and on conversations nothing was lost.

use super::batch::{Batch, StepTime};
use super::steady::RequestShape;

/// Prompt tokens per step that engines are run with.
pub const CHUNKS: [u32; 5] = [512, 1024, 2048, 4096, 8192];

/// How long a step takes that holds so many prompt tokens beside one answer.
pub fn seconds(step: &impl StepTime, shape: &RequestShape, tokens: f64) -> f64 {
    let beside = Batch::decoding(1.0, shape.input + shape.output / 2.0);
    step.seconds(&beside.with_prompt(tokens, shape.input))
}

/// The largest step that is no longer than a token may take: a short answer that meets a longer one of somebody
/// else's prompt is late, however few requests there are. Where none is, the smallest.
///
/// It is judged beside a request of a chat, whatever requests come: who starts the engine and who predicts its speed
/// must get the same, and the former does not know what will come.
pub fn largest(step: &impl StepTime, between_tokens: f64) -> u32 {
    let chat = RequestShape::usual(RequestShape::CHAT.0, RequestShape::CHAT.1);
    let inside = |tokens: &&u32| seconds(step, &chat, f64::from(**tokens)) <= between_tokens;
    CHUNKS.iter().rev().find(inside).copied().unwrap_or(CHUNKS[0])
}
