//! What is on the live screen, and what keys do. It knows no terminal and no gateway.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block as Frameless, Clear, Paragraph};

use super::answer::Top;
use super::view;
use crate::output::Failure;
use crate::output::document::{Align, Row, Table, Tone};
use crate::text::width;

/// The last column that is drawn on; wider lines are hard to follow with the eyes.
const WIDEST: u16 = 110;

const PANELS: usize = 4;

const KEYS: &str = " q end   tab next table   up/down scroll   / filter   esc all   ? keys ";

/// What happens after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    Stay,
    End,
}

/// What a person has chosen to see.
#[derive(Debug, Default)]
pub(super) struct Screen {
    focus: usize,
    /// Rows scrolled away, by table.
    scrolled: [usize; PANELS],
    filter: String,
    /// Letters go into the filter.
    typing: bool,
    help: bool,
}

impl Screen {
    pub(super) fn key(&mut self, key: KeyEvent) -> Then {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Then::End;
        }
        if self.typing {
            self.typed(key.code);
            return Then::Stay;
        }
        let scrolled = &mut self.scrolled[self.focus];
        match key.code {
            _ if self.help => self.help = false,
            KeyCode::Char('q') => return Then::End,
            KeyCode::Char('?') => self.help = true,
            KeyCode::Char('/') => {
                self.filter.clear();
                self.typing = true;
            }
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Tab | KeyCode::Right => self.focus = (self.focus + 1) % PANELS,
            KeyCode::BackTab | KeyCode::Left => self.focus = (self.focus + PANELS - 1) % PANELS,
            KeyCode::Down | KeyCode::Char('j') => *scrolled += 1,
            KeyCode::Up | KeyCode::Char('k') => *scrolled = scrolled.saturating_sub(1),
            KeyCode::PageDown => *scrolled += 10,
            KeyCode::PageUp => *scrolled = scrolled.saturating_sub(10),
            KeyCode::Home => *scrolled = 0,
            _ => {}
        }
        Then::Stay
    }

    fn typed(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.typing = false,
            KeyCode::Esc => {
                self.typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => drop(self.filter.pop()),
            // A name has at most 256 bytes.
            KeyCode::Char(letter) if self.filter.len() < 256 => self.filter.push(letter),
            _ => {}
        }
    }

    /// With a failure, what is shown is what was there before it.
    pub(super) fn draw(&mut self, frame: &mut Frame<'_>, top: &Top, failure: Option<&Failure>) {
        let mut area = frame.area();
        area.width = area.width.min(WIDEST);
        let notes = notes(top, failure);
        let heights = [1, notes.len() as u16, area.height, 1].map(Constraint::Max);
        let [head, notes_area, middle, foot] = Layout::vertical(heights).areas(area);
        frame.render_widget(Line::from(view::headline(top)).style(Style::new().bold()), head);
        frame.render_widget(Paragraph::new(notes), notes_area);
        self.tables(frame, top, middle);
        frame.render_widget(self.footer(), foot);
        if self.help {
            help(frame, area);
        }
    }

    fn tables(&mut self, frame: &mut Frame<'_>, top: &Top, area: Rect) {
        let tables = [
            view::models(top, false),
            view::engines(top, false),
            view::slowest(top),
            view::heaviest(top),
        ]
        .map(|table| self.filtered(table));
        let row_counts = tables.each_ref().map(|table| table.rows.len() + 2);
        let areas =
            Layout::vertical(heights(row_counts, self.focus, area.height.into())).split(area);
        for (place, table) in tables.iter().enumerate() {
            let room = usize::from(areas[place].height).saturating_sub(2);
            let most = table.rows.len().saturating_sub(room);
            self.scrolled[place] = self.scrolled[place].min(most);
            let lines = lines(table, self.scrolled[place], room, place == self.focus);
            frame.render_widget(Paragraph::new(lines), areas[place]);
        }
    }

    /// Rows of which a name holds what was typed.
    fn filtered(&self, mut table: Table) -> Table {
        let filter = self.filter.to_lowercase();
        table.rows.retain(|row| {
            let names = row.cells.iter().zip(&table.columns);
            filter.is_empty()
                || names
                    .filter(|(_, column)| column.align == Align::Left)
                    .any(|(cell, _)| cell.text.to_lowercase().contains(&filter))
        });
        table
    }

    fn footer(&self) -> Line<'_> {
        if self.typing {
            return Line::from(format!(" /{}_   enter keeps it, esc shows all", self.filter));
        }
        let shown = if self.filter.is_empty() {
            String::new()
        } else {
            format!("  only names with \"{}\"", self.filter)
        };
        Line::from(vec![Span::from(KEYS).style(Style::new().reversed()), Span::from(shown)])
    }
}

