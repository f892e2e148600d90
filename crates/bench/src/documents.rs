//! The pages that benches write, and the commands that they name as they were typed, as far as those say what was
//! measured. How sections are kept in them says [`crate::page`].

use crate::page::Document;
use clap::ValueEnum;

pub(crate) const BACKTEST: Document = Document {
    store: "docs/benchmarks.json",
    page: "docs/benchmarks.md",
    head: "# Benchmarks of the simulator and the governor

Written by `cargo xtask bench backtest --figure`; do not edit. Each section says what was measured,
on what, and when. Figures against their targets: `cargo xtask figures`.
",
};

pub(crate) const RECORDED: Document = Document {
    store: "docs/benchmarks-recorded.json",
    page: "docs/benchmarks-recorded.md",
    head: "# The governor on recorded traffic

Written by `cargo xtask bench recorded --figure`; do not edit. Figures against their targets:
`cargo xtask figures`.
",
};

pub(crate) const GATEWAY: Document = Document {
    store: "docs/benchmarks-gateway.json",
    page: "docs/benchmarks-gateway.md",
    head: "# Benchmarks of the gateway

Written by `cargo xtask bench gateway --figure`; do not edit. Everything runs on one machine, over
loopback, in one run: the gateway with everything on, and the others at their fastest reasonable
settings (`crates/bench/src/gateway/templates`). Figures against their targets:
`cargo xtask figures`.
",
};

pub(crate) const ADMISSION: Document = Document {
    store: "docs/benchmarks-admission.json",
    page: "docs/benchmarks-admission.md",
    head: "# Benchmarks of admission

Written by `cargo xtask bench admission --figure`; do not edit. Callers, gateways and emulated
engines share one machine and its loopback; peers get the same load in the same run. Figures against
their targets: `cargo xtask figures`.
",
};

pub(crate) const TENANTS: Document = Document {
    store: "docs/benchmarks-tenants.json",
    page: "docs/benchmarks-tenants.md",
    head: "# Benchmarks of tenants

Written by `cargo xtask bench tenants --figure`; do not edit. Figures against their targets:
`cargo xtask figures`.
",
};

pub(crate) const BATCH: Document = Document {
    store: "docs/benchmarks-batch.json",
    page: "docs/benchmarks-batch.md",
    head: "# Benchmarks of files and batches

Written by `cargo xtask bench batch --figure`; do not edit. Figures against their targets:
`cargo xtask figures`.
",
};

pub(crate) const LEDGER: Document = Document {
    store: "docs/benchmarks-ledger.json",
    page: "docs/benchmarks-ledger.md",
    head: "# Benchmarks of the ledger

Written by `cargo xtask bench ledger --figure`; do not edit. Figures against their targets:
`cargo xtask figures`.
",
};

pub(crate) const TRAINING: Document = Document {
    store: "docs/benchmarks-training.json",
    page: "docs/benchmarks-training.md",
    head: "# Benchmarks of training runs

Written by `cargo xtask bench training --figure`; do not edit. Figures against their targets:
`cargo xtask figures`.
",
};

pub(crate) const COST: Document = Document {
    store: "docs/benchmarks-cost.json",
    page: "docs/benchmarks-cost.md",
    head: "# Benchmarks of cost

Written by `cargo xtask bench cost --figure`; do not edit. Figures against their targets:
`cargo xtask figures`.
",
};

pub(crate) const LIVE: Document = Document {
    store: "docs/benchmarks-live.json",
    page: "docs/benchmarks-live.md",
    head: "# Benchmarks on a live cluster

Written by `cargo xtask bench live --figure`; do not edit. `--redraw` makes it again from the series
in `docs/live`. Figures against their targets: `cargo xtask figures`.
",
};

/// This command with the options that say something.
pub(crate) fn typed(command: &str, options: &[(&str, String)]) -> String {
    let given = options.iter().filter(|(_, value)| !value.is_empty());
    let words = given.map(|(name, value)| format!(" {name} {value}"));
    format!("{command}{} --figure", words.collect::<String>())
}

/// Values as they are typed, with commas.
pub(crate) fn listed(values: &[impl ValueEnum]) -> String {
    let names = values.iter().filter_map(ValueEnum::to_possible_value);
    names.map(|one| one.get_name().to_owned()).collect::<Vec<_>>().join(",")
}

/// A number, unless it is the usual one.
pub(crate) fn unless(usual: u64, value: u64) -> String {
    if value == usual { String::new() } else { value.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_said_is_in_the_command() {
        let options = [("--only", "a,b".to_owned()), ("--seeds", unless(10, 10))];
        assert_eq!(
            typed("cargo xtask bench x", &options),
            "cargo xtask bench x --only a,b --figure"
        );
        assert_eq!(unless(10, 3), "3");
    }
}
