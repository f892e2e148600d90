//! Facts in, answers out: every kind of cluster a user may have, as people and programs see it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use super::answer::{CheckAnswer, FailOn, Status, Verdict};
use super::codes::{CHECKS, Category, Code};
use super::facts::{
    AcceleratorNode, ClockSample, Controller, Devices, Facts, Fleet, Found, Metrics, Part,
    Prometheus, Reply, Server,
};
use super::judge::{self, permissions};
use super::{Selection, http_url};
use crate::output::{Answer, Detail, Exit, answer_json, answer_table, answer_yaml, conforms};

/// A cluster that has everything.
fn healthy() -> Facts {
    let sent = Timestamp::from_second(1_800_000_000).unwrap();
    let access = CHECKS
        .iter()
        .map(|check| (check.code, permissions::questions(check.code)))
        .map(|(code, questions)| (code, vec![Found::Known(true); questions.len()]))
        .collect();
    Facts {
        address: "https://10.0.0.1:6443".to_owned(),
        namespace: None,
        server: Found::Known(Server {
            version: "v1.36.1".to_owned(),
            release: Some((1, 36)),
            latency: Duration::from_millis(38),
        }),
        clock: Found::Known(ClockSample {
            server: sent,
            sent,
            round_trip: Duration::from_millis(40),
        }),
        access,
        kueue: part("kueue", "v0.19.2", &["v1beta1", "v1beta2"]),
        jobset: part("jobset", "v0.11.0", &["v1alpha2"]),
        metrics: Metrics {
            served: Found::Known(vec!["v1beta1".to_owned()]),
            answers: Found::Known(Ok(())),
        },
        prometheus: Found::Known(Prometheus {
            place: "monitoring/prometheus".to_owned(),
            reply: Found::Known(Reply::Ready("3.5.0".to_owned())),
        }),
        fleet: fleet(vec![node("gpu-1", "H100", "serving"), node("gpu-2", "H100", "serving")]),
    }
}

fn part(name: &str, version: &str, served: &[&str]) -> Part {
    Part {
        served: Found::Known(served.iter().map(ToString::to_string).collect()),
        controller: Found::Known(Controller {
            place: format!("{name}-system/{name}-controller-manager"),
            version: Some(version.to_owned()),
            available: true,
        }),
    }
}

fn fleet(nodes: Vec<AcceleratorNode>) -> Found<Fleet> {
    Found::Known(Fleet { nodes_total: nodes.len() + 3, nodes })
}

fn node(name: &str, model: &str, pool: &str) -> AcceleratorNode {
    AcceleratorNode {
        name: name.to_owned(),
        resource: "nvidia.com/gpu".to_owned(),
        devices: devices(8, 8),
        model: (!model.is_empty()).then(|| model.to_owned()),
        pool: (!pool.is_empty()).then(|| pool.to_owned()),
        ready: true,
        cordoned: false,
    }
}

fn devices(capacity: u32, allocatable: u32) -> Option<Devices> {
    Some(Devices { capacity, allocatable })
}

fn everything() -> Selection {
    Selection { before_install: false, only: Vec::new(), skip: BTreeSet::new() }
}

fn judged(facts: &Facts, selection: &Selection) -> CheckAnswer {
    let answer = judge::judge(facts, selection, FailOn::Failure).took(Duration::from_millis(412));
    conforms("check", &answer_json(&answer));
    answer
}

fn table(answer: &CheckAnswer, detail: Detail) -> String {
    let plain = answer_table(answer, detail);
    assert!(plain.is_ascii(), "{plain}");
    for line in plain.lines().filter(|line| !line.contains("hint: ")) {
        assert!(line.len() <= 100, "{} columns: {line}", line.len());
    }
    plain
}

/// Both forms of one answer, and its exit status.
fn shown(facts: &Facts) -> String {
    let answer = judged(facts, &everything());
    format!("{}exit status {}\n", table(&answer, Detail::Full), answer.exit().number())
}

#[test]
fn everything_there() {
    insta::assert_snapshot!(shown(&healthy()));
    insta::assert_snapshot!(
        "everything_there_json",
        answer_json(&judged(&healthy(), &everything()))
    );
    insta::assert_snapshot!("everything_there_quiet", {
        table(&judged(&healthy(), &everything()), Detail::Problems)
    });
}

