//! What to commit to: reservations or a savings plan, by what the past would have cost.
//!
//! The best commitment for a recorded past is found exactly, in integers, and not by trying percentages. [`advise`] then
//! says what it rests on: how often the last committed GPU was used against how often it must be, what the same way of
//! choosing would have regretted, and what is lost if demand halves. Nothing here forecasts: a past that does not return
//! makes the advice wrong, and [`CommitmentAdvice::break_even`] is where one sees it.
//!
//! Not considered: reservations and a savings plan at once, terms that end at different times, and resale.

mod choose;
#[cfg(test)]
mod tests;

pub use choose::{plan_cost, reserved_cost};

use crate::money::PicoDollars;
use flyball_core::units::Micros;

/// GPUs of one accelerator that were needed, and what they cost for an hour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastNeed {
    pub accelerator: String,
    pub on_demand: PicoDollars,
    /// For a reserved GPU, used or not; absent where none is offered.
    pub reserved: Option<PicoDollars>,
    /// For a GPU that a savings plan covers; absent where it covers none.
    pub plan: Option<PicoDollars>,
    /// In each step of the past.
    pub gpus: Vec<u32>,
}

/// What was needed, in steps of one length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastNeeds {
    pub step: Micros,
    pub needs: Vec<PastNeed>,
}

/// What to commit to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Commitment {
    OnDemand,
    /// So many GPUs of each accelerator, in the order of the needs.
    Reserved(Vec<u32>),
    /// So much to be spent every hour, at the plan's prices.
    SavingsPlan(PicoDollars),
}

/// How often the last committed GPU of an accelerator was needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakEven {
    pub accelerator: String,
    pub gpus: u32,
    /// The share of time in which at least so many were needed, in millionths.
    pub used_ppm: u64,
    /// Below this share the last of them costs more than on demand: the advice is then wrong.
    pub needed_ppm: u64,
}

/// A choice and what speaks for and against it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitmentAdvice {
    pub commitment: Commitment,
    /// What the past would have cost with it.
    pub cost: PicoDollars,
    /// What it would have cost on demand.
    pub on_demand: PicoDollars,
    /// Of reservations only.
    pub break_even: Vec<BreakEven>,
    /// Chosen on the first half of the past, how much the second half would have cost above the best for it, in
    /// millionths of that; absent if the past is too short to cut.
    pub regret_ppm: Option<u64>,
    /// What half of the demand would cost above on-demand; negative if it still saves.
    pub loss_if_halved: PicoDollars,
}

/// The best commitment for a past, with what it rests on. Nothing if there is no past.
pub fn advise(past: &PastNeeds) -> Option<CommitmentAdvice> {
    let commitment = past.best()?;
    let break_even = match &commitment {
        Commitment::Reserved(gpus) => {
            past.needs.iter().zip(gpus).filter_map(|(need, gpus)| need.break_even(*gpus)).collect()
        }
        Commitment::OnDemand | Commitment::SavingsPlan(_) => Vec::new(),
    };
    let (first, second) = past.halves();
    let regret_ppm = match (first.best(), second.best()) {
        (Some(chosen), Some(best)) => above_ppm(second.cost(&chosen), second.cost(&best)),
        _ => None,
    };
    let halved = past.halved();
    Some(CommitmentAdvice {
        cost: past.cost(&commitment),
        on_demand: past.cost(&Commitment::OnDemand),
        break_even,
        regret_ppm,
        loss_if_halved: halved.cost(&commitment) - halved.cost(&Commitment::OnDemand),
        commitment,
    })
}

/// How much a cost is above another, in millionths of that.
pub fn above_ppm(cost: PicoDollars, best: PicoDollars) -> Option<u64> {
    let above = (cost - best).get().max(0);
    let ppm = above.checked_mul(1_000_000)?.checked_div(best.get())?;
    u64::try_from(ppm).ok()
}

impl PastNeeds {
    fn steps(&self) -> usize {
        self.needs.iter().map(|need| need.gpus.len()).max().unwrap_or(0)
    }

    fn cut(&self, part: impl Fn(&[u32]) -> Vec<u32>) -> Self {
        let needs =
            self.needs.iter().map(|need| PastNeed { gpus: part(&need.gpus), ..need.clone() });
        Self { step: self.step, needs: needs.collect() }
    }

    fn halves(&self) -> (Self, Self) {
        let half = self.steps() / 2;
        (
            self.cut(|gpus| gpus[..half.min(gpus.len())].to_vec()),
            self.cut(|gpus| gpus[half.min(gpus.len())..].to_vec()),
        )
    }

    fn halved(&self) -> Self {
        self.cut(|gpus| gpus.iter().map(|gpus| gpus / 2).collect())
    }
}

impl PastNeed {
    fn break_even(&self, gpus: u32) -> Option<BreakEven> {
        let (steps, reserved) = (self.gpus.len() as u64, self.reserved?.get());
        if gpus == 0 || steps == 0 || self.on_demand.get() <= 0 {
            return None;
        }
        let used = self.gpus.iter().filter(|needed| **needed >= gpus).count() as u64;
        Some(BreakEven {
            accelerator: self.accelerator.clone(),
            gpus,
            used_ppm: used * 1_000_000 / steps,
            needed_ppm: u64::try_from(reserved * 1_000_000 / self.on_demand.get())
                .unwrap_or(u64::MAX),
        })
    }
}
