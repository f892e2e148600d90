//! `flyball why run/NAME`: where a training run stands, in three sentences: how far it is, where it should be, what it cost
//! and lost.

use flyball_resources::TrainingRun;
use flyball_resources::training_run::{RunMode, RunPreemption, TrainingRunStatus};
use schemars::JsonSchema;
use serde::Serialize;

use crate::cluster::Cluster;
use crate::flags::ClusterArgs;
use crate::moment::clock_of;
use crate::output::{Answer, Detail, Document, Failure, plural};
use crate::served::{find_one, full_name};
use crate::training_run::{RunState, condition_text, fresh};

/// Where a training run stands, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WhyRun {
    /// The run, `namespace/name`.
    run: String,
    /// How far it is, and whether it will be in time.
    progress: String,
    /// Where it should be, and why.
    decision: String,
    /// What it cost, and what was lost.
    cost: String,
}

/// Reads it.
pub(super) async fn read(
    cluster: &Cluster,
    global: &ClusterArgs,
    name: &str,
) -> Result<WhyRun, Failure> {
    let run: TrainingRun = find_one(cluster, global, name).await?;
    Ok(WhyRun::of(&run, jiff::Timestamp::now()))
}

impl WhyRun {
    fn of(run: &TrainingRun, now: jiff::Timestamp) -> Self {
        Self {
            run: full_name(run),
            progress: progress(run, now),
            decision: decision(run),
            cost: cost(run.status.as_ref()),
        }
    }
}

fn progress(run: &TrainingRun, now: jiff::Timestamp) -> String {
    let name = full_name(run);
    let Some(status) = fresh(run) else {
        return format!(
            "It is unknown how far {name} is: the operator has not reported on it as it is now."
        );
    };
    let (reason, message) =
        condition_text(status, "Ready").unwrap_or(("unknown", "no reason is known"));
    let end = status.expected_end.as_ref().map_or_else(String::new, |end| {
        let [likely, first, last] =
            [&end.likely, &end.earliest, &end.latest].map(|at| clock_of(at, now));
        format!("; its end is expected at {likely} UTC (from {first} to {last})")
    });
    let in_time = condition_text(status, "DeadlineMet")
        .map_or_else(String::new, |(_, text)| format!(", and {text}"));
    format!("{name} is {} ({reason}): {message}{end}{in_time}.", RunState::of(run).word())
}

fn decision(run: &TrainingRun) -> String {
    let status = fresh(run);
    let Some(decision) = status.and_then(|status| status.decision.as_ref()) else {
        if RunState::of(run).is_over() {
            return "Nothing is left to decide.".to_owned();
        }
        let why = status.and_then(|status| condition_text(status, "PlacementApplied"));
        if let Some((reason, text)) = why.filter(|_| run.spec.borrow) {
            return loan(status, reason, text);
        }
        return match why {
            Some((_, missing)) => format!("Where it should be is {missing}."),
            None => "Where it should be is not known.".to_owned(),
        };
    };
    let done =
        status.and_then(|status| condition_text(status, "PlacementApplied")).map(|(_, text)| text);
    let effect = match (run.spec.mode, done) {
        (_, Some(text)) if text.ends_with("as decided") => text,
        (RunMode::Recommend, _) => "nothing is changed, because the mode is Recommend",
        (RunMode::Act, Some(text)) => text,
        (RunMode::Act, None) => "whether that is so is not known",
    };
    let message = decision.message.trim_end_matches('.');
    let size = status.and_then(|status| Some((status.size.as_ref()?, status.placement.as_ref()?)));
    let size = size.filter(|(size, placement)| size.nodes != placement.wanted_nodes);
    let size =
        size.map_or_else(String::new, |(size, _)| format!(" Recommended: {}.", size.message));
    format!("{message}; {effect}.{size}")
}

/// How its loan stands.
fn loan(status: Option<&TrainingRunStatus>, reason: &str, text: &str) -> String {
    let loan = status.and_then(|status| status.loan.as_ref());
    let last = loan.and_then(|loan| loan.take_back_seconds);
    let last =
        last.map_or_else(String::new, |seconds| format!("; the last take-back took {seconds} s"));
    format!("It borrows ({reason}): {text}{last}.")
}

