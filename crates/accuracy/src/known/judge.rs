//! Whether an answer agrees with what was published.

use super::answer::Answer;
use super::reads::Found;
use super::rows::Row;

/// So far apart two sizes of memory or two counts may lie where the answer states no interval.
const ALIKE: f64 = 0.02;
/// Further off than this factor, an answer must warn.
const FAR: f64 = 2.0;

/// How an answer did.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Judged {
    /// Inside the stated interval, or the right verdict.
    pub(super) inside: bool,
    /// How far the point is from what was published, as a factor of at least 1; of numbers only.
    pub(super) factor: Option<f64>,
    /// Further off than twice, and the answer does not warn.
    pub(super) far_unwarned: bool,
}

pub(super) fn judge(row: &Row, found: &Found) -> Judged {
    match &found.answer {
        Answer::Words(words) => {
            Judged { inside: agrees(row, words), factor: None, far_unwarned: false }
        }
        Answer::Number { low, point, high } => {
            let Ok(published) = row.published.parse::<f64>() else {
                return Judged { inside: false, factor: None, far_unwarned: false };
            };
            let (least, most) = (
                row.low.unwrap_or(published).min(published),
                row.high.unwrap_or(published).max(published),
            );
            let (low, high) = match low == high {
                true => (point * (1.0 - ALIKE), point * (1.0 + ALIKE)),
                false => (*low, *high),
            };
            let factor = (least / point).max(point / most).max(1.0);
            // What is no number is as far off as it can be.
            let factor = if factor.is_finite() { factor } else { f64::INFINITY };
            Judged {
                inside: low <= most && high >= least,
                factor: Some(factor),
                far_unwarned: factor > FAR && found.warnings.is_empty(),
            }
        }
    }
}

/// Words agree if they are those published; a list of layouts, if it has the one published.
fn agrees(row: &Row, words: &[String]) -> bool {
    words.contains(&row.published)
}

#[cfg(test)]
mod tests {
    use super::super::tests::row;
    use super::*;

    fn number(low: f64, point: f64, high: f64, warnings: &[&str]) -> Found {
        let warnings = warnings.iter().map(|&warning| warning.to_owned()).collect();
        Found { answer: Answer::Number { low, point, high }, warnings }
    }

    #[test]
    fn a_number_is_inside_if_the_interval_reaches_what_was_published() {
        let row = row("a", "days", "21");
        assert!(judge(&row, &number(20.0, 25.0, 30.0, &[])).inside);
        let outside = judge(&row, &number(22.0, 25.2, 30.0, &[]));
        assert!(!outside.inside && !outside.far_unwarned);
        assert_eq!(outside.factor, Some(1.2));
        let wide = super::super::rows::Row { low: Some(10.0), high: Some(23.0), ..row };
        let inside = judge(&wide, &number(22.0, 25.2, 30.0, &[]));
        assert!(inside.inside && inside.factor.unwrap() < 1.1);
    }

    #[test]
    fn far_off_counts_only_where_the_answer_does_not_warn() {
        let row = row("a", "days", "10");
        assert!(judge(&row, &number(20.0, 21.0, 22.0, &[])).far_unwarned);
        assert!(!judge(&row, &number(20.0, 21.0, 22.0, &["not measured"])).far_unwarned);
        assert!(judge(&row, &number(0.0, 0.0, 0.0, &[])).far_unwarned);
    }

    #[test]
    fn sizes_without_an_interval_agree_within_two_in_a_hundred() {
        let row = row("a", "cacheTokens", "100");
        assert!(judge(&row, &number(101.0, 101.0, 101.0, &[])).inside);
        assert!(!judge(&row, &number(103.0, 103.0, 103.0, &[])).inside);
    }
}
