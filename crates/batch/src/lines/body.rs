//! What is sent for a line. All that is not about streaming stays byte for byte, in its order.

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// A body as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SentBody {
    pub(super) text: String,
    pub(super) form: AnswerForm,
}

/// How its answer comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerForm {
    /// Whole.
    Whole,
    /// In chunks, of chats or completions.
    Chunks,
    /// As events, of which the last has the response.
    Response,
}

impl SentBody {
    /// Of a body that was checked: it is an object.
    pub(super) fn of(endpoint: &str, body: &str) -> Self {
        let whole = || Self { text: body.to_owned(), form: AnswerForm::Whole };
        let Ok(object) = serde_json::from_str::<Object<'_>>(body) else { return whole() };
        let form = match endpoint {
            "/v1/chat/completions" => AnswerForm::Chunks,
            "/v1/completions" if object.may_stream() => AnswerForm::Chunks,
            "/v1/responses" => AnswerForm::Response,
            _ => AnswerForm::Whole,
        };
        let mut text = String::with_capacity(body.len() + 64);
        text.push('{');
        for (key, value) in &object.0 {
            if !["stream", "stream_options"].contains(&&**key) {
                let key = serde_json::to_string(key).unwrap_or_default();
                text.push_str(&format!("{key}:{value},"));
            }
        }
        text.push_str(match form {
            AnswerForm::Whole => "\"stream\":false}",
            AnswerForm::Chunks => "\"stream\":true,\"stream_options\":{\"include_usage\":true}}",
            AnswerForm::Response => "\"stream\":true}",
        });
        if endpoint == "/v1/embeddings" { whole() } else { Self { text, form } }
    }
}

/// An object in its order.
struct Object<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl Object<'_> {
    /// Whether chunks of a completion can be put together to what it would have been: lists of probabilities cannot, nor
    /// is there a stream of the best of several.
    fn may_stream(&self) -> bool {
        let keys = ["logprobs", "best_of", "echo", "prompt_logprobs"];
        self.0
            .iter()
            .all(|(key, value)| !keys.contains(&&**key) || ["null", "false"].contains(&value.get()))
    }
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                #[derive(serde::Deserialize)]
                struct Key<'a>(#[serde(borrow)] Cow<'a, str>);
                let mut all = Vec::new();
                while let Some((Key(key), value)) = map.next_entry::<Key<'de>, &'de RawValue>()? {
                    all.push((key, value));
                }
                Ok(Object(all))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_about_streaming_changes() {
        let body = r#"{"z": 1.0, "stream":false,"a\u0301": {"y":1,"x":[2]}, "stream_options": {}}"#;
        let sent = SentBody::of("/v1/chat/completions", body);
        assert_eq!(sent.form, AnswerForm::Chunks);
        assert_eq!(
            sent.text,
            "{\"z\":1.0,\"a\u{301}\":{\"y\":1,\"x\":[2]},\"stream\":true,\"stream_options\":{\"include_usage\":true}}"
        );
        assert_eq!(SentBody::of("/v1/responses", "{}").text, r#"{"stream":true}"#);
        let embeddings = SentBody::of("/v1/embeddings", body);
        assert_eq!((embeddings.text.as_str(), embeddings.form), (body, AnswerForm::Whole));
    }

    #[test]
    fn completions_whose_stream_would_say_less_come_whole() {
        let form = |body: &str| SentBody::of("/v1/completions", body).form;
        assert_eq!(form(r#"{"prompt":"a","logprobs":null,"echo":false}"#), AnswerForm::Chunks);
        for whole in [r#"{"logprobs":0}"#, r#"{"echo":true}"#, r#"{"best_of":2}"#] {
            assert_eq!(form(whole), AnswerForm::Whole, "{whole}");
            assert!(SentBody::of("/v1/completions", whole).text.ends_with("\"stream\":false}"));
        }
    }
}