fn cost(status: Option<&TrainingRunStatus>) -> String {
    let cost = status.and_then(|status| status.cost.as_ref());
    let cost = cost.map_or("What it costs is unknown".to_owned(), |cost| {
        let expected = cost.expected.as_ref();
        let expected = expected.map_or_else(String::new, |all| format!(" of {all} expected"));
        format!("It has cost {}{expected} {}", cost.spent, cost.currency)
    });
    let lost = status.map_or(&[][..], |status| status.lost.as_slice());
    let lost = match lost {
        [] => "no work was lost".to_owned(),
        lost => {
            let times: usize = lost.iter().map(|one| usize::try_from(one.times).unwrap_or(0)).sum();
            let steps: i64 = lost.iter().map(|one| one.steps).sum();
            let causes: Vec<&str> = lost.iter().map(|one| one.cause.as_str()).collect();
            let times = plural(times, "interruption");
            format!("{times} threw away {steps} steps ({})", causes.join(", "))
        }
    };
    let goodput = status.and_then(|status| status.goodput_percent.as_ref());
    let goodput = goodput.map_or_else(String::new, |share| {
        format!(", and {share} % of its time on machines became steps")
    });
    let preemption = status.and_then(|status| status.preemption.as_ref()).map(preemption);
    format!("{cost}; {lost}{goodput}.{}", preemption.unwrap_or_default())
}

/// What a preemption would cost, and when it would come.
fn preemption(known: &RunPreemption) -> String {
    let late = if known.late { " and make it late" } else { "" };
    let place = known.place.zip(known.of).filter(|(_, of)| *of > 1);
    let place = place.map_or_else(String::new, |(place, of)| {
        format!("; of {of} runs of its queue it goes as number {place}")
    });
    let lost = known.thrown_away_gpu_seconds;
    format!(" A preemption now would throw away {lost} accelerator-seconds{late}{place}.")
}

impl Answer for WhyRun {
    const KIND: &'static str = "WhyRun";

    fn view(&self, _: Detail) -> Document {
        super::sentences([&self.progress, &self.decision, &self.cost])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{answer_json, answer_table, conforms};
    use serde_json::{Value, json};

    fn condition(kind: &str, so: &str, reason: &str, message: &str) -> Value {
        json!({
            "type": kind, "status": so, "reason": reason, "message": message,
            "lastTransitionTime": "2026-11-15T14:02:10Z",
        })
    }

    fn run(name: &str, mode: &str, status: &Value) -> TrainingRun {
        serde_json::from_value(json!({
            "apiVersion": "flyball.dev/v1alpha1", "kind": "TrainingRun",
            "metadata": { "name": name, "namespace": "ml", "generation": 2 },
            "spec": { "workloadRef": { "kind": "Job", "name": name }, "mode": mode },
            "status": status,
        }))
        .unwrap()
    }

    fn status(conditions: &[Value], decided: bool) -> Value {
        let decision = json!({
            "id": "1", "at": "2026-11-15T14:00:00Z", "choice": "spot in a", "reason": "RunSpotCheaper",
            "message": "spot in a: Spot is the cheapest way to finish in time. Expected cost to finish: spot in a 6.52 USD; slack 15 h.",
            "latestOnDemandAt": "2026-11-16T05:00:00Z",
        });
        json!({
            "observedGeneration": 2,
            "decision": if decided { decision } else { Value::Null },
            "expectedEnd": {
                "earliest": "2026-11-15T15:43:00Z", "likely": "2026-11-15T15:50:00Z",
                "latest": "2026-11-15T16:03:00Z", "origin": "Measured",
            },
            "cost": { "spent": "3.6000", "expected": "10.1200", "currency": "USD" },
            "goodputPercent": "91.2",
            "lost": [{ "cause": "Reclaimed", "times": 2, "steps": 61, "seconds": 610 }],
            "conditions": conditions,
        })
    }

    #[test]
    fn three_sentences_say_where_a_run_stands() {
        let ready = condition("Ready", "True", "RunProgressing", "at step 360 of 1000");
        let in_time = condition("DeadlineMet", "True", "RunSpotCheaper", "it can still lose 15 h");
        let placed = |text| condition("PlacementApplied", "True", "RunSpotCheaper", text);
        let advised = [ready.clone(), in_time.clone(), placed("spot in a is recommended")];
        let done = [ready.clone(), in_time, placed("it is on spot in a, as decided")];
        let unknown = [ready, placed("not known: a deadline, the price of on-demand machines")];
        let over = [
            condition("Ready", "True", "RunComplete", "the job has ended with success"),
            condition("Complete", "True", "RunComplete", "the job has ended with success"),
        ];
        let all = [
            run("advised", "Recommend", &status(&advised, true)),
            run("done", "Act", &status(&done, true)),
            run("unknown", "Recommend", &status(&unknown, false)),
            run("over", "Act", &json!({ "observedGeneration": 2, "conditions": over })),
            run("new", "Recommend", &Value::Null),
        ];
        let now = "2026-11-15T14:05:00Z".parse().unwrap();
        let whys: Vec<WhyRun> = all.iter().map(|one| WhyRun::of(one, now)).collect();
        whys.iter().for_each(|why| conforms("why-run", &answer_json(why)));
        let tables: Vec<String> = whys.iter().map(|why| answer_table(why, Detail::Full)).collect();
        insta::assert_snapshot!(tables.join("\n"));
    }
}
