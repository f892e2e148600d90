//! Whether shadow reports are right: what they say of policies while another one is live, and what
//! comes of truly routing with each.
//!
//! The engines are those of `affinity`, in real time; the requests are the second half of Mooncake's
//! conversations, on which nothing was tuned. Each policy is live once, with the two others in its
//! shadow. So there are three reports, and what they predict is held against what was measured when
//! each policy was live.

use super::affinity::{self, ENGINES, MODEL, Part, QUICK, Real};
use super::bench::Bench;
use super::running::get;
use crate::figures::Op;
use crate::page::{Measured, measure};
use crate::sources;
use anyhow::{Context, Result};
use flyball_routing::RoutingPolicy;
use flyball_routing::shadow::ShadowReport;
use flyball_simulator::affinity::{AffinitySetup, Others, Ours, Shadowed, play};
use flyball_simulator::seconds::Seconds;
use flyball_simulator::traffic::Trace;
use serde::Deserialize;
use std::fmt::Write;
use std::path::Path;

/// Times faster than the trace was: 73 % of what the engines bear. At 6 times, 55 %, prefix and least
/// load are one per cent apart in virtual time, and nobody needs a report to choose.
const FASTER: f64 = 8.0;

/// What `/shadow` says, as far as it is needed here.
#[derive(Debug, Deserialize)]
struct ShadowPage {
    models: Vec<Model>,
    dropped: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Model {
    policies: Vec<Standing>,
    requests: u64,
    measured_ttft_seconds: Option<f64>,
    prediction_error: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Standing {
    policy: String,
    ttft_seconds: Option<f64>,
    hit_share: Option<f64>,
    regret_seconds: Option<f64>,
    regret_margin_seconds: Option<f64>,
}

/// One policy, live once, and what was said meanwhile.
struct Lived {
    policy: RoutingPolicy,
    /// Mean seconds to the first token, and share of prompt tokens found cached.
    ttft: f64,
    hit_share: f64,
    reported: Vec<ReportedPolicy>,
    /// Median relative error of predictions.
    error: Option<f64>,
}

/// What a report says of one policy.
struct ReportedPolicy {
    policy: String,
    ttft: f64,
    hit_share: f64,
    regret: f64,
    margin: Option<f64>,
}

pub(super) fn measured(bench: &mut Bench, root: &Path) -> Result<Measured> {
    let path = sources::shared(root)?.join("traces/mooncake_conversation.jsonl.gz");
    let mut trace = affinity::trace(&path)?;
    let half = trace.requests.len() / 2;
    let requests = if bench.quick { QUICK } else { trace.requests.len() - half };
    second_half(&mut trace, half, requests);
    let mut text = format!(
        "{requests} requests of Mooncake's conversation trace from its middle on, on which nothing was \
         tuned, \
         {FASTER} times faster, over {ENGINES} engines as above. Each policy is live once with the \
         others in its shadow. Means of the time to the first token.\n\n\
         In virtual time:\n\n",
    );
    let virtually = RoutingPolicy::ALL.map(|policy| in_virtual_time(&trace, policy));
    let virtually = virtually.into_iter().collect::<Result<Vec<_>>>()?;
    table(&mut text, &virtually);
    let part = Part { skip: half, requests, faster: FASTER };
    let mut lived = Vec::new();
    let mut notes = String::new();
    for policy in RoutingPolicy::ALL {
        lived.push(in_real_time(bench, &path, part, policy, &mut notes)?);
    }
    let _ = writeln!(text, "\nIn real time:\n");
    table(&mut text, &lived);
    let _ = writeln!(text, "\n{notes}");
    let right = named_right(&lived);
    let _ = writeln!(
        text,
        "Every report ranks the three policies as they were measured: {}.",
        if right { "yes" } else { "no" }
    );
    let value = f64::from(u8::from(right));
    let figure = measure("admission.regret_named_right", value, "yes", Op::Exactly, 1.0);
    Ok(Measured { text, figures: vec![figure] })
}

fn second_half(trace: &mut Trace, half: usize, requests: usize) {
    trace.requests.drain(..half);
    trace.requests.truncate(requests);
    if let Some(begin) = trace.requests.first().map(|first| first.at) {
        trace.requests.iter_mut().for_each(|request| request.at = request.at - begin);
    }
}

fn in_virtual_time(trace: &Trace, live: RoutingPolicy) -> Result<Lived> {
    let kind = affinity::kind()?;
    let setup = AffinitySetup {
        trace,
        faster: FASTER,
        kind: &kind,
        engines: ENGINES,
        report_every: Seconds(0.5),
        seed: 1,
    };
    let mut shadowed = [Shadowed::new(ENGINES, live, &RoutingPolicy::ALL)];
    play(&setup, &mut shadowed);
    let [shadowed] = shadowed;
    // Without a shadow, to show that it changes nothing.
    let truly = play(&setup, &mut [Ours::new(ENGINES, Others::Reported).choosing(live)]);
    let report: ShadowReport = shadowed.judge();
    let policies = report.policies.iter().map(|one| ReportedPolicy {
        policy: one.policy.name().to_owned(),
        ttft: one.first_seconds,
        hit_share: one.hit_share,
        regret: one.regret_seconds,
        margin: one.regret_off,
    });
    Ok(Lived {
        policy: live,
        ttft: truly.ttft[2],
        hit_share: truly.hit_share,
        reported: policies.collect(),
        error: report.error,
    })
}

fn in_real_time(
    bench: &mut Bench,
    path: &Path,
    part: Part,
    live: RoutingPolicy,
    notes: &mut String,
) -> Result<Lived> {
    let others = RoutingPolicy::ALL.into_iter().filter(|policy| *policy != live);
    let others: Vec<String> = others.map(|policy| format!("\"{}\"", policy.name())).collect();
    let more = format!("policy = \"{}\"\nshadow = [{}]\n", live.name(), others.join(", "));
    let (_engines, addresses) = affinity::engines(bench, 1.0)?;
    let door = affinity::gateway(bench, &format!("regret-{}", live.name()), &addresses, &more)?;
    let real: Real = affinity::played(bench, path, live.name(), part, &addresses, &[door.listen])?;
    // The thread writes its report down twice a second.
    std::thread::sleep(std::time::Duration::from_secs(1));
    let answer = get(door.admin, "/shadow")?;
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).context("no body of /shadow")?;
    let page: ShadowPage = serde_json::from_str(body).context("reading /shadow")?;
    let model = page.models.first().with_context(|| format!("/shadow does not tell of {MODEL}"))?;
    let _ = writeln!(
        notes,
        "With {} live, {} of {} requests were answered, sent {:.1} ms late at p99; the report speaks \
         of the last {} and measured a mean of {:.3} s itself; {} messages were dropped.",
        live.name(),
        real.report.answered,
        real.report.requests,
        real.report.late_p99_ms,
        model.requests,
        model.measured_ttft_seconds.unwrap_or(f64::NAN),
        page.dropped
    );
    let policies = model.policies.iter().map(|one| ReportedPolicy {
        policy: one.policy.clone(),
        ttft: one.ttft_seconds.unwrap_or(f64::NAN),
        hit_share: one.hit_share.unwrap_or(f64::NAN),
        regret: one.regret_seconds.unwrap_or(f64::NAN),
        margin: one.regret_margin_seconds,
    });
    Ok(Lived {
        policy: live,
        ttft: real.report.ttft_mean_ms / 1e3,
        hit_share: real.hit_share,
        reported: policies.collect(),
        error: model.prediction_error,
    })
}

/// A line for every policy in every report, beside what was measured with it.
fn table(text: &mut String, lived: &[Lived]) {
    text.push_str(
        "| Live | policy | predicted | measured | predicted hits | measured | regret | measured | error of predictions |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for one in lived {
        for one_policy in &one.reported {
            let Some(truth) = lived.iter().find(|other| other.policy.name() == one_policy.policy)
            else {
                continue;
            };
            let margin =
                one_policy.margin.map_or_else(String::new, |margin| format!(" ± {margin:.3}"));
            let error =
                one.error.map_or_else(|| "unknown".to_owned(), |e| format!("{:.0} %", e * 1e2));
            let _ = writeln!(
                text,
                "| {} | {} | {:.3} s | {:.3} s | {:.3} | {:.3} | {:.3}{margin} s | {:.3} s | {error} |",
                one.policy.name(),
                one_policy.policy,
                one_policy.ttft,
                truth.ttft,
                one_policy.hit_share,
                truth.hit_share,
                one_policy.regret,
                one.ttft - truth.ttft,
            );
        }
    }
}

/// Whether every report ranks the policies as they were measured.
fn named_right(lived: &[Lived]) -> bool {
    let ranked = |mut list: Vec<(&str, f64)>| {
        list.sort_by(|a, b| a.1.total_cmp(&b.1));
        list.into_iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>()
    };
    let truly = ranked(lived.iter().map(|one| (one.policy.name(), one.ttft)).collect());
    lived.iter().all(|one| {
        ranked(one.reported.iter().map(|one| (&*one.policy, one.ttft)).collect()) == truly
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lived(policy: RoutingPolicy, ttft: f64, figures: [f64; 3]) -> Lived {
        let policies =
            RoutingPolicy::ALL.into_iter().zip(figures).map(|(policy, ttft)| ReportedPolicy {
                policy: policy.name().to_owned(),
                ttft,
                hit_share: 0.0,
                regret: 0.0,
                margin: None,
            });
        Lived { policy, ttft, hit_share: 0.0, reported: policies.collect(), error: None }
    }

    #[test]
    fn one_wrong_report_is_enough_to_be_wrong() {
        let world = |last: [f64; 3]| {
            [
                lived(RoutingPolicy::Prefix, 1.0, [1.1, 2.1, 3.1]),
                lived(RoutingPolicy::LeastLoad, 2.0, [0.5, 0.6, 0.7]),
                lived(RoutingPolicy::RoundRobin, 3.0, last),
            ]
        };
        assert!(named_right(&world([1.0, 1.1, 1.2])));
        assert!(!named_right(&world([1.0, 1.3, 1.2])));
    }
}
