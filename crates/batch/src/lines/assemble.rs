//! Chunks of a stream put together to the answer that it would have been.

use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// An answer as it comes.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    /// What is said about the whole: the first of each, and the last `usage`.
    head: Map<String, Value>,
    choices: BTreeMap<u64, Map<String, Value>>,
    chunks: u64,
}

impl Assembly {
    /// The next chunk.
    pub(super) fn push(&mut self, chunk: Map<String, Value>) {
        self.chunks += 1;
        for (key, value) in chunk {
            match (key.as_str(), value) {
                ("choices", Value::Array(choices)) => choices.into_iter().for_each(|choice| {
                    if let Value::Object(choice) = choice {
                        self.choice(choice);
                    }
                }),
                ("usage", value) if !value.is_null() => {
                    self.head.insert(key, value);
                }
                ("object", Value::String(object)) => {
                    let object = object.trim_end_matches(".chunk").to_owned();
                    self.head.entry(key).or_insert(object.into());
                }
                (_, value) => {
                    let known = self.head.entry(key).or_insert(Value::Null);
                    if known.is_null() {
                        *known = value;
                    }
                }
            }
        }
    }

    /// The answer; none if nothing came.
    pub(super) fn finish(self) -> Option<String> {
        if self.chunks == 0 {
            return None;
        }
        let mut whole = self.head;
        let choices = self.choices.into_iter().map(|(index, mut choice)| {
            choice.insert("index".to_owned(), index.into());
            choice.entry("finish_reason").or_insert(Value::Null);
            if let Some(Value::Object(message)) = choice.get_mut("message") {
                finish_message(message);
            }
            Value::Object(choice)
        });
        whole.insert("choices".to_owned(), choices.collect());
        serde_json::to_string(&whole).ok()
    }

    fn choice(&mut self, chunk: Map<String, Value>) {
        let index = chunk.get("index").and_then(Value::as_u64).unwrap_or(0);
        let choice = self.choices.entry(index).or_default();
        for (key, value) in chunk {
            match (key.as_str(), value) {
                ("delta", Value::Object(delta)) => {
                    let message = choice.entry("message").or_insert_with(|| Map::new().into());
                    if let Value::Object(message) = message {
                        delta.into_iter().for_each(|(key, value)| join(message, key, value));
                    }
                }
                ("text" | "logprobs", value) => join(choice, key, value),
                (_, value) => {
                    let known = choice.entry(key).or_insert(Value::Null);
                    if !value.is_null() {
                        *known = value;
                    }
                }
            }
        }
    }
}

fn finish_message(message: &mut Map<String, Value>) {
    message.entry("role").or_insert_with(|| "assistant".into());
    message.entry("content").or_insert(Value::Null);
    if let Some(Value::Array(calls)) = message.get_mut("tool_calls") {
        for call in calls.iter_mut().filter_map(Value::as_object_mut) {
            call.remove("index");
        }
    }
}

/// Texts and lists go on, objects are joined key by key; of the rest the last that is not null counts.
fn join(into: &mut Map<String, Value>, key: String, more: Value) {
    let is_name = matches!(key.as_str(), "role" | "id" | "type");
    let known = into.entry(key).or_insert(Value::Null);
    match (known, more) {
        (_, Value::Null) => {}
        (Value::String(known), Value::String(more)) if !is_name => known.push_str(&more),
        (Value::Array(known), Value::Array(more)) => {
            more.into_iter().for_each(|item| join_item(known, item));
        }
        (known @ Value::Null, Value::Array(more)) => {
            let mut items = Vec::new();
            more.into_iter().for_each(|item| join_item(&mut items, item));
            *known = items.into();
        }
        (Value::Object(known), Value::Object(more)) => {
            more.into_iter().for_each(|(key, value)| join(known, key, value));
        }
        (known, more) => *known = more,
    }
}

/// An item that says its place belongs to the one at that place; any other is a further one.
fn join_item(items: &mut Vec<Value>, item: Value) {
    let place = |item: &Value| item.get("index").and_then(Value::as_u64);
    let at = place(&item);
    let known = items.iter_mut().find(|known| at.is_some() && place(known) == at);
    match (known, item) {
        (Some(Value::Object(known)), Value::Object(more)) => {
            more.into_iter().for_each(|(key, value)| join(known, key, value));
        }
        (_, item) => items.push(item),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(chunks: &[&str]) -> Value {
        let mut assembly = Assembly::default();
        chunks.iter().for_each(|chunk| assembly.push(serde_json::from_str(chunk).unwrap()));
        serde_json::from_str(&assembly.finish().unwrap()).unwrap()
    }

    #[test]
    fn a_chat_is_what_it_would_have_been() {
        let chunks = [
            r#"{"id":"c1","object":"chat.completion.chunk","created":5,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}"#,
            r#"{"id":"c1","object":"chat.completion.chunk","created":5,"model":"m","choices":[{"index":0,"delta":{"content":"Hel"},"logprobs":{"content":[{"token":"Hel"}]},"finish_reason":null}],"usage":null}"#,
            r#"{"choices":[{"index":1,"delta":{"content":"two","reasoning_content":"hm"},"finish_reason":"length"}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"lo"},"logprobs":{"content":[{"token":"lo"}]},"finish_reason":"stop"}]}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}"#,
        ];
        let expected: Value = serde_json::from_str(
            r#"{"id":"c1","object":"chat.completion","created":5,"model":"m","choices":[
                {"index":0,"message":{"role":"assistant","content":"Hello"},"logprobs":{"content":[{"token":"Hel"},{"token":"lo"}]},"finish_reason":"stop"},
                {"index":1,"message":{"role":"assistant","content":"two","reasoning_content":"hm"},"finish_reason":"length"}],
                "usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}"#,
        )
        .unwrap();
        assert_eq!(whole(&chunks), expected);
    }

    #[test]
    fn calls_of_tools_are_joined_by_their_place() {
        let chunks = [
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"t1","type":"function","function":{"name":"f","arguments":""}}]}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\""}},{"index":1,"id":"t2","type":"function","function":{"name":"g","arguments":"{}"}}]}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]},"finish_reason":"tool_calls"}]}"#,
        ];
        let message = &whole(&chunks)["choices"][0]["message"];
        let expected: Value = serde_json::from_str(
            r#"{"role":"assistant","content":null,"tool_calls":[
                {"id":"t1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},
                {"id":"t2","type":"function","function":{"name":"g","arguments":"{}"}}]}"#,
        )
        .unwrap();
        assert_eq!(*message, expected);
    }

    #[test]
    fn a_completion_is_joined_and_nothing_is_nothing() {
        let chunks = [
            r#"{"object":"text_completion","choices":[{"index":0,"text":"a","logprobs":null,"finish_reason":null}]}"#,
            r#"{"object":"text_completion","choices":[{"index":0,"text":"b","logprobs":null,"finish_reason":"length"}]}"#,
        ];
        let whole = whole(&chunks);
        assert_eq!(whole["choices"][0]["text"], "ab");
        assert_eq!(whole["choices"][0]["finish_reason"], "length");
        assert_eq!(whole["object"], "text_completion");
        assert_eq!(Assembly::default().finish(), None);
    }
}
