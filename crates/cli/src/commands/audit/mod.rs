//! `flyball audit`: who did what, from the logs of API servers and gateways, as one stream.
//!
//! `lines` reads bounded lines, `line` tells their forms apart, `write` reads an event of the API server, `states` and
//! `keys` say what it changed, `stream` puts it all in order, `answer` shows it. `clean` has what may never be shown. Logs
//! are the input of strangers: names in them are chosen by whoever was refused. Start at [`stream`].

mod act;
mod answer;
mod clean;
mod keys;
mod line;
mod lines;
mod states;
mod stream;
#[cfg(test)]
mod tests;
mod write;

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use clap::Args;
use flyball_core::ids::ModelId;
use jiff::Timestamp;

use crate::moment;
use crate::output::{Exit, Failure, Printer};
use answer::AuditFilter;
pub(crate) use answer::AuditList;
use lines::Read;
use stream::Stream;

/// Show who did what, from audit logs of API servers and gateways
///
/// Reads the API server's audit log (JSON lines, audit.k8s.io/v1) and the audit logs of gateways in any mix, and prints one
/// stream in order of time: who created, changed or deleted Tenants, ModelServices and Pools, and which keys were created,
/// rotated, revoked or removed. Needs no cluster. Shows names and public ids, never a key or a hash. Times are UTC.
#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// Logs, told apart by their lines; - is stdin
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Only acts from this time on: 14:02, 2026-11-15T14:02:10Z, or 20m ago
    #[arg(long, value_name = "TIME", env = "FLYBALL_AUDIT_SINCE", hide_env_values = true)]
    since: Option<String>,

    /// Only acts about this tenant
    #[arg(long, value_name = "NAMESPACE/NAME", env = "FLYBALL_AUDIT_TENANT")]
    #[arg(hide_env_values = true, value_parser = tenant)]
    tenant: Option<(String, String)>,
}

pub(crate) fn run(args: &AuditArgs, printer: &Printer) -> Result<Exit, Failure> {
    let now = Timestamp::now();
    let since = args.since.as_ref().map(|text| moment::parse(text, now)).transpose();
    let since =
        since.map_err(|why| Failure::new(Exit::Usage, "--since is not a moment").because(why))?;
    let mut stream = Stream::default();
    for file in &args.files {
        read(&mut stream, file)?;
    }
    let filter = AuditFilter { since, tenant: args.tenant.clone() };
    Ok(printer.answer(&AuditList::of(stream, &filter, now)))
}

fn read(stream: &mut Stream, file: &Path) -> Result<(), Failure> {
    let place = file.display().to_string();
    let done = if place == "-" {
        take(stream, "stdin", io::stdin().lock())
    } else {
        File::open(file).and_then(|file| take(stream, &place, BufReader::new(file)))
    };
    done.map_err(|error| {
        Failure::new(Exit::Unknown, "the log cannot be read").at(place).because(error.to_string())
    })
}

fn take(stream: &mut Stream, file: &str, log: impl BufRead) -> io::Result<()> {
    lines::each(log, lines::LONGEST, |number, line| {
        let place = || format!("{file}:{number}");
        match line {
            Read::Whole(text) => stream.take(&place, text),
            Read::TooLong => stream.too_long(&place, lines::LONGEST),
        }
    })
}

fn tenant(text: &str) -> Result<(String, String), String> {
    let named = text.split_once('/').filter(|(space, name)| ModelId::new(space, name).is_ok());
    let (space, name) = named.ok_or("a tenant is named as NAMESPACE/NAME")?;
    Ok((space.to_owned(), name.to_owned()))
}
