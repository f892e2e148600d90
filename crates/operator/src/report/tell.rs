//! Writes statuses and events.

use flyball_core::reason::Reason;
use flyball_resources::asked::Entry;
use flyball_resources::model_service::ModelServiceStatus;
use flyball_resources::{FIELD_MANAGER, ModelService};
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Resource as _, ResourceExt as _};
use kube_runtime::events::{Event, EventType, Recorder, Reporter};
use serde_json::json;
use std::time::Duration;

/// For one write.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Why nothing was told. The next look tries again.
#[derive(Debug, thiserror::Error)]
pub enum TellError {
    /// The API server said no.
    #[error("the status of {0} cannot be written: {1}")]
    Status(String, String),
    /// Something changed since the look.
    #[error("{0} changed meanwhile; its status waits for the next look")]
    Moved(String),
    /// The API server did not answer.
    #[error("the status of {0} was not written in time")]
    Late(String),
}

/// Writes to the API server.
#[derive(Clone)]
pub struct Teller {
    client: Client,
    events: Recorder,
}

impl Teller {
    /// One that signs as this operator.
    pub fn new(client: &Client, me: &str) -> Self {
        let reporter = Reporter {
            controller: "flyball.dev/operator".to_owned(),
            instance: Some(me.to_owned()),
        };
        Self { client: client.clone(), events: Recorder::new(client.clone(), reporter) }
    }

    /// Writes a status.
    pub async fn status(
        &self,
        service: &ModelService,
        status: &ModelServiceStatus,
    ) -> Result<(), TellError> {
        let name = service.name_any();
        let namespace = service.namespace().unwrap_or_default();
        let api: Api<ModelService> = Api::namespaced(self.client.clone(), &namespace);
        let patch = Patch::Apply(json!({
            "apiVersion": ModelService::api_version(&()),
            "kind": ModelService::kind(&()),
            // Only onto what it was decided on: a leader that was cut off may have sent this long ago.
            "metadata": { "name": name, "resourceVersion": service.resource_version() },
            "status": status,
        }));
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let full = format!("{namespace}/{name}");
        match tokio::time::timeout(TIMEOUT, api.patch_status(&name, &params, &patch)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(kube::Error::Api(status))) if status.code == 409 => Err(TellError::Moved(full)),
            Ok(Err(error)) => Err(TellError::Status(full, error.to_string())),
            Err(_) => Err(TellError::Late(full)),
        }
    }

    /// Tells of a decision as an event. That nothing changed is no news.
    pub async fn event(&self, service: &ModelService, entry: &Entry) {
        let reason = Reason::from_name(&entry.receipt.reason);
        let Some(reason) = reason.filter(|reason| *reason != Reason::Steady) else { return };
        let event = Event {
            type_: if is_trouble(reason) { EventType::Warning } else { EventType::Normal },
            reason: reason.name().to_owned(),
            // The API server refuses more than 1,024 bytes.
            note: Some(entry.receipt.message.chars().take(1_000).collect()),
            action: "Decide".to_owned(),
            secondary: None,
        };
        let place = service.object_ref(&());
        match tokio::time::timeout(TIMEOUT, self.events.publish(&event, &place)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "an event cannot be written"),
            Err(_) => tracing::warn!("an event was not written in time"),
        }
    }
}

impl std::fmt::Debug for Teller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Teller")
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
            | Reason::TargetNotFound
    )
}
