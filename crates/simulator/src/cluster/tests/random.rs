//! Random worlds under a policy that does anything at all.

use super::*;
use crate::chance::{Chance, Purpose, stream};
use rand::RngExt;

/// Asks for any number of replicas at any time.
struct Anything(Chance);

impl ScalingPolicy for Anything {
    fn name(&self) -> &str {
        "anything"
    }

    fn interval(&self) -> Seconds {
        Seconds(15.0)
    }

    fn decide(&mut self, sight: &PolicyView<'_>) -> ScaleOrder {
        let models = sight.snapshot.models.len();
        ScaleOrder::Scale((0..models).map(|_| Replicas::new(self.0.random_range(0..9))).collect())
    }
}

fn anything(seed: u64) -> Anything {
    Anything(stream(seed, Purpose::Search, 0))
}

#[test]
fn no_rule_of_the_world_breaks_whatever_is_ordered() {
    let mut requests = 0.0;
    for seed in 0..200 {
        let stats = fuzz(seed, &mut anything(seed)).unwrap_or_else(|failure| panic!("{failure}"));
        requests += stats.requests;
    }
    assert!(requests > 10_000.0, "{requests}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in [3, 4] {
        let [one, two] = [(); 2].map(|()| run(&random_world(seed), &mut anything(seed)));
        assert_eq!(one.outcome, two.outcome);
        // As text, because a reading that is not a number does not equal itself.
        assert!(format!("{:?}", one.log) == format!("{:?}", two.log));
        assert_eq!(one.events, two.events);
    }
}

#[test]
fn a_lost_request_and_a_stolen_accelerator_are_noticed() {
    let setup = small(vec![TrafficStage::level(1.0, 100.0)]);
    let mut world = World::new(&setup);
    world.begin(Seconds(10.0));
    world.check_world();
    assert_eq!(world.broken.len(), 0);
    world.models[0].arrived += 1;
    world.check_world();
    assert!(world.broken[0].detail.contains("1 requests open"), "{}", world.broken[0]);
    world.models[0].arrived -= 1;
    world.nodes[0].used += 1;
    world.check_world();
    assert!(world.broken[1].detail.contains("2 accelerators in use"), "{}", world.broken[1]);
    world.now = Seconds(5.0);
    world.check_time(Seconds(4.0));
    assert_eq!(world.broken.len(), 3);
}
