//! Which crate may use which: our own crates by a table of arrows, other people's by bans, and in tools that must build in
//! seconds by a list.
//!
//! Purity is held here and not by good intentions: a crate that cannot name a client, a clock or
//! a random generator cannot leak one into a decision.

use super::Finding;
use super::tree::{Manifest, Tree};

/// Each crate and the crates it may use. Anything else fails.
const ARROWS: &[(&str, &[&str])] = &[
    ("core", &[]),
    ("engines", &[]),
    ("perf", &["core", "engines"]),
    ("estimator", &["core", "perf"]),
    ("governor", &["core", "perf"]),
    ("routing", &["core"]),
    ("quota", &["core"]),
    ("identity", &["core"]),
    ("cost", &["core"]),
    ("training", &["core"]),
    ("simulator", &["core", "perf", "estimator", "governor", "routing", "training"]),
    ("tuner", &["core", "estimator", "governor", "simulator"]),
    ("resources", &["core", "engines", "quota", "identity"]),
    ("telemetry", &["core"]),
    ("admin", &[]),
    ("emulator", &["core", "engines", "perf", "simulator", "telemetry"]),
    ("fleet", &["core", "engines", "routing"]),
    (
        "gateway",
        &[
            "core",
            "engines",
            "fleet",
            "routing",
            "identity",
            "resources",
            "telemetry",
            "admin",
            "quota",
        ],
    ),
    (
        "operator",
        &[
            "core",
            "engines",
            "perf",
            "estimator",
            "governor",
            "quota",
            "training",
            "tuner",
            "resources",
            "telemetry",
            "admin",
        ],
    ),
    ("ledger", &["core", "resources", "telemetry", "admin"]),
    ("batch", &["core", "identity", "ledger"]),
    ("console", &["core", "resources", "telemetry", "admin", "ledger"]),
    (
        "cli",
        // The one shipped binary starts every service, so it may use each of them.
        &[
            "core",
            "engines",
            "perf",
            "estimator",
            "governor",
            "routing",
            "identity",
            "training",
            "simulator",
            "tuner",
            "resources",
            "telemetry",
            "admin",
            "emulator",
            "fleet",
            "gateway",
            "operator",
            "ledger",
            "batch",
            "console",
        ],
    ),
    // It puts the real gateway in front of emulated engines, under load and faults, and lets it talk to
    // the real operator: neither of the two may know the other, so that only a third can try both.
    (
        "proving",
        &[
            "core",
            "engines",
            "quota",
            "resources",
            "routing",
            "simulator",
            "telemetry",
            "emulator",
            "fleet",
            "gateway",
            "operator",
        ],
    ),
    ("e2e", &["resources"]),
    ("figures", &[]),
    // It scores the very model that `plan` uses.
    ("accuracy", &["figures", "core", "perf"]),
    // It scores the very governor that the operator runs.
    (
        "bench",
        &[
            "figures",
            "core",
            "cost",
            "perf",
            "governor",
            "routing",
            "training",
            "simulator",
            "tuner",
        ],
    ),
    // It starts the two above as programs, so that whoever compiles it compiles none of what they measure.
    ("xtask", &["figures"]),
];

/// Crates that only compute.
const PURE: &[&str] = &[
    "core",
    "engines",
    "perf",
    "estimator",
    "governor",
    "training",
    "routing",
    "identity",
    "cost",
];

/// External packages that some crates must not use, and why.
struct Ban {
    crates: &'static [&'static str],
    /// `kube` also bans `kube-runtime`, and `rand` also `rand_pcg`.
    packages: &'static [&'static str],
    /// Whether tests may use them all the same.
    tests_may: bool,
    reason: &'static str,
}

const NETWORK: &[&str] = &[
    "async-std",
    "axum",
    "futures",
    "http",
    "hyper",
    "k8s-openapi",
    "kube",
    "object-store",
    "reqwest",
    "smol",
    "tokio",
    "tonic",
    "tower",
    "ureq",
];

