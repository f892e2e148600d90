//! How long tokens take by how much is done: where a step takes `t = t0 + work in it`, `1 / t` falls along a line.
//!
//! With `C` the work that takes all of the time, `t0 / t = 1 - work / C`. So two loads tell both numbers, and no engine
//! need ever be idle for it. A prediction that was three times too quick was once believed for its `t0`: every pace then
//! looked like a full engine's, and each replica that was added made the next look fuller.

/// Readings fade to a half in this time: long enough for a fleet to change its size, short beside an engine that slows.
const HALF_LIFE_S: f64 = 300.0;
/// Fewer readings than these tell nothing.
const ENOUGH: f64 = 8.0;
/// The work of readings must differ by so much of its mean (one standard deviation), or noise makes the line.
const SPREAD: f64 = 0.08;

/// Sums of readings: of work, of tokens per second, their squares and products, all fading.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Line {
    count: f64,
    work: f64,
    speed: f64,
    squares: f64,
    products: f64,
}

/// How many numbers it is.
pub(super) const NUMBERS: usize = 5;

impl Line {
    /// So much was done, and a token took so long.
    pub(super) fn add(&mut self, work: f64, pace: f64, seconds: f64) {
        let left = (-seconds / HALF_LIFE_S * std::f64::consts::LN_2).exp();
        let speed = 1.0 / pace;
        let with = |sum: f64, more: f64| sum * left + more;
        *self = Self {
            count: with(self.count, 1.0),
            work: with(self.work, work),
            speed: with(self.speed, speed),
            squares: with(self.squares, work * work),
            products: with(self.products, work * speed),
        };
    }

    /// Time per token of an engine with nothing to do, if readings differ enough to tell.
    pub(super) fn idle(&self) -> Option<f64> {
        if self.count < ENOUGH {
            return None;
        }
        let (work, speed) = (self.work / self.count, self.speed / self.count);
        let variance = self.squares / self.count - work * work;
        if work <= 0.0 || variance < (SPREAD * work).powi(2) {
            return None;
        }
        let slope = (self.products / self.count - work * speed) / variance;
        // More work never makes tokens quicker.
        let fastest = speed - slope * work;
        (slope < 0.0 && fastest.is_finite()).then(|| 1.0 / fastest)
    }

    /// The same work in other units.
    pub(super) fn rescale(&mut self, factor: f64) {
        self.work *= factor;
        self.squares *= factor * factor;
        self.products *= factor;
    }

    /// As numbers.
    pub(super) const fn numbers(&self) -> [f64; NUMBERS] {
        [self.count, self.work, self.speed, self.squares, self.products]
    }

    /// The same back; `None` if it cannot be.
    pub(super) fn restored(
        [count, work, speed, squares, products]: [f64; NUMBERS],
    ) -> Option<Self> {
        let all = [count, work, speed, squares, products];
        let possible = all.iter().all(|one| (0.0..1e12).contains(one));
        possible.then_some(Self { count, work, speed, squares, products })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An engine of 18 ms a step that can do so much, at these loads in turn.
    fn seen(loads: &[f64]) -> Line {
        let mut line = Line::default();
        for tick in 0..40 {
            let work = loads[tick % loads.len()];
            line.add(work, 0.018 / (1.0 - work / 0.9), 15.0);
        }
        line
    }

    #[test]
    fn two_loads_tell_how_long_an_idle_step_takes() {
        let idle = seen(&[0.2, 0.3]).idle().expect("known");
        assert!((idle - 0.018).abs() < 1e-6, "{idle}");
    }

    #[test]
    fn one_load_tells_nothing_and_nor_do_few_readings() {
        assert_eq!(seen(&[0.2]).idle(), None);
        assert_eq!(seen(&[0.2, 0.202]).idle(), None, "they differ too little");
        let mut line = Line::default();
        (0..4).for_each(|tick| line.add(0.1 * f64::from(tick + 1), 0.02, 15.0));
        assert_eq!(line.idle(), None);
    }

    #[test]
    fn tokens_that_are_quicker_with_more_work_are_no_line() {
        let mut line = Line::default();
        (0..40).for_each(|tick| {
            line.add(0.2 + 0.1 * f64::from(tick % 2), 0.03 - 0.01 * f64::from(tick % 2), 15.0)
        });
        assert_eq!(line.idle(), None);
    }

    #[test]
    fn it_is_handed_on_and_what_cannot_be_is_refused() {
        let line = seen(&[0.2, 0.3]);
        assert_eq!(Line::restored(line.numbers()), Some(line));
        assert_eq!(Line::restored([f64::NAN, 0.0, 0.0, 0.0, 0.0]), None);
        assert_eq!(Line::restored([-1.0, 0.0, 0.0, 0.0, 0.0]), None);
    }
}
