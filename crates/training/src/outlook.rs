//! What finishing in time costs from each state, if all that follows is decided as well as it can be by who does not know
//! the future.
//!
//! A state is how much time and work are left, whether spot machines can be had and for how long that has been so, and
//! which machines the run has. Backwards from the deadline, each state takes the cheapest of waiting, spot and on-demand,
//! with the learnt hazards of its age. A restart counts as more work, on the machine that restarts. Where time runs out
//! the rest is on-demand: no state waits longer than that, so that slack gets its price.
//!
//! It is coarse, so it only ever chooses among what [`crate::deadline`] allows.

use crate::lifetimes::{AGES, Lifetimes, ages_by};

/// Steps of time until the deadline, and levels of slack: time left beyond the work. Slack, because most of what a run
/// does leaves it as it is, so that nothing is rounded there; the levels are dense where there is little.
const STEPS: usize = 192;
const LEVELS: usize = 40;

/// States of market and machine: without machines or on on-demand while there are no spot machines, the same while there
/// are, and on spot; each by age.
const STATES: usize = 5 * AGES;
const UP: usize = 2 * AGES;
const ON_SPOT: usize = 4 * AGES;

/// What a state is looked up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Nowhere,
    OnDemand,
    Spot,
}

/// What the numbers rest on. Hours, and units of the currency per hour.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Terms {
    pub(crate) on_demand: f64,
    pub(crate) spot: f64,
    pub(crate) restart: f64,
    /// Part of the time on spot in which steps are made, and what a reclaim throws away.
    pub(crate) useful: f64,
    pub(crate) lost: f64,
    pub(crate) up: Lifetimes,
    pub(crate) none: Lifetimes,
    /// How likely another zone has machines when one zone's end.
    pub(crate) elsewhere: f64,
}

/// Expected costs, by time and work left.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outlook {
    pub(crate) terms: Terms,
    /// For how much time it was made.
    pub(crate) time: f64,
    step: f64,
    /// The slack of the last level.
    most: f64,
    /// By step, level and state.
    costs: Vec<f32>,
}

/// Chances of one step, by age.
struct Chances {
    reclaimed: [f64; AGES],
    returns: [f64; AGES],
    older: [f64; AGES],
}

/// Costs of all states at one time and amount of work.
type Costs = [f64; STATES];

impl Outlook {
    /// For at most this much time and work.
    pub(crate) fn new(terms: Terms, time: f64, work: f64) -> Self {
        let step = time / STEPS as f64;
        let most = (time - work).max(terms.restart).max(step);
        let costs = vec![0.0; (STEPS + 1) * (LEVELS + 1) * STATES];
        let mut outlook = Self { terms, time, step, most, costs };
        let chances = outlook.chances(step);
        for steps in 0..=STEPS {
            for levels in 0..=LEVELS {
                let costs = outlook.state_costs(steps, levels, &chances);
                let at = (steps * (LEVELS + 1) + levels) * STATES;
                for (place, cost) in outlook.costs[at..at + STATES].iter_mut().zip(costs) {
                    *place = cost as f32;
                }
            }
        }
        outlook
    }

    fn chances(&self, length: f64) -> Chances {
        let within = |lives: &Lifetimes, class: usize| 1.0 - (-lives.rate(class) * length).exp();
        Chances {
            reclaimed: std::array::from_fn(|class| within(&self.terms.up, class)),
            returns: std::array::from_fn(|class| within(&self.terms.none, class)),
            older: std::array::from_fn(|class| ages_by(class, length)),
        }
    }

    fn state_costs(&self, steps: usize, levels: usize, chances: &Chances) -> Costs {
        let time = steps as f64 * self.step;
        let slack = self.most * (levels as f64 / LEVELS as f64).powi(2);
        let work = time - slack;
        let mut costs = [0.0; STATES];
        if work <= 0.0 {
            return costs;
        }
        for up in [false, true] {
            for age in 0..AGES {
                for place in [Place::Nowhere, Place::OnDemand, Place::Spot] {
                    if place == Place::Spot && !up {
                        continue;
                    }
                    let to_end = self.on_demand_to_end(work, place == Place::OnDemand);
                    costs[state(place, up, age)] = to_end;
                }
            }
        }
        if steps == 0 {
            return costs;
        }
        let after = time - self.step;
        let [stay, start] =
            [0.0, self.terms.restart].map(|debt| Moves::new(self, after, work, self.step, debt));
        for up in [false, true] {
            for age in 0..AGES {
                let mut go = start.on_demand(up, age, chances);
                if after >= work + self.terms.restart {
                    go = go.min(start.wait(up, age, chances));
                }
                if up && time >= work + 2.0 * self.terms.restart {
                    go = go.min(start.spot(age, chances));
                }
                let keep = go.min(stay.on_demand(up, age, chances));
                for (place, cost) in [(Place::Nowhere, go), (Place::OnDemand, keep)] {
                    let at = state(place, up, age);
                    costs[at] = costs[at].min(cost);
                }
                if up && time >= work + self.terms.restart {
                    let at = state(Place::Spot, true, age);
                    costs[at] = costs[at].min(go).min(stay.spot(age, chances));
                }
            }
        }
        costs
    }

    fn on_demand_to_end(&self, work: f64, is_there: bool) -> f64 {
        let restart = if is_there { 0.0 } else { self.terms.restart };
        self.terms.on_demand * (work + restart)
    }

