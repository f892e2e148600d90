//! Lines of logs in, acts in order of time out.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use ring::digest::{SHA256, digest};

use super::act::{AuditAct, Source};
use super::clean;
use super::line::{self, GatewayAct, Line};
use super::states::{Known, States};
use super::write::{Target, Verb, Write};

/// Problems that are told one by one; of more only the number is.
const MOST_PROBLEMS: usize = 20;

/// What was read so far.
#[derive(Debug, Default)]
pub(super) struct Stream {
    records: Vec<Record>,
    /// Lines by their hashes. Not by the ids of their requests: whoever asks may choose that.
    seen: BTreeSet<[u8; 32]>,
    pub(super) counts: Counts,
    pub(super) problems: Vec<String>,
}

/// Of which lines there were how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) lines: u64,
    /// Of an audit log and about nothing of ours, or of none.
    pub(super) others: u64,
    /// That were there before.
    pub(super) doubled: u64,
    /// That could not be read.
    pub(super) broken: u64,
    /// That are of an audit log, whatever they are about.
    pub(super) known: u64,
}

#[derive(Debug)]
enum Record {
    Write(Box<Write>),
    Gateway(GatewayAct),
}

impl Record {
    fn time(&self) -> Timestamp {
        match self {
            Self::Write(write) => write.time,
            Self::Gateway(act) => act.time,
        }
    }
}

impl Stream {
    /// Takes a line of this place, `FILE:NUMBER`.
    pub(super) fn take(&mut self, place: &dyn Fn() -> String, text: &[u8]) {
        self.counts.lines += 1;
        let record = match line::read(text) {
            Line::Foreign => {
                self.counts.others += 1;
                return;
            }
            Line::OtherEvent => {
                self.counts.others += 1;
                self.counts.known += 1;
                return;
            }
            Line::Broken(why) => return self.broken(&format!("{}: {why}", place())),
            Line::Write(write) => Record::Write(write),
            Line::Gateway(act) => Record::Gateway(act),
        };
        self.counts.known += 1;
        let hash = digest(&SHA256, text.trim_ascii());
        if hash.as_ref().try_into().is_ok_and(|hash| !self.seen.insert(hash)) {
            self.counts.doubled += 1;
        } else {
            self.records.push(record);
        }
    }

    /// A line was too long to be held.
    pub(super) fn too_long(&mut self, place: &dyn Fn() -> String, longest: usize) {
        self.counts.lines += 1;
        self.broken(&format!("{}: it is longer than {} MiB", place(), longest >> 20));
    }

    fn broken(&mut self, problem: &str) {
        self.counts.broken += 1;
        if self.problems.len() < MOST_PROBLEMS {
            self.problems.push(problem.to_owned());
        }
    }

    /// The acts, oldest first.
    pub(super) fn acts(mut self) -> Vec<AuditAct> {
        // Lines of one moment stay as they were found.
        self.records.sort_by_key(Record::time);
        let mut states = States::default();
        let mut secrets = BTreeMap::new();
        let act = |record: Record| match record {
            Record::Gateway(act) => Some(of_gateway(&act)),
            Record::Write(write) if write.secret.is_some() => of_secret(&write, &mut secrets),
            Record::Write(write) => {
                let known = states.after(&write);
                Some(of_write(&write, known))
            }
        };
        self.records.into_iter().filter_map(act).collect()
    }
}

fn of_gateway(act: &GatewayAct) -> AuditAct {
    AuditAct {
        time: moment(act.time),
        source: Source::Gateway,
        who: "gateway".to_owned(),
        acting_as: None,
        act: clean::text(&act.act),
        object: clean::text(&act.what),
        changes: Vec::new(),
        all_changes: None,
        missing_before: None,
        outcome: clean::text(&act.outcome),
        code: None,
        dry_run: false,
        tenant: None,
    }
}

fn of_write(write: &Write, known: Known) -> AuditAct {
    let of = &write.target;
    let tenant = (of.resource == "tenants" && !of.name.is_empty())
        .then(|| clean::text(&format!("{}/{}", of.namespace, of.name)));
    let (act, outcome) = (word(write).to_owned(), outcome(write));
    AuditAct {
        time: moment(write.time),
        source: Source::ApiServer,
        who: match write.user.as_str() {
            "" => "unknown".to_owned(),
            user => clean::user(user),
        },
        acting_as: write.acting_as.as_deref().map(clean::user),
        act,
        object: named(of, &write.subresource),
        changes: known.changes,
        all_changes: Some(known.all),
        missing_before: known.missing,
        outcome,
        code: write.code,
        dry_run: write.dry_run,
        tenant,
    }
}

/// A Secret that `flyball key` wrote, or has written before. Others are none of ours.
fn of_secret(write: &Write, ours: &mut BTreeMap<Target, Option<String>>) -> Option<AuditAct> {
    let secret = write.secret.as_ref()?;
    let before = ours.get(&write.target).cloned();
    if !secret.by_us && secret.tenant.is_none() && before.is_none() {
        return None;
    }
    let tenant = secret.tenant.clone().or_else(|| before.flatten());
    if write.took_effect() {
        match write.verb {
            Verb::Delete => drop(ours.remove(&write.target)),
            _ => drop(ours.insert(write.target.clone(), tenant.clone())),
        }
    }
    let act = of_write(write, Known::default());
    let all_changes = (write.verb == Verb::Delete).then_some(true);
    Some(AuditAct { tenant: tenant.as_deref().map(clean::text), all_changes, ..act })
}

fn word(write: &Write) -> &'static str {
    match write.verb {
        Verb::Create => "created",
        // Applied, and it was not there.
        Verb::Patch | Verb::Update if write.code == Some(201) => "created",
        Verb::Patch | Verb::Update => "changed",
        Verb::Delete | Verb::DeleteMany => "deleted",
    }
}

fn outcome(write: &Write) -> String {
    let text = match write.code {
        _ if write.panicked => "failed: the API server panicked".to_owned(),
        None => "unknown".to_owned(),
        Some(200..300) if write.dry_run => return "dry run".to_owned(),
        Some(200..300) => "accepted".to_owned(),
        Some(code @ 300..500) => format!("refused {code}"),
        Some(code) => format!("failed {code}"),
    };
    if write.dry_run { format!("{text} (dry run)") } else { text }
}

/// Always with as many digits, so that the order of texts is that of time.
fn moment(time: Timestamp) -> String {
    format!("{time:.6}")
}

/// `tenant/ml/search`.
fn named(of: &Target, subresource: &str) -> String {
    let kind = match of.resource.as_str() {
        "tenants" => "tenant",
        "modelservices" => "modelservice",
        "pools" => "pool",
        "secrets" => "secret",
        other => other,
    };
    let name = if of.name.is_empty() { "*" } else { &of.name };
    let parts = [kind, &of.namespace, name, subresource];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    clean::text(&parts.join("/"))
}
