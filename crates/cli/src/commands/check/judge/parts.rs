//! The parts Flyball stands on: there or not, which version, and do they answer?

use super::unknown;
use crate::commands::check::answer::{Outcome, Status};
use crate::commands::check::codes::Code;
use crate::commands::check::facts::{Facts, Found, Metrics, Part, Prometheus, Reply};

pub(super) fn judge(code: Code, facts: &Facts) -> Outcome {
    match code {
        Code::Kueue => controller(
            code,
            &facts.kueue,
            "no quota and no queue: TrainingRun and lending do not work; serving does",
            "training runs are not admitted, and its webhook may refuse new jobs",
        ),
        Code::JobSet => controller(
            code,
            &facts.jobset,
            "TrainingRun cannot run gangs; serving works",
            "training gangs are not started",
        ),
        Code::Prometheus => prometheus(&facts.prometheus),
        _ => metrics(&facts.metrics),
    }
}

fn controller(code: Code, part: &Part, missing: &str, down: &str) -> Outcome {
    let title = code.check().title;
    let served = match &part.served {
        Found::Known(versions) => versions.join(", "),
        Found::Absent => {
            return Outcome::new(code, Status::Warn, "not installed")
                .effect(missing)
                .hint(format!("install {title}, or leave this out with --skip {}", code.id()));
        }
        missed => return unknown(code, missed, "list the APIs of the cluster"),
    };
    match &part.controller {
        Found::Known(controller) => {
            let version = controller.version.as_deref().unwrap_or("version unknown");
            let place = &controller.place;
            if controller.available {
                Outcome::new(code, Status::Ok, format!("{version}, API {served}"))
            } else {
                let (namespace, name) = place.split_once('/').unwrap_or(("default", place));
                let detail = format!("{version} is installed, but {place} is not available");
                Outcome::new(code, Status::Fail, detail)
                    .effect(down)
                    .hint(format!("kubectl -n {namespace} describe deployment {name}"))
            }
        }
        Found::Absent => {
            let detail = format!("API {served} exists, but no controller was found for it");
            Outcome::new(code, Status::Warn, detail)
                .effect(missing)
                .hint(format!("kubectl get deployments -A | grep -i {}", title.to_lowercase()))
        }
        missed => unknown(code, missed, "read the controller's Deployment"),
    }
}

fn prometheus(found: &Found<Prometheus>) -> Outcome {
    let code = Code::Prometheus;
    let effect = "no history to record traces from; live signals are not affected";
    let prometheus = match found {
        Found::Known(prometheus) => prometheus,
        Found::Absent => {
            return Outcome::new(code, Status::Warn, "no Service of a Prometheus found")
                .effect(effect)
                .hint("flyball check --prometheus URL, if it is somewhere else");
        }
        missed => return unknown(code, missed, "list services"),
    };
    let place = &prometheus.place;
    let bad = |detail: String| {
        Outcome::new(code, Status::Warn, detail)
            .effect(effect)
            .hint("flyball check --prometheus URL, if this is not the right one")
    };
    match &prometheus.reply {
        Found::Known(Reply::Ready(version)) => {
            Outcome::new(code, Status::Ok, format!("{version}, {place}"))
        }
        Found::Known(Reply::NoOne(words)) => bad(format!("{place} is not ready: {words}")),
        Found::Known(Reply::Other) => {
            bad(format!("what answers at {place} is not Prometheus: it names no version"))
        }
        missed => {
            let outcome = unknown(code, missed, &format!("ask {place}"));
            match missed {
                Found::Failed(_) => {
                    outcome.hint("flyball check --prometheus URL, if this is not the right one")
                }
                _ => outcome,
            }
        }
    }
}

fn metrics(metrics: &Metrics) -> Outcome {
    let code = Code::ResourceMetrics;
    let effect = "processor and memory use of pods are unknown; accelerators are not affected";
    let served = match &metrics.served {
        Found::Known(versions) => versions.join(", "),
        Found::Absent => {
            return Outcome::new(code, Status::Warn, "metrics.k8s.io is not served")
                .effect(effect)
                .hint("install metrics-server, or an adapter that serves metrics.k8s.io");
        }
        missed => return unknown(code, missed, "list the APIs of the cluster"),
    };
    match &metrics.answers {
        Found::Known(Ok(())) => Outcome::new(code, Status::Ok, format!("metrics.k8s.io {served}")),
        Found::Known(Err(words)) => {
            Outcome::new(code, Status::Warn, format!("registered, but does not answer: {words}"))
                .effect(effect)
                .hint("kubectl get apiservice v1beta1.metrics.k8s.io")
        }
        missed => unknown(code, missed, "read metrics.k8s.io"),
    }
}
