//! The request for the rest of an answer.

use crate::surface::Surface;
use bytes::Bytes;
use flyball_engines::{Continue, Engine};
use serde_json::{Map, Value, json};

/// A request whose answer broke off, read as a tree. That is slow, and rare.
#[derive(Debug)]
pub(super) struct OriginalRequest {
    surface: Surface,
    fields: Map<String, Value>,
}

impl OriginalRequest {
    /// Reads a body that was passed on before.
    pub(super) fn read(surface: Surface, pieces: &[Bytes]) -> Option<Self> {
        let body = pieces.concat();
        let fields = serde_json::from_slice(&body).ok()?;
        Some(Self { surface, fields })
    }

    /// What makes an engine of this kind go on after a text of so many tokens; `None` if nothing
    /// does.
    pub(super) fn rest(&self, text: &str, tokens: u64, engine: Engine) -> Option<Bytes> {
        let mut fields = self.fields.clone();
        if self.is_near_a_stop(text) || self.counts_its_own_words() {
            return None;
        }
        for limit in ["max_tokens", "max_completion_tokens"] {
            if let Some(most) = fields.get(limit).and_then(Value::as_u64) {
                // With none left the engine broke off before it could say so.
                let left = most.checked_sub(tokens).filter(|left| *left > 0)?;
                fields.insert(limit.into(), left.into());
            }
        }
        if let Some(least) = fields.get("min_tokens").and_then(Value::as_u64) {
            fields.insert("min_tokens".into(), least.saturating_sub(tokens).into());
        }
        // Without text there is nothing to go on with: it is asked again.
        if !text.is_empty() {
            match self.surface {
                Surface::Chat => go_on_with_message(&mut fields, text, engine)?,
                _ => go_on_with_prompt(&mut fields, text)?,
            }
        }
        serde_json::to_vec(&fields).ok().map(Bytes::from)
    }

    /// Whether the text ends in the beginning of something that ends the answer. The second engine
    /// would look for that in its own words only, and not find it.
    fn is_near_a_stop(&self, text: &str) -> bool {
        let stops: Vec<&str> = match self.fields.get("stop") {
            Some(Value::String(stop)) => vec![stop],
            Some(Value::Array(stops)) => stops.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let begins = |stop: &str| {
            let ends = stop.char_indices().map(|(at, _)| at).filter(|at| *at > 0);
            ends.into_iter().any(|at| text.ends_with(&stop[..at]))
        };
        stops.into_iter().any(begins)
    }

    /// Whether what an engine wrote itself changes what it writes next: the first words would not
    /// count.
    fn counts_its_own_words(&self) -> bool {
        let penalties = ["presence_penalty", "frequency_penalty"];
        penalties.iter().filter_map(|name| self.fields.get(*name)?.as_f64()).any(|p| p != 0.0)
    }
}

/// As its table says. llama.cpp's server does so by itself (`--no-prefill-assistant` turns it off; it then says
/// something else).
fn go_on_with_message(fields: &mut Map<String, Value>, text: &str, engine: Engine) -> Option<()> {
    let messages = fields.get_mut("messages")?.as_array_mut()?;
    // A beginning of the caller's own. Engines differ in what they make of two in a row.
    if messages.last()?.get("role")? == "assistant" {
        return None;
    }
    messages.push(json!({"role": "assistant", "content": text}));
    match engine.facts().continues {
        Continue::Fields(more) => {
            fields.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())));
        }
        Continue::ByItself => {}
        Continue::Never => return None,
    }
    Some(())
}

fn go_on_with_prompt(fields: &mut Map<String, Value>, text: &str) -> Option<()> {
    // A list is several prompts, or tokens.
    let Value::String(prompt) = fields.get_mut("prompt")? else { return None };
    prompt.push_str(text);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rest(surface: Surface, body: &Value, text: &str, engine: Engine) -> Option<Value> {
        let pieces = [Bytes::from(body.to_string())];
        let rest = OriginalRequest::read(surface, &pieces)?.rest(text, 3, engine)?;
        serde_json::from_slice(&rest).ok()
    }

    fn chat(more: Value) -> Value {
        let mut body = json!({"model": "m", "stream": true, "seed": 5,
            "messages": [{"role": "user", "content": "hi"}]});
        let Value::Object(more) = more else { panic!("an object") };
        body.as_object_mut().unwrap().extend(more);
        body
    }

    #[test]
    fn each_kind_of_engine_is_asked_in_its_own_words() {
        let body = chat(json!({"max_tokens": 10, "max_completion_tokens": 8, "min_tokens": 2}));
        let of = |engine| rest(Surface::Chat, &body, "so far", engine).unwrap();
        let vllm = of(Engine::Vllm);
        assert_eq!(vllm["messages"][1], json!({"role": "assistant", "content": "so far"}));
        assert_eq!((&vllm["max_tokens"], &vllm["max_completion_tokens"]), (&json!(7), &json!(5)));
        assert_eq!((&vllm["min_tokens"], &vllm["seed"]), (&json!(0), &json!(5)));
        let flags = |body: &Value| {
            ["continue_final_message", "add_generation_prompt"].map(|name| body[name].clone())
        };
        assert_eq!(flags(&vllm), [json!(true), json!(false)]);
        assert_eq!(flags(&of(Engine::Sglang)), [json!(true), Value::Null]);
        assert_eq!(flags(&of(Engine::LlamaCpp)), [Value::Null, Value::Null]);
    }

    #[test]
    fn a_prompt_grows_if_it_is_one_text() {
        let body = json!({"model": "m", "prompt": "once"});
        let longer = rest(Surface::Completions, &body, " upon", Engine::Vllm).unwrap();
        assert_eq!(longer["prompt"], "once upon");
        let list = json!({"model": "m", "prompt": ["once"]});
        assert_eq!(rest(Surface::Completions, &list, " upon", Engine::Vllm), None);
        // Nothing came yet, so it is asked again as it was.
        assert_eq!(rest(Surface::Completions, &list, "", Engine::Vllm), Some(list));
    }

    #[test]
    fn what_cannot_be_continued_truly_is_not() {
        for more in [
            json!({"max_tokens": 3}),
            json!({"presence_penalty": 0.5}),
            json!({"stop": "far away"}),
            json!({"stop": ["x", "\u{e9}r", "r\n"]}),
            json!({"messages": [{"role": "assistant", "content": "Sure, "}]}),
            json!({"messages": []}),
        ] {
            assert_eq!(
                rest(Surface::Chat, &chat(more.clone()), "so far", Engine::Vllm),
                None,
                "{more}"
            );
        }
        for more in [json!({"stop": ["o f", "End"]}), json!({"frequency_penalty": 0})] {
            assert!(rest(Surface::Chat, &chat(more), "so far", Engine::Vllm).is_some());
        }
    }
}
