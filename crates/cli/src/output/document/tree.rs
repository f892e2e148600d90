//! Reasons that rest on other reasons: a tree for people, and its lines for `grep`.

use super::shown;
use crate::output::Charset;
use crate::text::{Text, width, wrap};

/// Between name, value and note.
const GAP: usize = 2;
/// A longer value pushes its note to the right and nobody else's.
const VALUE: usize = 34;
/// With less room than this a note goes below its value.
const NOTE: usize = 24;

/// One reason. Its first word names it among its siblings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) value: String,
    /// Where the value comes from, or what it means.
    pub(crate) note: String,
    pub(crate) children: Vec<Node>,
}

impl Node {
    pub(crate) fn new(
        name: impl Into<String>,
        value: impl Into<String>,
        note: impl Into<String>,
    ) -> Node {
        Node { name: name.into(), value: value.into(), note: note.into(), children: Vec::new() }
    }

    /// A reason that is the sum of others.
    pub(crate) fn of(name: impl Into<String>, children: Vec<Node>) -> Node {
        Node { name: name.into(), children, ..Node::default() }
    }

    /// What it says, in one line.
    pub(crate) fn words(&self) -> String {
        match (self.value.is_empty(), self.note.is_empty()) {
            (_, true) => self.value.clone(),
            (true, false) => self.note.clone(),
            (false, false) => format!("{}; {}", self.value, self.note),
        }
    }
}

/// Every leaf with the way to it: `desired.demand`.
pub(crate) fn flat(nodes: &[Node]) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    for node in nodes {
        let key = node.name.split_whitespace().next().unwrap_or_default();
        if !node.words().is_empty() {
            lines.push((key.to_owned(), node.words()));
        }
        let below = flat(&node.children);
        lines.extend(below.into_iter().map(|(path, words)| (format!("{key}.{path}"), words)));
    }
    lines
}

pub(super) fn show(text: &mut Text, nodes: &[Node], charset: Charset) {
    branches(text, nodes, "", charset);
}

/// Before a branch, before the last one, and before what stands below either.
const fn signs(charset: Charset) -> [&'static str; 3] {
    match charset {
        Charset::Utf8 => ["├─ ", "└─ ", "│  "],
        Charset::Ascii => ["|- ", "`- ", "|  "],
    }
}

fn branches(text: &mut Text, nodes: &[Node], before: &str, charset: Charset) {
    let [branch, last, through] = signs(charset);
    let leaves = || nodes.iter().filter(|node| !node.words().is_empty());
    let names = leaves().map(|node| width(&charset.fold(&node.name))).max().unwrap_or(0);
    let noted = leaves().filter(|node| !node.note.is_empty());
    let values = noted.map(|node| width(&charset.fold(&node.value))).filter(|wide| *wide <= VALUE);
    let values = values.max().unwrap_or(0);
    for (index, node) in nodes.iter().enumerate() {
        let is_last = index + 1 == nodes.len();
        let first = format!("{before}{}", if is_last { last } else { branch });
        let below = format!("{before}{}", if is_last { "   " } else { through });
        // Under a reason that has reasons its lines go on to the left of them.
        let rest =
            if node.children.is_empty() { below.clone() } else { format!("{below}{through}") };
        leaf(text, node, (&first, &rest), (names, values), charset);
        branches(text, &node.children, &below, charset);
    }
}

fn leaf(
    text: &mut Text,
    node: &Node,
    (first, rest): (&str, &str),
    (names, values): (usize, usize),
    charset: Charset,
) {
    let name = charset.fold(&node.name);
    if node.words().is_empty() {
        text.line(format_args!("{first}{name}"));
        return;
    }
    let start = width(first) + names.max(width(&name)) + GAP;
    let value = charset.fold(shown(&node.value)).into_owned();
    let note = charset.fold(&node.note).into_owned();
    let column = values.max(width(&value)) + GAP;
    let room = text.columns().saturating_sub(start);
    let beside = room.saturating_sub(column);
    let mut lines = Vec::new();
    if note.is_empty() {
        lines = wrap(&value, room);
    } else if node.value.is_empty() {
        lines = wrap(&note, room);
    } else if beside < NOTE.min(width(&note)) {
        lines.extend(wrap(&value, room));
        lines.extend(wrap(&note, room));
    } else {
        for (index, part) in wrap(&note, beside).into_iter().enumerate() {
            let left = if index == 0 { value.as_str() } else { "" };
            lines.push(format!("{}{part}", padded(left, column)));
        }
    }
    for (index, line) in lines.iter().enumerate() {
        let lead = if index == 0 { format!("{first}{name}") } else { rest.to_owned() };
        text.line(format_args!("{}", format!("{}{line}", padded(&lead, start)).trim_end()));
    }
}

fn padded(text: &str, room: usize) -> String {
    format!("{text}{}", " ".repeat(room.saturating_sub(width(text))))
}
