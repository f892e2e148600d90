//! A store that is asked again where that changes nothing.

use bytes::Bytes;
use flyball_ledger::store::{ObjectStoreError, PutOutcome, Store, StoredObject};

/// Times that a call is made.
const TRIES: usize = 4;

/// Makes calls again that had no answer, at once: a batch takes hundreds of calls to end, and one lost answer is not worth
/// beginning again. Not those that put where nothing is: there the second answer would say something else.
#[derive(Debug)]
pub(crate) struct PatientStore<S>(pub(crate) S);

impl<S: Store> Store for PatientStore<S> {
    async fn put_new(&self, path: &str, bytes: Bytes) -> Result<PutOutcome, ObjectStoreError> {
        self.0.put_new(path, bytes).await
    }

    async fn put(&self, path: &str, bytes: Bytes) -> Result<(), ObjectStoreError> {
        again(|| self.0.put(path, bytes.clone())).await
    }

    async fn get(&self, path: &str) -> Result<Option<Bytes>, ObjectStoreError> {
        again(|| self.0.get(path)).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<StoredObject>, ObjectStoreError> {
        again(|| self.0.list(prefix)).await
    }

    async fn delete(&self, path: &str) -> Result<(), ObjectStoreError> {
        again(|| self.0.delete(path)).await
    }
}

async fn again<T, F>(call: impl Fn() -> F + Send) -> Result<T, ObjectStoreError>
where
    F: Future<Output = Result<T, ObjectStoreError>> + Send,
{
    for _ in 1..TRIES {
        match call().await {
            Err(error) if error.may_pass() => {}
            answer => return answer,
        }
    }
    call().await
}
