//! The modules of a crate, what each defines and imports, and where a path leads.
//!
//! Names are followed as far as words tell: through imports, re-exports and globs to the module that defines them. What
//! no module of the crate defines is of another crate. A name that a macro makes is taken for one of the module that
//! it is named in.

use super::tokens::{Token, Use, closed, tokens, use_tree};
use std::collections::{BTreeMap, BTreeSet};

/// The modules of a crate; the first is its root.
pub(super) struct Crate<'a> {
    modules: Vec<Module<'a>>,
    sources: &'a BTreeMap<&'a str, &'a str>,
}

/// A module names something of another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge<'a> {
    pub(super) from: usize,
    pub(super) to: usize,
    /// What it names there; nothing if it is the module itself.
    pub(super) what: Option<&'a str>,
    pub(super) line: usize,
}

struct Module<'a> {
    path: Vec<&'a str>,
    file: &'a str,
    parent: usize,
    children: BTreeMap<&'a str, usize>,
    defines: BTreeSet<&'a str>,
    /// Those of the module come before those inside of functions.
    uses: Vec<Use<'a>>,
    /// All but its children and its imports.
    tokens: Vec<Token<'a>>,
}

/// The module that defines something, and its name there; without a name the module itself.
type Place<'a> = (usize, Option<&'a str>);

/// What was looked up on the way, so that imports in a circle end.
type Seen<'a> = BTreeSet<(usize, &'a str)>;

impl<'a> Crate<'a> {
    /// Reads the crate that begins in the file `root`.
    pub(super) fn read(sources: &'a BTreeMap<&'a str, &'a str>, root: &'a str) -> Self {
        let mut code = Self { modules: Vec::new(), sources };
        let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
        code.add(Vec::new(), root, 0, &tokens(sources[root]), folder);
        code
    }

    /// The names that lead to a module from the root.
    pub(super) fn path(&self, module: usize) -> &[&'a str] {
        &self.modules[module].path
    }

