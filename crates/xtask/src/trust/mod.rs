//! `cargo xtask trust`: is what was found wrong mended, and would it be noticed if it came back?
//!
//! `list` reads `trust/findings`: what a hostile reading of the code found, how each was mended, and
//! mutations that take the mends out again. `mutations` tries each in a copy of the checkout
//! (`scratch`) and expects a named test to fail. `page` writes `docs/trust.md` from the list. `worlds`
//! runs the operator in random worlds.
//!
//! It knows nothing of what the tests test. Start at [`list`].

mod list;
mod mutations;
mod page;
mod scratch;
mod worlds;

use anyhow::Result;
use clap::Subcommand;
use std::path::Path;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Take each mend out again, and see that its test fails
    Mutations(mutations::Args),
    /// Write docs/trust.md, and count the findings that are open
    Findings {
        /// Write `trust.findings_open`
        #[arg(long)]
        figure: bool,
    },
    /// Run the operator in random worlds with faults
    Worlds(worlds::Args),
}

pub(crate) fn run(root: &Path, command: &Command) -> Result<()> {
    match command {
        Command::Mutations(args) => mutations::run(root, args),
        Command::Findings { figure } => page::run(root, *figure),
        Command::Worlds(args) => worlds::run(root, args),
    }
}
