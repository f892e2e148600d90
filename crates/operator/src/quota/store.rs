//! Where the record is kept: a ConfigMap in the operator's namespace.

use super::record::{self, RecordProblem};
use crate::lead::{Fence, Unwritten};
use flyball_quota::BankRecord;
use flyball_resources::labels;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ObjectMeta, PostParams};
use kube::{Client, Error, ResourceExt as _};
use std::collections::BTreeMap;
use std::time::Duration;

/// For one write, if the lease lasts so long.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Its only entry.
const KEY: &str = "record.json";

/// Why a record was not read or not written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It cannot be understood.
    #[error(transparent)]
    Problem(#[from] RecordProblem),
    /// Somebody else wrote it meanwhile: another operator leads.
    #[error("another operator has written the record of budgets")]
    Moved,
    /// This operator does not lead any more.
    #[error("this operator is not the leader any more")]
    NotLeading,
    /// The API server refused, or did not answer.
    #[error(
        "cannot reach the record of budgets: {0}; hint: check that the operator may get, create and update its ConfigMap"
    )]
    Away(String),
}

/// A place for one record.
pub trait RecordStore: Send + Sync {
    /// What is there, and its version. Nothing is an empty record without one.
    fn read(&self) -> BoxFuture<'_, Result<(BankRecord, Option<String>), StoreError>>;

    /// Writes over the version that was read or written last. The next version.
    fn write<'a>(
        &'a self,
        record: &'a BankRecord,
        version: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>>;
}

/// A record in a ConfigMap.
pub(crate) struct ConfigMapStore {
    api: Api<ConfigMap>,
    name: String,
    fence: Fence,
}

impl ConfigMapStore {
    pub(crate) fn new(client: Client, namespace: &str, name: String, fence: Fence) -> Self {
        Self { api: Api::namespaced(client, namespace), name, fence }
    }

    fn object(&self, text: String, version: Option<&str>) -> ConfigMap {
        let label = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let labels = [label(labels::APP_NAME, "flyball"), label(labels::APP_COMPONENT, "operator")];
        ConfigMap {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                labels: Some(labels.into()),
                resource_version: version.map(str::to_owned),
                ..ObjectMeta::default()
            },
            data: Some(BTreeMap::from([(KEY.to_owned(), text)])),
            ..ConfigMap::default()
        }
    }
}

impl RecordStore for ConfigMapStore {
    fn read(&self) -> BoxFuture<'_, Result<(BankRecord, Option<String>), StoreError>> {
        Box::pin(async move {
            let reading = tokio::time::timeout(TIMEOUT, self.api.get_opt(&self.name)).await;
            let found = reading.map_err(|_| StoreError::Away("no answer in time".to_owned()))?;
            let found = found.map_err(|error| StoreError::Away(error.to_string()))?;
            let Some(found) = found else { return Ok((BankRecord::default(), None)) };
            let text = found.data.as_ref().and_then(|data| data.get(KEY));
            // Made by hand, for one that may not create it.
            let record = text.map(|text| record::read(text)).transpose()?;
            Ok((record.unwrap_or_default(), found.resource_version()))
        })
    }

    fn write<'a>(
        &'a self,
        record: &'a BankRecord,
        version: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        Box::pin(async move {
            let object = self.object(record::write(record)?, version);
            let params = PostParams::default();
            let write = async {
                match version {
                    Some(_) => self.api.replace(&self.name, &params, &object).await,
                    None => self.api.create(&params, &object).await,
                }
            };
            match self.fence.within(TIMEOUT, write).await {
                Ok(Ok(written)) => Ok(written.resource_version()),
                // 404: it was deleted; the next leader finds nothing, and so does this one.
                Ok(Err(Error::Api(status))) if matches!(status.code, 404 | 409) => {
                    Err(StoreError::Moved)
                }
                Ok(Err(error)) => Err(StoreError::Away(error.to_string())),
                Err(Unwritten::NotLeading) => Err(StoreError::NotLeading),
                // It may have been written: whoever goes on has to read it first.
                Err(Unwritten::Late) => Err(StoreError::Moved),
            }
        })
    }
}
