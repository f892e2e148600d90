//! Whose a public name is. Pure.
//!
//! Names are given by tenants, and nothing keeps two of them from giving the same. Requests are counted
//! for the model whose engines get them: gateways say in which namespace those are. Where they do not
//! say, a name that several models have is nobody's, because demand of another is worse than none.

use flyball_core::ids::ModelId;
use flyball_resources::ModelService;
use flyball_resources::stream::PublicName;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Every public name, and the models that have it.
#[derive(Clone, Debug, Default)]
pub struct Names(BTreeMap<String, Vec<ModelId>>);

/// A name that other models have too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedName {
    /// The name.
    pub name: String,
    /// The others.
    pub with: Vec<ModelId>,
}

impl Names {
    /// Of these models, also of those whose spec is refused: their engines may serve all the same.
    pub fn of(models: &[Arc<ModelService>]) -> Self {
        let mut names: BTreeMap<String, Vec<ModelId>> = BTreeMap::new();
        for model in models {
            let Ok(id) = model.id() else { continue };
            for name in model.public_names() {
                names.entry(name).or_default().push(id.clone());
            }
        }
        Self(names)
    }

    /// The model that requests for a name are for, if that is clear.
    pub fn owner(&self, public: &PublicName) -> Option<&ModelId> {
        let all = self.0.get(&public.name)?.iter();
        let has_namespace = !public.namespace.is_empty();
        let mut fit =
            all.filter(|id| !has_namespace || id.namespace().as_str() == public.namespace);
        let first = fit.next()?;
        fit.next().is_none().then_some(first)
    }

    /// The names of a model that others have too.
    pub fn shared(&self, id: &ModelId, model: &ModelService) -> Vec<SharedName> {
        let others = |name: String| {
            let all = self.0.get(&name).into_iter().flatten();
            let with: Vec<_> = all.filter(|other| *other != id).cloned().collect();
            (!with.is_empty()).then_some(SharedName { name, with })
        };
        model.public_names().into_iter().filter_map(others).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{GatewayReport, ReportBook};
    use crate::observe::demand::Signals;
    use crate::observe::{Facts, Gateways, ObservedCluster, ObservedMemory, observe};
    use flyball_core::decision::Previous;
    use flyball_core::units::Micros;
    use flyball_resources::stream::{ModelDemand, ModelOrders, Protocol};
    use serde_json::json;
    use std::time::{Duration, SystemTime};

    fn model(namespace: &str, name: &str, names: &[&str]) -> Arc<ModelService> {
        let model = json!({
            "apiVersion": "flyball.dev/v1alpha1", "kind": "ModelService",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"names": names, "variants": []},
        });
        Arc::new(serde_json::from_value(model).unwrap())
    }

    fn owner(names: &Names, namespace: &str, name: &str) -> Option<String> {
        let public = PublicName { namespace: namespace.to_owned(), name: name.to_owned() };
        names.owner(&public).map(ToString::to_string)
    }

    #[test]
    fn a_name_is_that_of_the_namespace_that_gateways_send_it_to() {
        let prod = model("prod", "llama", &[]);
        let staging = model("staging", "llama", &["llama", "next"]);
        let names = Names::of(&[Arc::clone(&prod), Arc::clone(&staging)]);
        assert_eq!(owner(&names, "prod", "llama").as_deref(), Some("prod/llama"));
        assert_eq!(owner(&names, "staging", "llama").as_deref(), Some("staging/llama"));
        assert_eq!(owner(&names, "other", "llama"), None);
        // Not told where: only a name that one has is clear.
        assert_eq!(owner(&names, "", "llama"), None);
        assert_eq!(owner(&names, "", "next").as_deref(), Some("staging/llama"));
        let shared = names.shared(&prod.id().unwrap(), &prod);
        assert_eq!(shared.len(), 1);
        assert_eq!(
            (shared[0].name.as_str(), shared[0].with[0].to_string().as_str()),
            ("llama", "staging/llama")
        );
        assert_eq!(names.shared(&staging.id().unwrap(), &staging).len(), 1);
    }

    #[test]
    fn a_name_that_two_models_of_one_namespace_have_is_nobodys() {
        let both = [model("prod", "a", &["llama"]), model("prod", "b", &["llama"])];
        let names = Names::of(&both);
        assert_eq!(owner(&names, "prod", "llama"), None);
        assert_eq!(owner(&names, "", "llama"), None);
        assert_eq!(names.shared(&both[0].id().unwrap(), &both[0])[0].with.len(), 1);
    }

    /// Prod and staging serve a model under one name; a gateway tells of it as that of `namespace`.
    fn observed(namespace: &str) -> (Facts, ObservedCluster) {
        let served = |namespace: &str, first_token: u32| {
            let model = json!({
                "apiVersion": "flyball.dev/v1alpha1", "kind": "ModelService",
                "metadata": {"name": "llama", "namespace": namespace},
                "spec": {
                    "objectives": {"firstTokenMilliseconds": first_token},
                    "variants": [{"targetRef": {"kind": "Deployment", "name": "llama"}}],
                },
            });
            Arc::new(serde_json::from_value(model).unwrap())
        };
        let facts =
            Facts { models: vec![served("prod", 500), served("staging", 50)], ..Facts::default() };
        let demand = ModelDemand {
            model: "llama".to_owned(),
            namespace: namespace.to_owned(),
            backlog_tokens: 700,
            ..ModelDemand::default()
        };
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
        let report = GatewayReport {
            gateway: "gateway-0".to_owned(),
            version: String::new(),
            protocol: Protocol::OURS,
            started: SystemTime::UNIX_EPOCH,
            since: SystemTime::UNIX_EPOCH,
            last_seen: now,
            gone: false,
            reported_at: Some(now),
            orders: 0,
            models: [demand].into(),
            past: std::collections::VecDeque::new(),
            endpoints: [].into(),
            left_out: 0,
        };
        let waited_for = [PublicName { namespace: namespace.to_owned(), name: "llama".to_owned() }];
        let mut signals = Signals::default();
        let time = (crate::time::of_system(now), Micros::from_seconds(60));
        let book = ReportBook { reports: vec![report], ..ReportBook::default() };
        Gateways::default().add(&mut signals, &book, &waited_for.into(), &facts, time);
        let seen = observe(&facts, &signals, &mut ObservedMemory::default(), time);
        (facts, seen)
    }

    fn backlogs(seen: &ObservedCluster) -> Vec<Option<u64>> {
        let models = seen.snapshot.models.values();
        models.map(|model| model.demand.backlog.fresh().map(|tokens| tokens.get())).collect()
    }

    #[test]
    fn two_models_of_one_name_do_not_both_see_the_demand() {
        assert_eq!(backlogs(&observed("prod").1), [Some(700), None]);
        assert_eq!(backlogs(&observed("staging").1), [None, Some(700)]);
        assert_eq!(backlogs(&observed("").1), [None, None], "nobody knows whose it is");
        let (_, seen) = observed("prod");
        assert!(seen.models.values().all(|model| model.shared_names.len() == 1), "both are told");
    }

    #[test]
    fn orders_of_two_models_of_one_name_are_kept_apart() {
        let (facts, seen) = observed("prod");
        let decision = flyball_core::testing::hold(&seen.snapshot, &Previous::none());
        let orders = crate::build::orders(&facts, &seen, &decision, &[]);
        let listed = |order: &ModelOrders| (order.namespace.clone(), order.first_token_ms);
        let listed: Vec<_> = orders.models.iter().map(listed).collect();
        assert_eq!(listed, [("prod".to_owned(), Some(500)), ("staging".to_owned(), Some(50))]);
    }
}
