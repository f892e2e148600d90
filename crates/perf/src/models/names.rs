//! Finds a model by what people write.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::{ListedModel, all};

/// Endings that do not change the shape.
const SAME_SHAPE: [&str; 8] =
    ["-hf", "-v0.1", "-instruct", "-chat", "-base", "-it", "-pt", "-thinking"];

/// How alike two names must be, and how many are worth showing.
const LIKENESS: f64 = 0.85;
const NEAR: usize = 3;

/// A name that was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    pub(super) known: &'static ListedModel,
    /// The published id that it stands for.
    pub(super) id: &'static str,
}

/// The model of this name in small letters, without its organisation: as it is, or else with one
/// ending after another taken off. What is shipped whole stays whole: Mistral 7B's versions differ.
pub(super) fn look_up(name: &str) -> Option<Named> {
    let mut rest = name.strip_prefix("meta-").unwrap_or(name);
    loop {
        if let Some(named) = INDEX.get(rest) {
            return Some(*named);
        }
        rest = shorter(rest)?;
    }
}

/// One name of each model that begins like this one, punctuation apart; after them, those that look
/// like it.
pub(super) fn nearest(written: &str) -> Vec<&'static str> {
    let stem_letters = letters(&stem(written));
    if stem_letters.is_empty() {
        return Vec::new();
    }
    let likeness = |name: &str| {
        let name = letters(&stem(name));
        match name.starts_with(&stem_letters) {
            // The less there is to add, the likelier.
            true => 1.0 + 1.0 / name.len() as f64,
            false => strsim::jaro_winkler(&name, &stem_letters),
        }
    };
    let mut found: Vec<(f64, &'static str)> = all()
        .iter()
        .filter_map(|known| {
            let ids = known.aliases.iter().map(String::as_str);
            let spellings = [known.name].into_iter().chain(ids);
            // Of equals the first, which is the name here.
            spellings
                .map(|name| (likeness(name), name))
                .reduce(|a, b| if b.0 > a.0 { b } else { a })
        })
        .filter(|(likeness, _)| *likeness > LIKENESS)
        .collect();
    // Of equals the names here before the ids of others.
    let order = |name: &'static str| (name.contains('/'), name);
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| order(a.1).cmp(&order(b.1))));
    found.into_iter().take(NEAR).map(|(_, name)| name).collect()
}

/// Every spelling in small letters. A model's own name comes before the ids of others.
static INDEX: LazyLock<BTreeMap<String, Named>> = LazyLock::new(|| {
    let mut index = BTreeMap::new();
    for known in all() {
        index.insert(known.name.to_owned(), Named { known, id: &known.published });
    }
    for known in all() {
        for id in [&known.published].into_iter().chain(&known.aliases) {
            let name = without_organisation(id).to_ascii_lowercase();
            let mut rest = name.strip_prefix("meta-").unwrap_or(&name);
            index.entry(rest.to_owned()).or_insert(Named { known, id });
            while let Some(shorter) = shorter(rest) {
                rest = shorter;
                index.entry(rest.to_owned()).or_insert(Named { known, id });
            }
        }
    }
    index
});

fn shorter(name: &str) -> Option<&str> {
    SAME_SHAPE.iter().find_map(|ending| name.strip_suffix(ending))
}

fn without_organisation(id: &str) -> &str {
    id.rsplit('/').next().unwrap_or(id)
}

/// In small letters, without the organisation and without endings that do not change the shape.
fn stem(written: &str) -> String {
    let name = without_organisation(written).to_ascii_lowercase();
    let mut rest = name.strip_prefix("meta-").unwrap_or(&name);
    while let Some(shorter) = shorter(rest) {
        rest = shorter;
    }
    rest.to_owned()
}

fn letters(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}