#[test]
fn kueue_missing_and_jobset_down() {
    let mut facts = healthy();
    facts.kueue = Part { served: Found::Absent, controller: Found::Absent };
    insta::assert_snapshot!("kueue_missing", shown(&facts));
    let parts = Selection { only: vec![Category::Parts], ..everything() };
    let missing = judged(&facts, &parts);
    insta::assert_snapshot!("kueue_missing_markdown", missing.view(Detail::Full).markdown());
    insta::assert_snapshot!("kueue_missing_yaml", answer_yaml(&missing));
    insta::assert_snapshot!("kueue_missing_quiet", {
        table(&judged(&facts, &everything()), Detail::Problems)
    });
    if let Found::Known(controller) = &mut facts.jobset.controller {
        controller.available = false;
    }
    insta::assert_snapshot!("jobset_down", shown(&facts));
}

#[test]
fn no_permission() {
    let mut facts = healthy();
    let refused =
        "User \"ann\" cannot list resource \"nodes\" in API group \"\" at the cluster scope";
    for answers in facts.access.values_mut() {
        answers.fill(Found::Known(false));
    }
    facts.fleet = Found::Denied(refused.to_owned());
    facts.prometheus = Found::Denied("User \"ann\" cannot list resource \"services\"".to_owned());
    facts.kueue.controller = Found::Denied("User \"ann\" cannot list deployments".to_owned());
    insta::assert_snapshot!(shown(&facts));
}

#[test]
fn api_server_unreachable() {
    let mut facts = Facts::unasked("https://10.0.0.1:6443".to_owned());
    facts.server = Found::Failed("Connection refused".to_owned());
    insta::assert_snapshot!(shown(&facts));
    insta::assert_snapshot!("api_server_unreachable_json", {
        answer_json(&judged(&facts, &Selection { only: vec![Category::Clock], ..everything() }))
    });
}

#[test]
fn some_time_out_and_the_rest_goes_on() {
    let mut facts = healthy();
    let limit = Duration::from_secs(5);
    facts.fleet = Found::TimedOut(limit);
    facts.metrics.answers = Found::TimedOut(limit);
    facts.access.insert(Code::ReadPods, vec![Found::Known(true), Found::TimedOut(limit)]);
    insta::assert_snapshot!(shown(&facts));
}

#[test]
fn no_accelerators_and_no_prometheus() {
    let mut facts = healthy();
    facts.fleet = fleet(Vec::new());
    facts.prometheus = Found::Absent;
    insta::assert_snapshot!(shown(&facts));
}

#[test]
fn mixed_fleet_with_an_unlabelled_node() {
    let mut facts = healthy();
    let tpu = AcceleratorNode {
        resource: "google.com/tpu".to_owned(),
        devices: devices(4, 4),
        ..node("tpu-1", "tpu-v6e-slice", "batch")
    };
    let sick = AcceleratorNode { devices: devices(8, 7), ..node("gpu-3", "A100", "serving") };
    let down = AcceleratorNode { ready: false, ..node("gpu-4", "A100", "serving") };
    facts.fleet =
        fleet(vec![node("gpu-1", "H100", "serving"), tpu, sick, down, node("gpu-9", "", "")]);
    insta::assert_snapshot!(shown(&facts));
    insta::assert_snapshot!("mixed_fleet_json", {
        answer_json(&judged(&facts, &Selection { only: vec![Category::Capacity], ..everything() }))
    });
}

#[test]
fn permissions_of_one_namespace() {
    let mut facts = Facts { namespace: Some("team-a".to_owned()), ..healthy() };
    facts.access.insert(Code::SetReplicas, vec![Found::Known(true), Found::Known(false)]);
    let selection = Selection { only: vec![Category::Permissions], ..everything() };
    insta::assert_snapshot!(table(&judged(&facts, &selection), Detail::Full));
}

#[test]
fn a_large_fleet_stays_readable() {
    let nodes = (0..2_000).map(|i| node(&format!("gpu-{i}"), "H100", &format!("pool-{}", i % 40)));
    let sick = nodes.map(|node| AcceleratorNode { devices: devices(8, 7), ..node }).collect();
    let facts = Facts { fleet: fleet(sick), ..healthy() };
    let answer = judged(&facts, &Selection { only: vec![Category::Capacity], ..everything() });
    assert_eq!(answer.accelerators.as_ref().map(Vec::len), Some(40));
    insta::assert_snapshot!(table(&answer, Detail::Full));
}

