//! The pages of docs/errors, embedded when the binary is built.

include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// One page: its name is the code or reason it explains.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
}

impl Page {
    /// One line about it. `# FLY-101: the API server answers` has it in the heading; the page of
    /// a reason is headed by its bare name and says it in its first sentence.
    pub(crate) fn title(&self) -> &'static str {
        let mut lines = self.text.lines().map(str::trim).filter(|line| !line.is_empty());
        let heading = lines.next().unwrap_or_default().trim_start_matches('#').trim();
        let rest = heading.strip_prefix(self.name).unwrap_or(heading);
        match rest.trim_start_matches(':').trim() {
            "" => lines.next().unwrap_or_default().trim_end_matches('.'),
            title => title,
        }
    }
}

pub(crate) fn all() -> impl Iterator<Item = Page> {
    PAGES.iter().map(|&(name, text)| Page { name, text })
}

/// Names are found however they are typed: `fly-101`, `FLY101`.
pub(crate) fn find(name: &str) -> Option<Page> {
    all().find(|page| folded(page.name) == folded(name))
}

/// The name somebody probably meant.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    all()
        .map(|page| (strsim::jaro_winkler(&folded(page.name), &folded(name)), page.name))
        // Below this the names have so little in common that a guess would only distract.
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

fn folded(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_a_title_and_the_three_parts() {
        for page in all() {
            assert!(!page.title().is_empty(), "{}", page.name);
            assert!(page.text.starts_with(&format!("# {}", page.name)), "{}", page.name);
        }
        for page in all().filter(|page| page.name.starts_with("FLY-")) {
            for part in ["## What happened", "## Why it matters", "## What to do"] {
                assert!(page.text.contains(part), "{} lacks {part}", page.name);
            }
            assert!(page.text.lines().all(|line| line.len() <= 100), "{} is too wide", page.name);
        }
    }

    #[test]
    fn names_are_found_as_people_type_them() {
        for typed in ["FLY-101", "fly-101", "fly101"] {
            assert_eq!(find(typed).map(|page| page.name), Some("FLY-101"), "{typed}");
        }
        assert!(find("FLY-1010").is_none());
        assert_eq!(nearest("FYL-101"), Some("FLY-101"));
        assert_eq!(nearest("zzz"), None);
    }
}
