//! A second engine is asked where the first is slow to begin.

use crate::engine::{Does, Engine};
use crate::rig::{PLAIN, Rig, STREAM, chat, post};
use flyball_gateway::meter::Outcome;
use std::time::{Duration, Instant};

const EMBED: &str = r#"{"model":"m","input":"hi"}"#;

fn quick() -> Does {
    Does::Streams(vec!["data: {\"a\":1}\n\n", "data: [DONE]\n\n"], Duration::ZERO)
}

/// Two engines, and twenty answers that teach what is usual.
async fn two(request: &str, quick: Does, per_thousand: u32) -> (Engine, Engine, Rig) {
    let (one, other) = (Engine::start(quick.clone()).await, Engine::start(quick).await);
    let rig = Rig::start(&[&one, &other], |settings| {
        settings.recovery.hedge_per_thousand = per_thousand;
        settings.timeouts.first_byte_ms = 2_000;
    });
    for _ in 0..20 {
        assert!(rig.whole(request).await.starts_with("HTTP/1.1 200"));
    }
    (one, other, rig)
}

#[tokio::test]
async fn the_quicker_one_answers_and_the_slow_one_is_cut_off() {
    let whole = Does::Answers(200, r#"{"whole":1}"#);
    for (body, quick) in [(STREAM, quick()), (PLAIN, whole)] {
        let request = chat(body);
        let (slow, _other, rig) = two(&request, quick, 1_000).await;
        slow.now(Does::Hangs);
        let before = slow.requests().len();
        let mut sent = 20;
        while slow.requests().len() == before {
            let began = Instant::now();
            assert!(rig.whole(&request).await.starts_with("HTTP/1.1 200"));
            // Usual is a millisecond, and 50 ms are waited in any case.
            assert!(began.elapsed() < Duration::from_millis(1_000), "{:?}", began.elapsed());
            sent += 1;
        }
        slow.left(1).await;
        let line = rig.finished(sent).await[sent - 1].clone();
        assert_eq!((line.outcome, line.retries, line.hedged), (Outcome::Answered, 0, true));
        assert_eq!((rig.cancelled(), rig.in_flight()), (1, 0));
        let recoveries = rig.gateway.recoveries();
        assert_eq!((recoveries.hedges, recoveries.hedges_won), (1, 1));
    }
}

#[tokio::test]
async fn the_first_may_still_win() {
    let request = chat(PLAIN);
    let (one, other, rig) = two(&request, Does::Answers(200, "{}"), 1_000).await;
    for engine in [&one, &other] {
        engine.now(Does::Waits(Duration::from_millis(300), 200, "{}"));
    }
    assert!(rig.whole(&request).await.starts_with("HTTP/1.1 200"));
    let line = rig.finished(21).await[20].clone();
    assert_eq!((line.outcome, line.hedged), (Outcome::Answered, true));
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
        // Of 21 equal prompts a fiftieth is less than one of them.
        assert!(!rig.finished(21).await[20].hedged, "{per_thousand}: {request}");
        assert_eq!(rig.gateway.recoveries().hedges, 0);
    }
}
