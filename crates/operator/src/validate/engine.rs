//! What an engine that Flyball starts would stumble over. Pure.

use flyball_engines::Engine;
use flyball_resources::{ConversionProblem, ModelService};

/// Words that an engine's parser would take for something else.
pub(super) fn problems(model: &ModelService) -> Vec<ConversionProblem> {
    let engines = model.spec.variants.iter().filter_map(|variant| variant.engine.as_ref());
    // Who names a program gives all of its arguments.
    let kinds: Vec<Engine> =
        engines.filter(|engine| engine.command.is_empty()).map(|engine| engine.kind).collect();
    let mut problems = Vec::new();
    let mut wrong = |field: &str, what: &str| {
        problems.push(ConversionProblem { field: field.to_owned(), what: what.to_owned() });
    };
    let names = model.public_names();
    if !kinds.is_empty() {
        if names.iter().any(|name| name.starts_with('-')) {
            wrong("spec.names", "must not begin with a dash: an engine takes that for an option");
        }
        if model.spec.model.as_ref().is_some_and(|model| model.starts_with('-')) {
            wrong("spec.model", "must not begin with a dash: an engine takes that for an option");
        }
    }
    let refuses = kinds.iter().map(|kind| kind.facts()).find(|facts| !facts.launch.takes_colons);
    if let Some(facts) = refuses.filter(|_| names[0].contains(':')) {
        let what = format!("must begin with a name without a colon: {} refuses it", facts.title);
        wrong("spec.names", &what);
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::super::{ValidationRules, validate};
    use flyball_resources::ModelService;
    use serde_json::json;

    fn refused(names: &[&str], model: &str, kind: &str, command: &[&str]) -> Vec<String> {
        let engine = json!({"kind": kind, "image": "i", "command": command});
        let service: ModelService = serde_json::from_value(json!({
            "apiVersion": "flyball.dev/v1alpha1", "kind": "ModelService",
            "metadata": {"name": "m", "namespace": "a"},
            "spec": {"model": model, "names": names, "variants": [{"engine": engine}]},
        }))
        .unwrap();
        let problems = validate(&service, &ValidationRules::default()).err().unwrap_or_default();
        problems.into_iter().map(|problem| problem.field).collect()
    }

    #[test]
    fn words_that_an_engine_would_take_for_an_option_are_refused() {
        assert_eq!(refused(&["a", "-b"], "m", "VLLM", &[]), ["spec.names"]);
        assert_eq!(refused(&["a"], "--help", "LlamaCpp", &[]), ["spec.model"]);
        assert_eq!(refused(&["org/a:8b"], "m", "SGLang", &[]), ["spec.names"]);
        for fine in [
            refused(&["org/a:8b"], "m", "VLLM", &[]),
            refused(&["a", "b:8b"], "m", "SGLang", &[]),
            refused(&["-b"], "m", "VLLM", &["/mine"]),
        ] {
            assert!(fine.is_empty(), "{fine:?}");
        }
    }
}
