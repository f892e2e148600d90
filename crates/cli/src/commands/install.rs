//! `flyball completions` and `flyball man`: what a shell and `man` need, made from the command line itself.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, Command};

use crate::help::{self, Length};
use crate::output::{Exit, Failure, Printer};

/// Write shell completions
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: clap_complete::Shell,
}

/// Write manual pages for this command and its subcommands
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Output folder; it must exist
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub(crate) fn completions(args: &CompletionsArgs, mut root: Command) -> Result<Exit, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut root, "flyball", &mut text);
    match io::stdout().write_all(&text) {
        Ok(()) => Ok(Exit::Yes),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Yes),
        Err(error) => Err(Failure::new(Exit::Usage, "the completions cannot be written")
            .because(error.to_string())),
    }
}

pub(crate) fn man(args: &ManArgs, root: Command, printer: &Printer) -> Result<Exit, Failure> {
    let folder = args.folder.display().to_string();
    clap_mangen::generate_to(help::command(root, Length::Long), &args.folder).map_err(|error| {
        Failure::new(Exit::Usage, "the manual pages cannot be written")
            .at(&folder)
            .because(error.to_string())
            .hint("name a folder that exists and that you may write to")
    })?;
    printer.note(&format!("manual pages are in {folder}; man -M finds them below a folder man1"));
    Ok(Exit::Yes)
}
