//! What the load generator counts is what the upstream said.

use super::upstream;
use clap::Parser;
use flyball_proving::history::{End, HistoryRecord, judge};
use flyball_proving::load::{LoadPlan, run};

fn plan(target: std::net::SocketAddr, more: &str) -> LoadPlan {
    let text = format!("load --target {target} --connections 4 {more}");
    LoadPlan::parse_from(text.split_whitespace())
}

#[tokio::test]
async fn whole_answers_and_streams_are_counted_to_the_last_event() {
    let target = upstream(7).await;
    let whole = run(plan(target, "--seconds 1 --body-bytes 100000")).await.unwrap();
    assert!(whole.answered > 0 && whole.otherwise.is_empty(), "{whole:?}");
    let streams = run(plan(target, "--seconds 1 --stream")).await.unwrap();
    assert!(streams.otherwise.is_empty(), "{streams:?}");
    // Seven chunks, the last one that says why it ended, and [DONE].
    assert_eq!(streams.events, 9 * streams.answered);
}

#[tokio::test]
async fn an_open_loop_asks_at_its_rate() {
    let target = upstream(1).await;
    let report = run(plan(target, "--rate 200 --seconds 1")).await.unwrap();
    // Poisson with a mean of 200: 150 and 250 are more than three deviations away.
    assert!((150..=250).contains(&report.answered), "{report:?}");
}

#[tokio::test]
async fn a_history_has_every_request_and_who_hangs_up_is_not_lost() {
    let target = upstream(50).await;
    let path = std::env::temp_dir().join(format!("proving-history-{}", std::process::id()));
    let more = format!("--seconds 1 --stream --cancel-percent 30 --history {}", path.display());
    let report = run(plan(target, &more)).await.unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let records: Vec<HistoryRecord> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let all = report.answered + report.otherwise.values().sum::<u64>();
    assert_eq!(records.len() as u64, all);
    assert!(records.iter().any(|record| record.end == End::Cancelled));
    let verdict = judge(records);
    assert_eq!((verdict.lost, verdict.hung, verdict.silently_short), (0, 0, 0));
}
