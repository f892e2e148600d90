//! An operator that begins goes on where the one before it ended.

use super::*;
use crate::observe::testing;
use crate::persist::{self, LearntError};
use flyball_core::ids::ModelId;
use flyball_estimator::CounterWindow;
use flyball_estimator::reading::{GatewayCounts, GatewayReading};
use std::sync::LazyLock;

const TICK_S: usize = 15;
const SCALING: &str = r#"{"mode": "Act", "min": 1, "max": 100}"#;

/// One operator: what it remembers, and the status that it last wrote.
#[derive(Clone, Default)]
struct Process {
    brain: Brain,
    learnt: ObservedMemory,
    status: Option<ModelServiceStatus>,
    pods: u32,
}

impl Process {
    /// Another one that has what the status says, and nothing else.
    fn successor(&self) -> Self {
        Self { status: self.status.clone(), pods: self.pods, ..Self::default() }
    }

    /// One look; returns what is wanted and why nothing was restored.
    fn reconcile(&mut self, second: u64) -> (u32, Vec<(ModelId, LearntError)>) {
        let scaling = serde_json::from_str(SCALING).unwrap();
        let facts = with_pods(facts(service(scaling, self.status.as_ref()), true), self.pods);
        let seen = observe(
            &facts,
            &signals(second),
            &mut self.learnt,
            (at(second), Micros::from_seconds(60)),
        );
        let decided = self.brain.decide(&seen);
        assert!(decided.broken.is_empty(), "{:?}", decided.broken);
        let learnt = self.brain.learnt(&id(), &self.learnt.estimator);
        self.status = Some(published_with(&seen, &decided, learnt));
        let targets = &decided.decision.models[0].targets;
        self.pods = targets[0].replicas.get();
        (self.pods, decided.unread)
    }
}

/// The same with so many pods that serve.
fn with_pods(mut facts: Facts, count: u32) -> Facts {
    for pods in facts.pods.values_mut() {
        let pod = pods[0].clone();
        let name = |n: u32| format!("x{n}");
        let one = |n| PodFacts { name: name(n), uid: name(n), ..pod.clone() };
        *pods = (0..count).map(one).collect();
    }
    facts
}

fn id() -> ModelId {
    "a/m".parse().unwrap()
}

/// Twenty minutes of little, twenty minutes of much, and so on. A tenth of the requests missed in the first
/// eight hours, and none since.
fn signals(second: u64) -> Signals {
    let much = (second / 1_200) % 2 == 1;
    let per_second = if much { 15.0 } else { 3.0 };
    let reading = testing::gateway(at(second), (per_second, 4_000.0, 50.0));
    let mut counts = CounterWindow::of(GatewayReading::WINDOW);
    for second in [second.saturating_sub(30), second] {
        // What is asked follows the rate of now, and what was judged only grows.
        let arrived = (per_second * second as f64) as u64;
        let counted = GatewayCounts {
            arrived,
            prompt_tokens: 4_000 * arrived,
            answered: arrived,
            output_tokens: 50 * arrived,
            judged: 2 * second,
            missed: 2 * second.min(8 * 3_600) / 10,
            ..GatewayCounts::default()
        };
        counts.add(at(second), at(0), counted);
    }
    let reading = GatewayReading { at: at(second), counts, ..reading };
    Signals { gateways: [(id(), vec![reading])].into(), ..Signals::default() }
}

const HOURS: u64 = 9 * 3_600;

/// An operator that has looked for nine hours.
static OLD: LazyLock<Process> = LazyLock::new(|| {
    let mut process = Process::default();
    for second in (0..=HOURS).step_by(TICK_S).skip(1) {
        process.reconcile(second);
    }
    process
});

/// What is wanted at each look of the following forty minutes.
fn following(mut process: Process) -> Vec<u32> {
    (1..=160).map(|n| process.reconcile(HOURS + n * 15).0).collect()
}

fn minutes(process: &Process) -> u32 {
    let text = process.brain.learnt(&id(), &process.learnt.estimator).unwrap();
    persist::read(&text).unwrap().learnt.minutes
}

#[test]
fn a_successor_decides_as_the_one_before_and_one_that_is_told_nothing_does_not() {
    let mut ignorant = OLD.successor();
    ignorant.status.as_mut().unwrap().learnt = None;
    let [old, restored, ignorant] = [OLD.clone(), OLD.successor(), ignorant].map(following);
    let apart = |other: &[u32]| {
        old.iter().zip(other).map(|(old, other)| old.abs_diff(*other)).max().unwrap()
    };
    assert_eq!(old, restored, "the decisions are the ones that would have been made");
    assert!(apart(&ignorant) >= 5, "{old:?}\n{ignorant:?}");
}

#[test]
fn one_that_stands_by_follows_what_the_leader_wrote() {
    let (mut leader, mut other) = (Process::default(), Process::default());
    for second in (0..=600).step_by(TICK_S).skip(1) {
        leader.reconcile(second);
        other.status = leader.status.clone();
        other.brain.stand_by();
        other.reconcile(second);
    }
    assert_eq!(minutes(&other), minutes(&leader), "what it saw by itself is no evidence");
    other.status = OLD.status.clone();
    other.reconcile(HOURS + 15);
    assert_eq!(minutes(&other), minutes(&OLD), "it takes over what was written last");
    // It was away for a moment, and what stands there is older than what it knows.
    let mut back = OLD.clone();
    back.status = leader.status.clone();
    back.brain.stand_by();
    back.reconcile(HOURS + 15);
    assert_eq!(minutes(&back), minutes(&OLD));
}

#[test]
fn what_cannot_be_read_is_named_once_and_learnt_again() {
    let text = OLD.status.as_ref().unwrap().learnt.clone().unwrap();
    assert!(text.len() < persist::LONGEST * 9 / 10, "{} bytes", text.len());
    let huge = "1;".repeat(1 << 20);
    for bad in ["", "7;whatever;00000000", &text[1..], &text[..text.len() / 2], &huge] {
        let mut process = OLD.successor();
        process.status.as_mut().unwrap().learnt = Some(bad.to_owned());
        let (desired, unread) = process.reconcile(HOURS + 15);
        assert!(desired > 0);
        assert_eq!(unread.len(), 1, "{bad:.20}");
        assert_eq!(process.reconcile(HOURS + 30).1, []);
    }
    assert_eq!(OLD.successor().reconcile(HOURS + 15).1, []);
}
