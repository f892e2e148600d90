//! Steps under way: one, or many whose times lie on a straight line.

use flyball_perf::serving::batch::{Batch, StepTime};

/// Steps under way. Step `i`, counted from zero, takes `first + slope * i` seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Flight {
    pub(super) start: f64,
    pub(super) steps: u64,
    first: f64,
    slope: f64,
}

impl Flight {
    /// As many of `most` equal steps as lie on a line, and how often that asked for a time.
    ///
    /// Each step reads one token more for each request that decodes.
    pub(super) fn new(start: f64, most: u64, batch: &Batch, step: &impl StepTime) -> (Self, u64) {
        let first = step.seconds(batch);
        let one = Self { start, steps: 1, first, slope: 0.0 };
        if most <= 1 || batch.decodes < 1.0 {
            return (one, 1);
        }
        let room = (step.straight_until(batch) - batch.cached) / batch.decodes;
        let steps = if room < (most - 1) as f64 { room.max(0.0) as u64 + 1 } else { most };
        if steps <= 1 {
            return (one, 1);
        }
        let further = (steps - 1) as f64;
        let last = Batch { cached: batch.cached + further * batch.decodes, ..*batch };
        (Self { steps, slope: (step.seconds(&last) - first) / further, ..one }, 2)
    }

    /// When so many steps have ended.
    pub(super) fn after(&self, steps: u64) -> f64 {
        let n = steps as f64;
        self.start + (n * self.first + self.slope * (n * (n - 1.0) / 2.0))
    }

    pub(super) fn end(&self) -> f64 {
        self.after(self.steps)
    }

    /// Steps that have ended when time has come to `at`: the fewest that end no earlier, but no
    /// more than there are.
    pub(super) fn steps_until(&self, at: f64) -> u64 {
        if at >= self.end() {
            return self.steps;
        }
        if at <= self.start {
            return 0;
        }
        // n * first + slope * n (n - 1) / 2 = at - start, in the form that does not cancel.
        let linear = self.first - self.slope / 2.0;
        let apart = at - self.start;
        let root = (linear * linear + 2.0 * self.slope * apart).max(0.0).sqrt();
        let guess = (2.0 * apart / (linear + root)).clamp(0.0, self.steps as f64);
        let mut steps = guess.ceil() as u64;
        while steps > 0 && self.after(steps - 1) >= at {
            steps -= 1;
        }
        while steps < self.steps && self.after(steps) < at {
            steps += 1;
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewest_steps_that_reach_a_time() {
        // Steps of 1, 1.5, 2 and 2.5 seconds end at 11, 12.5, 14.5 and 17.
        let flight = Flight { start: 10.0, steps: 4, first: 1.0, slope: 0.5 };
        let cases =
            [(9.0, 0), (10.0, 0), (10.1, 1), (11.0, 1), (11.1, 2), (14.5, 3), (16.9, 4), (99.0, 4)];
        for (at, steps) in cases {
            assert_eq!(flight.steps_until(at), steps, "at {at}");
        }
        assert_eq!(flight.end(), 17.0);
    }
}
