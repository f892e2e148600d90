//! `flyball check`: is this cluster ready for Flyball, and what is missing?
//!
//! Three steps, each in its own place. `gather` asks the cluster and writes down `Facts`, every
//! one with the way it was missed if it was missed. `judge` turns facts into outcomes and is pure:
//! it is tested without a cluster. `table` shows the answer.
//!
//! A question that was not answered gives `unknown`, never `ok`: a false green is worse than a
//! red. Each question has its own time limit, so one silent server never holds up the others.
//! To add a check: a line in `codes`, a fact in `gather`, a judgement in `judge`, a page in
//! docs/errors.

mod answer;
mod codes;
mod facts;
mod gather;
mod judge;
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use clap::{Args, builder::BoolishValueParser};

#[cfg(test)]
pub(crate) use answer::CheckAnswer;
use answer::{FailOn, Verdict};
use codes::{CHECKS, Category, Check, Code, When};

use crate::cluster;
use crate::flags::{self, ClusterArgs};
use crate::output::{Exit, Failure, Printer, duration};

/// Between two tries of `--wait`. The API server hardly notices, and a person does not wait long.
const RETRY_EVERY: Duration = Duration::from_secs(2);

/// Check whether a cluster is ready for Flyball, and what is missing
///
/// Reads, never writes. Each check has a code; `flyball explain CODE` says what it means and what
/// to do. A check without a result is shown as unknown and ends in exit status 3.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Check what an installation needs: skips FLY-201 to FLY-216 and adds FLY-221 and FLY-222
    #[arg(long, env = "FLYBALL_CHECK_PRE", value_parser = BoolishValueParser::new())]
    #[arg(hide_env_values = true)]
    pre: bool,

    /// Run only these categories
    #[arg(long, value_name = "CATEGORY", value_delimiter = ',', env = "FLYBALL_CHECK_ONLY")]
    #[arg(hide_env_values = true)]
    only: Vec<Category>,

    /// Skip the check with this code
    #[arg(long, value_name = "CODE", value_delimiter = ',', env = "FLYBALL_CHECK_SKIP")]
    #[arg(hide_env_values = true, value_parser = Code::parse)]
    skip: Vec<Code>,

    /// Retry for this long until the check passes, without warnings about parts.
    ///
    /// When the time is over and only warnings are left, the exit status is as without this flag:
    /// 0, for a warning is not a failure. Anything else, and with `--fail-on warning` also a
    /// warning, ends in exit status 4.
    #[arg(long, value_name = "TIME", env = "FLYBALL_CHECK_WAIT", value_parser = flags::time)]
    #[arg(hide_env_values = true, default_value = "0")]
    wait: Duration,

    /// What counts as a failure
    #[arg(long, value_name = "WHAT", env = "FLYBALL_CHECK_FAIL_ON", default_value = "failure")]
    #[arg(hide_env_values = true)]
    fail_on: FailOn,

    /// Address of Prometheus, if discovery in the cluster fails
    #[arg(long, value_name = "URL", env = "FLYBALL_CHECK_PROMETHEUS", value_parser = http_url)]
    #[arg(hide_env_values = true)]
    prometheus: Option<http::Uri>,
}

/// Which checks run, and which are named as skipped.
#[derive(Debug)]
struct Selection {
    before_install: bool,
    only: Vec<Category>,
    skip: BTreeSet<Code>,
}

impl Selection {
    /// Everything to show, in order.
    fn shown(&self) -> impl Iterator<Item = &'static Check> {
        CHECKS.iter().filter(|check| {
            let left_out = match check.when {
                When::Always => false,
                When::BeforeInstall => !self.before_install,
                When::AfterInstall => self.before_install,
            };
            !left_out && (self.only.is_empty() || self.only.contains(&check.category))
        })
    }

    fn runs(&self, code: Code) -> bool {
        !self.skip.contains(&code) && self.shown().any(|check| check.code == code)
    }
}

pub(crate) async fn run(
    args: &CheckArgs,
    cluster_args: &ClusterArgs,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let selection = Selection {
        before_install: args.pre,
        only: args.only.clone(),
        skip: args.skip.iter().copied().collect(),
    };
    let start = Instant::now();
    let cluster = cluster::connect(cluster_args).await?;
    let progress = printer.progress();
    progress.show(&format!("checking {}", cluster.address));

    let questions = gather::Questions {
        selection: &selection,
        limit: cluster_args.timeout,
        namespace: cluster_args.namespace.as_deref(),
        prometheus: args.prometheus.as_ref(),
    };
    let answer = loop {
        let facts = gather::gather(&cluster, &questions).await;
        let mut answer = judge::judge(&facts, &selection, args.fail_on);
        if args.wait.is_zero() || answer.settled() {
            break answer;
        }
        let left = args.wait.saturating_sub(start.elapsed());
        if left.is_zero() {
            if answer.verdict != Verdict::Passed {
                answer.verdict = Verdict::TimedOut;
            }
            break answer;
        }
        progress.show(&format!("not yet; trying again for {}", duration(left)));
        tokio::time::sleep(RETRY_EVERY.min(left)).await;
    };
    // The progress line goes before the answer comes.
    drop(progress);
    Ok(printer.answer(&answer.took(start.elapsed())))
}

fn http_url(text: &str) -> Result<http::Uri, String> {
    let uri: http::Uri = text.parse().map_err(|_| "this is not an address".to_owned())?;
    match uri.scheme_str() {
        Some("http" | "https") if uri.host().is_some() => Ok(uri),
        _ => Err("an address starts with http:// or https://".to_owned()),
    }
}
