//! Modules beside each other do not name each other in a circle.
//!
//! What goes in a circle can only be understood, tested and moved as a whole. Looked at are the children of one module, at
//! every depth: one child points to another if anything in it names what is defined in the other, wherever it is
//! re-exported. Tests do not count, and neither does what the parent's own file defines: that is there for all of them.
//!
//! `tokens` leaves of a file what says who names whom, `code` makes the tree of modules and follows names. Start reading
//! at [`modules`].

mod code;
#[cfg(test)]
mod tests;
mod tokens;

use super::Finding;
use super::tree::{Tree, under_crates};
use code::{Crate, Edge};
use std::collections::{BTreeMap, BTreeSet};

const MEND: &str = "move what is named the wrong way to where it is filled, to a module of its own beneath both, or to \
                    the parent's own file; or pass the value and not its owner";

/// Which child of a module points to which, and where it does so first.
type Arrows<'a> = BTreeMap<(&'a str, &'a str), Edge<'a>>;

/// Rule: no child of a module depends on itself by way of others.
pub(super) fn modules(tree: &Tree) -> Vec<Finding> {
    let of_crate =
        |path: &str| under_crates(path).is_some_and(|(_, file)| file.starts_with("src/"));
    let sources: BTreeMap<&str, &str> = tree.code().filter(|(path, _)| of_crate(path)).collect();
    let roots =
        sources.keys().filter(|path| under_crates(path).is_some_and(|(_, file)| is_root(file)));
    roots.flat_map(|path| circles(&Crate::read(&sources, path))).collect()
}

/// Whether a file is where a program or a library begins.
fn is_root(file: &str) -> bool {
    let program = file.strip_prefix("src/bin/").is_some_and(|name| !name.contains('/'));
    program || matches!(file, "src/lib.rs" | "src/main.rs")
}

/// One finding for all modules that are tied to each other, with the shortest of their circles.
fn circles(code: &Crate<'_>) -> Vec<Finding> {
    let mut parents: BTreeMap<&[&str], Arrows<'_>> = BTreeMap::new();
    for edge in code.edges() {
        let (from, to) = (code.path(edge.from), code.path(edge.to));
        let shared = from.iter().zip(to).take_while(|(a, b)| a == b).count();
        let (Some(child), Some(other)) = (from.get(shared), to.get(shared)) else { continue };
        let arrows = parents.entry(&from[..shared]).or_default();
        let first = arrows.entry((*child, *other)).or_insert(edge);
        if (code.file(edge.from), edge.line) < (code.file(first.from), first.line) {
            *first = edge;
        }
    }
    let mut found = Vec::new();
    for (parent, arrows) in &parents {
        let mut reported = BTreeSet::new();
        for start in arrows.keys().map(|(from, _)| *from) {
            let tied = tied(arrows, start);
            if reported.contains(start) || tied.len() < 2 {
                continue;
            }
            let shortest = tied.iter().filter_map(|one| shortest(arrows, one));
            if let Some(circle) = shortest.min_by_key(Vec::len) {
                found.push(finding(code, parent, arrows, &circle, tied.len()));
            }
            reported.extend(tied);
        }
    }
    found
}

/// This module, and those that it comes to and that come back to it.
fn tied<'a>(arrows: &Arrows<'a>, start: &'a str) -> BTreeSet<&'a str> {
    let there = reached(arrows, start);
    let mut tied: BTreeSet<&str> =
        there.into_iter().filter(|one| reached(arrows, one).contains(start)).collect();
    tied.insert(start);
    tied
}

/// All modules that can be come to from this one.
fn reached<'a>(arrows: &Arrows<'a>, start: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![start];
    while let Some(from) = open.pop() {
        for (_, to) in arrows.keys().filter(|(one, _)| *one == from) {
            if reached.insert(*to) {
                open.push(*to);
            }
        }
    }
    reached
}

/// The shortest way from a module back to it, which is named at the start only.
fn shortest<'a>(arrows: &Arrows<'a>, start: &'a str) -> Option<Vec<&'a str>> {
    let mut ways = vec![vec![start]];
    let mut seen = BTreeSet::new();
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for way in ways {
            let last = way[way.len() - 1];
            for (_, to) in arrows.keys().filter(|(from, _)| *from == last) {
                if *to == start {
                    return Some(way);
                }
                if seen.insert(*to) {
                    longer.push([way.as_slice(), &[*to]].concat());
                }
            }
        }
        ways = longer;
    }
    None
}

fn finding(
    code: &Crate<'_>,
    parent: &[&str],
    arrows: &Arrows<'_>,
    circle: &[&str],
    tied: usize,
) -> Finding {
    let next = |n: usize| circle[(n + 1) % circle.len()];
    let edge = |n: usize| &arrows[&(circle[n], next(n))];
    let place = |edge: &Edge<'_>| format!("{}:{}", code.file(edge.from), edge.line);
    let steps: Vec<String> = (0..circle.len())
        .map(|n| {
            let what = edge(n).what.map(|what| format!("{what} of ")).unwrap_or_default();
            format!("`{}` names {what}`{}` ({})", circle[n], next(n), place(edge(n)))
        })
        .collect();
    let below = match parent {
        [] => "the crate's root".to_owned(),
        path => format!("`{}`", path.join("::")),
    };
    let more = match tied {
        _ if tied == circle.len() => String::new(),
        _ => format!("; {tied} modules are tied up by such circles"),
    };
    let wrong = format!("a circle of modules in {below}: {}{more}", steps.join(", "));
    Finding::new(code.file(edge(0).from), Some(edge(0).line), wrong, MEND)
}
