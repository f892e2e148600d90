//! One line of an input file.

use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Bytes of a `custom_id`.
const MAX_ID_BYTES: usize = 512;

/// What the rest of the file is compared with.
#[derive(Debug)]
pub(super) struct Checked<'a> {
    pub(super) custom_id: Cow<'a, str>,
    pub(super) model: Cow<'a, str>,
    /// Texts to embed.
    pub(super) inputs: u64,
}

/// What is wrong with a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WrongLine {
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) param: Option<&'static str>,
}

#[derive(Deserialize)]
struct Loose<'a> {
    #[serde(borrow)]
    custom_id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    url: Option<&'a RawValue>,
    #[serde(borrow)]
    body: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

pub(super) fn check<'a>(line: &'a [u8], endpoint: &str) -> Result<Checked<'a>, WrongLine> {
    let Ok(loose) = serde_json::from_slice::<Loose<'_>>(line) else {
        // An object of the right form has no types that could be wrong here.
        let message = "This line is not parseable as valid JSON.".to_owned();
        return Err(WrongLine { code: "invalid_json_line", message, param: None });
    };
    let custom_id = text(loose.custom_id, "custom_id")?;
    if custom_id.is_empty() || custom_id.len() > MAX_ID_BYTES {
        let message = format!("A custom_id has 1 to {MAX_ID_BYTES} bytes.");
        return Err(WrongLine { code: "invalid_value", message, param: Some("custom_id") });
    }
    if text(loose.method, "method")? != "POST" {
        let message = "The method of a request must be POST.".to_owned();
        return Err(WrongLine { code: "invalid_method", message, param: Some("method") });
    }
    let url = text(loose.url, "url")?;
    if url != endpoint {
        let message = format!("The url {url:?} is not the endpoint of the batch, {endpoint:?}.");
        return Err(WrongLine { code: "url_mismatch", message, param: Some("url") });
    }
    let body = loose.body.ok_or_else(|| missing("body"))?;
    let Ok(body) = serde_json::from_str::<Body<'_>>(body.get()) else {
        let message = "The body must be an object.".to_owned();
        return Err(WrongLine { code: "invalid_type", message, param: Some("body") });
    };
    let model = text(body.model, "body.model")?;
    let inputs = if endpoint == "/v1/embeddings" { inputs(body.input) } else { 0 };
    Ok(Checked { custom_id, model, inputs })
}

fn missing(param: &'static str) -> WrongLine {
    let message = format!("Missing required parameter: '{param}'.");
    WrongLine { code: "missing_required_parameter", message, param: Some(param) }
}

fn text<'a>(value: Option<&'a RawValue>, param: &'static str) -> Result<Cow<'a, str>, WrongLine> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    let value = value.ok_or_else(|| missing(param))?;
    serde_json::from_str::<Text<'_>>(value.get()).map(|text| text.0).map_err(|_| {
        let message = format!("'{param}' must be a string.");
        WrongLine { code: "invalid_type", message, param: Some(param) }
    })
}

/// A text, a list of tokens, or a list of either.
fn inputs(input: Option<&RawValue>) -> u64 {
    let Some(items) = input.and_then(|raw| serde_json::from_str::<Vec<&RawValue>>(raw.get()).ok())
    else {
        return 1;
    };
    let of_tokens = items.first().is_some_and(|item| item.get().as_bytes()[0].is_ascii_digit());
    if of_tokens { 1 } else { items.len() as u64 }
}
