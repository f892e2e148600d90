//! A series in one line of characters.

/// From the lowest to the highest; a terminal without them gets ASCII (`charset`).
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Columns of a line. With a name before it and a number behind it, a row stays inside 100.
pub(in crate::commands) const COLUMNS: usize = 64;

/// The series in at most [`COLUMNS`] characters, each the largest of its part: what is looked for
/// are peaks. What is not known is a blank.
pub(in crate::commands) fn line(values: &[Option<f64>], most: f64) -> String {
    let columns = COLUMNS.min(values.len());
    let mut text = String::new();
    for column in 0..columns {
        let part = &values[column * values.len() / columns..(column + 1) * values.len() / columns];
        let largest = part.iter().flatten().copied().reduce(f64::max);
        text.push(match largest {
            None => ' ',
            // Not rounded: only what reaches the top is at the top.
            Some(value) if most > 0.0 => BARS[((value / most * 7.999) as usize).min(7)],
            Some(_) => BARS[0],
        });
    }
    text
}

#[cfg(test)]
#[test]
fn a_peak_is_seen_and_a_gap_stays_blank() {
    let some = |values: &[f64]| values.iter().copied().map(Some).collect::<Vec<_>>();
    assert_eq!(line(&some(&[0.0, 1.0, 2.0, 4.0]), 4.0), "▁▂▄█");
    let mut long = some(&[0.0; 640]);
    long[325] = Some(8.0);
    long[400..420].fill(None);
    let drawn: Vec<char> = line(&long, 8.0).chars().collect();
    assert_eq!((drawn.len(), drawn[32], drawn[40], drawn[41]), (64, '█', ' ', ' '));
    assert_eq!(line(&some(&[0.0, 0.0]), 0.0), "▁▁");
}
