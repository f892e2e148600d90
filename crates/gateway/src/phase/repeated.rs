//! A request whose answer is in the cache.

use super::Phase;
use super::aimed::Aimed;
use super::open::Open;
use crate::answer_cache::Answer;
use crate::finished::{Finished, RequestOutcome};
use bytes::Bytes;
use http::Response;
use std::time::Duration;

/// A request that gets an answer again.
struct Repeated {
    aimed: Aimed,
    status: u16,
    bytes_out: u64,
    first: Duration,
}

impl Open<Aimed> {
    /// Gives an answer of the cache, which ends the request.
    pub(crate) fn repeat(self, answer: &Answer) -> Response<Bytes> {
        let response = answer.response();
        let (status, bytes_out) = (response.status().as_u16(), response.body().len() as u64);
        let first = self.head().age();
        let mut repeated = self.then(|aimed| Repeated { aimed, status, bytes_out, first });
        repeated.finish(RequestOutcome::Answered, None);
        response
    }
}

impl Phase for Repeated {
    fn describe<'a>(&'a self, finished: &mut Finished<'a>) {
        self.aimed.describe(finished);
        finished.cached = true;
        finished.status = self.status;
        finished.first = Some(self.first);
        finished.bytes_out = self.bytes_out;
        // No engine used a token.
        finished.estimated = false;
    }
}
