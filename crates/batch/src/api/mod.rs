//! Answers clients: OpenAI's paths of files and batches.
//!
//! `callers` says who asks, `upload` takes files in, `multipart` reads their form; `files` and `batches` answer the rest.
//! Everything is in the store: any process may answer anything.

mod answer;
mod batches;
mod callers;
mod create;
mod files;
mod listing;
mod multipart;
mod upload;

pub(crate) use answer::ApiBody;
pub(crate) use callers::Callers;

/// What made-up worlds ask for as clients do.
#[cfg(test)]
pub(crate) mod worlds {
    pub(crate) use super::batches::cancel;
    pub(crate) use super::callers::CallingTenant;
    pub(crate) use super::create::{NewBatch, create};
}

use crate::forms::NewId;
use crate::worker;
use answer::ApiError;
use flyball_ledger::store::Store;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use ring::rand::{SecureRandom as _, SystemRandom};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Uploads at once; each has a part of its file in memory.
const UPLOADS: usize = 16;

/// What answers clients.
#[derive(Debug)]
pub(crate) struct Api<S> {
    store: Arc<S>,
    callers: Callers,
    /// How long files of results last, and files of input that do not say so.
    retention_seconds: u64,
    uploads: Semaphore,
    random: SystemRandom,
}

impl<S: Store + 'static> Api<S> {
    pub(crate) fn new(store: Arc<S>, callers: Callers, retention_seconds: u64) -> Self {
        let (uploads, random) = (Semaphore::new(UPLOADS), SystemRandom::new());
        Self { store, callers, retention_seconds, uploads, random }
    }

    /// The answer to a request, whatever it is.
    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Response<ApiBody> {
        if request.uri().path() == "/healthz" {
            return answer::plain("ok\n");
        }
        match self.route(request).await {
            Ok(response) => response,
            Err(error) => error.response(),
        }
    }

    async fn route(&self, request: Request<Incoming>) -> Result<Response<ApiBody>, ApiError> {
        let tenant = self.callers.tenant(request.headers())?;
        let path = request.uri().path().trim_end_matches('/').to_owned();
        let query = request.uri().query().unwrap_or_default().to_owned();
        let mut parts = path.trim_start_matches("/v1/").split('/');
        let (kind, id, act) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
        if parts.next().is_some() || !path.starts_with("/v1/") {
            return Err(ApiError::no_path(&path));
        }
        let method = request.method().clone();
        match (method, kind, id, act) {
            (Method::POST, "files", None, None) => self.upload(&tenant, request).await,
            (Method::GET, "files", None, None) => self.list_files(&tenant, &query).await,
            (Method::GET, "files", Some(id), None) => self.get_file(&tenant, id).await,
            (Method::GET, "files", Some(id), Some("content")) => self.content(&tenant, id).await,
            (Method::DELETE, "files", Some(id), None) => self.delete_file(&tenant, id).await,
            (Method::POST, "batches", None, None) => self.create(&tenant, request).await,
            (Method::GET, "batches", None, None) => self.list_batches(&tenant, &query).await,
            (Method::GET, "batches", Some(id), None) => self.get_batch(&tenant, id).await,
            (Method::POST, "batches", Some(id), Some("cancel")) => self.cancel(&tenant, id).await,
            (_, "files" | "batches", ..) => Err(ApiError::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                "Files and batches have no such method.",
            )),
            _ => Err(ApiError::no_path(&path)),
        }
    }

    /// What a new id is made from.
    fn new_id(&self) -> Result<NewId, ApiError> {
        let mut random = [0; 8];
        self.random.fill(&mut random).map_err(|_| ApiError::internal("no random numbers"))?;
        Ok(NewId { at: worker::now(), random })
    }
}
