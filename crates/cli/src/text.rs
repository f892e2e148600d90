//! Lines of text for people: styles that only add, words that wrap where the terminal ends.

use std::fmt::{self, Write};
use std::io::IsTerminal;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use unicode_width::UnicodeWidthStr;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();
pub(crate) const RED: Style = AnsiColor::Red.on_default().bold();

/// Wider lines wrap badly side by side with an editor and in CI logs.
pub(crate) const WIDTH: usize = 100;
/// On a narrower terminal words and numbers would be a character per line.
const NARROWEST: usize = 40;

/// Columns for people to read in: those of the terminal if there is one, and no more than are good to read.
pub(crate) fn columns(stream: &impl IsTerminal) -> usize {
    let terminal = stream.is_terminal().then(crossterm::terminal::size).and_then(Result::ok);
    terminal.map_or(WIDTH, |(columns, _)| usize::from(columns).clamp(NARROWEST, WIDTH))
}

/// A text under construction. It may hold styles; the stream drops them where they do not belong.
#[derive(Debug)]
pub(crate) struct Text {
    text: String,
    columns: usize,
}

impl Text {
    /// Whose words wrap after so many columns.
    pub(crate) fn new(columns: usize) -> Text {
        Text { text: String::new(), columns }
    }

    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    pub(crate) fn line(&mut self, line: fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "{line}");
    }

    pub(crate) fn blank(&mut self) {
        self.text.push('\n');
    }

    /// Words wrapped at the width; the lines after the first are indented two columns more.
    pub(crate) fn wrapped(&mut self, indent: &str, words: &str) {
        let mut line = indent.to_owned();
        let mut empty = true;
        for word in words.split_whitespace() {
            if !empty && width(&line) + 1 + width(word) > self.columns {
                self.line(format_args!("{line}"));
                line = format!("{indent}  ");
                empty = true;
            }
            if !empty {
                line.push(' ');
            }
            line.push_str(word);
            empty = false;
        }
        self.line(format_args!("{line}"));
    }

    pub(crate) fn append(&mut self, other: Text) {
        self.text.push_str(&other.text);
    }

    pub(crate) fn into_string(self) -> String {
        self.text
    }
}

/// How many columns a terminal needs for it. Letters of some scripts take two.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// The words in lines of at most this width; at least one line. A word that is wider than a line
/// is cut: it would push everything beside it out of place.
pub(crate) fn wrap(words: &str, room: usize) -> Vec<String> {
    let room = room.max(2);
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in words.split_whitespace() {
        if !line.is_empty() && width(&line) + 1 + width(word) > room {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        for letter in word.chars() {
            line.push(letter);
            if width(&line) > room {
                line.pop();
                lines.push(std::mem::replace(&mut line, letter.to_string()));
            }
        }
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// `38 ms`, `1.9 s`, `2 min 9 s`: as exact as a reader can use.
pub(crate) fn duration(time: Duration) -> String {
    let millis = time.as_millis();
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..60_000 if millis.is_multiple_of(1_000) => format!("{} s", millis / 1_000),
        1_000..60_000 => format!("{:.1} s", time.as_secs_f64()),
        _ => {
            let seconds = time.as_secs();
            format!("{} min {} s", seconds / 60, seconds % 60)
        }
    }
}

/// `38 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`: how long ago something was, or how long it lasts.
pub(crate) fn age(time: Duration) -> String {
    let seconds = time.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    let two = |large: u64, unit: &str, small: u64, smaller: &str| match small {
        0 => format!("{large} {unit}"),
        _ => format!("{large} {unit} {small} {smaller}"),
    };
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => two(minutes, "min", seconds % 60, "s"),
        3_600..86_400 => two(hours, "h", minutes % 60, "min"),
        _ => two(days, "d", hours % 24, "h"),
    }
}

/// `1 node`, `2 nodes`.
pub(crate) fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_well() {
        let read = |ms| duration(Duration::from_millis(ms));
        assert_eq!(read(38), "38 ms");
        assert_eq!(read(5_000), "5 s");
        assert_eq!(read(1_940), "1.9 s");
        assert_eq!(read(129_000), "2 min 9 s");
    }

    #[test]
    fn ages_read_well() {
        let read = |seconds| age(Duration::from_secs(seconds));
        assert_eq!(read(0), "0 s");
        assert_eq!(read(200), "3 min 20 s");
        assert_eq!(read(7_200), "2 h");
        assert_eq!(read(7_500), "2 h 5 min");
        assert_eq!(read(273_600), "3 d 4 h");
    }

    #[test]
    fn lines_are_never_wider_than_their_room() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("a unbreakable", 5), ["a", "unbre", "akabl", "e"]);
        assert_eq!(wrap("東京東京", 4), ["東京", "東京"]);
        assert_eq!(wrap("", 4), [""]);
    }

    #[test]
    fn words_wrap_inside_the_width() {
        let mut text = Text::new(WIDTH);
        text.wrapped("    ", &"word ".repeat(60));
        let text = text.into_string();
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        assert!(text.lines().skip(1).all(|line| line.starts_with("      word")), "{text}");
    }
}
