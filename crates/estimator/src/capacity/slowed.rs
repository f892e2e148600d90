//! Engines that all became slower or quicker at once: a new version, a throttled card, a noisy neighbour.
//!
//! What is known of a replica says how long a token should take under the work that it does: `t0 / t = 1 - work / C`.
//! Engines that take `k` times as long for everything have `k t0` and `C / k`, so that one look tells
//! `1 / k = t0 / t + work / C`, which is 1 as long as they are what they were. Learnt from scratch instead, it took a
//! quarter of an hour in which every request missed: the old `t0` makes a slow engine look like a full one.

/// Looks are followed over so long.
const FOLLOWED_S: f64 = 60.0;
/// Fewer looks say nothing.
const LASTS: f64 = 4.0;
/// A change is one beyond this factor: capacities that are measured are known no better.
const CLEARLY: f64 = 1.25;
/// Beyond this an engine is broken and not slow.
const MOST: f64 = 8.0;

/// How much slower engines are than they were first known to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Slowed {
    /// Times as long as at first.
    pub(super) times: f64,
    /// `1 / k` since the last change, over some looks.
    speed: f64,
    ticks: f64,
}

/// How many numbers it is.
pub(super) const NUMBERS: usize = 3;

impl Default for Slowed {
    fn default() -> Self {
        Self { times: 1.0, speed: 1.0, ticks: 0.0 }
    }
}

impl Slowed {
    /// Follows one look: `speed` is `t0 / t + work / C`. How many times as slow as a while ago engines are, once that
    /// is clear.
    pub(super) fn observe(&mut self, speed: f64, seconds: f64) -> Option<f64> {
        let share = (seconds / FOLLOWED_S).clamp(1.0 / LASTS, 1.0);
        self.speed += (speed - self.speed) * share;
        self.ticks = (self.ticks + 1.0).min(1e6);
        let known = self.ticks >= LASTS && self.speed > 0.0;
        // Both the last look and those before it: a burst of long prompts ends sooner.
        let [last, lately] = [speed, self.speed].map(|speed| 1.0 / speed);
        let clearly = last.min(lately) > CLEARLY || last.max(lately) < 1.0 / CLEARLY;
        if !known || !clearly {
            return None;
        }
        let times = (self.times * last).clamp(1.0, MOST);
        let changed = times / self.times;
        *self = Self { times, ..Self::default() };
        ((changed - 1.0).abs() > 1e-6).then_some(changed)
    }

    /// As numbers.
    pub(super) const fn numbers(&self) -> [f64; NUMBERS] {
        [self.times, self.speed, self.ticks]
    }

    /// The same back; `None` if it cannot be.
    pub(super) fn restored([times, speed, ticks]: [f64; NUMBERS]) -> Option<Self> {
        let possible = (1.0..=MOST).contains(&times)
            && (0.0..1e6).contains(&speed)
            && (0.0..=1e6).contains(&ticks);
        possible.then_some(Self { times, speed, ticks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(slowed: &mut Slowed, speed: f64, count: usize) -> Option<f64> {
        (0..count).find_map(|_| slowed.observe(speed, 15.0))
    }

    #[test]
    fn half_the_speed_is_seen_within_four_looks_and_so_is_its_end() {
        let mut slowed = Slowed::default();
        assert_eq!(ticks(&mut slowed, 1.0, 40), None);
        let times = ticks(&mut slowed, 0.5, 4).expect("seen");
        assert!((times - 2.0).abs() < 1e-9, "{times}");
        assert_eq!(ticks(&mut slowed, 1.0, 40), None, "it is what is known now");
        let times = ticks(&mut slowed, 2.0, 6).expect("over");
        assert!((times - 0.5).abs() < 1e-9 && (slowed.times - 1.0).abs() < 1e-9, "{times}");
    }

    #[test]
    fn noise_one_long_prompt_and_engines_quicker_than_at_first_are_no_change() {
        let mut slowed = Slowed::default();
        let noisy =
            (0..200).find_map(|n| slowed.observe(if n % 2 == 0 { 0.85 } else { 1.2 }, 15.0));
        assert_eq!(noisy, None);
        assert_eq!(slowed.observe(0.2, 15.0).or_else(|| ticks(&mut slowed, 1.0, 9)), None);
        assert_eq!(ticks(&mut slowed, 3.0, 40), None);
        assert!((slowed.times - 1.0).abs() < 1e-9);
    }

    #[test]
    fn it_is_handed_on_and_what_cannot_be_is_refused() {
        let mut slowed = Slowed::default();
        ticks(&mut slowed, 0.5, 6);
        assert_eq!(Slowed::restored(slowed.numbers()), Some(slowed));
        assert_eq!(Slowed::restored([f64::NAN, 1.0, 0.0]), None);
        assert_eq!(Slowed::restored([0.0, 1.0, 0.0]), None);
    }
}