#[test]
fn before_an_installation() {
    let answer = judged(&healthy(), &Selection { before_install: true, ..everything() });
    insta::assert_snapshot!(table(&answer, Detail::Full));
}

#[test]
fn a_skipped_check_is_shown_as_skipped() {
    let mut facts = healthy();
    facts.kueue = Part { served: Found::Absent, controller: Found::Absent };
    let selection = Selection {
        only: vec![Category::Parts],
        skip: BTreeSet::from([Code::Kueue]),
        ..everything()
    };
    let answer = judged(&facts, &selection);
    insta::assert_snapshot!(table(&answer, Detail::Full));
    assert_eq!(answer.exit(), Exit::Yes);
}

#[test]
fn the_cause_is_shown_even_if_it_was_not_chosen() {
    let mut facts = healthy();
    facts.fleet = Found::TimedOut(Duration::from_secs(5));
    let selection = Selection {
        only: vec![Category::Capacity],
        skip: BTreeSet::from([Code::Accelerators]),
        ..everything()
    };
    insta::assert_snapshot!(table(&judged(&facts, &selection), Detail::Full));
}

#[test]
fn versions_out_of_range_are_said() {
    let status = |release| {
        let mut facts = healthy();
        if let Found::Known(server) = &mut facts.server {
            server.release = release;
        }
        let answer = judged(&facts, &Selection { only: vec![Category::Cluster], ..everything() });
        answer.sections[0].checks[1].status
    };
    assert_eq!(status(Some((1, 29))), Status::Fail);
    assert_eq!(status(Some((1, 30))), Status::Ok);
    assert_eq!(status(Some((1, 37))), Status::Warn);
    assert_eq!(status(None), Status::Unknown);
}

#[test]
fn cordoned_and_uncounted_nodes_are_named() {
    let mut facts = healthy();
    let closed = AcceleratorNode { cordoned: true, ..node("gpu-2", "H100", "serving") };
    let odd = AcceleratorNode { devices: None, ..node("gpu-3", "H100", "serving") };
    let capacity = Selection { only: vec![Category::Capacity], ..everything() };
    facts.fleet = fleet(vec![node("gpu-1", "H100", "serving"), closed, odd.clone()]);
    insta::assert_snapshot!(table(&judged(&facts, &capacity), Detail::Full));
    // A node that cannot be read is neither "no accelerators" nor "all devices healthy".
    facts.fleet = fleet(vec![odd]);
    let answer = judged(&facts, &capacity);
    assert_eq!((answer.counts.ok, answer.counts.unknown, answer.counts.skip), (2, 2, 0));
    assert_eq!(answer.exit(), Exit::Unknown);
}

#[test]
fn prometheus_is_ready_or_what_is_wrong_is_said() {
    let outcome = |reply| {
        let place = "monitoring/prometheus".to_owned();
        let facts = Facts { prometheus: Found::Known(Prometheus { place, reply }), ..healthy() };
        let answer = judged(&facts, &Selection { only: vec![Category::Parts], ..everything() });
        let found = &answer.sections[0].checks[2];
        assert!(found.hint.is_some(), "{found:?}");
        (found.status, found.detail.clone())
    };
    insta::assert_debug_snapshot!([
        outcome(Found::Known(Reply::NoOne("HTTP 503, no endpoints available".to_owned()))),
        outcome(Found::Known(Reply::Other)),
        outcome(Found::Failed("it sends us elsewhere (HTTP 302)".to_owned())),
        outcome(Found::Denied("User \"ann\" cannot get resource \"services/proxy\"".to_owned())),
    ]);
}

