//! The largest rise of work that lasted. What came once may come again before a replica asked for then would serve, and
//! until there are moves enough to tell how often, that much is held ready.

/// A rise is forgotten by half in so many minutes, as bursts are.
const HALF_LIFE_MINUTES: f64 = 180.0;
/// Less than so many deviations of a minute's work is chance and no rise.
const CLEARLY: f64 = 3.0;

/// The largest rise after one more minute. `work` tells a minute's work by how long ago it closed, and `variance` is that
/// of a minute's work by chance. Two minutes on either side of a look-ahead must agree: what ends sooner is a burst, and
/// stood by for elsewhere.
pub(super) fn largest(
    known: f64,
    work: impl Fn(usize) -> Option<f64>,
    ahead: usize,
    variance: f64,
) -> f64 {
    let faded = known * 0.5_f64.powf(1.0 / HALF_LIFE_MINUTES);
    let minutes = [work(0), work(1), work(ahead + 1), work(ahead + 2)];
    let [Some(last), Some(before), Some(later), Some(earlier)] = minutes else { return faded };
    let rise = last.min(before) - later.max(earlier);
    if rise > CLEARLY * variance.max(0.0).sqrt() { faded.max(rise) } else { faded }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(minutes: &[f64], variance: f64) -> f64 {
        (0..minutes.len()).fold(0.0, |known, last| {
            let work = |back: usize| last.checked_sub(back).map(|minute| minutes[minute]);
            largest(known, work, 2, variance)
        })
    }

    #[test]
    fn a_step_that_lasts_is_a_rise_and_is_forgotten_in_hours() {
        let mut step = [2.0; 20];
        step[6..].fill(4.0);
        assert!((1.8..=2.0).contains(&after(&step, 0.01)), "{}", after(&step, 0.01));
        let mut long = [4.0; 200];
        long[..6].fill(2.0);
        assert!((0.9..1.1).contains(&after(&long, 0.01)), "{}", after(&long, 0.01));
    }

    #[test]
    fn bursts_falls_and_chance_are_no_rise() {
        let mut burst = [2.0; 20];
        burst[6] = 40.0;
        assert_eq!(after(&burst, 0.01), 0.0);
        let mut fall = [4.0; 20];
        fall[6..].fill(2.0);
        assert_eq!(after(&fall, 0.01), 0.0);
        let noisy: [f64; 20] = std::array::from_fn(|minute| 4.0 + (minute % 7) as f64 / 7.0);
        assert_eq!(after(&noisy, 0.1), 0.0);
        assert_eq!(after(&[2.0, 4.0, 4.0], 0.01), 0.0, "too little was seen");
    }
}
