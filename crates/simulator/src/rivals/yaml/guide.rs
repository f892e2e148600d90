//! The manifests of the operator's guide: they follow what is recommended, and without an answer they
//! change nothing.

use super::read;
use crate::policy::Reading;
use crate::rivals::RivalLaw;
use crate::seconds::Seconds;
use std::path::Path;

/// What the autoscaler gets when it asks.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Answer {
    Recommended(u32),
    NotANumber,
    Infinite,
    /// The series is gone, or nobody answers.
    Nothing,
}

impl Answer {
    /// Every answer that is none.
    const NONE: [Self; 3] = [Self::NotANumber, Self::Infinite, Self::Nothing];

    /// The reading stands for the series: a replay knows no number that somebody recommends, so that it is
    /// shown under the name of one that it knows.
    fn reading(self, ready: u32) -> Reading {
        let waiting = match self {
            Self::Recommended(replicas) => Some(f64::from(replicas)),
            Self::NotANumber => Some(f64::NAN),
            Self::Infinite => Some(f64::INFINITY),
            Self::Nothing => None,
        };
        Reading { ready, waiting, ..Reading::default() }
    }
}

const QUERY: &str =
    "max(flyball_model_recommended_replicas{target_namespace=\"team-a\", model=\"qwen\"})";

/// The law of a file of the guide, with changes to its text.
fn law(name: &str, change: impl Fn(String) -> String) -> Box<dyn RivalLaw> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/operator");
    let text = std::fs::read_to_string(folder.join(name)).unwrap();
    let text = change(text)
        .replace(QUERY, "sum(vllm:num_requests_waiting)")
        .replace("flyball_model_recommended_replicas", "vllm:num_requests_waiting");
    let read = read(&text).unwrap().remove(0);
    read.settings.law()
}

/// Answers one after the other, each for so many looks. Returns the replicas at the end.
fn played(law: &mut dyn RivalLaw, answers: &[(Answer, u32)], mut replicas: u32) -> u32 {
    let mut now = Seconds(0.0);
    for (answer, ticks) in answers {
        for _ in 0..*ticks {
            replicas = law.desired(now, &answer.reading(replicas), replicas);
            now += law.interval();
        }
    }
    replicas
}

/// Looks in two periods of the HPA.
fn soon(law: &dyn RivalLaw) -> u32 {
    (30.0 / law.interval().0).ceil() as u32
}

#[test]
fn both_follow_every_step_that_is_recommended() {
    for name in ["hpa.yaml", "keda.yaml"] {
        for from in 1..=40 {
            for to in 1..=40 {
                let mut law = law(name, |text| text);
                let ticks = soon(law.as_ref());
                let steps = [(Answer::Recommended(from), ticks), (Answer::Recommended(to), ticks)];
                assert_eq!(played(law.as_mut(), &steps, from), to, "{name}: {from} to {to}");
            }
        }
    }
}

#[test]
fn without_an_answer_neither_changes_anything() {
    for name in ["hpa.yaml", "keda.yaml"] {
        for none in Answer::NONE {
            // What an adapter makes of a number that is none is kept out by the rule of the guide.
            let none = if name == "hpa.yaml" { Answer::Nothing } else { none };
            for replicas in 1..=40 {
                let mut law = law(name, |text| text);
                let ticks = soon(law.as_ref());
                let steps = [(Answer::Recommended(replicas), ticks), (none, 30 * ticks)];
                assert_eq!(played(law.as_mut(), &steps, replicas), replicas, "{name} {none:?}");
            }
        }
    }
}

#[test]
fn keda_wakes_and_puts_to_sleep_on_a_number_and_on_nothing_else() {
    let zero_and_back = |answer| {
        let mut law = law("keda.yaml", |text| text);
        let ticks = soon(law.as_ref());
        [0, 3].map(|replicas| played(law.as_mut(), &[(answer, 10 * ticks)], replicas))
    };
    assert_eq!(zero_and_back(Answer::Recommended(0)), [0, 0]);
    assert_eq!(zero_and_back(Answer::Recommended(2)), [2, 2]);
    for none in Answer::NONE {
        assert_eq!(zero_and_back(none), [0, 3], "{none:?}");
    }
}

/// What the guide warns of happens: or these tests would show nothing.
#[test]
fn with_the_defaults_a_lost_operator_takes_everything_and_small_steps_are_lost() {
    let by_default = |name: &str, without: &str| {
        law(name, |text| {
            let keep = |line: &&str| !line.trim_start().starts_with(without);
            text.lines().filter(keep).map(|line| format!("{line}\n")).collect()
        })
    };
    for none in Answer::NONE {
        let mut law = by_default("keda.yaml", "ignoreNullValues");
        let ticks = soon(law.as_ref());
        assert_eq!(played(law.as_mut(), &[(none, 10 * ticks)], 12), 0, "{none:?}");
    }
    for name in ["hpa.yaml", "keda.yaml"] {
        let mut law = by_default(name, "tolerance");
        let ticks = soon(law.as_ref());
        let steps = [(Answer::Recommended(20), ticks), (Answer::Recommended(22), 10 * ticks)];
        assert_eq!(played(law.as_mut(), &steps, 20), 20, "{name}");
    }
}
