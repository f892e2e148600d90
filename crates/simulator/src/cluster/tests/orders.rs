//! What a decision says, carried out as the operator would.

use super::*;
use flyball_core::decision::{Action, Bound, Decision, Expected, ModelDecision, Receipt, Target};
use flyball_core::ids::{ReplicaId, VariantId};
use flyball_core::reason::Reason;
use flyball_core::snapshot::ReplicaState;

/// Drains the first replica at 20 s and wants as many as before at 30 s.
struct Repents;

impl ScalingPolicy for Repents {
    fn name(&self) -> &str {
        "repents"
    }

    fn interval(&self) -> Seconds {
        Seconds(10.0)
    }

    fn decide(&mut self, sight: &PolicyView<'_>) -> ScaleOrder {
        let (model, seen) = sight.snapshot.models.first_key_value().unwrap();
        let (name, variant) = seen.variants.first_key_value().unwrap();
        let serves = |state: ReplicaState| state == ReplicaState::Ready;
        let first: Option<ReplicaId> =
            variant.replicas.iter().find(|(_, one)| serves(one.state)).map(|(id, _)| id.clone());
        let start = Action::Start { count: Replicas::new(1), purchase: Purchase::Spot };
        let (replicas, action) = match sight.now.get() as u32 {
            20 => (1, first.map(|replica| Action::Drain { replica })),
            30 => (2, Some(start)),
            _ => (2, None),
        };
        let target = Target {
            variant: VariantId::new(model.clone(), name.clone()),
            unconstrained: Replicas::new(replicas),
            replicas: Replicas::new(replicas),
            spares: Replicas::ZERO,
            actions: action.into_iter().collect(),
        };
        let model = ModelDecision {
            model: model.clone(),
            reason: Reason::Steady,
            bound: Bound::NeedNow,
            targets: vec![target],
            expected: Expected::default(),
            receipt: Receipt::default(),
        };
        let id = sight.snapshot.decision_id();
        let (runs, pools) = (Vec::new(), Vec::new());
        ScaleOrder::Decision(Box::new(Decision { id, models: vec![model], runs, pools }))
    }
}

#[test]
fn a_replica_that_drains_is_taken_back_instead_of_another_being_started() {
    // Answers take 50 s, so that it is not empty before it is wanted again.
    let mut setup = small(vec![TrafficStage::level(0.5, 100.0)]);
    let slow =
        LinearEngine { base: 0.5, per_prompt_token: 0.0, per_decode: 0.0, per_cached_token: 0.0 };
    setup.models[0].variants[0].speed.step = StepSpeed::Linear(slow);
    setup.models[0].variants[0].initial = 2;
    let run = run(&setup, &mut Repents);
    assert_eq!(counts(&run, 15.0), [0, 0, 2, 0]);
    assert_eq!(counts(&run, 25.0), [0, 0, 1, 1]);
    assert_eq!(counts(&run, 31.0), [0, 0, 2, 0], "nothing starts");
    assert_eq!(run.histories[0].cold_starts, []);
}
