//! Engines that compute faster or slower than they were built to.

use super::World;
use super::faults::Fault;
use super::replicas::State;

impl World<'_> {
    /// Notes which replicas are meant by a fault that slows some of them.
    pub(super) fn choose_slow(&mut self, fault: usize) {
        let Fault::EngineSlows { replicas: Some(count), .. } = &self.setup.faults[fault] else {
            return;
        };
        for model in 0..self.models.len() {
            let serving = self.present.iter().copied().filter(|place| {
                let replica = &self.replicas[*place];
                replica.model == model && replica.state == State::Ready
            });
            let chosen: Vec<usize> = serving.take(*count as usize).collect();
            self.slow.extend(chosen.into_iter().map(|replica| (fault, replica)));
        }
    }

    /// Lets every engine compute as fast as it does now.
    pub(super) fn change_speeds(&mut self) {
        for replica in self.present.clone() {
            self.change_speed(replica);
        }
    }

    pub(super) fn change_speed(&mut self, replica: usize) {
        let factor = self.speed_of(replica);
        if (factor - self.replicas[replica].speed).abs() < f64::EPSILON {
            return;
        }
        self.catch_up(replica);
        let now = self.now;
        if let Some(engine) = &mut self.replicas[replica].engine {
            engine.change_speed(now, factor);
            self.replicas[replica].speed = factor;
            self.plan_engine(replica);
        }
    }

    fn speed_of(&self, replica: usize) -> f64 {
        let factors = self.faults.iter().filter_map(|fault| match self.setup.faults[*fault] {
            Fault::EngineSlows { factor, replicas: None, .. } => Some(factor),
            Fault::EngineSlows { factor, .. } if self.slow.contains(&(*fault, replica)) => {
                Some(factor)
            }
            _ => None,
        });
        factors.product()
    }
}
