//! A second engine is asked where the first is slow to begin.

use crate::engine::{Does, Engine};
use crate::rig::{Line, PLAIN, Rig, STREAM, chat, post};
use flyball_gateway::meter::RequestOutcome;
use flyball_gateway::settings::{GatewaySettingsFile, Recovery};
use std::time::Duration;

const EMBED: &str = r#"{"model":"m","input":"hi"}"#;

/// Two engines, and twenty answers that teach what is usual. Nobody is asked twice before that: on a
/// busy machine any of them may be slow.
async fn two(request: &str, quick: Does, hedge_per_thousand: u32) -> (Engine, Engine, Rig) {
    let (one, other) = (Engine::start(quick.clone()).await, Engine::start(quick).await);
    let rig = Rig::start(&[&one, &other], |_| {});
    for _ in 0..20 {
        assert!(rig.whole(request).await.starts_with("HTTP/1.1 200"));
    }
    let recovery = Recovery { hedge_per_thousand, ..Recovery::default() };
    rig.gateway.change(&GatewaySettingsFile { recovery, ..GatewaySettingsFile::default() });
    (one, other, rig)
}

/// One more request, which both engines hold until both have it; then only the first or the second to
/// get it goes on, and the other one is cut off.
async fn race(
    engines: [&Engine; 2],
    rig: &Rig,
    request: &str,
    (does, first_wins): (Does, bool),
) -> Line {
    let requests = || engines.iter().map(|engine| engine.requests().len()).sum::<usize>();
    let before = requests();
    engines.iter().for_each(|engine| engine.now(Does::Holds(Box::new(does.clone()))));
    let racing = async {
        while requests() < before + 2 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let [one, other] = engines;
        let (first, second) = if one.last() < other.last() { (one, other) } else { (other, one) };
        let (wins, loses) = if first_wins { (first, second) } else { (second, first) };
        wins.go_on();
        loses
    };
    let (answer, loses) = tokio::join!(rig.whole(request), racing);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    loses.left(1).await;
    rig.finished(21).await[20].clone()
}

#[tokio::test]
async fn the_quicker_one_answers_and_the_slow_one_is_cut_off() {
    let stream = Does::Streams(vec!["data: {\"a\":1}\n\n", "data: [DONE]\n\n"], Duration::ZERO);
    let whole = Does::Answers(200, r#"{"whole":1}"#);
    for (body, quick) in [(STREAM, stream), (PLAIN, whole)] {
        let request = chat(body);
        let (one, other, rig) = two(&request, quick.clone(), 1_000).await;
        let line = race([&one, &other], &rig, &request, (quick, false)).await;
        assert_eq!((line.outcome, line.retries, line.hedged), (RequestOutcome::Answered, 0, true));
        assert_eq!((rig.cancelled(), rig.in_flight()), (1, 0));
        let recoveries = rig.gateway.recoveries();
        assert_eq!((recoveries.hedges, recoveries.hedges_won), (1, 1));
    }
}

#[tokio::test]
async fn the_first_may_still_win() {
    let (request, quick) = (chat(PLAIN), Does::Answers(200, "{}"));
    let (one, other, rig) = two(&request, quick.clone(), 1_000).await;
    let line = race([&one, &other], &rig, &request, (quick, true)).await;
    assert_eq!((line.outcome, line.hedged), (RequestOutcome::Answered, true));
    let recoveries = rig.gateway.recoveries();
    assert_eq!((recoveries.hedges, recoveries.hedges_won), (1, 0));
    assert_eq!((rig.cancelled(), rig.in_flight()), (1, 0));
}

#[tokio::test]
async fn nobody_is_asked_twice_without_budget_nor_for_embeddings() {
    let embed = post("/v1/embeddings", "connection: close\r\n", EMBED);
    for (request, per_thousand) in [(chat(PLAIN), 0), (chat(PLAIN), 20), (embed, 1_000)] {
        let (one, other, rig) = two(&request, Does::Answers(200, "{}"), per_thousand).await;
        for engine in [&one, &other] {
            engine.now(Does::Waits(Duration::from_millis(300), 200, "{}"));
        }
        assert!(rig.whole(&request).await.starts_with("HTTP/1.1 200"));
        // A fiftieth of a prompt is less than one.
        assert!(!rig.finished(21).await[20].hedged, "{per_thousand}: {request}");
        assert_eq!(rig.gateway.recoveries().hedges, 0);
    }
}
