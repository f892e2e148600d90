//! Asks the API server what the identity in use may do (SelfSubjectAccessReview).
//!
//! This creates a review, which is an answer and not an object: nothing is stored.

use std::collections::BTreeMap;

use futures::StreamExt;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
    SubjectAccessReviewStatus,
};
use kube::api::{Api, PostParams};

use super::{Questions, within};
use crate::commands::check::codes::{CHECKS, Code};
use crate::commands::check::facts::Found;
use crate::commands::check::judge::permissions::{Question, questions};

/// Enough to be quick, few enough not to trip the fair queueing of the API server.
const AT_ONCE: usize = 8;

pub(super) async fn ask(
    client: &kube::Client,
    all: &Questions<'_>,
) -> BTreeMap<Code, Vec<Found<bool>>> {
    let api: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let selected: Vec<(Code, Question)> = CHECKS
        .iter()
        .filter(|check| all.selection.runs(check.code))
        .flat_map(|check| questions(check.code).into_iter().map(|question| (check.code, question)))
        .collect();
    // The limit counts for all of them together: behind a silent server the last one would
    // otherwise wait for the limits of all before it.
    let deadline = tokio::time::Instant::now() + all.limit;
    let answers: Vec<(Code, Found<bool>)> = futures::stream::iter(selected)
        .map(|(code, question)| {
            let (api, namespace) = (&api, all.namespace);
            async move {
                let review = review(&question, namespace);
                let answer = async {
                    let answer = api.create(&PostParams::default(), &review).await?;
                    Ok(answer.status)
                };
                let left = deadline.saturating_duration_since(tokio::time::Instant::now());
                let found = match within(left, answer).await {
                    Found::Known(Some(status)) => verdict(status),
                    Found::Known(None) => Found::Failed("the review came back empty".to_owned()),
                    Found::TimedOut(_) => Found::TimedOut(all.limit),
                    other => other.missed().unwrap_or(Found::Skipped),
                };
                (code, found)
            }
        })
        .buffered(AT_ONCE)
        .collect()
        .await;
    let mut access: BTreeMap<Code, Vec<Found<bool>>> = BTreeMap::new();
    for (code, answer) in answers {
        access.entry(code).or_default().push(answer);
    }
    access
}

/// A "no" is one if somebody said no, or if all who were asked had no opinion. If one of them could
/// not be asked (a webhook that is down), the "no" only means that nobody else said yes.
fn verdict(status: SubjectAccessReviewStatus) -> Found<bool> {
    let broken = status.evaluation_error.filter(|words| !words.is_empty());
    match broken {
        Some(words) if !status.allowed && status.denied != Some(true) => Found::Failed(words),
        _ => Found::Known(status.allowed),
    }
}

fn review(question: &Question, namespace: Option<&str>) -> SelfSubjectAccessReview {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let attributes = ResourceAttributes {
        verb: some(question.verb),
        group: some(question.group),
        resource: some(question.resource),
        subresource: some(question.subresource),
        // Without a namespace the question is about all of them.
        namespace: namespace.filter(|_| question.namespaced).map(str::to_owned),
        ..Default::default()
    };
    SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..Default::default()
        },
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_no_is_only_one_if_everybody_could_be_asked() {
        let status = |allowed, denied, error: Option<&str>| SubjectAccessReviewStatus {
            allowed,
            denied,
            evaluation_error: error.map(str::to_owned),
            reason: None,
        };
        let down = "webhook: connection refused";
        assert_eq!(verdict(status(false, None, None)), Found::Known(false));
        assert_eq!(verdict(status(false, None, Some(""))), Found::Known(false));
        assert_eq!(verdict(status(false, None, Some(down))), Found::Failed(down.to_owned()));
        assert_eq!(verdict(status(false, Some(true), Some(down))), Found::Known(false));
        assert_eq!(verdict(status(true, None, Some(down))), Found::Known(true));
    }
}