const BANS: &[Ban] = &[
    Ban {
        crates: PURE,
        packages: NETWORK,
        tests_may: false,
        reason: "a decision is a plain function of its arguments; effects belong to the operator \
                 and the gateway",
    },
    Ban {
        crates: PURE,
        packages: &["fastrand", "getrandom", "rand", "uuid"],
        tests_may: false,
        reason: "the same snapshot must give the same decision; chance is an argument",
    },
    Ban {
        crates: PURE,
        packages: &["chrono", "jiff", "time"],
        tests_may: false,
        reason: "a decision takes `now` as an argument, and these crates can read the clock",
    },
    Ban {
        crates: &["core", "estimator", "governor", "training", "routing"],
        packages: &["schemars", "serde", "serde-json", "serde-saphyr", "toml"],
        tests_may: true,
        reason: "decision types are not serialisable, so that they can change freely; stored and \
                 sent forms live in `resources`",
    },
    Ban {
        crates: &["simulator", "tuner"],
        packages: NETWORK,
        tests_may: false,
        reason: "the simulator runs in virtual time without a cluster, a network or a runtime",
    },
    Ban {
        crates: &["emulator", "ledger"],
        packages: &["k8s-openapi", "kube"],
        tests_may: false,
        reason: "this part works without a cluster; what it needs arrives as values",
    },
    Ban {
        crates: &["cli", "console", "fleet", "gateway", "operator"],
        packages: &["arrow", "datafusion", "object-store", "parquet", "rusqlite", "sqlx"],
        tests_may: false,
        reason: "only the ledger touches storage; ask it",
    },
];

/// Crates that must build in seconds, and all that they may use outside of their tests (docs/decisions/0010).
const LIGHT: &[(&str, &[&str])] = &[
    ("figures", &["anyhow", "serde", "serde_json"]),
    (
        "xtask",
        &[
            "anyhow",
            "base64",
            "clap",
            "flyball-figures",
            "rcgen",
            "serde",
            "serde_json",
            "sha2",
            "tar",
            "toml",
        ],
    ),
];

/// Rule: crates use only the crates that the table allows.
pub(super) fn arrows(tree: &Tree) -> Vec<Finding> {
    tree.manifests().iter().flat_map(arrows_of).collect()
}

fn arrows_of(manifest: &Manifest<'_>) -> Vec<Finding> {
    let here = manifest.folder;
    let Some((_, allowed)) = ARROWS.iter().find(|(from, _)| *from == here) else {
        let wrong = format!("crate `{here}` has no row in the table of allowed arrows");
        let mend = "add it to ARROWS in crates/xtask/src/tidy/dependencies.rs and to the code map \
                    in ARCHITECTURE.md";
        return vec![Finding::new(manifest.path, None, wrong, mend)];
    };
    let mut found = Vec::new();
    for dependency in manifest.dependencies() {
        let Some(to) = dependency.package.strip_prefix("flyball-") else { continue };
        if !allowed.contains(&to) {
            let wrong = format!("`{here}` must not use `{to}`");
            let may = if allowed.is_empty() { "no other crate".into() } else { allowed.join(", ") };
            let mend = format!("`{here}` may use {may}; move the shared type down or pass a value");
            found.push(Finding::new(manifest.path, dependency.line, wrong, mend));
        }
    }
    found
}

/// Rule: crates do not use packages that would break what they promise.
pub(super) fn bans(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for manifest in tree.manifests() {
        let bans = BANS.iter().filter(|ban| ban.crates.contains(&manifest.folder));
        for ban in bans {
            for dependency in manifest.dependencies() {
                if is_banned(ban, &dependency.package) && !(ban.tests_may && dependency.for_tests) {
                    let wrong =
                        format!("`{}` must not use {}", manifest.folder, dependency.package);
                    let mend = format!("remove the dependency: {}", ban.reason);
                    found.push(Finding::new(manifest.path, dependency.line, wrong, mend));
                }
            }
        }
    }
    found
}

