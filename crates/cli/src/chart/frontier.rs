//! Which points no other one beats.

use super::Point;

/// The indices of the points that are not dominated, from left to right, both axes being better
/// when smaller. Rejected points are not on it and beat nothing; two equal points share a place.
pub(crate) fn frontier(points: &[Point]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..points.len())
        .filter(|&index| !points[index].rejected && points[index].is_drawn())
        .collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (&points[a], &points[b]);
        a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y))
    });
    // From left to right every further point must be lower than all before it.
    let mut result: Vec<usize> = Vec::new();
    for index in order {
        let point = &points[index];
        let is_better = result.last().is_none_or(|&last| {
            let last = &points[last];
            point.y < last.y || (point.x == last.x && point.y == last.y)
        });
        if is_better {
            result.push(index);
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn beats(a: &Point, b: &Point) -> bool {
        a.x <= b.x && a.y <= b.y && (a.x < b.x || a.y < b.y)
    }

    fn points() -> impl Strategy<Value = Vec<Point>> {
        // Few different values, so that equal ones are common.
        let point =
            (0..12_i32, 0..12_i32, prop::bool::weighted(0.2)).prop_map(|(x, y, rejected)| Point {
                x: x.into(),
                y: y.into(),
                rejected,
                ..Point::default()
            });
        prop::collection::vec(point, 0..30)
    }

    proptest! {
        #[test]
        fn the_frontier_is_exactly_what_nothing_beats(points in points()) {
            let found = frontier(&points);
            for (index, point) in points.iter().enumerate().filter(|(_, point)| !point.rejected) {
                let beaten = points.iter().any(|other| !other.rejected && beats(other, point));
                prop_assert_eq!(found.contains(&index), !beaten, "{}", index);
            }
            prop_assert!(found.iter().all(|&index| !points[index].rejected));
            prop_assert!(found.is_sorted_by(|&a, &b| points[a].x <= points[b].x));
        }
    }

    #[test]
    fn what_is_not_a_number_is_nowhere() {
        let at = |x, y| Point { x, y, ..Point::default() };
        assert_eq!(frontier(&[at(f64::NAN, 0.0), at(1.0, 1.0), at(0.0, f64::INFINITY)]), [1]);
        assert_eq!(frontier(&[]), [0; 0]);
    }
}
