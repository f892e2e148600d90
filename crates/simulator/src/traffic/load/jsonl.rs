//! JSON lines with names of prompt blocks: Mooncake's traces, Qwen-Bailian's, and our own.
//!
//! Mooncake counts milliseconds and names blocks of 512 tokens; Qwen-Bailian has a `chat_id`,
//! counts seconds and names blocks of 16. Our own lines say `block_tokens` and count milliseconds.

use serde::Deserialize;

use super::builder::{Builder, Raw};
use super::sheet::BLOCK_TOKENS;
use super::{Form, LoadError, LoadTally, Loaded, stamp};

#[derive(Deserialize)]
struct Line {
    timestamp: f64,
    input_length: u32,
    output_length: u32,
    #[serde(default)]
    hash_ids: Vec<u64>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    block_tokens: Option<u32>,
    #[serde(default)]
    patience_seconds: Option<f64>,
    #[serde(default)]
    chat_id: Option<serde_json::Value>,
}

/// Tokens of Qwen-Bailian's blocks; their files end in `blksz_16.jsonl`.
const BAILIAN_BLOCK_TOKENS: u32 = 16;

const HINT: &str = "each line is an object with timestamp, input_length and output_length, and \
                    perhaps hash_ids";

pub(super) fn read(file: &str, text: &str) -> Result<Loaded, LoadError> {
    let mut tally = LoadTally::of(file);
    let mut builder = Builder::default();
    let mut form = Form::Mooncake;
    let mut absolute = false;
    // Requests whose prompt is longer or shorter than its blocks.
    let mut uneven = 0usize;
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let number = number as u64 + 1;
        let line: Line = match serde_json::from_str(line) {
            Ok(line) => line,
            Err(error) => {
                tally.unread(number, &short(&error));
                continue;
            }
        };
        let block_tokens = if let Some(tokens) = line.block_tokens {
            form = Form::Jsonl;
            tokens.max(1)
        } else if line.chat_id.is_some() {
            form = Form::Bailian;
            BAILIAN_BLOCK_TOKENS
        } else {
            BLOCK_TOKENS
        };
        let per_second = if form == Form::Bailian { 1.0 } else { 1e3 };
        let time = stamp::numeric(line.timestamp, per_second);
        absolute |= time.absolute;
        let named = line.hash_ids.len() as u32;
        uneven +=
            usize::from(named > 0 && line.input_length.div_ceil(block_tokens).abs_diff(named) > 1);
        let pushed = builder.push(&Raw {
            at: time.seconds,
            prompt: line.input_length,
            output: line.output_length,
            patience: line.patience_seconds,
            model: line.model.as_deref().unwrap_or_default(),
            blocks: &line.hash_ids,
            block_tokens,
        });
        match pushed {
            Ok(()) => tally.read += 1,
            Err(what) => tally.unread(number, &what),
        }
    }
    tally.check(HINT)?;
    if uneven > 0 {
        tally
            .notes
            .push(format!("{uneven} prompts have more or fewer blocks than tokens for them"));
    }
    let (zero, parts) = builder.finish();
    Ok(Loaded { form, start: absolute.then_some(zero), parts, tally })
}

/// Without `at line 1 column 9`: the line is that of the file, which we say ourselves.
fn short(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}
