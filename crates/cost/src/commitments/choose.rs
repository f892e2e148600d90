//! The exact choice, and what a past costs under any commitment.

use super::{Commitment, PastNeed, PastNeeds};
use crate::money::PicoDollars;
use flyball_core::units::Micros;

impl PastNeeds {
    /// The cheapest for this past: of all reservations, all savings plans and none. Of equal ones the one that binds
    /// least. Nothing for a past without steps.
    pub fn best(&self) -> Option<Commitment> {
        if self.needs.iter().all(|need| need.gpus.is_empty()) {
            return None;
        }
        let reserved =
            Commitment::Reserved(self.needs.iter().map(PastNeed::best_reserved).collect());
        let plan = Commitment::SavingsPlan(self.best_plan());
        [Commitment::OnDemand, plan, reserved].into_iter().min_by_key(|one| self.cost(one))
    }

    /// What the past costs with a commitment.
    pub fn cost(&self, commitment: &Commitment) -> PicoDollars {
        match commitment {
            Commitment::OnDemand => {
                self.needs.iter().map(|need| reserved_cost(need, self.step, 0)).sum()
            }
            Commitment::Reserved(gpus) => self
                .needs
                .iter()
                .zip(gpus)
                .map(|(need, gpus)| reserved_cost(need, self.step, *gpus))
                .sum(),
            Commitment::SavingsPlan(hourly) => plan_cost(self, *hourly),
        }
    }

    /// The money an hour that is cheapest for this past.
    ///
    /// The cost is convex in it and bends only where a step is covered up to the end of one accelerator's need. So the
    /// best is at one of these bends, and a binary search over them, by whether the next one costs less, finds it.
    fn best_plan(&self) -> PicoDollars {
        let covered = self.covered();
        let mut bends = vec![0];
        for step in 0..self.steps() {
            let mut sum = 0;
            for need in &covered {
                sum += plan_value(need, step);
                bends.push(sum);
            }
        }
        bends.sort_unstable();
        bends.dedup();
        let cost = |at: usize| plan_cost(self, PicoDollars::new(bends[at]));
        let (mut low, mut high) = (0, bends.len() - 1);
        while low < high {
            let middle = low.midpoint(high);
            if cost(middle + 1) < cost(middle) { low = middle + 1 } else { high = middle }
        }
        PicoDollars::new(bends[low])
    }

    /// What a plan covers, the largest saving first, as clouds apply it.
    fn covered(&self) -> Vec<&PastNeed> {
        let mut covered: Vec<&PastNeed> = self.needs.iter().filter(|need| saves(need)).collect();
        // By on-demand over plan price, multiplied out; names settle what is equal.
        covered.sort_by(|a, b| {
            let price = |need: &PastNeed| need.plan.unwrap_or_default().get();
            let (a_saving, b_saving) = (
                a.on_demand.get().saturating_mul(price(b)),
                b.on_demand.get().saturating_mul(price(a)),
            );
            b_saving.cmp(&a_saving).then_with(|| a.accelerator.cmp(&b.accelerator))
        });
        covered
    }
}

/// Whether a plan covers it at all, for less than on demand.
fn saves(need: &PastNeed) -> bool {
    need.plan.is_some_and(|plan| plan.get() > 0 && plan < need.on_demand)
}

/// What a step's need costs at the plan's price, for an hour.
fn plan_value(need: &PastNeed, step: usize) -> i128 {
    let gpus = need.gpus.get(step).copied().unwrap_or(0);
    need.plan.unwrap_or_default().get() * i128::from(gpus)
}

impl PastNeed {
    /// How many to reserve: the last one is worth it if it is needed in more than the share of steps in which its price
    /// reaches that of on-demand. Sorted needs have that number at one place.
    fn best_reserved(&self) -> u32 {
        let (Some(reserved), steps) = (self.reserved, self.gpus.len() as i128) else { return 0 };
        if self.on_demand.get() <= 0 || reserved.get() < 0 {
            return 0;
        }
        let needed = reserved.get() * steps / self.on_demand.get() + 1;
        let mut sorted = self.gpus.clone();
        sorted.sort_unstable();
        usize::try_from(steps - needed)
            .ok()
            .and_then(|place| sorted.get(place))
            .copied()
            .unwrap_or(0)
    }
}

/// What a past costs with so many GPUs reserved and the rest on demand. Time is added up first and priced once.
pub fn reserved_cost(need: &PastNeed, step: Micros, gpus: u32) -> PicoDollars {
    let above: u128 = need.gpus.iter().map(|needed| u128::from(needed.saturating_sub(gpus))).sum();
    let held = need.gpus.len() as u128 * u128::from(gpus);
    let reserved = need.reserved.unwrap_or(need.on_demand);
    over(reserved.times(held as i128), step) + over(need.on_demand.times(above as i128), step)
}

/// What a past costs with so much committed for every hour: what it does not cover is paid on demand.
pub fn plan_cost(past: &PastNeeds, hourly: PicoDollars) -> PicoDollars {
    let covered = past.covered();
    let mut sum = hourly.times(past.steps() as i128);
    for step in 0..past.steps() {
        let mut left = hourly.get();
        for need in &covered {
            let value = plan_value(need, step);
            let outside = (value - left).max(0);
            left = (left - value).max(0);
            let plan = need.plan.unwrap_or_default().get();
            // Rounded up: the part of a GPU that the plan does not reach is paid.
            sum += PicoDollars::new((outside * need.on_demand.get() + plan - 1) / plan);
        }
    }
    let others = past.needs.iter().filter(|need| !saves(need));
    over(sum, past.step) + others.map(|need| reserved_cost(need, past.step, 0)).sum()
}

/// An hourly price for a step.
fn over(hourly: PicoDollars, step: Micros) -> PicoDollars {
    PicoDollars::new(hourly.times(step.get().into()).get() / i128::from(Micros::HOUR.get()))
}
