//! Which column is what, by its name.

use super::LoadError;

/// Where things stand in a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Columns {
    pub(super) time: usize,
    /// Units of the time to the second.
    pub(super) per_second: f64,
    pub(super) prompt: Option<usize>,
    pub(super) output: Option<usize>,
    pub(super) model: Option<usize>,
    pub(super) blocks: Option<usize>,
    pub(super) block_tokens: Option<usize>,
    pub(super) patience: Option<usize>,
    pub(super) rate: Option<usize>,
    pub(super) variation: Option<usize>,
    pub(super) client: Option<usize>,
    /// Has `BurstGPT`'s `Log Type`: there an answer of no tokens is a failure.
    pub(super) log_type: bool,
    /// Names of the others.
    pub(super) unknown: Vec<String>,
}

const TIME: &[&str] = &[
    "timestamp",
    "time",
    "arrival",
    "arrived_at",
    "arrival_time",
    "seconds",
    "timestamp_ms",
    "time_ms",
];
const PROMPT: &[&str] = &[
    "prompt_tokens",
    "input_tokens",
    "contexttokens",
    "context_tokens",
    "input_length",
    "prompt",
    "input",
    "request_tokens",
    "prompt_length",
    "num_prefill_tokens",
];
const OUTPUT: &[&str] = &[
    "output_tokens",
    "generatedtokens",
    "generated_tokens",
    "output_length",
    "output",
    "response_tokens",
    "completion_tokens",
    "generation_tokens",
    "num_decode_tokens",
];
const MODEL: &[&str] = &["model", "model_name"];
const BLOCKS: &[&str] = &["hash_ids", "prefix_hash", "prefix_hashes"];
const BLOCK_TOKENS: &[&str] = &["block_tokens"];
const PATIENCE: &[&str] = &["patience_seconds"];
const RATE: &[&str] = &["requests_per_second", "rps", "request_rate", "rate"];
const VARIATION: &[&str] = &["variation", "cv"];
const CLIENT: &[&str] = &["client", "client_id"];
/// Known and of no use: a sum of two others.
const UNUSED: &[&str] = &["total_tokens", "log_type"];

impl Columns {
    pub(super) fn named(file: &str, header: &[&str]) -> Result<Self, LoadError> {
        let names: Vec<String> = header.iter().map(|name| plain(name)).collect();
        let find = |known: &[&str]| {
            known.iter().find_map(|column| names.iter().position(|name| name == column))
        };
        let missing = |what: &str, known: &[&str]| {
            let what = format!("no column for the {what}; there are: {}", header.join(", "));
            let hint = format!("name one of them {}", known.join(", "));
            LoadError::new(file, what).line(1).hint(hint)
        };
        let time = find(TIME).ok_or_else(|| missing("time of arrival", TIME))?;
        let (prompt, output, rate) = (find(PROMPT), find(OUTPUT), find(RATE));
        if rate.is_none() && prompt.is_none() {
            return Err(missing("prompt tokens (or for a rate)", PROMPT));
        }
        if rate.is_none() && output.is_none() {
            return Err(missing("output tokens (or for a rate)", OUTPUT));
        }
        let all = [TIME, PROMPT, OUTPUT, MODEL, BLOCKS, BLOCK_TOKENS, PATIENCE, RATE, VARIATION];
        let known = |name: &String| {
            all.iter().chain(&[CLIENT, UNUSED]).any(|names| names.contains(&name.as_str()))
        };
        let unknown = names.iter().zip(header).filter(|(name, _)| !known(name));
        Ok(Self {
            time,
            per_second: if names[time].ends_with("_ms") { 1e3 } else { 1.0 },
            prompt,
            output,
            model: find(MODEL),
            blocks: find(BLOCKS),
            block_tokens: find(BLOCK_TOKENS),
            patience: find(PATIENCE),
            rate,
            variation: find(VARIATION),
            client: find(CLIENT),
            log_type: find(&["log_type"]).is_some(),
            unknown: unknown.map(|(_, name)| (*name).to_owned()).collect(),
        })
    }
}

/// `Request tokens` and `request-tokens` are `request_tokens`.
fn plain(name: &str) -> String {
    name.trim().to_ascii_lowercase().replace([' ', '-'], "_")
}
