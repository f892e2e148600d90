//! Short paths: whole pixels, relative moves, equal steps joined. A week of six policies has to fit
//! into a page that can be mailed.

use std::fmt::Write;

/// A closed area under steps one unit wide, from the baseline up. Unknown steps have no area.
pub(super) fn area(heights: &[Option<f64>], room: f64, most: f64) -> String {
    let mut path = String::new();
    let mut at = 0;
    while at < heights.len() {
        let length = heights[at..].iter().take_while(|one| one.is_some()).count();
        if length == 0 {
            at += 1;
            continue;
        }
        let pixels: Vec<i64> =
            heights[at..at + length].iter().flatten().map(|one| pixel(*one, room, most)).collect();
        if pixels.iter().any(|one| *one != 0) {
            let _ = write!(path, "M{at} {}", pixel(most, room, most));
            steps(&mut path, &pixels);
            path.push('z');
        }
        at += length;
    }
    path
}

/// The upper edge alone.
pub(super) fn edge(heights: &[Option<f64>], room: f64, most: f64) -> String {
    let mut path = String::new();
    let mut before: Option<i64> = None;
    let mut run = 0;
    let bottom = pixel(most, room, most);
    for (index, one) in heights.iter().enumerate() {
        let now = one.map(|one| pixel(one, room, most));
        if now != before || index == 0 {
            flush(&mut path, &mut run);
            match (before, now) {
                (Some(before), Some(now)) => {
                    let _ = write!(path, "v{}", before - now);
                }
                (None, Some(now)) => {
                    let _ = write!(path, "M{index} {}", bottom - now);
                }
                (_, None) => {}
            }
        }
        run += i64::from(now.is_some());
        before = now;
    }
    flush(&mut path, &mut run);
    path
}

/// A line through the middle of each step.
pub(super) fn line(heights: &[Option<f64>], room: f64, most: f64) -> String {
    let mut path = String::new();
    let mut before: Option<i64> = None;
    let bottom = pixel(most, room, most);
    for (index, one) in heights.iter().enumerate() {
        let now = one.map(|one| pixel(one, room, most));
        match (before, now) {
            (Some(before), Some(now)) if now == before => path.push_str("h1"),
            (Some(before), Some(now)) => {
                let _ = write!(path, "l1 {}", before - now);
            }
            (None, Some(now)) => {
                let _ = write!(path, "M{index}.5 {}", bottom - now);
            }
            (_, None) => {}
        }
        before = now;
    }
    // One path command repeated may be left out, and a minus sign needs no blank before it.
    path.replace("l1 -", "l1-")
}

/// Round numbers from zero to at least `most`, about so many.
pub(super) fn ticks(most: f64, about: usize) -> Vec<f64> {
    let raw = (most / about.max(1) as f64).max(1e-9);
    let decade = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|times| times * decade);
    let step = step.into_iter().find(|step| *step >= raw * 0.999).unwrap_or(decade * 10.0);
    let count = (most / step * 0.999).ceil() as usize;
    (0..=count.max(1)).map(|index| index as f64 * step).collect()
}

fn steps(path: &mut String, pixels: &[i64]) {
    let (mut height, mut run) = (0, 0);
    for now in pixels {
        if *now != height {
            flush(path, &mut run);
            let _ = write!(path, "v{}", height - now);
            height = *now;
        }
        run += 1;
    }
    flush(path, &mut run);
    let _ = write!(path, "v{height}");
}

fn flush(path: &mut String, run: &mut i64) {
    if *run > 0 {
        let _ = write!(path, "h{run}");
    }
    *run = 0;
}

fn pixel(value: f64, room: f64, most: f64) -> i64 {
    if most > 0.0 { ((value / most).min(1.0) * room).round() as i64 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_short_and_leave_gaps_out() {
        let heights = [Some(1.0), Some(1.0), Some(2.0), None, Some(0.0), Some(2.0)];
        assert_eq!(area(&heights, 10.0, 2.0), "M0 10v-5h2v-5h1v10zM4 10h1v-10h1v10z");
        assert_eq!(edge(&heights, 10.0, 2.0), "M0 5h2v-5h1M4 10h1v-10h1");
        assert_eq!(line(&heights, 10.0, 2.0), "M0.5 5h1l1-5M4.5 10l1-10");
        assert_eq!(area(&[Some(0.0); 3], 10.0, 2.0), "");
    }

    #[test]
    fn ticks_are_round_and_reach_the_top() {
        assert_eq!(ticks(7.0, 3), [0.0, 5.0, 10.0]);
        assert_eq!(ticks(24.0, 3), [0.0, 10.0, 20.0, 30.0]);
        assert_eq!(ticks(0.9, 2), [0.0, 0.5, 1.0]);
    }
}
