//! Keys that do not keep another engine from continuing an answer.

/// Keys that leave an answer plain text that follows from the text before it. A list of what is
/// known and not of what is feared: engines learn new keys every month (`tools`, `logprobs`,
/// `response_format` and `guided_*` are some that shape an answer), and one that is not known here
/// only costs the chance of a continuation. Guarded keys and those of the prompt are not asked here.
const PLAIN: [&[u8]; 18] = [
    b"temperature",
    b"top_p",
    b"top_k",
    b"min_p",
    b"seed",
    b"stop",
    b"repetition_penalty",
    b"presence_penalty",
    b"frequency_penalty",
    b"min_tokens",
    b"ignore_eos",
    b"metadata",
    b"store",
    b"safety_identifier",
    b"prompt_cache_retention",
    b"cache_prompt",
    b"logit_bias",
    b"verbosity",
];

/// Whether the key leaves an answer plain.
pub(super) fn is_plain(key: &[u8]) -> bool {
    PLAIN.contains(&key)
}
