//! The shape of each crate: its names, what it inherits, and its one integration test binary.

use std::collections::BTreeSet;

use super::Finding;
use super::tree::{Manifest, Tree, under_crates};

/// Rule: folder and package name agree, and version and lints come from the workspace.
pub(super) fn manifests(tree: &Tree) -> Vec<Finding> {
    tree.manifests().iter().flat_map(manifest_findings).collect()
}

fn manifest_findings(manifest: &Manifest<'_>) -> Vec<Finding> {
    let finding = |wrong: String, mend: String| Finding::new(manifest.path, None, wrong, mend);
    let toml = match &manifest.toml {
        Ok(toml) => toml,
        Err(error) => {
            let what = error.lines().next().unwrap_or_default();
            return vec![finding(format!("not valid TOML: {what}"), "fix the syntax".into())];
        }
    };
    let mut found = Vec::new();
    let package = toml.get("package");
    let name = package.and_then(|package| package.get("name")).and_then(toml::Value::as_str);
    let expected = format!("flyball-{}", manifest.folder);
    if name != Some(&expected) {
        let name = name.unwrap_or("missing");
        let wrong = format!("the package name is {name}, the folder is {}", manifest.folder);
        found.push(finding(wrong, format!("write name = \"{expected}\", or rename the folder")));
    }
    let inherits = |value: Option<&toml::Value>| {
        value.and_then(|value| value.get("workspace")).and_then(toml::Value::as_bool) == Some(true)
    };
    if !inherits(package.and_then(|package| package.get("version"))) {
        let wrong = "the version is not the workspace's: crates, image and charts share one";
        found.push(finding(wrong.into(), "write version.workspace = true".into()));
    }
    if !inherits(toml.get("lints")) {
        let wrong = "the workspace's lints are not applied";
        found.push(finding(wrong.into(), "add [lints] with workspace = true".into()));
    }
    found
}

/// Rule: a crate has at most one integration test binary, `tests/it/main.rs`.
///
/// Every further file in `tests/` is one more program to link, which on two cores is what makes a
/// test run slow.
pub(super) fn integration_tests(tree: &Tree) -> Vec<Finding> {
    let mut entries = BTreeSet::new();
    for path in tree.paths() {
        let Some((folder, rest)) = under_crates(path) else { continue };
        let Some(rest) = rest.strip_prefix("tests/") else { continue };
        let entry = rest.split('/').next().unwrap_or(rest);
        if entry != "it" {
            entries.insert(format!("crates/{folder}/tests/{entry}"));
        }
    }
    let finding = |path: String| {
        let mend = "move it under tests/it/ and name it as a module in tests/it/main.rs";
        Finding::new(path, None, "an entry in tests/ beside the one binary `it`", mend)
    };
    entries.into_iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree::made_up;
    use super::*;

    const GOOD: &str = "[package]\nname = \"flyball-perf\"\nversion.workspace = true\n\
                        [lints]\nworkspace = true\n";

    fn wrong_with(manifest: &str) -> Vec<String> {
        let tree = made_up(&[("crates/perf/Cargo.toml", manifest)]);
        manifests(&tree).into_iter().map(|finding| finding.wrong).collect()
    }

    #[test]
    fn a_package_named_unlike_its_folder_fails() {
        let found = wrong_with(&GOOD.replace("flyball-perf", "flyball-speed"));
        assert_eq!(found, ["the package name is flyball-speed, the folder is perf"]);
        assert!(wrong_with(GOOD).is_empty());
    }

    #[test]
    fn a_version_or_lints_of_its_own_fail() {
        let own_version = GOOD.replace("version.workspace = true", "version = \"1.0.0\"");
        assert!(wrong_with(&own_version)[0].contains("version"));
        let no_lints = GOOD.replace("[lints]\nworkspace = true\n", "");
        assert!(wrong_with(&no_lints)[0].contains("lints"));
        assert!(wrong_with("[package")[0].contains("not valid TOML"));
    }

    #[test]
    fn a_second_integration_binary_fails() {
        let both = [("crates/perf/tests/it/main.rs", ""), ("crates/perf/tests/speed.rs", "")];
        let found = integration_tests(&made_up(&both));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path, "crates/perf/tests/speed.rs");
        let mended = [("crates/perf/tests/it/main.rs", ""), ("crates/perf/tests/it/speed.rs", "")];
        assert_eq!(integration_tests(&made_up(&mended)), []);
    }
}
