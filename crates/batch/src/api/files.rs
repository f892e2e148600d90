//! Files that are there.

use super::Api;
use super::answer::{ApiBody, ApiError, json};
use super::callers::CallingTenant;
use super::listing::{Listing, page};
use crate::forms::{Deleted, FileObject, is_id, seconds};
use crate::state::{FileReader, OPEN, StateError, erase, file_object, newest, open_batch};
use crate::worker;
use bytes::Bytes;
use flyball_ledger::store::Store;
use futures::stream;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use std::io;
use std::sync::Arc;

/// Files of a page.
const PAGE: usize = 10_000;

impl<S: Store + 'static> Api<S> {
    pub(super) async fn list_files(
        &self,
        tenant: &CallingTenant,
        query: &str,
    ) -> Result<Response<ApiBody>, ApiError> {
        let listing = Listing::read(query, PAGE, PAGE)?;
        let prefix = format!("files/{}/", tenant.folder);
        let listed = self.store.list(&prefix).await.map_err(StateError::from)?;
        let id = |path: &str| Some(path.strip_prefix(&prefix)?.strip_suffix(".json")?.to_owned());
        let ids = listed.iter().filter_map(|object| id(&object.path)).collect();
        let mut found = Vec::new();
        let mut has_more = false;
        for id in listing.of(ids) {
            let Some(file) = self.file(tenant, &id).await? else { continue };
            let is_wanted = listing.purpose.as_deref().is_none_or(|p| p == file.purpose.word());
            if is_wanted && found.len() == listing.limit {
                has_more = true;
                break;
            }
            found.extend(is_wanted.then_some(file));
        }
        Ok(json(&page(found, has_more, |file| &file.id)))
    }

    pub(super) async fn get_file(
        &self,
        tenant: &CallingTenant,
        id: &str,
    ) -> Result<Response<ApiBody>, ApiError> {
        let file = self.file(tenant, id).await?;
        Ok(json(&file.ok_or_else(|| ApiError::no_file(id))?))
    }

    /// Sends a file part by part, as fast as it is read.
    pub(super) async fn content(
        &self,
        tenant: &CallingTenant,
        id: &str,
    ) -> Result<Response<ApiBody>, ApiError> {
        let file = self.file(tenant, id).await?.ok_or_else(|| ApiError::no_file(id))?;
        let reader = FileReader::new(&tenant.folder, &file);
        let begin = (reader, Arc::clone(&self.store), 0);
        let parts = stream::try_unfold(begin, |(mut reader, store, part)| async move {
            if part == reader.parts() {
                return Ok::<_, io::Error>(None);
            }
            let bytes: Bytes = reader
                .part(&*store, part)
                .await
                .map_err(|why| io::Error::other(why.to_string()))?;
            Ok(Some((Frame::data(bytes), (reader, store, part + 1))))
        });
        let mut response = Response::new(StreamBody::new(parts).boxed_unsync());
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
        headers.insert(CONTENT_LENGTH, HeaderValue::from(file.bytes));
        Ok(response)
    }

    pub(super) async fn delete_file(
        &self,
        tenant: &CallingTenant,
        id: &str,
    ) -> Result<Response<ApiBody>, ApiError> {
        if self.file(tenant, id).await?.is_none() {
            return Err(ApiError::no_file(id));
        }
        for object in self.store.list(OPEN).await.map_err(StateError::from)? {
            let Some((_, key)) = open_batch(&object.path) else { continue };
            if key.tenant != tenant.folder {
                continue;
            }
            let open = newest(&*self.store, &key).await?;
            if open.is_some_and(|open| open.record.batch.input_file_id == id) {
                let message = format!("Batch {} reads this file; cancel it first.", key.id);
                return Err(ApiError::new(StatusCode::CONFLICT, "file_in_use", &message));
            }
        }
        erase(&*self.store, &tenant.folder, id).await?;
        Ok(json(&Deleted { id: id.to_owned(), object: "file", deleted: true }))
    }

    /// A file that is there for this tenant.
    pub(super) async fn file(
        &self,
        tenant: &CallingTenant,
        id: &str,
    ) -> Result<Option<FileObject>, ApiError> {
        if !is_id(id, "file-") {
            return Ok(None);
        }
        let file = file_object(&*self.store, &tenant.folder, id).await?;
        Ok(file.filter(|file| !file.is_over(seconds(worker::now()))))
    }
}
