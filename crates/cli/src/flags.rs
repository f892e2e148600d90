//! The flags that every command takes. They know no command, so that commands may know them.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args};

use crate::output::{Color, Format, Printer};

#[derive(Debug, Args)]
pub(crate) struct Global {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Which cluster, and how long to wait for it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClusterArgs {
    /// Context of the kubeconfig to use
    #[arg(long, global = true, value_name = "NAME", env = "FLYBALL_CONTEXT")]
    #[arg(hide_env_values = true)]
    pub(crate) context: Option<String>,

    /// File to use instead of KUBECONFIG or ~/.kube/config
    #[arg(long, global = true, value_name = "FILE", env = "FLYBALL_KUBECONFIG")]
    #[arg(hide_env_values = true)]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Namespace; all namespaces if not set
    #[arg(short, long, global = true, value_name = "NAME", env = "FLYBALL_NAMESPACE")]
    #[arg(hide_env_values = true)]
    pub(crate) namespace: Option<String>,

    /// How long one request may take, as in 500ms, 5s, 1m
    #[arg(long, global = true, value_name = "TIME", env = "FLYBALL_TIMEOUT")]
    #[arg(hide_env_values = true, default_value = "5s", value_parser = time_above_zero)]
    pub(crate) timeout: Duration,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Output format on stdout
    // Not `--output`: in `plan serve` that is the length of an answer.
    #[arg(short, long = "format", id = "format", global = true, value_name = "FORM")]
    #[arg(env = "FLYBALL_FORMAT")]
    #[arg(hide_env_values = true, default_value = "table")]
    pub(crate) output: Format,

    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", env = "FLYBALL_COLOR")]
    #[arg(hide_env_values = true, default_value = "auto")]
    pub(crate) color: Color,

    /// Show only what needs attention
    #[arg(short, long, global = true, env = "FLYBALL_QUIET")]
    #[arg(hide_env_values = true, value_parser = BoolishValueParser::new())]
    pub(crate) quiet: bool,

    /// Log to stderr; twice for more
    #[arg(short, long, global = true, action = ArgAction::Count, env = "FLYBALL_VERBOSE")]
    #[arg(hide_env_values = true)]
    pub(crate) verbose: u8,

    /// Show no progress line on stderr
    #[arg(long, global = true, env = "FLYBALL_NO_PROGRESS")]
    #[arg(hide_env_values = true, value_parser = BoolishValueParser::new())]
    pub(crate) no_progress: bool,
}

impl OutputArgs {
    pub(crate) fn printer(&self) -> Printer {
        Printer {
            format: self.output,
            color: self.color,
            quiet: self.quiet,
            progress: !self.no_progress,
        }
    }
}

/// `5s`, `1m30s`, `500ms`, `0`.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    text.parse::<jiff::SignedDuration>()
        .ok()
        .and_then(|time| Duration::try_from(time).ok())
        .ok_or_else(|| "a time is written as 500ms, 5s or 1m30s".to_owned())
}

pub(crate) fn time_above_zero(text: &str) -> Result<Duration, String> {
    match time(text)? {
        Duration::ZERO => Err("nothing answers in no time at all".to_owned()),
        time => Ok(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_nonsense_is_refused() {
        assert_eq!(time("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(time("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(time("0"), Ok(Duration::ZERO));
        for wrong in ["5", "-5s", "soon", ""] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
        assert!(time_above_zero("0s").is_err());
    }
}
