//! Reading requests.

use super::embeddings;
use super::errors::Problem;
use super::fields::{number, push};
use super::{Form, ParsedRequest};
use crate::prompt::{Prompt, Reader};
use crate::words;
use http::StatusCode;
use serde_json::Value;

/// What a request without a limit of its own gets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Defaults {
    pub(crate) output: u32,
    pub(crate) block_tokens: u32,
    /// Tokens of prompt and answer together.
    pub(crate) longest: u32,
}

/// Understands a body. Fields that have no meaning here are skipped, as engines do.
pub(crate) fn read(form: Form, body: &[u8], defaults: &Defaults) -> Result<ParsedRequest, Problem> {
    let value: Value = serde_json::from_slice(body).map_err(|error| {
        Problem::new(StatusCode::BAD_REQUEST, format!("the body is not JSON: {error}"))
    })?;
    let Value::Object(fields) = &value else {
        return Err(Problem::new(StatusCode::BAD_REQUEST, "the body is not a JSON object"));
    };
    let model = text_field(&value, "model")?.unwrap_or_default().to_owned();
    if number(&value, "n")?.is_some_and(|n| n != 1) {
        return Err(Problem::field("n", "only one completion per request is emulated"));
    }
    let mut reader =
        Reader::new(defaults.block_tokens, text_field(&value, "cache_salt")?.unwrap_or_default());
    let mut inputs = Vec::new();
    match form {
        Form::Chat => required(fields.get("messages"), "messages", &mut reader)?,
        Form::Completions => required(fields.get("prompt"), "prompt", &mut reader)?,
        Form::Responses => {
            push(fields.get("instructions").unwrap_or(&Value::Null), &mut reader);
            required(fields.get("input"), "input", &mut reader)?;
        }
        Form::Messages => {
            push(fields.get("system").unwrap_or(&Value::Null), &mut reader);
            required(fields.get("messages"), "messages", &mut reader)?;
        }
        Form::Embeddings => {
            required(fields.get("input"), "input", &mut reader)?;
            inputs = embeddings::inputs(&value["input"], defaults.block_tokens)?;
        }
    }
    let mut prompt = reader.finish();
    if form == Form::Chat {
        begun_answer(&value, &mut prompt, defaults.block_tokens)?;
    }
    let most = most_tokens(form, &value, defaults)?;
    let (output, stops) = match number(&value, "min_tokens")? {
        Some(least) if form != Form::Embeddings && least < most => {
            let seed = value["seed"].as_u64().unwrap_or(0);
            let output = words::length(prompt.hash, seed, least, most);
            (output, output < most)
        }
        _ => (most, false),
    };
    let total = u64::from(prompt.tokens) + u64::from(most);
    if total > u64::from(defaults.longest) {
        let message = format!(
            "prompt and output would have {total} tokens, and this model allows {}; hint: use a \
             shorter prompt or a smaller max_tokens",
            defaults.longest
        );
        return Err(Problem::field("messages", message).coded("context_length_exceeded"));
    }
    let usage = &value["stream_options"]["include_usage"];
    Ok(ParsedRequest {
        model,
        prompt,
        output,
        stops,
        stream: flag(&value, "stream")?,
        include_usage: usage.as_bool().unwrap_or(false),
        inputs,
        embedding: embeddings::EmbeddingOptions::read(&value)?,
    })
}

/// A last message of the assistant is gone on with if that is asked for (`continue_final_message`,
/// as vLLM and SGLang have it); else it is over, and something else is said.
fn begun_answer(value: &Value, prompt: &mut Prompt, block_tokens: u32) -> Result<(), Problem> {
    let continues = flag(value, "continue_final_message")?;
    if continues && flag(value, "add_generation_prompt")? {
        let message = "cannot stand with `add_generation_prompt`";
        return Err(Problem::field("continue_final_message", message));
    }
    let last = value["messages"].as_array().and_then(|messages| messages.last());
    let Some(last) = last.filter(|last| last["role"] == "assistant") else { return Ok(()) };
    if !continues {
        prompt.parsed.add(b"\0");
        return Ok(());
    }
    // Its words were tokens when they were written, and are the same when they are read.
    let mut others = Reader::new(block_tokens, "");
    let messages = value["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    messages.split_last().into_iter().for_each(|(_, before)| {
        before.iter().for_each(|message| push(message, &mut others));
    });
    let begun_words = last["content"].as_str().unwrap_or_default().split_whitespace().count();
    prompt.tokens = others.tokens().saturating_add(u32::try_from(begun_words).unwrap_or(u32::MAX));
    prompt.names.truncate((prompt.tokens / block_tokens.max(1)) as usize);
    Ok(())
}

/// The limit of the answer.
fn most_tokens(form: Form, value: &Value, defaults: &Defaults) -> Result<u32, Problem> {
    let names: &[&'static str] = match form {
        Form::Chat => &["max_completion_tokens", "max_tokens"],
        Form::Completions | Form::Messages => &["max_tokens"],
        Form::Responses => &["max_output_tokens"],
        // One step reads the input, and there is nothing to generate.
        Form::Embeddings => return Ok(1),
    };
    for name in names {
        match number(value, name)? {
            Some(0) => return Err(Problem::field(name, "must be at least 1")),
            Some(most) => return Ok(most),
            None => {}
        }
    }
    if form == Form::Messages {
        return Err(Problem::field("max_tokens", "max_tokens: Field required"));
    }
    Ok(defaults.output)
}

