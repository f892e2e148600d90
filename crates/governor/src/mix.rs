//! Which variants and purchases carry a given amount of work for the least money.
//!
//! A small exact search: the options are few, and the price of the rest of the work at the best
//! unit price is a bound that prunes nearly all of it. What runs already costs no start, so a
//! cheaper variant must save more than its start before replicas move to it.

use crate::policy::Spot;

/// One thing that can be bought: a variant at one purchase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Offer {
    /// Work that one replica does.
    pub(crate) size: f64,
    /// Price of one replica for an hour.
    pub(crate) price: f64,
    /// Price of a start.
    pub(crate) start: f64,
    /// Replicas that are there.
    pub(crate) have: u32,
    /// Replicas that there may be.
    pub(crate) most: u32,
    /// The chance that one replica is taken away within a cold start, if it can be.
    pub(crate) loss: Option<f64>,
}

impl Offer {
    /// What it offers beyond so many.
    pub(crate) const fn beyond(self, held: u32) -> Self {
        let (have, most) = (self.have.saturating_sub(held), self.most.saturating_sub(held));
        Self { have, most, ..self }
    }
}

/// The cheapest numbers of replicas that do `work`, or all there may be where that is too little.
pub(crate) fn solve(offers: &[Offer], work: f64, spot: &Spot) -> Vec<u32> {
    if let [offer] = offers
        && offer.loss.is_none()
    {
        return vec![whole(work / offer.size).min(offer.most)];
    }
    let mut order: Vec<usize> = (0..offers.len()).collect();
    let unit = |index: usize| offers[index].price / offers[index].size;
    order.sort_by(|a, b| unit(*a).total_cmp(&unit(*b)).then(a.cmp(b)));
    let mut search = Search {
        offers,
        order: &order,
        shortfall: spot.shortfall,
        best_cost: f64::INFINITY,
        best: offers.iter().map(|offer| offer.most).collect(),
        now: vec![0; offers.len()],
        visits: 0,
    };
    search.go(0, work, 0.0);
    search.best
}

/// Enough for every mix of four offers of a hundred replicas that was tried; beyond it the best
/// found so far is taken, which is at worst the greedy answer.
const MOST_VISITS: u32 = 20_000;

struct Search<'a> {
    offers: &'a [Offer],
    order: &'a [usize],
    shortfall: f64,
    best_cost: f64,
    best: Vec<u32>,
    now: Vec<u32>,
    visits: u32,
}

impl Search<'_> {
    fn go(&mut self, depth: usize, work: f64, cost: f64) {
        self.visits += 1;
        if work <= SLACK {
            if cost < self.best_cost {
                self.best_cost = cost;
                self.best.clone_from(&self.now);
            }
            return;
        }
        let Some(&index) = self.order.get(depth) else { return };
        let offer = self.offers[index];
        // The order is by unit price, so no rest of the work is cheaper than at this one.
        if cost + work * offer.price / offer.size >= self.best_cost || self.visits > MOST_VISITS {
            return;
        }
        let mut count = whole(work / offer.size);
        while count < offer.most && carries(&offer, count, self.shortfall) < work - SLACK {
            count += 1;
        }
        for count in (0..=count.min(offer.most)).rev() {
            self.now[index] = count;
            let starts = f64::from(count.saturating_sub(offer.have));
            let cost = cost + offer.price * f64::from(count) + offer.start * starts;
            let carried = carries(&offer, count, self.shortfall);
            self.go(depth + 1, work - carried, cost);
        }
        self.now[index] = 0;
    }
}

/// A thousandth of a replica is not worth a replica.
const SLACK: f64 = 1e-3;

/// Replicas for so much work; see [`SLACK`].
pub(crate) fn whole(replicas: f64) -> u32 {
    (replicas - SLACK).ceil().clamp(0.0, f64::from(u32::MAX)) as u32
}

/// The work that so many replicas do but for a chance of `shortfall`.
fn carries(offer: &Offer, count: u32, shortfall: f64) -> f64 {
    let stay = offer.loss.map_or(count, |loss| survivors(count, loss, shortfall));
    offer.size * f64::from(stay)
}

