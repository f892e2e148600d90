//! Batches that are there.

use super::Api;
use super::answer::{ApiBody, ApiError, json};
use super::callers::CallingTenant;
use super::listing::{Listing, page};
use crate::forms::{BatchObject, BatchStatus, is_id, seconds};
use crate::state::{BatchKey, StateError, listed_segments, newest, put_next};
use crate::worker;
use flyball_ledger::store::Store;
use http::{Response, StatusCode};

/// Batches of a page, unless a caller wants more, and at most.
const PAGE: (usize, usize) = (20, 100);

/// Others may change a batch at the same moment so often.
const TRIES: usize = 10;

impl<S: Store + 'static> Api<S> {
    pub(super) async fn list_batches(
        &self,
        tenant: &CallingTenant,
        query: &str,
    ) -> Result<Response<ApiBody>, ApiError> {
        let listing = Listing::read(query, PAGE.0, PAGE.1)?;
        let prefix = format!("ids/{}/", tenant.folder);
        let listed = self.store.list(&prefix).await.map_err(StateError::from)?;
        let id = |path: &str| path.strip_prefix(&prefix).map(str::to_owned);
        let ids = listed.iter().filter_map(|object| id(&object.path)).collect();
        let mut found = Vec::new();
        let mut has_more = false;
        for id in listing.of(ids) {
            if found.len() == listing.limit {
                has_more = true;
                break;
            }
            // One whose creation broke off has an id and no state.
            found.extend(self.batch(tenant, &id).await?);
        }
        Ok(json(&page(found, has_more, |batch| &batch.id)))
    }

    pub(super) async fn get_batch(
        &self,
        tenant: &CallingTenant,
        id: &str,
    ) -> Result<Response<ApiBody>, ApiError> {
        let batch = self.batch(tenant, id).await?;
        Ok(json(&batch.ok_or_else(|| ApiError::no_batch(id))?))
    }

    pub(super) async fn cancel(
        &self,
        tenant: &CallingTenant,
        id: &str,
    ) -> Result<Response<ApiBody>, ApiError> {
        let Some(key) = key(tenant, id) else { return Err(ApiError::no_batch(id)) };
        cancel(&*self.store, &key, seconds(worker::now())).await?;
        self.get_batch(tenant, id).await
    }

    /// A batch with what is done of it by now.
    async fn batch(
        &self,
        tenant: &CallingTenant,
        id: &str,
    ) -> Result<Option<BatchObject>, ApiError> {
        let Some(key) = key(tenant, id) else { return Ok(None) };
        let Some(stored) = newest(&*self.store, &key).await? else { return Ok(None) };
        let mut batch = stored.record.batch;
        if !batch.status.is_terminal() {
            let counts = &mut batch.request_counts;
            for segment in listed_segments(&*self.store, &key).await? {
                counts.completed += segment.completed;
                counts.failed += segment.failed;
            }
            // A line that ran twice is in two segments.
            counts.completed = counts.completed.min(counts.total);
            counts.failed = counts.failed.min(counts.total - counts.completed);
        }
        Ok(Some(batch))
    }
}

fn key(tenant: &CallingTenant, id: &str) -> Option<BatchKey> {
    is_id(id, "batch_").then(|| BatchKey { tenant: tenant.folder.clone(), id: id.to_owned() })
}

/// Asks for a batch to end. Its worker stops its lines and puts together what there is.
pub(crate) async fn cancel<S: Store>(store: &S, key: &BatchKey, now: u64) -> Result<(), ApiError> {
    for _ in 0..TRIES {
        let stored = newest(store, key).await?.ok_or_else(|| ApiError::no_batch(&key.id))?;
        let status = stored.record.batch.status;
        if status == BatchStatus::Cancelling {
            return Ok(());
        }
        if status.is_terminal() || status == BatchStatus::Finalizing {
            let message = format!("Cannot cancel a batch with status '{}'.", status.word());
            return Err(ApiError::new(StatusCode::CONFLICT, "not_cancellable", &message));
        }
        let mut next = stored.record;
        next.batch.enter(BatchStatus::Cancelling, now);
        if put_next(store, key, Some(stored.number), next).await?.is_some() {
            return Ok(());
        }
    }
    let message = "The batch changes all the time. Try again.";
    Err(ApiError::new(StatusCode::CONFLICT, "conflict", message))
}
