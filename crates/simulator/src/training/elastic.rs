//! A run that can do with more or fewer machines: at each step its size is chosen, then where it should be.
//!
//! A change of size throws away what is not saved and costs a restart, which is more than a cluster would lose that saves first.
//! How much more machines do is stated by the world; the law only assumes it.

use flyball_core::units::{Gpus, Micros};
use flyball_training::{ElasticRun, size};

use super::market::{MarketPrices, SpotMarket};
use super::ours::OurPolicy;
use super::recording::SpotRecording;
use super::replay::{ReplayedRun, RunToReplay, World};
use flyball_training::ZoneName;
use std::collections::BTreeMap;

/// Sizes of a run, in machines, and what they do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ElasticSizes {
    /// Minimum machines.
    pub least: u16,
    /// Maximum machines.
    pub most: u16,
    /// Machines for which its work is stated, and with which it begins unless another size is better.
    pub stated: u16,
    /// Twice the machines do so much more, as a power of two; 1 if they do twice as much.
    pub gain: f64,
}

impl ElasticSizes {
    /// What takes so long with some machines, with others.
    fn scaled(&self, time: Micros, from: u16, to: u16) -> Micros {
        let ratio = f64::from(from) / f64::from(to);
        Micros::new((time.get() as f64 * ratio.powf(self.gain)).ceil() as u64)
    }
}

/// What came of an elastic run.
#[derive(Clone, Debug, PartialEq)]
pub struct ElasticReplay {
    /// Everything else. Times of work are those of the machines that did it.
    pub run: ReplayedRun,
    /// How often its size was changed.
    pub changes: u32,
    /// How long it had each number of machines, or waited for them.
    pub sizes: BTreeMap<u16, Micros>,
}

/// Plays our law for a run of these sizes. `run` has the work and the GPUs of the stated size.
pub fn play_elastic(
    recording: &SpotRecording,
    zones: &[ZoneName],
    prices: &MarketPrices,
    run: &RunToReplay,
    sizes: ElasticSizes,
) -> ElasticReplay {
    let all = sizes.least..=sizes.most;
    let of_size = |machines: u16| {
        let gpus = run.gpus.get() * u32::from(machines) / u32::from(sizes.stated);
        let run = RunToReplay { gpus: Gpus::new(gpus), ..*run };
        (machines, (SpotMarket::new(recording, zones, machines, prices), run))
    };
    let places: BTreeMap<u16, (SpotMarket, RunToReplay)> = all.map(of_size).collect();
    let mut machines = sizes.stated.clamp(sizes.least, sizes.most);
    let (market, first) = &places[&machines];
    let first = RunToReplay { work: sizes.scaled(run.work, sizes.stated, machines), ..*first };
    let mut world = World::new(market, &first);
    let mut policy = OurPolicy::default();
    let (mut changes, mut stays) = (0, BTreeMap::new());
    for step in run.start..market.steps {
        world.observe(step);
        let elastic = ElasticRun {
            least: sizes.least.into(),
            most: sizes.most.into(),
            nodes: machines.into(),
            spot: zones.iter().map(|zone| (zone.clone(), there(recording, zone, step))).collect(),
            on_demand: u32::MAX,
        };
        let chosen = size(world.snapshot(), &elastic, policy.memory());
        let wanted = chosen.and_then(|chosen| u16::try_from(chosen.chosen.nodes).ok());
        if let Some(wanted) = wanted.filter(|wanted| *wanted != machines) {
            let (market, run) = &places[&wanted];
            world.resize(market, run, |time| sizes.scaled(time, machines, wanted));
            (machines, changes) = (wanted, changes + 1);
        }
        world.step(step, &mut policy);
        let stay: &mut Micros = stays.entry(machines).or_default();
        *stay = stay.saturating_add(market.step);
        if world.has_ended() {
            break;
        }
    }
    ElasticReplay { run: world.finish(), changes, sizes: stays }
}

