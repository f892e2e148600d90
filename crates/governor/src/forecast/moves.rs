//! How far work moved within the look-ahead, in spreads: how often each distance was seen.

use super::{CELLS, EDGES, short};

/// Distances that were seen, in bins that grow with the distance: an eighth near zero, and an eighth of themselves
/// far from it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Moves {
    counts: [f64; BINS],
}

/// From -27 to 27 spreads.
pub(crate) const BINS: usize = 64;
const PER_UNIT: f64 = 8.0;
/// Each new one takes the place of so much of the old ones: they are forgotten by a third in seven days of minutes. The
/// rare moves that matter are not in less.
const REMEMBERED: f64 = 10_080.0;

impl Default for Moves {
    fn default() -> Self {
        Self { counts: [0.0; BINS] }
    }
}

/// Where a bin begins.
fn edge(bin: usize) -> f64 {
    ((bin as f64 - BINS as f64 / 2.0) / PER_UNIT).sinh()
}

impl Moves {
    pub(crate) fn add(&mut self, moved: f64) {
        for count in &mut self.counts {
            *count = short(*count * (1.0 - 1.0 / REMEMBERED));
        }
        let place = moved.asinh() * PER_UNIT + BINS as f64 / 2.0;
        let bin = place.clamp(0.0, BINS as f64 - 1.0) as usize;
        self.counts[bin] = short(self.counts[bin] + 1.0);
    }

    /// How many are remembered.
    pub(crate) fn count(&self) -> f64 {
        self.counts.iter().sum()
    }

    /// The middle of each cell of their distribution. Within a bin they lie evenly.
    pub(crate) fn table(&self) -> [f64; CELLS] {
        let all = self.count();
        let (mut bin, mut below) = (0, 0.0);
        std::array::from_fn(|cell| {
            let rank = f64::midpoint(EDGES[cell], EDGES[cell + 1]) * all;
            while bin < BINS - 1 && below + self.counts[bin] < rank {
                below += self.counts[bin];
                bin += 1;
            }
            let part = ((rank - below) / self.counts[bin].max(1e-9)).clamp(0.0, 1.0);
            short(edge(bin) + part * (edge(bin + 1) - edge(bin)))
        })
    }

    /// As numbers.
    pub(crate) fn numbers(&self) -> [f64; BINS] {
        self.counts
    }

    /// The same back; `None` if it cannot be.
    pub(crate) fn restored(counts: &[f64; BINS]) -> Option<Self> {
        let possible = counts.iter().all(|count| (0.0..=1.1 * REMEMBERED).contains(count));
        possible.then(|| Self { counts: counts.map(short) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_that_of_the_moves() {
        let mut moves = Moves::default();
        // Evenly from -4 to 4.
        for n in 0..8_000 {
            moves.add(f64::from((n * 4_999) % 8_000) / 1_000.0 - 4.0);
        }
        for (cell, value) in moves.table().iter().enumerate() {
            let share = f64::midpoint(EDGES[cell], EDGES[cell + 1]);
            assert!((value - (8.0 * share - 4.0)).abs() < 0.15, "{share}: {value}");
        }
        assert_eq!(Moves::restored(&moves.numbers()), Some(moves));
    }

    #[test]
    fn old_moves_are_forgotten_and_far_ones_are_in_the_last_bin() {
        let mut moves = Moves::default();
        for _ in 0..100_000 {
            moves.add(-1.0);
        }
        assert!(moves.count() < 1.001 * REMEMBERED, "{}", moves.count());
        for far in [1e9, f64::INFINITY, f64::NAN] {
            moves.add(far);
        }
        for _ in 0..40_000 {
            moves.add(1.0);
        }
        assert!(moves.table()[2] > 0.5, "{:?}", moves.table());
        assert!(moves.table().is_sorted());
    }

    #[test]
    fn what_cannot_have_been_counted_is_refused() {
        for bad in [f64::NAN, -1.0, 1e9] {
            let mut counts = [0.0; BINS];
            counts[7] = bad;
            assert_eq!(Moves::restored(&counts), None);
        }
    }
}
