//! Help as people see it: two examples for every command, and each flag only where it does something.
//!
//! What the flags are stands in `args`. Here the finished command line is dressed: clap hands the flags of the cluster
//! down to every command, and most commands need no cluster.

mod examples;
mod topics;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

pub(crate) use topics::TOPICS;

/// Commands that talk to a cluster.
const WITH_CLUSTER: [&str; 13] = [
    "check",
    "why",
    "decisions",
    "status",
    "whatif",
    "diff",
    "freeze",
    "resume",
    "key",
    "run",
    "tenants",
    "top",
    "trace",
];
/// The flags that say which.
const CLUSTER: [&str; 4] = ["context", "kubeconfig", "namespace", "timeout"];
/// Flags of every command that a first look at the help need not show.
const COMMON: [&str; 4] = ["color", "quiet", "verbose", "no_progress"];

/// Flags of a command, and of those below it, that a first look need not show either.
const RARE: [(&str, &[&str]); 7] = [
    (
        "backtest",
        &[
            "tensor",
            "engine",
            "input",
            "output",
            "min",
            "pool",
            "price",
            "from",
            "to",
            "warm_up",
            "method",
            "seeds",
            "dtype",
            "cache_dtype",
            "catalog",
            "against",
            "fail_if",
            "train",
            "recording",
            "steps",
            "step_time",
            "gpus",
            "restart",
            "prices",
            "instance",
            "starts",
        ],
    ),
    (
        "emulate",
        &[
            "kv_events",
            "host",
            "speed_up",
            "max_running",
            "step_tokens",
            "cache_tokens",
            "answer_tokens",
            "stream_interval",
            "seed",
            "hang",
            "truncate",
            "garbage",
            "stall",
            "fault_share",
            "slow_start",
            "errors",
            "die_at_prompt_tokens",
            "speed",
            "ignore_aborts",
            "dtype",
            "cache_dtype",
            "catalog",
        ],
    ),
    ("plan", &["cache_dtype", "catalog", "objective", "sequences", "top", "html", "spot"]),
    ("fit", &["cache_dtype", "catalog"]),
    ("prices", &["catalog"]),
    ("gpus", &["catalog"]),
    ("gateway", &["log", "log_format"]),
];

/// How much of it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// `-h`: one screen.
    Short,
    /// `--help`: all.
    Long,
}

/// The command line, as `args` has it, with all that its help shows.
pub(crate) fn command(mut root: Command, length: Length) -> Command {
    root.build();
    dress(root, "", false, length)
}

/// The first flag of the cluster that was typed after a command that needs none, and that command.
pub(crate) fn out_of_place(matches: &ArgMatches) -> Option<(String, &'static str)> {
    let (name, below) = matches.subcommand()?;
    if WITH_CLUSTER.contains(&name) {
        return None;
    }
    // It may have been typed after a command below, and clap hands it up and down.
    let typed = |flag: &&str| below.value_source(flag) == Some(ValueSource::CommandLine);
    CLUSTER.into_iter().find(typed).map(|flag| (name.to_owned(), flag))
}

fn dress(command: Command, path: &str, cluster: bool, length: Length) -> Command {
    let of_cluster = |arg: &Arg| CLUSTER.contains(&arg.get_id().as_str());
    let common = |arg: &Arg| COMMON.contains(&arg.get_id().as_str());
    let top = path.split(' ').next().unwrap_or_default();
    let rare = RARE.iter().find(|(name, _)| *name == top).map_or(&[][..], |(_, flags)| flags);
    let rare = |arg: &Arg| rare.contains(&arg.get_id().as_str());
    let mut command = command.mut_args(|arg| {
        let hidden = of_cluster(&arg) && !cluster;
        let seldom = common(&arg) || rare(&arg) || (path.is_empty() && arg.is_global_set());
        let arg = if seldom { arg.hide_short_help(true) } else { arg };
        let arg = if length == Length::Short { arg.hide_env(true) } else { arg };
        if hidden { arg.hide(true) } else { arg }
    });
    let examples = examples::of(path);
    if !examples.is_empty() {
        let lines: Vec<String> = examples.iter().map(|line| format!("  {line}")).collect();
        let shown = format!("Examples:\n{}", lines.join("\n"));
        let more = command.get_after_help().map(|text| format!("\n\n{text}")).unwrap_or_default();
        command = command.after_help(shown + &more);
    }
    for below in command.get_subcommands_mut() {
        let name = below.get_name().to_owned();
        let cluster = cluster || WITH_CLUSTER.contains(&name.as_str());
        let path = if path.is_empty() { name } else { format!("{path} {name}") };
        *below = dress(std::mem::take(below), &path, cluster, length);
    }
    command
}

#[cfg(test)]
mod tests;
