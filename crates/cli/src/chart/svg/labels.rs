//! Where names go, so that none covers a mark, a line's name or another name.

use crate::output::text::width;

/// Columns of a terminal are the best guess of a width that a program without fonts can make.
/// This is a wide system font at 12 px; narrower ones leave a little room.
const COLUMN: f64 = 7.2;
pub(super) const LINE: f64 = 15.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rect {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

impl Rect {
    /// The room that one line of text needs, by its top left corner.
    pub(super) fn of_text(left: f64, top: f64, text: &str) -> Rect {
        Rect { left, top, right: left + text_width(text), bottom: top + LINE }
    }

    pub(super) fn around(x: f64, y: f64, radius: f64) -> Rect {
        Rect { left: x - radius, top: y - radius, right: x + radius, bottom: y + radius }
    }

    fn meets(&self, other: &Rect) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    fn inside(&self, other: &Rect) -> bool {
        self.left >= other.left
            && self.right <= other.right
            && self.top >= other.top
            && self.bottom <= other.bottom
    }
}

pub(super) fn text_width(text: &str) -> f64 {
    width(text) as f64 * COLUMN
}

/// The names that have a place so far, and everything that they must not cover.
#[derive(Debug)]
pub(super) struct Names {
    pub(super) frame: Rect,
    pub(super) taken: Vec<Rect>,
}

impl Names {
    pub(super) fn is_free(&self, rect: &Rect) -> bool {
        rect.inside(&self.frame) && !self.taken.iter().any(|other| rect.meets(other))
    }

    /// A free place near a mark: right of it first, then around it, then further away. None if
    /// everything near is taken; the name is then left to the tooltip.
    pub(super) fn place(&mut self, x: f64, y: f64, text: &str) -> Option<Rect> {
        let wide = text_width(text);
        let places = [12.0, 24.0, 40.0].into_iter().flat_map(|away| {
            let middle = y - LINE / 2.0;
            let (above, below) = (y - away - LINE * 0.8, y + away - LINE * 0.2);
            let (right, left) = (x + away, x - away - wide);
            [
                (right, middle),
                (right, above + LINE * 0.6),
                (right, below - LINE * 0.6),
                (x - wide / 2.0, above),
                (x - wide / 2.0, below),
                (left, middle),
                (left, above + LINE * 0.6),
                (left, below - LINE * 0.6),
            ]
        });
        let mut rects = places.map(|(left, top)| Rect::of_text(left, top, text));
        let found = rects.find(|rect| self.is_free(rect))?;
        self.taken.push(found);
        Some(found)
    }

    /// The same for a name that must not be left out: it then covers something rather than be
    /// missing.
    pub(super) fn place_anyhow(&mut self, x: f64, y: f64, text: &str) -> Rect {
        self.place(x, y, text).unwrap_or_else(|| {
            let last = (self.frame.right - text_width(text)).max(self.frame.left);
            let left = (x + 12.0).min(last);
            let top = (y - 28.0).clamp(self.frame.top, self.frame.bottom - LINE);
            let rect = Rect::of_text(left, top, text);
            self.taken.push(rect);
            rect
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_never_meet_and_stay_inside() {
        let frame = Rect { left: 0.0, top: 0.0, right: 300.0, bottom: 200.0 };
        let mut names = Names { frame, taken: Vec::new() };
        // All of them want one place; some get none.
        let placed: Vec<Rect> =
            (0..40).filter_map(|_| names.place(150.0, 100.0, "H200 TP1")).collect();
        assert!((5..40).contains(&placed.len()), "{}", placed.len());
        for (index, rect) in placed.iter().enumerate() {
            assert!(rect.inside(&frame));
            assert!(!placed[..index].iter().any(|other| rect.meets(other)));
        }
        let forced = names.place_anyhow(295.0, 5.0, "chosen: H200 TP1");
        assert!(forced.inside(&frame), "{forced:?}");
    }
}
