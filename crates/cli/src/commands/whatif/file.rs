//! ModelServices and Pools of a file.

use std::io::Read as _;
use std::path::Path;

use flyball_resources::admin_api::Changes;
use flyball_resources::{GROUP, ModelService, Pool};
use kube::ResourceExt as _;
use serde_json::Value;

use crate::output::{Exit, Failure, FailureCode};
use crate::served::full_name;

/// What a file asks for.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) changes: Changes,
    pub(super) words: Vec<String>,
}

/// The resources of this file; - is stdin. A model without a namespace is of the given one.
pub(super) fn read(file: &Path, namespace: Option<&str>) -> Result<Read, Failure> {
    let place = file.display().to_string();
    let text = if place == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(file)
    };
    let refused = |problems: Vec<String>| {
        Failure::new(Exit::Usage, "the resources of this file cannot be read")
            .at(place.clone())
            .problems(problems)
            .code(FailureCode::ResourceFile)
            .hint("docs/reference/resources.md describes every field")
    };
    let text = text.map_err(|error| refused(vec![error.to_string()]))?;
    parse(&text, namespace.unwrap_or("default")).map_err(refused)
}

pub(super) fn parse(text: &str, namespace: &str) -> Result<Read, Vec<String>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| {
        let text = error.to_string();
        vec![text.lines().next().unwrap_or_default().to_owned()]
    })?;
    let (mut changes, mut problems, mut others) = (Changes::default(), Vec::new(), 0);
    for (index, document) in documents.into_iter().enumerate().filter(|(_, one)| !one.is_null()) {
        let kind = document["kind"].as_str().unwrap_or_default().to_owned();
        let ours =
            document["apiVersion"].as_str().is_some_and(|version| version.starts_with(GROUP));
        let wrong = |error: serde_json::Error| format!("document {}, {kind}: {error}", index + 1);
        match kind.as_str() {
            "ModelService" if ours => match serde_json::from_value::<ModelService>(document) {
                Ok(mut model) => {
                    model.metadata.namespace.get_or_insert_with(|| namespace.to_owned());
                    changes.model_services.push(model);
                }
                Err(error) => problems.push(wrong(error)),
            },
            "Pool" if ours => match serde_json::from_value::<Pool>(document) {
                Ok(pool) => changes.pools.push(pool),
                Err(error) => problems.push(wrong(error)),
            },
            _ => others += 1,
        }
    }
    if problems.is_empty() && changes == Changes::default() {
        problems.push(format!("it has no ModelService and no Pool ({others} of other kinds)"));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let models =
        changes.model_services.iter().map(|one| format!("{} is as written", full_name(one)));
    let pools = changes.pools.iter().map(|one| format!("pool {} is as written", one.name_any()));
    let words = models.chain(pools).collect();
    Ok(Read { changes, words })
}
