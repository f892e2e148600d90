//! `flyball key`: the keys of a Tenant, which stand there by their hashes.
//!
//! A key is made here and shown once; its hash goes to the Tenant. `edit` says what becomes of a list of keys and knows no
//! cluster, `write` brings it there without losing what somebody else writes at the same time, `secret` puts a key into
//! a Secret. `create`, `rotate`, `revoke` and `list` are the commands, `answer` what they say.

mod answer;
mod create;
mod edit;
mod list;
mod revoke;
mod rotate;
mod secret;
#[cfg(test)]
mod tests;
mod write;

use std::time::Duration;

use clap::builder::BoolishValueParser;
use clap::{Args, Subcommand};
use flyball_identity::NewKey;
use jiff::{Timestamp, TimestampRound, Unit};
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::flags::{ClusterArgs, time};
use crate::output::{Exit, Failure, Printer};
#[cfg(test)]
pub(crate) use answer::{KeyChange, KeyList};

/// Create, rotate, revoke or list the keys of a tenant
///
/// A key is shown once, when it is created: only its hash is stored, in the Tenant. Changes of
/// other people at the same time are not lost.
#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Create(create::CreateArgs),
    Rotate(rotate::RotateArgs),
    Revoke(revoke::RevokeArgs),
    List(list::ListArgs),
}

/// What every command takes that makes a key.
#[derive(Debug, Args)]
struct MakeArgs {
    /// How long the key is valid, as in 12h, 90d; `never` for a key without an end
    #[arg(long, value_name = "TIME", env = "FLYBALL_KEY_EXPIRES", hide_env_values = true)]
    #[arg(default_value = "90d", value_parser = validity)]
    expires: Validity,

    /// Write the key to this Secret, as NAME or NAMESPACE/NAME, and do not show it
    #[arg(long, value_name = "NAME", env = "FLYBALL_KEY_TO_SECRET", hide_env_values = true)]
    #[arg(value_parser = secret::place)]
    to_secret: Option<secret::Place>,

    #[command(flatten)]
    dry: DryRun,
}

#[derive(Debug, Args)]
struct DryRun {
    /// Only show what would be done
    #[arg(long, env = "FLYBALL_KEY_DRY_RUN")]
    #[arg(hide_env_values = true, value_parser = BoolishValueParser::new())]
    dry_run: bool,
}

/// How long a key is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Validity {
    For(Duration),
    Always,
}

pub(crate) async fn run(
    args: &KeyArgs,
    global: &ClusterArgs,
    printer: &Printer,
) -> Result<Exit, Failure> {
    match &args.what {
        What::Create(args) => create::run(args, global, printer).await,
        What::Rotate(args) => rotate::run(args, global, printer).await,
        What::Revoke(args) => revoke::run(args, global, printer).await,
        What::List(args) => list::run(args, global, printer).await,
    }
}

impl Validity {
    /// When a key ends that begins now.
    fn end(self, now: Timestamp) -> Result<Option<Timestamp>, Failure> {
        match self {
            Validity::Always => Ok(None),
            Validity::For(length) => later(now, length).map(Some),
        }
    }
}

/// So much later, in whole seconds: people read it in `kubectl get -o yaml`.
fn later(now: Timestamp, length: Duration) -> Result<Timestamp, Failure> {
    let second = TimestampRound::new().smallest(Unit::Second);
    let end = now.checked_add(length).and_then(|end| end.round(second));
    end.map_err(|_| Failure::new(Exit::Usage, "that is too long: the date has no name"))
}

/// A key of the operating system's random bytes.
fn make() -> Result<NewKey, Failure> {
    let mut random = [0; NewKey::RANDOM_BYTES];
    SystemRandom::new().fill(&mut random).map_err(|_| {
        Failure::new(Exit::Unknown, "no key was made")
            .because("the operating system gives no random bytes")
    })?;
    Ok(NewKey::make(&random))
}

/// `90d`, `12h`, `2w`, or `never`.
fn validity(text: &str) -> Result<Validity, String> {
    match text {
        "never" => Ok(Validity::Always),
        _ => match length(text)? {
            Duration::ZERO => Err("a key that is never valid is of no use".to_owned()),
            length => Ok(Validity::For(length)),
        },
    }
}

/// A time that may be in days or weeks: `90d`, `24h`, `0`.
fn length(text: &str) -> Result<Duration, String> {
    let days = |digits: &str, each: u64| {
        let days = digits.parse::<u64>().ok().and_then(|count| count.checked_mul(each));
        days.and_then(|days| days.checked_mul(86_400)).map(Duration::from_secs)
    };
    let whole = match text.chars().last() {
        Some('d') => days(&text[..text.len() - 1], 1),
        Some('w') => days(&text[..text.len() - 1], 7),
        _ => time(text).ok(),
    };
    whole.ok_or_else(|| "a time is written as 90d, 2w, 24h or 30m".to_owned())
}

/// As the schema has it.
fn key_name(text: &str) -> Result<String, String> {
    let of_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let fits = (1..=63).contains(&text.len())
        && text.bytes().all(of_name)
        && !text.starts_with('-')
        && !text.ends_with('-');
    match fits {
        true => Ok(text.to_owned()),
        false => Err("small letters, digits and - between them, at most 63".to_owned()),
    }
}
