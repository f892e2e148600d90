//! The encoder in front of a model that takes images or sound: its weights only.

use serde_json::{Map, Value};

/// What an encoder weighs when its configuration does not say. Those of public models lie between
/// 0.4 and 0.9 billion weights.
const UNSTATED: u64 = 700_000_000;

/// Kinds of encoders whose blocks are gated.
const GATED: [&str; 2] = ["pixtral", "qwen2_5_vl"];

/// Counts the weights of the encoder of a whole `config.json`, if it has one, in front of a text
/// part of this width.
pub(super) fn weights(whole: &Map<String, Value>, text_hidden: u32) -> Option<u64> {
    let part = |key: &str| whole.get(key).and_then(Value::as_object);
    let kind = |map: &Map<String, Value>| {
        map.get("model_type").and_then(Value::as_str).is_some_and(|kind| GATED.contains(&kind))
    };
    let vision = part("vision_config").map(|vision| {
        let matrices = if kind(vision) || kind(whole) { 3 } else { 2 };
        stated(vision, matrices, text_hidden)
    });
    let audio = part("audio_config").map(|_| UNSTATED);
    match (vision, audio) {
        (None, None) => None,
        (vision, audio) => Some(vision.unwrap_or(0) + audio.unwrap_or(0)),
    }
}

fn stated(vision: &Map<String, Value>, matrices: u64, text_hidden: u32) -> u64 {
    let number =
        |keys: [&str; 3]| keys.into_iter().find_map(|key| vision.get(key).and_then(Value::as_u64));
    let hidden = number(["hidden_size", "vt_hidden_size", "embed_dim"]);
    let layers = number(["num_hidden_layers", "vt_num_hidden_layers", "depth"]);
    let width = number(["intermediate_size", "vt_intermediate_size", "mlp_dim"]);
    let (Some(hidden), Some(layers), Some(width)) = (hidden, layers, width) else {
        return UNSTATED;
    };
    // Four projections of attention and a block of two matrices, or three when it is gated, in each
    // layer. Then four neighbouring patches are merged, mixed, and brought to the width of the text.
    let merged = 4 * hidden;
    layers * (4 * hidden * hidden + matrices * hidden * width)
        + merged * merged
        + merged * u64::from(text_hidden)
}
