//! Vectors instead of words.

use super::errors::Problem;
use super::fields;
use super::{Answer, Usage};
use crate::prompt::Reader;
use crate::words;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Inputs of one request; vLLM takes as many as fit, OpenAI 2,048.
const MOST_INPUTS: usize = 2048;
/// Numbers in a vector: those of a small model, and the most that a request may ask for.
const DIMENSIONS: u32 = 384;
const MOST_DIMENSIONS: u32 = 4096;

/// The hash of one input.
pub(crate) type Input = u64;

/// How the vectors are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EmbeddingOptions {
    dimensions: u32,
    /// As text of bytes and not as numbers.
    base64: bool,
}

impl EmbeddingOptions {
    pub(super) fn read(value: &Value) -> Result<Self, Problem> {
        let dimensions = fields::number(value, "dimensions")?.unwrap_or(DIMENSIONS);
        if !(1..=MOST_DIMENSIONS).contains(&dimensions) {
            let message = format!("dimensions must lie between 1 and {MOST_DIMENSIONS}");
            return Err(Problem::field("dimensions", message));
        }
        Ok(Self { dimensions, base64: value["encoding_format"] == "base64" })
    }
}

/// The inputs, each by its hash: one text, or a list of texts or of lists of token numbers.
pub(super) fn inputs(value: &Value, block_tokens: u32) -> Result<Vec<Input>, Problem> {
    let one = |value: &Value| {
        let mut reader = Reader::new(block_tokens, "");
        fields::push(value, &mut reader);
        reader.finish().hash
    };
    match value {
        Value::Array(items) if !items.iter().all(Value::is_number) => {
            if items.len() > MOST_INPUTS {
                let message =
                    format!("at most {MOST_INPUTS} inputs, and there are {}", items.len());
                return Err(Problem::field("input", message));
            }
            Ok(items.iter().map(one).collect())
        }
        value => Ok(vec![one(value)]),
    }
}

/// The answer.
pub(crate) fn whole(
    answer: &Answer,
    inputs: &[Input],
    options: EmbeddingOptions,
    usage: Usage,
) -> String {
    let data: Vec<Value> = inputs
        .iter()
        .enumerate()
        .map(|(index, input)| {
            let vector = words::vector(*input, options.dimensions);
            let vector = if options.base64 {
                let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
                json!(STANDARD.encode(bytes))
            } else {
                json!(vector)
            };
            json!({"object": "embedding", "index": index, "embedding": vector})
        })
        .collect();
    let usage = json!({"prompt_tokens": usage.prompt, "total_tokens": usage.prompt});
    json!({"object": "list", "data": data, "model": answer.model, "usage": usage}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_numbers_are_one_input_and_lists_of_lists_are_several() {
        let count = |value: Value| inputs(&value, 16).unwrap().len();
        assert_eq!(count(json!("x")), 1);
        assert_eq!(count(json!([1, 2, 3])), 1);
        assert_eq!(count(json!(["x", "y"])), 2);
        assert_eq!(count(json!([[1], [2]])), 2);
        assert!(inputs(&json!(vec!["x"; 2049]), 16).is_err());
    }
}