fn notes<'a>(top: &Top, failure: Option<&Failure>) -> Vec<Line<'a>> {
    let away = failure.map(|failure| format!("! {}; what follows is old", failure.what));
    let notes = away.into_iter().chain(view::notes(top));
    notes.map(|note| Line::from(note).style(style(Tone::Bad))).collect()
}

/// The height of each table. If not all fits, the one in focus has up to two thirds, and the others
/// what is left, from the top; one without room for a row is left out.
fn heights(needed: [usize; PANELS], focus: usize, room: usize) -> [Constraint; PANELS] {
    let mut granted = [0; PANELS];
    let mut left = room;
    let all = needed.iter().sum::<usize>() <= room;
    granted[focus] = needed[focus].min(if all { room } else { (room * 2 / 3).max(3) }).min(room);
    left -= granted[focus];
    for place in (0..PANELS).filter(|place| *place != focus) {
        let height = needed[place].min(left);
        if height >= 3 || all {
            granted[place] = height;
            left -= height;
        }
    }
    granted.map(|height| Constraint::Length(height as u16))
}

/// A title, the rows that fit, and an empty line.
fn lines<'a>(table: &Table, from: usize, room: usize, focus: bool) -> Vec<Line<'a>> {
    let widths: Vec<usize> = table
        .columns
        .iter()
        .enumerate()
        .map(|(place, column)| {
            let cells =
                table.rows.iter().map(|row| row.cells.get(place).map_or(0, |c| width(c.shown())));
            cells.max().unwrap_or(0).max(width(&column.title)).max(column.at_least)
        })
        .collect();
    let padded = |text: &str, place: usize| {
        let blanks = " ".repeat(widths[place].saturating_sub(width(text)));
        match table.columns[place].align {
            Align::Left => format!("{text}{blanks}  "),
            Align::Right => format!("{blanks}{text}  "),
        }
    };
    let titles = table.columns.iter().enumerate().map(|(at, column)| padded(&column.title, at));
    let more = table.rows.len().saturating_sub(from + room);
    let more = if more > 0 { format!("({more} more below)") } else { String::new() };
    let mark = if focus { "> " } else { "  " };
    let title = format!("{mark}{}{more}", titles.collect::<String>());
    let row = |row: &Row| {
        let mark = row.mark.map_or_else(|| "  ".to_owned(), |mark| format!("{mark} "));
        let cells =
            row.cells.iter().enumerate().map(|(place, cell)| {
                Span::from(padded(cell.shown(), place)).style(style(cell.tone))
            });
        let mark = Span::from(mark).style(style(Tone::Bad));
        Line::from([mark].into_iter().chain(cells).collect::<Vec<_>>())
    };
    let rows = table.rows.iter().skip(from).take(room).map(row);
    [Line::from(title).style(Style::new().bold())].into_iter().chain(rows).collect()
}

fn style(tone: Tone) -> Style {
    match tone {
        Tone::Plain => Style::new(),
        Tone::Good => Style::new().fg(Color::Green),
        Tone::Caution => Style::new().fg(Color::Yellow),
        Tone::Bad => Style::new().fg(Color::Red).bold(),
    }
}

fn help(frame: &mut Frame<'_>, area: Rect) {
    let words = [
        "q, ctrl-c    end",
        "tab          next table (shift-tab: the one before)",
        "up, down     scroll it (page up, page down: by ten)",
        "/            show only rows whose names hold some letters",
        "esc          show all rows again",
        "",
        "READY  engines that may get requests, of all",
        "OURS   requests that these gateways have at an engine",
        "HELD   requests that wait for a model without an engine",
        "TTFT   time to the first token, ITL time for each further one",
        "HIT    share of prompt tokens found in a cache",
        "FAIL   refused or failed in the last minute",
        "! needs attention",
    ];
    let height = (words.len() as u16 + 2).min(area.height);
    let wide = 66.min(area.width);
    let place =
        Rect { x: (area.width - wide) / 2, y: (area.height - height) / 2, width: wide, height };
    frame.render_widget(Clear, place);
    let text: Vec<Line<'_>> = words.into_iter().map(Line::from).collect();
    let around = Frameless::bordered().title(" any key goes back ");
    frame.render_widget(Paragraph::new(text).block(around), place);
}
