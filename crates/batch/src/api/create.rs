//! A new batch.

use super::Api;
use super::answer::{ApiBody, ApiError, json};
use super::callers::CallingTenant;
use crate::forms::{
    BatchObject, BatchStatus, ENDPOINTS, NewId, Purpose, RequestCounts, is_id, seconds,
};
use crate::state::{BatchKey, Record, StateError, file_object, put_next};
use bytes::Bytes;
use flyball_ledger::store::Store;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Bytes of such a request.
const MAX_BODY: usize = 64 << 10;

/// Time for it to come.
const BODY_TIME: Duration = Duration::from_secs(30);

/// Seconds of a window.
const WINDOW: std::ops::RangeInclusive<u64> = 60..=30 * 24 * 60 * 60;

/// Seconds that a file may be said to last.
pub(super) const EXPIRY: std::ops::RangeInclusive<u64> = 3_600..=2_592_000;

/// What a caller asks for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewBatch {
    pub(crate) input_file_id: String,
    pub(crate) endpoint: String,
    pub(crate) completion_window: String,
    #[serde(default)]
    pub(crate) metadata: Option<BTreeMap<String, String>>,
    #[serde(default)]
    pub(crate) output_expires_after: Option<ExpiresAfter>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpiresAfter {
    pub(crate) anchor: String,
    pub(crate) seconds: u64,
}

impl<S: Store + 'static> Api<S> {
    pub(super) async fn create(
        &self,
        tenant: &CallingTenant,
        request: Request<Incoming>,
    ) -> Result<Response<ApiBody>, ApiError> {
        let bytes = body(request.into_body()).await?;
        let asked: NewBatch = serde_json::from_slice(&bytes)
            .map_err(|error| ApiError::wrong("body", "invalid_request", &error.to_string()))?;
        let id = self.new_id()?;
        let batch = create(&*self.store, tenant, asked, self.retention_seconds, id).await?;
        Ok(json(&batch))
    }
}

async fn body(body: Incoming) -> Result<Bytes, ApiError> {
    let read = tokio::time::timeout(BODY_TIME, Limited::new(body, MAX_BODY).collect()).await;
    match read {
        Ok(Ok(bytes)) => Ok(bytes.to_bytes()),
        _ => Err(ApiError::wrong("body", "invalid_request", "The body did not come whole.")),
    }
}

/// Announces a batch, and then makes it. A mark without a batch is forgotten; a batch without a mark would never run.
pub(crate) async fn create<S: Store>(
    store: &S,
    tenant: &CallingTenant,
    asked: NewBatch,
    retention_seconds: u64,
    id: NewId,
) -> Result<BatchObject, ApiError> {
    let window = check(&asked)?;
    let now = seconds(id.at);
    let key = BatchKey { tenant: tenant.folder.clone(), id: id.batch() };
    let output_seconds = asked.output_expires_after.as_ref().map(|after| after.seconds);
    let batch = BatchObject {
        id: key.id.clone(),
        object: "batch".to_owned(),
        endpoint: asked.endpoint,
        model: None,
        errors: None,
        input_file_id: asked.input_file_id.clone(),
        completion_window: asked.completion_window,
        status: BatchStatus::Validating,
        output_file_id: None,
        error_file_id: None,
        created_at: now,
        in_progress_at: None,
        expires_at: Some(now + window),
        finalizing_at: None,
        completed_at: None,
        failed_at: None,
        expired_at: None,
        cancelling_at: None,
        cancelled_at: None,
        request_counts: RequestCounts::default(),
        usage: None,
        metadata: asked.metadata,
    };
    let record = Record {
        batch: batch.clone(),
        tenant: tenant.path.clone(),
        owner: None,
        epoch: 0,
        ending: None,
        ids: None,
        output_seconds: output_seconds.unwrap_or(retention_seconds),
    };
    let mark = key.open(now + window);
    store.put(&mark, Bytes::new()).await.map_err(StateError::from)?;
    let file = match file_object(store, &tenant.folder, &asked.input_file_id).await? {
        Some(file) if !file.is_over(now) => file,
        _ => {
            store.delete(&mark).await.map_err(StateError::from)?;
            let error = ApiError::no_file(&asked.input_file_id);
            return Err(ApiError { param: Some("input_file_id"), ..error });
        }
    };
    if file.purpose != Purpose::Batch {
        store.delete(&mark).await.map_err(StateError::from)?;
        let message = "The purpose of the input file must be batch.";
        return Err(ApiError::wrong("input_file_id", "invalid_purpose", message));
    }
    let listed = format!("ids/{}/{}", key.tenant, key.id);
    store.put(&listed, Bytes::new()).await.map_err(StateError::from)?;
    match put_next(store, &key, None, record).await? {
        Some(_) => Ok(batch),
        None => Err(ApiError::internal("There is such a batch already.")),
    }
}

/// Seconds of the window, if all is well.
fn check(asked: &NewBatch) -> Result<u64, ApiError> {
    if !is_id(&asked.input_file_id, "file-") {
        let error = ApiError::no_file(&asked.input_file_id);
        return Err(ApiError { param: Some("input_file_id"), ..error });
    }
    if !ENDPOINTS.contains(&asked.endpoint.as_str()) {
        let message = format!("The endpoint must be one of {}.", ENDPOINTS.join(", "));
        return Err(ApiError::wrong("endpoint", "invalid_value", &message));
    }
    let long = |(name, value): (&String, &String)| {
        name.chars().count() > 64 || value.chars().count() > 512
    };
    let metadata = asked.metadata.iter().flatten();
    if metadata.clone().count() > 16 || metadata.clone().any(long) {
        let message = "Metadata has at most 16 pairs, of 64 and 512 characters.";
        return Err(ApiError::wrong("metadata", "invalid_value", message));
    }
    if let Some(after) = &asked.output_expires_after
        && (after.anchor != "created_at" || !EXPIRY.contains(&after.seconds))
    {
        let message = "It must be 3600 to 2592000 seconds from created_at.";
        return Err(ApiError::wrong("output_expires_after", "invalid_value", message));
    }
    window(&asked.completion_window).ok_or_else(|| {
        let message = "The window must be 24h, or minutes, hours or days such as 90m, 6h, 2d, from 1m to 30d.";
        ApiError::wrong("completion_window", "invalid_value", message)
    })
}

fn window(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let unit = match unit {
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return None,
    };
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    let seconds = is_number.then(|| number.parse::<u64>().ok())??.checked_mul(unit)?;
    WINDOW.contains(&seconds).then_some(seconds)
}

#[cfg(test)]
#[test]
fn windows_are_minutes_hours_and_days() {
    assert_eq!(window("24h"), Some(86_400));
    assert_eq!(window("90m"), Some(5_400));
    assert_eq!(window("30d"), Some(2_592_000));
    for wrong in
        ["", "h", "24", "0m", "31d", "-1h", "+1h", "1.5h", "1H", "99999999999999999999d", "1ḥ"]
    {
        assert_eq!(window(wrong), None, "{wrong}");
    }
}
