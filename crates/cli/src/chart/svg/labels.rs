//! Where names go, so that none covers a mark, a line's name or another name.

use crate::text::width;

pub(super) const LINE: f64 = 16.0;

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

    /// The room of a straight line, with a little air.
    pub(super) fn of_line(from: (f64, f64), to: (f64, f64)) -> Rect {
        Rect {
            left: from.0.min(to.0) - 2.0,
            top: from.1.min(to.1) - 2.0,
            right: from.0.max(to.0) + 2.0,
            bottom: from.1.max(to.1) + 2.0,
        }
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

/// A program without fonts can only guess: these are the widths of a wide system font at 13 px,
/// bold for good measure. Narrower fonts leave a little room.
pub(super) fn text_width(text: &str) -> f64 {
    let letters = text.chars().map(|letter| match letter {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | ' ' => 5.0,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 12.5,
        'A'..='Z' | '0'..='9' => 9.2,
        letter if letter.is_ascii() => 8.0,
        letter => 9.2 * width(&letter.to_string()) as f64,
    });
    letters.sum()
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

    /// A free place near a mark. Below and left of the frontier nothing can be better, so that is
    /// where room is; then around the mark, then further away. None if everything near is taken;
    /// the name is then left to the tooltip.
    pub(super) fn place(&mut self, x: f64, y: f64, text: &str) -> Option<Rect> {
        let wide = text_width(text);
        let places = [8.0, 16.0, 28.0, 44.0].into_iter().flat_map(|away| {
            let (middle, above, below) = (y - LINE / 2.0, y - away - LINE, y + away);
            let (right, left, centre) = (x + away, x - away - wide, x - wide / 2.0);
            [
                (left + away / 2.0, below - away / 2.0),
                (left, middle),
                (centre, below),
                (right, below - away / 2.0),
                (right, above + away / 2.0),
                (right, middle),
                (centre, above),
                (left, above + away / 2.0),
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