    pub(super) fn file(&self, module: usize) -> &'a str {
        self.modules[module].file
    }

    /// Every place where a module names something of another.
    pub(super) fn edges(&self) -> Vec<Edge<'a>> {
        let mut found = Vec::new();
        for from in 0..self.modules.len() {
            for one in self.modules[from].uses.iter().filter(|one| one.name != "*") {
                let place = self.resolve(from, &one.path, &mut Seen::new());
                found.extend(place.map(|(to, what)| Edge { from, to, what, line: one.line }));
            }
            for (path, line) in self.modules[from].paths() {
                let place = self.resolve(from, &path, &mut Seen::new());
                found.extend(place.map(|(to, what)| Edge { from, to, what, line }));
            }
        }
        found.retain(|edge| edge.from != edge.to);
        found
    }

    /// Adds a module with all below it. The files of its children are in `folder`.
    fn add(
        &mut self,
        path: Vec<&'a str>,
        file: &'a str,
        parent: usize,
        code: &[Token<'a>],
        folder: &str,
    ) -> usize {
        let module = self.modules.len();
        self.modules.push(Module {
            path,
            file,
            parent,
            children: BTreeMap::new(),
            defines: BTreeSet::new(),
            uses: Vec::new(),
            tokens: Vec::new(),
        });
        let text = |at: usize| code.get(at).map_or("", |token| token.text);
        let mut inside = Vec::new();
        let (mut at, mut depth) = (0, 0_usize);
        while at < code.len() {
            let before = at.checked_sub(1).map_or(";", text);
            match text(at) {
                "{" => depth += 1,
                "}" => depth = depth.saturating_sub(1),
                "use" if matches!(before, ";" | "{" | "}" | ")" | "]" | "pub") => {
                    let uses =
                        if depth == 0 { &mut self.modules[module].uses } else { &mut inside };
                    at = use_tree(code, at + 1, &[], uses);
                    continue;
                }
                "mod" if depth == 0 && matches!(text(at + 2), ";" | "{") => {
                    at = self.child(module, code, at + 1, folder);
                    continue;
                }
                "macro_rules" => _ = self.modules[module].defines.insert(text(at + 2)),
                "struct" | "enum" | "trait" | "type" | "union" | "static" | "const" | "fn"
                    if depth == 0 =>
                {
                    self.modules[module].defines.insert(text(at + 1));
                }
                _ => {}
            }
            self.modules[module].tokens.push(code[at]);
            at += 1;
        }
        self.modules[module].uses.append(&mut inside);
        module
    }

    /// Adds the child whose name is at `at`. Returns the place after it.
    fn child(&mut self, parent: usize, code: &[Token<'a>], at: usize, folder: &str) -> usize {
        let name = code[at].text;
        let folder = format!("{folder}/{name}");
        let path = [self.path(parent), &[name]].concat();
        let (child, after) = if code[at + 1].text == "{" {
            let end = closed(code, at + 1);
            let inside = &code[at + 2..end.max(at + 3) - 1];
            (self.add(path, self.file(parent), parent, inside, &folder), end)
        } else {
            let files = [format!("{folder}.rs"), format!("{folder}/mod.rs")];
            let sources = self.sources;
            let found = files.iter().find_map(|file| sources.get_key_value(file.as_str()));
            let Some((file, text)) = found else { return at + 2 };
            (self.add(path, file, parent, &tokens(text), &folder), at + 2)
        };
        self.modules[parent].children.insert(name, child);
        after
    }

    /// Where a path leads that is written in a module; nowhere if that is in another crate.
    fn resolve(&self, from: usize, path: &[&'a str], seen: &mut Seen<'a>) -> Option<Place<'a>> {
        match path {
            ["crate", rest @ ..] => self.walk(0, rest, seen),
            ["self", rest @ ..] => self.walk(from, rest, seen),
            ["super", ..] => {
                let (mut module, mut rest) = (from, path);
                while let ["super", more @ ..] = rest {
                    (module, rest) = (self.modules[module].parent, more);
                }
                self.walk(module, rest, seen)
            }
            [name, ..] if self.modules[from].knows(name) => self.walk(from, path, seen),
            &[name, ..] => self.by_glob(from, name, path, seen),
            [] => None,
        }
    }

    /// Follows names from a module that has the first of them.
    fn walk(&self, module: usize, path: &[&'a str], seen: &mut Seen<'a>) -> Option<Place<'a>> {
        let Some((&name, rest)) = path.split_first() else { return Some((module, None)) };
        let here = &self.modules[module];
        if let Some(child) = here.children.get(name) {
            return self.walk(*child, rest, seen);
        }
        if here.defines.contains(name) {
            return Some((module, Some(name)));
        }
        if let Some(one) = here.uses.iter().find(|one| one.name == name) {
            // What only leads back is in no module of ours.
            if !seen.insert((module, name)) {
                return None;
            }
            return self.resolve(module, &[one.path.as_slice(), rest].concat(), seen);
        }
        self.by_glob(module, name, path, seen).or(Some((module, Some(name))))
    }

    /// Where a path leads whose first name comes by a glob.
    fn by_glob(
        &self,
        module: usize,
        name: &'a str,
        path: &[&'a str],
        seen: &mut Seen<'a>,
    ) -> Option<Place<'a>> {
        if !seen.insert((module, name)) {
            return None;
        }
        let globs = self.modules[module].uses.iter().filter(|one| one.name == "*");
        for glob in globs {
            let Some((of, None)) = self.resolve(module, &glob.path, seen) else { continue };
            let known = self.modules[of].knows(name);
            let place =
                if known { self.walk(of, path, seen) } else { self.by_glob(of, name, path, seen) };
            if place.is_some() {
                return place;
            }
        }
        None
    }
}

impl<'a> Module<'a> {
    /// Whether a name means something here without a glob.
    fn knows(&self, name: &str) -> bool {
        self.children.contains_key(name)
            || self.defines.contains(name)
            || self.uses.iter().any(|one| one.name == name)
    }

    /// Paths in its code, and single names that may come by a glob.
    fn paths(&self) -> Vec<(Vec<&'a str>, usize)> {
        let text = |at: usize| self.tokens.get(at).map_or("", |token| token.text);
        let has_globs = self.uses.iter().any(|one| one.name == "*");
        let (mut found, mut at) = (Vec::new(), 0);
        while at < self.tokens.len() {
            let (start, line) = (at, self.tokens[at].line);
            at += 1;
            if !self.tokens[start].is_name() || !self.begins_a_path(start) {
                continue;
            }
            let mut path = vec![text(start)];
            while text(at) == "::" && self.tokens.get(at + 1).is_some_and(Token::is_name) {
                path.push(text(at + 1));
                at += 2;
            }
            let single = path.len() == 1;
            let is_used = text(at) == "(" || text(start).starts_with(char::is_uppercase);
            if !single || (has_globs && is_used && !self.knows(text(start))) {
                found.push((path, line));
            }
        }
        found
    }

    /// A field, a method, a function's own name and a `pub(in …)` name nothing of others.
    fn begins_a_path(&self, at: usize) -> bool {
        let before = |by: usize| at.checked_sub(by).map_or("", |at| self.tokens[at].text);
        match before(1) {
            "::" | "fn" => false,
            "." => before(2) == ".",
            "in" => before(2) != "(",
            _ => true,
        }
    }
}