#[test]
fn only_who_gives_away_more_than_it_has_needs_bind_and_escalate() {
    let status = |change: fn(&str) -> Found<bool>| {
        let mut facts = healthy();
        let questions = permissions::questions(Code::InstallClusterWide);
        let answers = questions.iter().map(|question| change(question.verb)).collect();
        facts.access.insert(Code::InstallClusterWide, answers);
        let before = Selection { before_install: true, ..everything() };
        judged(&facts, &before).sections[1].checks[0].status
    };
    assert_eq!(status(|_| Found::Known(true)), Status::Ok);
    assert_eq!(status(|verb| Found::Known(verb != "bind" && verb != "escalate")), Status::Warn);
    assert_eq!(status(|verb| Found::Known(verb != "create")), Status::Fail);
    assert_eq!(status(|_| Found::Known(false)), Status::Fail);
    // What all need is not known: a warning about the rest would hide that.
    assert_eq!(
        status(|verb| match verb {
            "bind" | "escalate" => Found::Known(false),
            _ => Found::Failed("HTTP 500".to_owned()),
        }),
        Status::Unknown
    );
}

#[test]
fn waiting_is_for_parts_and_not_for_labels() {
    let mut facts = healthy();
    facts.fleet = fleet(vec![node("gpu-9", "", "")]);
    assert!(judged(&facts, &everything()).settled());
    facts.kueue = Part { served: Found::Absent, controller: Found::Absent };
    let answer = judged(&facts, &everything());
    assert_eq!((answer.exit(), answer.settled()), (Exit::Yes, false));
    let skip = BTreeSet::from([Code::Kueue]);
    assert!(judged(&facts, &Selection { skip, ..everything() }).settled());
    facts.fleet = Found::TimedOut(Duration::from_secs(5));
    let capacity = Selection { only: vec![Category::Capacity], ..everything() };
    assert!(!judged(&facts, &capacity).settled());
}

#[test]
fn the_exit_status_follows_the_gravest_certainty() {
    let mut facts = healthy();
    let exit = |facts: &Facts, fail_on| judge::judge(facts, &everything(), fail_on).exit();
    assert_eq!(exit(&facts, FailOn::Warning), Exit::Yes);
    facts.prometheus = Found::Absent;
    assert_eq!(exit(&facts, FailOn::Failure), Exit::Yes);
    assert_eq!(exit(&facts, FailOn::Warning), Exit::No);
    facts.fleet = Found::Denied("no".to_owned());
    assert_eq!(exit(&facts, FailOn::Failure), Exit::Unknown);
    facts.access = BTreeMap::from([(Code::ReadPods, vec![Found::Known(false)])]);
    assert_eq!(exit(&facts, FailOn::Failure), Exit::No);
    assert_eq!(Verdict::TimedOut.exit(), Exit::TimedOut);
}

/// Nothing is ever called good that was not seen.
#[test]
fn what_is_not_known_is_never_ok() {
    let misses: [fn() -> Facts; 2] = [
        || Facts::unasked(String::new()),
        || Facts {
            server: Found::TimedOut(Duration::from_secs(5)),
            ..Facts::unasked(String::new())
        },
    ];
    for facts in misses {
        for before_install in [false, true] {
            let answer = judged(&facts(), &Selection { before_install, ..everything() });
            assert_eq!((answer.counts.ok, answer.counts.skip), (0, 0));
            assert_eq!(answer.exit(), Exit::Unknown);
        }
    }
}

#[test]
fn every_problem_says_what_to_read_next() {
    let mut facts = healthy();
    for answers in facts.access.values_mut() {
        answers.fill(Found::Known(false));
    }
    facts.kueue = Part { served: Found::Absent, controller: Found::Absent };
    facts.prometheus = Found::Absent;
    facts.fleet = fleet(vec![node("gpu-9", "", "")]);
    for outcome in judged(&facts, &everything()).sections.iter().flat_map(|part| &part.checks) {
        let calm = matches!(outcome.status, Status::Ok | Status::Skip);
        assert_eq!(outcome.explain.is_none(), calm, "{}", outcome.code);
        assert_eq!(outcome.hint.is_none(), calm, "{}", outcome.code);
        let page = outcome.explain.map(|code| format!("docs/errors/{code}.md"));
        assert_eq!(outcome.page, page, "{}", outcome.code);
    }
}

#[test]
fn addresses_of_prometheus_are_checked() {
    assert!(http_url("http://prometheus:9090").is_ok());
    for wrong in ["prometheus:9090", "ftp://x", "http://"] {
        assert!(http_url(wrong).is_err(), "{wrong}");
    }
}
