//! A gateway and an operator that are not of one version.

use super::rig::{Gateway, Office, upstream};
use super::skew::{Apart, Skew};
use super::{drain, is_empty};
use flyball_gateway::link::Came;
use flyball_operator::link::Auth;
use std::time::{Duration, SystemTime};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_version_apart_demand_arrives_and_drain_marks_are_understood() {
    for apart in [Apart::Newer, Apart::Older] {
        let engines = [upstream(4, Duration::ZERO).await, upstream(4, Duration::ZERO).await];
        let office = Office::open(Auth::default()).await;
        let skew = Skew::before(office.address, apart).await.unwrap();
        let gateway = Gateway::start(&engines, skew.address);
        assert_eq!(gateway.asks(true).await.unwrap(), 200);
        let report = office
            .report(|report| report.reported_at.is_some() && report.models[0].arrived > 0)
            .await;
        assert_eq!((report.models[0].engines, report.endpoints.len()), (2, 2), "{apart:?}");
        let number = office.link.publish(drain(engines[0])).unwrap();
        office.report(|report| report.orders == number && is_empty(report, engines[0])).await;
        let before = gateway.answered_by(engines[0], false);
        for _ in 0..10 {
            assert_eq!(gateway.asks(false).await.unwrap(), 200);
        }
        assert_eq!(gateway.answered_by(engines[0], false), before, "{apart:?}: nothing new comes");
        gateway.has_no_errors();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_majors_do_not_talk_and_each_goes_on() {
    let engines = [upstream(4, Duration::ZERO).await];
    let office = Office::open(Auth::default()).await;
    let skew = Skew::before(office.address, Apart::Major).await.unwrap();
    let gateway = Gateway::start(&engines, skew.address);
    // The operator refuses first, and says to the gateway what to do.
    gateway.until(|now| now.tries[Came::Refused as usize] > 0).await;
    let book = office.link.reports(SystemTime::now());
    assert!(book.reports.is_empty());
    assert_eq!(book.refused.len(), 1, "it is there, and what it serves is not known");
    for _ in 0..10 {
        assert_eq!(gateway.asks(false).await.unwrap(), 200);
    }
    gateway.has_no_errors();
}
