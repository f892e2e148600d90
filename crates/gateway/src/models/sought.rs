//! What discovery is asked for, by the settings of models. Pure.

use crate::settings::{ModelServicePods, ModelSettings, VariantPods};
use flyball_fleet::discover::{PodsPlace, Sought, VariantPlace, selector};

/// The places of these models. Of two lists of settings that differ in nothing else they are the same, so that no
/// watch begins anew.
pub(crate) fn sought(models: &[ModelSettings]) -> Vec<Sought> {
    models.iter().map(Sought::from).collect()
}

impl From<&ModelSettings> for Sought {
    fn from(model: &ModelSettings) -> Self {
        Self {
            name: model.name.clone(),
            endpoints: model.endpoints.clone(),
            service: model.service.clone(),
            pool: model.pool.clone(),
            pods: model.model_service.as_ref().map(pods_of),
            engine: model.engine,
        }
    }
}

/// A variant whose selector cannot be read has no pods: to choose all of a namespace's would be worse.
fn pods_of(from: &ModelServicePods) -> PodsPlace {
    let variant = |pods: &VariantPods| {
        let selector = selector::read(&pods.selector)?;
        let VariantPods { port, named_port, engine, .. } = *pods;
        Some(VariantPlace { selector, port, named_port, engine })
    };
    PodsPlace {
        namespace: from.namespace.clone(),
        variants: from.variants.iter().filter_map(variant).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(selector: &str) -> ModelSettings {
        let variant =
            VariantPods { selector: selector.to_owned(), port: 1, ..VariantPods::default() };
        let (namespace, variants) = ("team".to_owned(), vec![variant]);
        let from = ModelServicePods { namespace, variants, ..ModelServicePods::default() };
        ModelSettings { model_service: Some(from), ..ModelSettings::default() }
    }

    #[test]
    fn only_a_change_of_place_is_looked_for_anew() {
        let before = model("app=a");
        let patient = ModelSettings { queue_ms: before.queue_ms + 1, ..before.clone() };
        let before = sought(&[before]);
        assert_eq!(before, sought(&[patient]));
        assert_ne!(before, sought(&[model("app=b")]));
    }

    #[test]
    fn a_variant_whose_selector_cannot_be_read_has_no_pods() {
        let variants = |selector: &str| Sought::from(&model(selector)).pods.unwrap().variants.len();
        assert_eq!((variants("app=a"), variants("app like a"), variants("")), (1, 0, 0));
    }
}
