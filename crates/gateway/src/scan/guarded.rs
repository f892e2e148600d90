//! The guarded keys of every interface, written down apart from the scanner's own list: what tests and
//! fuzzing hold it against.

/// Each may stand once.
pub(super) const GUARDED: [&str; 14] = [
    "model",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "n",
    "best_of",
    "cache_salt",
    "user",
    "prompt_cache_key",
    "priority",
    "temperature",
    "seed",
];