/// The machines that a zone has at a step.
fn there(recording: &SpotRecording, zone: &ZoneName, step: usize) -> u32 {
    let found = recording.zones.iter().find(|(name, _)| name == zone);
    found.and_then(|(_, nodes)| nodes.get(step)).copied().unwrap_or(0).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::training::market::usd;
    use crate::training::replay::play;
    use flyball_core::units::Timestamp;
    use flyball_training::{RunMemory, deadline};
    use proptest::prelude::*;

    const STEP: Micros = Micros::from_minutes(5);

    fn recording(zones: &[Vec<u16>]) -> SpotRecording {
        let names = ["a", "b"].map(ZoneName::new);
        SpotRecording {
            name: "made up".to_owned(),
            begins: Timestamp::from_millis(1_000_000_000),
            step: STEP,
            zones: names.into_iter().zip(zones.iter().cloned()).collect(),
        }
    }

    fn prices() -> MarketPrices {
        MarketPrices { on_demand: usd(3.0), spot: BTreeMap::new(), otherwise: usd(1.0) }
    }

    fn run(work_min: u64, allowed_min: u64) -> RunToReplay {
        RunToReplay {
            start: 0,
            work: Micros::from_minutes(work_min),
            allowed: Micros::from_minutes(allowed_min),
            restart: Micros::from_minutes(10),
            save: Micros::from_seconds(30),
            gpus: Gpus::new(64),
        }
    }

    fn elastic(zones: &[Vec<u16>], run: &RunToReplay, sizes: ElasticSizes) -> ElasticReplay {
        let names: Vec<ZoneName> =
            ["a", "b"][..zones.len()].iter().map(|a| ZoneName::new(a)).collect();
        play_elastic(&recording(zones), &names, &prices(), run, sizes)
    }

    const EIGHT: ElasticSizes = ElasticSizes { least: 4, most: 8, stated: 8, gain: 0.95 };

    #[test]
    fn a_run_takes_the_four_spot_machines_that_there_are_rather_than_eight_on_demand() {
        // Four machines all the time, and never eight.
        let nodes = vec![vec![4; 600]];
        let run = run(600, 1_500);
        let came = elastic(&nodes, &run, EIGHT);
        let fixed = {
            let market = SpotMarket::new(&recording(&nodes), &[ZoneName::new("a")], 8, &prices());
            play(&market, &run, &mut OurPolicy::with(RunMemory::default()))
        };
        assert!(!came.run.late && !fixed.late);
        assert!(came.run.dollars < 0.6 * fixed.dollars, "{} {}", came.run.dollars, fixed.dollars);
        assert_eq!((came.changes, came.sizes.keys().next()), (1, Some(&4)));
    }

    #[test]
    fn a_run_that_only_more_machines_finish_in_time_gets_them() {
        // Nothing on spot; 600 minutes for eight, and 430 to do them in.
        let sizes = ElasticSizes { most: 16, ..EIGHT };
        let came = elastic(&[vec![0; 600]], &run(600, 430), sizes);
        assert!(!came.run.late, "{:?}", came.run);
        assert!(came.sizes.keys().any(|size| *size > 8), "{:?}", came.sizes);
        // The size is kept where there is time.
        let came = elastic(&[vec![0; 600]], &run(600, 900), sizes);
        assert_eq!((came.changes, came.run.late), (0, false));
    }

    #[test]
    fn one_size_is_no_choice() {
        let sizes = ElasticSizes { least: 8, most: 8, ..EIGHT };
        let nodes = vec![[vec![8; 40], vec![0; 20], vec![8; 100]].concat()];
        let run = run(200, 700);
        let market = SpotMarket::new(&recording(&nodes), &[ZoneName::new("a")], 8, &prices());
        let fixed = play(&market, &run, &mut OurPolicy::with(RunMemory::default()));
        assert_eq!(elastic(&nodes, &run, sizes).run, fixed);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Machines may come and go as they like, and more of them may do anything from what is assumed to all that they could.
        #[test]
        fn no_elastic_run_is_late_where_any_size_could_be_in_time(
            work in 60u64..400,
            spare in 0u64..300,
            gain in 0.85f64..1.0,
            stated in 1u16..9,
            changes in prop::collection::vec((0u16..9, 0u16..9, 1usize..20), 1..40),
        ) {
            let sizes = ElasticSizes { least: 1, most: 8, stated, gain };
            let mut run = run(work, 0);
            // On demand, the largest size needs so long as far as is assumed; a change of size on top.
            let largest = flyball_training::sizes::scaled(run.work, stated.into(), 8);
            let need = deadline::on_demand_time(largest, run.save)
                .saturating_add(run.restart).saturating_add(STEP);
            run.allowed = need.saturating_add(Micros::from_minutes(spare));
            let of = |which: fn(&(u16, u16, usize)) -> u16| -> Vec<u16> {
                let all = changes.iter().flat_map(|one| std::iter::repeat_n(which(one), one.2));
                all.collect::<Vec<_>>().into_iter().cycle().take(3_000).collect()
            };
            let came = elastic(&[of(|one| one.0), of(|one| one.1)], &run, sizes);
            prop_assert!(!came.run.late, "{:?}", came);
            prop_assert_eq!(&came.run.broken, &Vec::<&str>::new());
        }
    }
}