    /// Costs of all states, between what was worked out.
    fn at(&self, time: f64, work: f64) -> Costs {
        let mut costs = [0.0; STATES];
        if work <= 0.0 {
            return costs;
        }
        let (step, later) = parts(time / self.step, STEPS);
        let slack = (time - work) / self.most;
        // What cannot be done in time is paid for all the same.
        costs.fill(self.terms.on_demand * (work - time).max(0.0));
        let (level, more) = parts(slack.max(0.0).sqrt() * LEVELS as f64, LEVELS);
        for (steps, share) in [(step, 1.0 - later), (step + 1, later)] {
            for (levels, part) in [(level, 1.0 - more), (level + 1, more)] {
                let weight = share * part;
                if weight > 0.0 {
                    let at = (steps * (LEVELS + 1) + levels) * STATES;
                    for (sum, cost) in costs.iter_mut().zip(&self.costs[at..at + STATES]) {
                        *sum += weight * f64::from(*cost);
                    }
                }
            }
        }
        costs
    }

    /// What finishing costs if this is done for a step now. `debt` is what is left of a restart.
    pub(crate) fn cost(&self, time: f64, work: f64, now: Now, place: Place, debt: f64) -> f64 {
        let Now { up, age, longest } = now;
        let length = self.step.min(longest);
        let chances = self.chances(length);
        let moves = Moves::new(self, time - length, work, length, debt);
        match place {
            Place::Nowhere => moves.wait(up, age, &chances),
            Place::OnDemand => {
                let to_end = self.terms.on_demand * (work + debt);
                to_end.min(moves.on_demand(up, age, &chances))
            }
            Place::Spot => moves.spot(age, &chances),
        }
    }

    /// What one more restart costs now, on spot machines of this age: money and time.
    pub(crate) fn restart_cost(&self, time: f64, work: f64, age: usize) -> f64 {
        let [less, more] = [work, work + self.terms.restart]
            .map(|work| self.at(time, work)[state(Place::Spot, true, age)]);
        (more - less).max(self.terms.spot * self.terms.restart)
    }
}

/// The market as it is now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    /// Whether spot machines can be had.
    pub(crate) up: bool,
    /// The class of age of that.
    pub(crate) age: usize,
    /// The longest step that may be taken without being late.
    pub(crate) longest: f64,
}

/// What each thing that can be done for a step costs with all that follows.
struct Moves<'a> {
    terms: &'a Terms,
    work: f64,
    length: f64,
    /// What is left of a restart.
    debt: f64,
    /// Costs after the step: with no work done, after on-demand, after spot, and after a reclaim.
    idle: Costs,
    on_demand: Costs,
    spot: Costs,
    reclaimed: Costs,
}

impl<'a> Moves<'a> {
    fn new(outlook: &'a Outlook, time: f64, work: f64, length: f64, debt: f64) -> Self {
        let terms = &outlook.terms;
        // Reclaims come at the end of a step here; what is not saved then is lost.
        let retained = ((length - debt) * terms.useful - terms.lost).max(0.0);
        Self {
            terms,
            work,
            length,
            debt,
            idle: outlook.at(time, work),
            on_demand: outlook.at(time, work + debt - length),
            spot: outlook.at(time, work + (debt - length) * terms.useful),
            reclaimed: outlook.at(time, work - retained),
        }
    }

    fn wait(&self, up: bool, age: usize, chances: &Chances) -> f64 {
        self.market(&self.idle, Place::Nowhere, up, age, chances)
    }

    fn on_demand(&self, up: bool, age: usize, chances: &Chances) -> f64 {
        let price = self.terms.on_demand;
        let time = self.work + self.debt;
        if time <= self.length {
            return price * time;
        }
        price * self.length + self.market(&self.on_demand, Place::OnDemand, up, age, chances)
    }

    fn spot(&self, age: usize, chances: &Chances) -> f64 {
        let price = self.terms.spot;
        let time = self.work / self.terms.useful + self.debt;
        let lives = if time <= self.length {
            price * time
        } else {
            price * self.length + older(&self.spot, ON_SPOT, age, chances.older[age])
        };
        let another = self.reclaimed[state(Place::Nowhere, true, 0)];
        let none = self.reclaimed[state(Place::Nowhere, false, 0)];
        let elsewhere = self.terms.elsewhere;
        let after = elsewhere * another + (1.0 - elsewhere) * none;
        let ends = price * self.length + after;
        let chance = chances.reclaimed[age];
        chance * ends + (1.0 - chance) * lives
    }

    /// The market goes on while the run is not on it.
    fn market(&self, after: &Costs, place: Place, up: bool, age: usize, chances: &Chances) -> f64 {
        let base = state(place, up, 0);
        let stays = older(after, base, age, chances.older[age]);
        if !up {
            let chance = chances.returns[age];
            return chance * after[state(place, true, 0)] + (1.0 - chance) * stays;
        }
        let (chance, elsewhere) = (chances.reclaimed[age], self.terms.elsewhere);
        let ends = elsewhere * after[base] + (1.0 - elsewhere) * after[state(place, false, 0)];
        chance * ends + (1.0 - chance) * stays
    }
}

fn older(costs: &Costs, base: usize, age: usize, share: f64) -> f64 {
    let next = (age + 1).min(AGES - 1);
    (1.0 - share) * costs[base + age] + share * costs[base + next]
}

fn state(place: Place, up: bool, age: usize) -> usize {
    let base = if up { UP } else { 0 };
    age + match place {
        Place::Nowhere => base,
        Place::OnDemand => base + AGES,
        Place::Spot => ON_SPOT,
    }
}

/// A number as an index below the last, and the part of the way to the next.
fn parts(value: f64, last: usize) -> (usize, f64) {
    let value = value.clamp(0.0, last as f64);
    let whole = (value as usize).min(last - 1);
    (whole, value - whole as f64)
}
