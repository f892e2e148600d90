//! Nothing in the tree may depend on, or tell about, one person's machine.

use super::Finding;
use super::tree::Tree;

/// Folders that exist on one machine only. Kept without slashes, so that this file passes.
const FOLDERS: &[&str] = &["work", "root"];
const HOMES: &str = "home";

/// Hosts of package registries and mirrors, in pieces, so that this file passes.
const HOSTS: &[&[&str]] = &[
    &["index", "crates", "io"],
    &["static", "crates", "io"],
    &["registry", "npmjs", "org"],
    &["registry", "yarnpkg", "com"],
    &["pypi", "org"],
    &["files", "pythonhosted", "org"],
    &["proxy", "golang", "org"],
    &["sum", "golang", "org"],
    &["goproxy", "io"],
    &["goproxy", "cn"],
    &["deb", "debian", "org"],
    &["archive", "ubuntu", "com"],
    &["", "pkg", "dev"],
    &["", "jfrog", "io"],
];

/// Rule: no text file names a folder of somebody's machine.
pub(super) fn paths(tree: &Tree) -> Vec<Finding> {
    let mend = "use a path relative to the workspace, or ask the system for the folder at run time";
    let found = |text: &str| {
        let mut folders = FOLDERS.iter().map(|name| format!("/{name}/"));
        let named = folders.find(|folder| starts_a_path(text, folder, |_| true));
        let home = format!("/{HOMES}/");
        named.or_else(|| {
            starts_a_path(text, &home, |next| next.is_some_and(char::is_alphanumeric))
                .then_some(home)
        })
    };
    each_line(tree.texts(), |line| {
        Some((format!("names the machine's folder {}", found(line)?), mend))
    })
}

/// Rule: no text file names the host of a package registry.
///
/// Where packages come from is the business of the machine (a mirror, a proxy), and lock files
/// hold what they must be by checksum.
pub(super) fn registries(tree: &Tree) -> Vec<Finding> {
    let hosts: Vec<String> = HOSTS.iter().map(|parts| parts.join(".")).collect();
    let mend = "leave the source of packages to the machine's own settings";
    let named =
        tree.texts().filter(|(_, text)| hosts.iter().any(|host| text.contains(host.as_str())));
    each_line(named, |line| {
        let host = hosts.iter().find(|host| line.contains(host.as_str()))?;
        Some((format!("names the package registry {host}"), mend))
    })
}

fn each_line<'a>(
    texts: impl Iterator<Item = (&'a str, &'a str)>,
    wrong: impl Fn(&str) -> Option<(String, &'static str)>,
) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, text) in texts {
        for (index, line) in text.lines().enumerate() {
            if let Some((wrong, mend)) = wrong(line) {
                found.push(Finding::new(path, Some(index + 1), wrong, mend));
            }
        }
    }
    found
}

/// Whether `folder` stands in the text at the start of a path and is followed by what is asked.
fn starts_a_path(text: &str, folder: &str, then: fn(Option<char>) -> bool) -> bool {
    text.match_indices(folder).any(|(at, _)| {
        // After a letter, a dot or a closing brace it is the middle of a longer path.
        let inside = |c: char| c.is_alphanumeric() || "._-~})*".contains(c);
        let next = text[at + folder.len()..].chars().next();
        !text[..at].ends_with(inside) && then(next)
    })
}

#[cfg(test)]
mod tests {
    use super::super::tree::made_up;
    use super::*;

    fn lines(rule: fn(&Tree) -> Vec<Finding>, text: &str) -> Vec<Option<usize>> {
        rule(&made_up(&[("a.toml", text)])).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_path_of_one_machine_fails() {
        let text = "a\ncache = \"/WORK/x\"\n# see /ROOT/y\nb = '/HOME/ada/z'\n";
        let folders = [("WORK", FOLDERS[0]), ("ROOT", FOLDERS[1]), ("HOME", HOMES)];
        let bad = folders.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
        assert_eq!(lines(paths, &bad), [Some(2), Some(3), Some(4)]);
    }

    #[test]
    fn relative_paths_and_the_word_home_pass() {
        let text = "docs/WORK/x\n$HOME/x\n~/WORK/x\n/HOME/<name>\n/HOME/\n";
        assert!(lines(paths, &text.replace("WORK", FOLDERS[0]).replace("HOME", HOMES)).is_empty());
    }

    #[test]
    fn a_registry_fails() {
        let host = HOSTS[0].join(".");
        assert_eq!(lines(registries, &format!("a\nurl = \"sparse+https://{host}/\"\n")), [Some(2)]);
        assert!(lines(registries, "url = \"https://github.com/rust-lang/x\"\n").is_empty());
    }
}
