//! Writes statuses and events.

use super::pools::SeenPool;
use super::tenants::SeenTenant;
use crate::lead::{Fence, Unwritten};
use flyball_core::reason::Reason;
use flyball_resources::admin_api::Entry;
use flyball_resources::model_service::ModelServiceStatus;
use flyball_resources::training_run::TrainingRunStatus;
use flyball_resources::{FIELD_MANAGER, ModelService, Tenant, TrainingRun};
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Error, Resource, ResourceExt as _};
use kube_runtime::events::{Event, EventType, Recorder, Reporter};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::time::Duration;

/// For one write, if the lease lasts so long.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Why nothing was told. The next look tries again.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The API server said no.
    #[error("the API server rejected the status of {0}: {1}")]
    Refused(String, String),
    /// The API server cannot be reached.
    #[error("cannot write the status of {0}: {1}")]
    Away(String, String),
    /// Something changed since the look.
    #[error("{0} changed meanwhile; its status is written at the next reconcile")]
    Moved(String),
    /// Another operator may lead by now.
    #[error("the status of {0} belongs to another operator")]
    NotLeading(String),
    /// The API server did not answer.
    #[error("the status of {0} was not written in time")]
    Late(String),
}

impl PublishError {
    /// Its word in metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Refused(..) => "refused",
            Self::Moved(_) => "conflict",
            Self::NotLeading(_) => "not-leading",
            Self::Away(..) | Self::Late(_) => "unreachable",
        }
    }
}

/// Writes to the API server.
#[derive(Clone)]
pub struct StatusPublisher {
    client: Client,
    events: Recorder,
    fence: Fence,
}

impl StatusPublisher {
    /// One that signs as this operator, and writes while it leads.
    pub fn new(client: &Client, me: &str, fence: Fence) -> Self {
        let reporter = Reporter {
            controller: "flyball.dev/operator".to_owned(),
            instance: Some(me.to_owned()),
        };
        Self { client: client.clone(), events: Recorder::new(client.clone(), reporter), fence }
    }

    /// Writes a status.
    pub async fn status(
        &self,
        service: &ModelService,
        status: &ModelServiceStatus,
    ) -> Result<(), PublishError> {
        let namespace = service.namespace().unwrap_or_default();
        let api: Api<ModelService> = Api::namespaced(self.client.clone(), &namespace);
        self.write(&api, service, status).await
    }

    /// Writes the status of a pool.
    pub async fn pool(&self, seen: &SeenPool) -> Result<(), PublishError> {
        self.write(&Api::all(self.client.clone()), seen.pool.as_ref(), &seen.status).await
    }

    /// Writes the status of a Tenant.
    pub async fn tenant(&self, seen: &SeenTenant) -> Result<(), PublishError> {
        let api: Api<Tenant> = Api::namespaced(self.client.clone(), &seen.id.namespace);
        self.write(&api, seen.tenant.as_ref(), &seen.status).await
    }

    /// Writes the status of a training run.
    pub async fn run(
        &self,
        run: &TrainingRun,
        status: &TrainingRunStatus,
    ) -> Result<(), PublishError> {
        let namespace = run.namespace().unwrap_or_default();
        self.write(&Api::namespaced(self.client.clone(), &namespace), run, status).await
    }

    /// Tells of a decision as an event. That nothing changed is no news.
    pub async fn event(&self, service: &ModelService, entry: &Entry) {
        let reason = Reason::from_name(&entry.receipt.reason);
        if let Some(reason) = reason.filter(|reason| *reason != Reason::Steady) {
            self.happened(service, reason, "Decide", &entry.receipt.message).await;
        }
    }

    /// Tells of something as an event.
    pub async fn happened(
        &self,
        of: &impl Resource<DynamicType = ()>,
        reason: Reason,
        action: &str,
        message: &str,
    ) {
        let event = Event {
            type_: if is_trouble(reason) { EventType::Warning } else { EventType::Normal },
            reason: reason.name().to_owned(),
            // The API server refuses more than 1,024 bytes.
            note: Some(message.chars().take(1_000).collect()),
            action: action.to_owned(),
            secondary: None,
        };
        let place = of.object_ref(&());
        match self.fence.within(TIMEOUT, self.events.publish(&event, &place)).await {
            // Whoever leads then tells of its own decisions.
            Ok(Ok(())) | Err(Unwritten::NotLeading) => {}
            Ok(Err(error)) => tracing::warn!(%error, "cannot write an event"),
            Err(Unwritten::Late) => tracing::warn!("an event was not written in time"),
        }
    }

    async fn write<K>(
        &self,
        api: &Api<K>,
        of: &K,
        status: &impl Serialize,
    ) -> Result<(), PublishError>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let name = &of.name_any();
        let patch = Patch::Apply(json!({
            "apiVersion": K::api_version(&()),
            "kind": K::kind(&()),
            // Only onto what it was decided on: a leader that was cut off may have sent this long ago.
            "metadata": { "name": name, "resourceVersion": of.resource_version() },
            "status": status,
        }));
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let place = of.namespace().map_or_else(String::new, |namespace| format!("{namespace}/"));
        let full = format!("{} {place}{name}", K::kind(&()));
        match self.fence.within(TIMEOUT, api.patch_status(name, &params, &patch)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(Error::Api(status))) if status.code == 409 => Err(PublishError::Moved(full)),
            Ok(Err(Error::Api(status))) if status.code < 500 && status.code != 429 => {
                Err(PublishError::Refused(full, status.message))
            }
            Ok(Err(error)) => Err(PublishError::Away(full, error.to_string())),
            Err(Unwritten::NotLeading) => Err(PublishError::NotLeading(full)),
            Err(Unwritten::Late) => Err(PublishError::Late(full)),
        }
    }
}

impl std::fmt::Debug for StatusPublisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StatusPublisher")
    }
}

/// Whether a person should look.
const fn is_trouble(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::SignalsStale
            | Reason::SignalsMissing
            | Reason::CapacityUnavailable
            | Reason::LimitReached
            | Reason::BudgetReached
            | Reason::ReplicasOwnedByOther
            | Reason::PermissionMissing
            | Reason::TargetNotFound
            | Reason::SpecRefused
            | Reason::DrainTooShort
            | Reason::DecisionHeld
            | Reason::ObjectiveUnreachable
            | Reason::ReplicaFailed
            | Reason::ReplicaSlow
            | Reason::NodeLost
            | Reason::TenantParentMissing
            | Reason::TenantParentCycle
            | Reason::TenantParentRefused
            | Reason::TenantTooDeep
            | Reason::TenantKeyDuplicate
            | Reason::TenantModelDenied
            | Reason::TenantBudgetExhausted
            | Reason::TenantBudgetAlert
            | Reason::TenantBudgetForecast
            | Reason::RunFailed
            | Reason::RunStalled
            | Reason::RunHeartbeatMissing
            | Reason::RunKindMissing
            | Reason::RunNotPlaced
            | Reason::RunBudgetSpent
            | Reason::RunAboveValue
            | Reason::RunTooLate
    )
}
