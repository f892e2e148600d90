//! What may change while it runs: what the settings say, in the form in which requests need it.

use crate::identify::Keys;
use crate::settings::{
    GatewaySettingsFile, ModelSettings, Recovery, RequestLimits, Timeouts, WakerSettings,
};
use crate::split::Splits;
use flyball_routing::RoutingPolicy;
use std::collections::BTreeMap;
use std::time::Duration;

/// What may change while it runs.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) limits: RequestLimits,
    pub(crate) timeouts: Timeouts,
    pub(crate) recovery: Recovery,
    pub(crate) keys: Keys,
    pub(crate) splits: Splits,
    /// Before a model that does not come is called again; `None` if nobody can call it.
    pub(crate) again: Option<Duration>,
    /// By name.
    pub(crate) models: BTreeMap<String, ModelSettings>,
}

impl Live {
    /// Of these settings; what goes on counting does so.
    pub(crate) fn new(settings: &GatewaySettingsFile, before: Option<&Self>) -> Self {
        let models = settings.models.iter().map(|model| (model.name.clone(), model.clone()));
        Self {
            limits: settings.limits,
            timeouts: settings.timeouts,
            recovery: settings.recovery,
            keys: Keys::new(
                &settings.keys,
                settings.tenants.watch,
                before.map(|before| &before.keys),
            ),
            again: again(settings),
            splits: Splits::new(&settings.splits, before.map(|before| &before.splits)),
            models: models.collect(),
        }
    }

    /// The namespace of a model's engines.
    pub(crate) fn namespace(&self, model: &str) -> Option<&str> {
        self.models.get(model).and_then(ModelSettings::namespace)
    }

    /// How engines of a model are chosen.
    pub(crate) fn policy(&self, model: &str) -> RoutingPolicy {
        self.models.get(model).map_or_else(RoutingPolicy::default, |model| model.policy.into())
    }
}

/// Before a model that does not come is called again; `None` if there is nobody to call.
fn again(settings: &GatewaySettingsFile) -> Option<Duration> {
    let hook = settings.waker.as_ref().map(|waker| waker.again_ms);
    let operator = settings.operator.as_ref().map(|_| WakerSettings::default().again_ms);
    hook.or(operator).map(Duration::from_millis)
}