/// Rule: crates that must build in seconds use only what their list allows.
pub(super) fn light(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for manifest in tree.manifests() {
        let Some((here, allowed)) = LIGHT.iter().find(|(here, _)| *here == manifest.folder) else {
            continue;
        };
        let all = manifest.dependencies();
        for one in all.iter().filter(|one| !one.for_tests) {
            if !allowed.contains(&one.package.as_str()) {
                let wrong =
                    format!("`{here}` must build in seconds, and {} is new to it", one.package);
                let mend = "move what needs it into a program that xtask starts, or, if `cargo xtask \
                            house` stays within its limit, add it to LIGHT in \
                            crates/xtask/src/tidy/dependencies.rs";
                found.push(Finding::new(manifest.path, one.line, wrong, mend));
            }
        }
    }
    found
}

fn is_banned(ban: &Ban, package: &str) -> bool {
    let package = package.replace('_', "-");
    let covers = |banned: &&str| {
        package.strip_prefix(*banned).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    ban.packages.iter().any(covers)
}

#[cfg(test)]
mod tests {
    use super::super::tree::made_up;
    use super::*;

    fn one(folder: &str, dependencies: &str) -> Tree {
        let path = format!("crates/{folder}/Cargo.toml");
        made_up(&[(&path, &format!("[dependencies]\n{dependencies}"))])
    }

    #[test]
    fn an_arrow_that_is_not_in_the_table_fails() {
        let found = arrows(&one("routing", "flyball-governor.workspace = true\n"));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, Some(2));
        assert_eq!(found[0].wrong, "`routing` must not use `governor`");
        assert!(found[0].mend.starts_with("`routing` may use core;"));
        assert_eq!(arrows(&one("routing", "flyball-core.workspace = true\n")), []);
    }

    #[test]
    fn an_arrow_in_tests_counts_too() {
        let text = "[dev-dependencies]\nflyball-operator.workspace = true\n";
        assert_eq!(arrows(&made_up(&[("crates/gateway/Cargo.toml", text)])).len(), 1);
        let text = "[dev-dependencies]\nflyball-routing.workspace = true\n";
        assert_eq!(arrows(&made_up(&[("crates/gateway/Cargo.toml", text)])), []);
    }

    #[test]
    fn a_crate_without_a_row_fails() {
        assert!(arrows(&one("surprise", ""))[0].wrong.contains("no row"));
        assert_eq!(arrows(&one("perf", "")), []);
    }

    #[test]
    fn arrows_point_only_to_earlier_rows_so_there_is_no_cycle() {
        for (index, (from, to)) in ARROWS.iter().enumerate() {
            for target in *to {
                let earlier = ARROWS[..index].iter().any(|(name, _)| name == target);
                assert!(earlier, "{from} -> {target}");
            }
        }
    }

    #[test]
    fn a_pure_crate_with_a_client_a_clock_or_chance_fails() {
        for package in ["kube-runtime", "tokio", "rand_pcg", "jiff", "serde"] {
            let found = bans(&one("core", &format!("{package} = \"1\"\n")));
            assert_eq!(found.len(), 1, "{package}");
            assert_eq!(found[0].line, Some(2));
        }
        assert_eq!(bans(&one("core", "thiserror = \"2\"\n")), []);
        // A ban covers a family, not every package that starts with the same letters.
        assert_eq!(bans(&one("core", "timeless = \"1\"\n")), []);
        assert_eq!(bans(&one("operator", "kube = \"5\"\n")), []);
    }

    #[test]
    fn what_is_new_to_xtask_fails_and_its_tests_may_use_it() {
        let found = light(&one("xtask", "anyhow = \"1\"\nserde_yaml = \"1\"\n"));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, Some(3));
        assert_eq!(light(&one("bench", "serde_yaml = \"1\"\n")), []);
        let text = "[dev-dependencies]\nserde_yaml = \"1\"\n";
        assert_eq!(light(&made_up(&[("crates/xtask/Cargo.toml", text)])), []);
    }

    #[test]
    fn tests_of_core_may_serialise_but_may_not_read_the_clock() {
        let text = "[dev-dependencies]\nserde_json = \"1\"\n";
        assert_eq!(bans(&made_up(&[("crates/core/Cargo.toml", text)])), []);
        let text = "[dev-dependencies]\njiff = \"1\"\n";
        assert_eq!(bans(&made_up(&[("crates/core/Cargo.toml", text)])).len(), 1);
    }
}