/// Of so many that are each lost with probability `loss`, how many stay but for a chance of
/// `shortfall`: the binomial distribution added up from none lost.
fn survivors(count: u32, loss: f64, shortfall: f64) -> u32 {
    let stay = 1.0 - loss;
    let mut chance = stay.powi(count as i32);
    let (mut total, mut lost) = (chance, 0_u32);
    while total < 1.0 - shortfall && lost < count {
        chance *= f64::from(count - lost) / f64::from(lost + 1) * loss / stay;
        (total, lost) = (total + chance, lost + 1);
    }
    count - lost
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn offer(size: f64, price: f64, have: u32) -> Offer {
        Offer { size, price, start: price / 10.0, have, most: 8, loss: None }
    }

    fn cost(offers: &[Offer], counts: &[u32]) -> f64 {
        let each = offers.iter().zip(counts).map(|(offer, count)| {
            offer.price * f64::from(*count)
                + offer.start * f64::from(count.saturating_sub(offer.have))
        });
        each.sum()
    }

    #[test]
    fn the_cheapest_cover_is_found() {
        let spot = Spot::default();
        // 5 units of work: two large at 3.0 carry 6 for 6.6, one large and two small 5 for 5.5.
        let offers = [offer(3.0, 3.0, 0), offer(1.0, 1.0, 0)];
        assert_eq!(solve(&offers, 5.0, &spot), [1, 2]);
        // With two large there already, keeping them costs 6.0, and one with two small ones at
        // 1.5 costs 3.0 + 3.0 + 0.3 for their starts.
        let running = [offer(3.0, 3.0, 2), offer(1.0, 1.5, 0)];
        assert_eq!(solve(&running, 5.0, &spot), [2, 0]);
        // What cannot be carried is carried as far as it goes.
        assert_eq!(solve(&offers, 99.0, &spot), [8, 8]);
        assert_eq!(solve(&offers, 0.0, &spot), [0, 0]);
    }

    #[test]
    fn capacity_that_can_be_taken_away_is_bought_with_spares() {
        // Of 10 lost with 1 % each: none with 0.904, at most one with 0.996, two with 0.9999.
        assert_eq!(survivors(10, 0.01, 0.2), 10);
        assert_eq!(survivors(10, 0.01, 0.05), 9);
        assert_eq!(survivors(10, 0.01, 0.001), 8);
        let cheap = Offer { loss: Some(0.01), most: 20, ..offer(1.0, 0.3, 0) };
        let firm = Offer { most: 20, ..offer(1.0, 1.0, 0) };
        assert_eq!(solve(&[firm, cheap], 8.0, &Spot::default()), [0, 10]);
        // Too dear for its spares: 10 at 0.9 are dearer than 8 at 1.0.
        let dear = Offer { price: 0.9, ..cheap };
        assert_eq!(solve(&[firm, dear], 8.0, &Spot::default()), [8, 0]);
    }

    proptest! {
        #[test]
        fn no_other_mix_is_cheaper(
            parts in prop::collection::vec((1_u32..40, 1_u32..40, 0_u32..5, 0_u32..6), 1..4),
            work in 0_u32..120,
        ) {
            let offers: Vec<_> = parts.iter().map(|(size, price, have, most)| Offer {
                most: *most,
                ..offer(f64::from(*size) / 10.0, f64::from(*price), *have)
            }).collect();
            let work = f64::from(work) / 10.0;
            let found = solve(&offers, work, &Spot::default());
            let carried = |counts: &[u32]| -> f64 {
                offers.iter().zip(counts).map(|(o, n)| o.size * f64::from(*n)).sum()
            };
            let mut counts = vec![0_u32; offers.len()];
            let mut least = f64::INFINITY;
            loop {
                if carried(&counts) >= work - SLACK {
                    least = least.min(cost(&offers, &counts));
                }
                let Some(next) = (0..counts.len()).find(|n| counts[*n] < offers[*n].most) else { break };
                counts[next] += 1;
                counts[..next].fill(0);
            }
            if least.is_finite() {
                prop_assert!(carried(&found) >= work - 2.0 * SLACK);
                prop_assert!((cost(&offers, &found) - least).abs() < 1e-6);
            } else {
                prop_assert_eq!(found, offers.iter().map(|o| o.most).collect::<Vec<_>>());
            }
        }
    }
}
