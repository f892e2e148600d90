//! The catalog as commands use it: the built-in one and the user's files over it.
//!
//! `plan`, `fit`, `gpus` and `prices` all take `--catalog`, and all look names up here, so that a
//! wrong name or file is told the same way everywhere.

mod views;

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use flyball_perf::catalog::{Catalog, PriceKind};
use flyball_perf::hardware::Accelerator;

use crate::output::{Exit, Failure, FailureCode, plural};

pub(crate) use views::{LinkView, MeasuredView, PartView, PriceView};

#[derive(Debug, Args)]
pub(crate) struct CatalogArgs {
    /// File with your own accelerators and prices; may be repeated
    #[arg(long, value_name = "FILE", value_delimiter = ',', env = "FLYBALL_CATALOG")]
    #[arg(hide_env_values = true)]
    catalog: Vec<PathBuf>,
}

impl CatalogArgs {
    /// The built-in catalog with the files added, in the order they were given.
    pub(crate) fn load(&self) -> Result<Catalog, Failure> {
        let mut catalog = Catalog::builtin();
        for file in &self.catalog {
            let name = file.display().to_string();
            let text = std::fs::read_to_string(file).map_err(|error| {
                Failure::new(Exit::Usage, "the catalog file cannot be read")
                    .at(&name)
                    .because(error.to_string())
                    .hint("name an existing file with --catalog or FLYBALL_CATALOG")
                    .code(FailureCode::CatalogFile)
            })?;
            catalog = catalog.with_file(&text, &name).map_err(|error| {
                let problems: Vec<String> =
                    error.problems.iter().map(ToString::to_string).collect();
                let count = plural(problems.len(), "problem");
                Failure::new(Exit::Usage, format!("the catalog file has {count}"))
                    .at(&name)
                    .problems(problems)
                    .hint("flyball explain FLY-602 shows a file that works")
                    .code(FailureCode::CatalogFile)
            })?;
        }
        Ok(catalog)
    }
}

/// The part of this name, or what to type instead. `again` is the command without the name.
pub(crate) fn accelerator<'a>(
    catalog: &'a Catalog,
    name: &str,
    again: &str,
) -> Result<&'a Accelerator, Failure> {
    catalog.accelerator(name).map_err(|unknown| {
        let failure = Failure::new(Exit::Usage, unknown.to_string()).code(FailureCode::UnknownName);
        let near: Vec<&str> = unknown.near.iter().map(|id| id.as_str()).collect();
        match near.as_slice() {
            [] => failure.hint("flyball gpus lists all of them"),
            [one] => failure.hint(format!("did you mean: {again} {one}")),
            [first, ..] => failure
                .because(format!("it may be {}", near.join(", ")))
                .hint(format!("did you mean: {again} {first}")),
        }
    })
}

/// The provider as the catalog spells it.
pub(crate) fn provider<'a>(catalog: &'a Catalog, name: &str) -> Result<&'a str, Failure> {
    let mut known: Vec<&str> = catalog.prices.iter().map(|offer| offer.provider.as_str()).collect();
    known.sort_unstable();
    known.dedup();
    known.iter().copied().find(|known| known.eq_ignore_ascii_case(name)).ok_or_else(|| {
        Failure::new(Exit::Usage, format!("no price is from a provider called `{name}`"))
            .because(format!("there are prices from {}", known.join(", ")))
            .hint("flyball prices, without --provider, shows all of them")
            .code(FailureCode::UnknownName)
    })
}

/// The ways of buying, by name.
pub(crate) fn purchases() -> impl TypedValueParser<Value = PriceKind> {
    PossibleValuesParser::new(PriceKind::ALL.map(PriceKind::name))
        .map(|name| PriceKind::named(&name).expect("only names of purchases come through"))
}
