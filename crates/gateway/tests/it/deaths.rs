//! Prompts that kill engines: two die and not all, and nobody else is refused.

use crate::engine::{Does, Engine};
use crate::rig::{PLAIN, Rig, STREAM, body_of, chat, chat_of, key};
use crate::tale::Tale;
use flyball_fleet::invariants::GatewayInvariant;

async fn eight(does: impl Fn() -> Does) -> Vec<Engine> {
    let mut engines = Vec::new();
    for _ in 0..8 {
        engines.push(Engine::start(does()).await);
    }
    engines
}

fn rig(engines: &[Engine]) -> Rig {
    Rig::start(&engines.iter().collect::<Vec<_>>(), |_| {})
}

fn requests_at(engines: &[Engine]) -> usize {
    engines.iter().map(|engine| engine.requests().len()).sum()
}

fn is_refused(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 422")
        && answer.contains("x-flyball-reason: prompt_kills_engines\r\n")
        && answer.contains("x-should-retry: false\r\n")
        && !answer.contains("retry-after")
}

#[tokio::test]
async fn a_prompt_that_kills_engines_kills_two_of_eight_however_often_it_comes() {
    for dies in [Does::Closes, Does::Cuts(vec![]), Does::Answers(500, "engine dead")] {
        let engines = eight(|| dies.clone()).await;
        let rig = rig(&engines);
        for body in [PLAIN, STREAM, PLAIN, STREAM] {
            let answer = rig.whole(&chat(body)).await;
            assert!(is_refused(&answer), "{dies:?}: {answer}");
        }
        assert_eq!(requests_at(&engines), 2, "{dies:?}");
        assert_eq!(rig.gateway.suspects().refused, 1);
        // Whatever else is asked goes through.
        engines.iter().for_each(|engine| engine.now(Does::Answers(200, "{}")));
        let other = PLAIN.replace("hi", "hello");
        assert!(rig.whole(&chat(&other)).await.starts_with("HTTP/1.1 200"), "{dies:?}");
        assert!(is_refused(&rig.whole(&chat(PLAIN)).await));
        assert_eq!((rig.in_flight(), GatewayInvariant::Deaths.broken()), (0, 0));
    }
}

#[tokio::test]
async fn a_stream_that_kills_engines_in_its_middle_is_continued_once() {
    let tale = Tale { words: 40, cut_after: Some(5), id: "a" };
    let engines = eight(|| Does::Plays(tale)).await;
    let rig = rig(&engines);
    let answer = rig.whole(&chat(STREAM)).await;
    assert!(answer.contains(r#""code":"prompt_kills_engines""#), "{answer}");
    assert!(answer.contains(" w9") && !answer.contains(" w10"), "{answer}");
    assert!(is_refused(&rig.whole(&chat(STREAM)).await));
    assert_eq!(requests_at(&engines), 2);
}

#[tokio::test]
async fn nobody_is_refused_for_what_another_caller_did() {
    let engines = eight(|| Does::Closes).await;
    let rig = Rig::start(&engines.iter().collect::<Vec<_>>(), |settings| {
        settings.keys = vec![key("bad", None), key("good", None)];
    });
    assert!(is_refused(&rig.whole(&chat_of("bad", "", PLAIN)).await));
    engines.iter().for_each(|engine| engine.now(Does::Answers(200, "{}")));
    assert!(is_refused(&rig.whole(&chat_of("bad", "", PLAIN)).await));
    let good = rig.whole(&chat_of("good", "", PLAIN)).await;
    assert!(good.starts_with("HTTP/1.1 200"), "{good}");
}

#[tokio::test]
async fn an_engine_that_says_that_it_failed_and_lives_is_no_evidence() {
    let engines = eight(|| Does::Fails).await;
    let rig = rig(&engines);
    for round in 1..=2 {
        let answer = rig.whole(&chat(PLAIN)).await;
        assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
        assert_eq!(requests_at(&engines), 3 * round);
    }
    assert_eq!(rig.gateway.suspects(), Default::default());
}

/// What vLLM says in a stream when its engine core is gone, and when one request failed.
fn an_error_in_a_stream() -> Does {
    let error = "data: {\"error\":{\"message\":\"EngineCore failed\",\"code\":500}}\n\n";
    Does::Streams(vec![error, "data: [DONE]\n\n"], std::time::Duration::ZERO)
}

#[tokio::test]
async fn an_engine_that_says_so_in_a_stream_and_is_not_well_has_died() {
    let engines = eight(|| Does::Ails(Box::new(an_error_in_a_stream()))).await;
    let rig = rig(&engines);
    let answer = rig.whole(&chat(STREAM)).await;
    assert!(answer.contains(r#""code":"prompt_kills_engines""#), "{answer}");
    assert!(is_refused(&rig.whole(&chat(STREAM)).await));
    assert_eq!((requests_at(&engines), GatewayInvariant::Deaths.broken()), (2, 0));
}

#[tokio::test]
async fn an_engine_that_says_so_in_a_stream_and_is_well_is_no_evidence() {
    let engines = eight(an_error_in_a_stream).await;
    let rig = rig(&engines);
    for _ in 0..4 {
        let answer = rig.whole(&chat(STREAM)).await;
        assert!(answer.contains("EngineCore failed"), "{answer}");
    }
    assert_eq!(rig.gateway.suspects(), Default::default());
}

#[tokio::test]
async fn engines_that_are_told_to_go_make_no_prompt_a_suspect() {
    let engines = eight(|| Does::Holds(Box::new(Does::Closes))).await;
    let addresses: Vec<_> = engines.iter().map(|engine| engine.address).collect();
    let rig = rig(&engines);
    for round in 1..=3 {
        rig.list(&addresses);
        let request = chat(PLAIN);
        let drained = async {
            while requests_at(&engines) < round {
                tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            }
            rig.drain(&addresses);
            // The one that has it.
            engines.iter().max_by_key(|engine| engine.last()).expect("eight").go_on();
        };
        let (answer, ()) = tokio::join!(rig.whole(&request), drained);
        assert!(body_of(&answer).contains("; retry"), "{answer}");
    }
    assert_eq!(rig.gateway.suspects(), Default::default());
    rig.list(&addresses);
    engines.iter().for_each(|engine| engine.now(Does::Answers(200, "{}")));
    assert!(rig.whole(&chat(PLAIN)).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn who_is_answered_elsewhere_is_forgotten() {
    let engines = eight(|| Does::Answers(200, "{}")).await;
    let rig = rig(&engines);
    // One after the other dies with the same prompt; each time another one answers.
    for bad in &engines {
        bad.now(Does::Closes);
        for _ in 0..4 {
            assert!(rig.whole(&chat(PLAIN)).await.starts_with("HTTP/1.1 200"));
        }
        bad.now(Does::Answers(200, "{}"));
    }
    assert_eq!(rig.gateway.suspects(), Default::default());
}