fn required(value: Option<&Value>, name: &'static str, reader: &mut Reader) -> Result<(), Problem> {
    match value {
        None | Some(Value::Null) => Err(Problem::field(name, format!("{name}: Field required"))),
        Some(Value::Array(items)) if items.is_empty() => {
            Err(Problem::field(name, format!("{name} is empty")))
        }
        Some(value) => {
            push(value, reader);
            Ok(())
        }
    }
}

fn text_field<'a>(value: &'a Value, name: &'static str) -> Result<Option<&'a str>, Problem> {
    match value.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Problem::field(name, format!("{name} must be a text"))),
    }
}

fn flag(value: &Value, name: &'static str) -> Result<bool, Problem> {
    match value.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(Problem::field(name, format!("{name} must be true or false"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULTS: Defaults = Defaults { output: 128, block_tokens: 16, longest: 1000 };

    fn ask(form: Form, body: &str) -> Result<ParsedRequest, Problem> {
        read(form, body.as_bytes(), &DEFAULTS)
    }

    #[test]
    fn every_form_of_the_same_text_is_the_same_prompt() {
        let text = "x".repeat(100);
        let bodies = [
            (Form::Chat, format!(r#"{{"messages":[{{"role":"user","content":"{text}"}}]}}"#)),
            (Form::Completions, format!(r#"{{"prompt":"{text}"}}"#)),
            (Form::Responses, format!(r#"{{"input":"{text}"}}"#)),
            (
                Form::Messages,
                format!(
                    r#"{{"max_tokens":128,"messages":[{{"role":"user","content":
                        [{{"type":"text","text":"{text}"}}]}}]}}"#
                ),
            ),
        ];
        let prompts: Vec<_> =
            bodies.iter().map(|(form, body)| ask(*form, body).unwrap().prompt).collect();
        assert_eq!(prompts[0].tokens, 25);
        assert!(prompts.iter().all(|prompt| *prompt == prompts[0]));
    }

    #[test]
    fn the_answer_is_as_long_as_allowed_unless_a_length_is_drawn() {
        let parsed = ask(Form::Completions, r#"{"prompt":"hello"}"#).unwrap();
        assert_eq!((parsed.output, parsed.stops), (128, false));
        let parsed = ask(Form::Completions, r#"{"prompt":"hello","max_tokens":7}"#).unwrap();
        assert_eq!((parsed.output, parsed.stops), (7, false));
        let drawn = |seed: u32| {
            let body = format!(r#"{{"prompt":"hello","min_tokens":5,"seed":{seed}}}"#);
            ask(Form::Completions, &body).unwrap().output
        };
        assert!((5..=128).contains(&drawn(1)));
        assert_eq!(drawn(1), drawn(1));
        assert!((0..9).any(|seed| drawn(seed) != drawn(1)));
    }

    #[test]
    fn tokens_by_number_count_as_tokens() {
        let parsed = ask(Form::Completions, r#"{"prompt":[1,2,3,4,5]}"#).unwrap();
        assert_eq!(parsed.prompt.tokens, 5);
    }

    #[test]
    fn an_answer_that_was_begun_is_gone_on_with_only_if_asked() {
        let chat = |begun: &str, more: &str| {
            let body = format!(
                r#"{{"messages":[{{"role":"user","content":"hello"}},
                    {{"role":"assistant","content":"{begun}"}}]{more}}}"#
            );
            ask(Form::Chat, &body).unwrap().prompt
        };
        let plain = ask(Form::Completions, r#"{"prompt":"hello many words"}"#).unwrap().prompt;
        let flag = r#","continue_final_message":true,"add_generation_prompt":false"#;
        let continued = chat(" many words", flag);
        assert_eq!(continued.parsed, plain.parsed);
        // Two for `hello`, and each word was a token.
        assert_eq!(continued.tokens, 4);
        assert_ne!(chat(" many words", "").parsed, plain.parsed);
        let both = r#"{"messages":[{"content":"x"}],"continue_final_message":true,
            "add_generation_prompt":true}"#;
        assert!(ask(Form::Chat, both).is_err());
    }

    #[test]
    fn what_is_wrong_is_named() {
        let cases = [
            (Form::Chat, "[]", "object"),
            (Form::Chat, "{", "JSON"),
            (Form::Chat, "{}", "messages"),
            (Form::Chat, r#"{"messages":[]}"#, "empty"),
            (Form::Completions, r#"{"prompt":"x","max_tokens":0}"#, "at least 1"),
            (Form::Completions, r#"{"prompt":"x","max_tokens":"9"}"#, "whole number"),
            (Form::Completions, r#"{"prompt":"x","max_tokens":1000}"#, "1001 tokens"),
            (Form::Completions, r#"{"prompt":"x","stream":1}"#, "true or false"),
            (Form::Completions, r#"{"prompt":"x","n":2}"#, "one completion"),
            (Form::Messages, r#"{"messages":[{"content":"x"}]}"#, "max_tokens"),
        ];
        for (form, body, word) in cases {
            let problem = ask(form, body).unwrap_err();
            assert!(problem.message.contains(word), "{body}: {problem}");
            assert_eq!(problem.status, StatusCode::BAD_REQUEST);
        }
    }
}
