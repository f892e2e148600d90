//! Writes docs/reference/cli.md from the command line's own definition.
//!
//! Only tests use this: they fail when the committed file is not what the code says, and
//! `UPDATE=1 cargo test -p flyball-cli` rewrites it.

use std::fmt::Write;
use std::path::Path;

use clap::{Arg, Command, CommandFactory};

use crate::args::Cli;

/// Holds a generated file against the committed one.
pub(crate) fn current(file: &Path, text: &str) {
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(file, text).expect("a generated file can be written");
    }
    let committed = std::fs::read_to_string(file).unwrap_or_default();
    assert!(
        committed == text,
        "{} is not current; run: UPDATE=1 cargo test -p flyball-cli",
        file.display()
    );
}

fn reference() -> String {
    let mut root = Cli::command();
    root.build();
    let mut text = String::from(
        "# The `flyball` command\n\n\
         *Generated from the code. `UPDATE=1 cargo test -p flyball-cli` writes it anew.*\n\n\
         Output goes to stdout; progress, logs and errors go to stderr. With `-o json` the\n\
         answer is one JSON document with `apiVersion: cli.flyball.dev/v1` and a `kind`; the\n\
         [schemas](schemas/) are part of the interface. `-o yaml` is the same document in YAML.\n\
         If there is no answer, the document has kind `Error` with `exitCode`, `what`, `where`,\n\
         `why` and `hint`, still on stdout, and stderr has the same for people.\n\n\
         `-o table` and `-o markdown` are for people and are views of that document: the table\n\
         for a terminal, at most 100 columns wide and in ASCII unless the locale is UTF-8, the\n\
         Markdown for a pull request or a wiki. Do not parse them; they change.\n\n\
         | Exit status | Meaning |\n|---|---|\n\
         | 0 | yes, or done |\n| 1 | the answer is known, and it is no |\n\
         | 2 | wrong usage, or a bug |\n| 3 | could not know: no cluster, no permission, no data |\n\
         | 4 | timed out while waiting |\n| 130 | interrupted |\n\n\
         The status never depends on `-o`. `NO_COLOR` and `CLICOLOR_FORCE` are honoured.\n\n\
         ## Flags of every command\n\n",
    );
    flags(&mut text, &root, Arg::is_global_set);
    for command in root.get_subcommands().filter(|command| !command.is_hide_set()) {
        let _ = writeln!(text, "\n## `flyball {}`\n", command.get_name());
        let about = command.get_long_about().or(command.get_about());
        let _ = writeln!(text, "{}", about.map(ToString::to_string).unwrap_or_default().trim());
        let usage = command.clone().render_usage().to_string();
        let _ = writeln!(text, "\n```\n{}\n```\n", usage.trim_start_matches("Usage: "));
        flags(&mut text, command, |arg| !arg.is_global_set());
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn flags(text: &mut String, command: &Command, is_shown: impl Fn(&Arg) -> bool) {
    let mut rows = String::new();
    for arg in command.get_arguments().filter(|arg| is_shown(arg)) {
        let (name, help) = (arg.get_id().as_str(), arg.get_long_help().or(arg.get_help()));
        if ["help", "version"].contains(&name) {
            continue;
        }
        let help = help.map(ToString::to_string).unwrap_or_default();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut more = String::new();
        let choices: Vec<String> =
            arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
        if arg.get_action().takes_values() && !choices.is_empty() {
            let _ = write!(more, " One of {}.", choices.join(", "));
        }
        if let ([default], true) = (arg.get_default_values(), arg.get_action().takes_values()) {
            let _ = write!(more, " Default {}.", default.to_string_lossy());
        }
        let env = arg.get_env().map(|env| format!("`{}`", env.to_string_lossy()));
        let help = if more.is_empty() || help.ends_with('.') { help } else { help + "." };
        // A bar would end the cell.
        let spelled = spelled(arg).replace('|', "\\|");
        let _ = writeln!(rows, "| `{spelled}` | {} | {help}{more} |", env.unwrap_or_default());
    }
    if !rows.is_empty() {
        let _ = write!(text, "| Flag | Environment | Meaning |\n|---|---|---|\n{rows}");
    }
}

fn spelled(arg: &Arg) -> String {
    let value = arg.get_value_names().unwrap_or_default().join(" ");
    let value = if arg.get_action().takes_values() { value } else { String::new() };
    let names: Vec<String> = arg
        .get_short()
        .map(|short| format!("-{short}"))
        .into_iter()
        .chain(arg.get_long().map(|long| format!("--{long}")))
        .collect();
    format!("{} {value}", names.join(", ")).trim().to_owned()
}

#[test]
fn committed_reference_is_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/cli.md");
    current(&file, &reference());
}
