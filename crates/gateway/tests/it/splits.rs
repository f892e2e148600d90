//! Names that stand for several models.

use crate::engine::{Does, Engine};
use crate::rig::{LONG, PLAIN, Rig, body_of, chat, chat_of, key, post};
use flyball_gateway::settings::{
    Arm, GatewaySettingsFile, Mirror, ModelSettings, Split, SplitRule, Sticky,
};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

fn arm(model: &str, weight: u32, known_as: Option<&str>) -> Arm {
    Arm { model: model.to_owned(), weight, known_as: known_as.map(str::to_owned) }
}

/// `m` is `old` nine times and `new` once.
fn split() -> Split {
    let arms = vec![arm("old", 9, None), arm("new", 1, Some("canary"))];
    Split { name: "m".to_owned(), arms, ..Split::default() }
}

fn mirror(per_thousand: u32) -> Option<Mirror> {
    Some(Mirror { model: "next".to_owned(), per_thousand, known_as: Some("n".to_owned()) })
}

struct Arms {
    old: Engine,
    new: Engine,
}

impl Arms {
    async fn start() -> Self {
        let old = Engine::start(Does::Answers(200, r#"{"old":1}"#)).await;
        let new = Engine::start(Does::Answers(200, r#"{"new":1}"#)).await;
        Self { old, new }
    }

    fn rig(&self, next: Option<SocketAddr>, change: impl FnOnce(&mut GatewaySettingsFile)) -> Rig {
        let next: Vec<_> = next.into_iter().collect();
        let old = [self.old.address];
        let new = [self.new.address];
        Rig::of(&[("old", &old), ("new", &new), ("next", &next)], change)
    }
}

/// Asks over and over on one connection.
async fn ask_often(rig: &Rig, many: usize, request: &str) {
    let mut stream = rig.connect().await;
    let mut buffer = vec![0; 4_096];
    for _ in 0..many {
        stream.write_all(request.as_bytes()).await.expect("loopback works");
        let mut read = 0;
        while !buffer[..read].ends_with(b":1}") {
            let more = stream.read(&mut buffer[read..]).await.expect("loopback works");
            assert!(more > 0, "{}", String::from_utf8_lossy(&buffer[..read]));
            read += more;
        }
    }
}

#[tokio::test]
async fn a_tenth_of_ten_thousand_is_a_thousand() {
    let arms = Arms::start().await;
    let rig = arms.rig(None, |s| s.splits = vec![split()]);
    ask_often(&rig, 10_000, &post("/v1/chat/completions", "", PLAIN)).await;
    let new = arms.new.requests().len();
    // A tenth of a point.
    assert!(new.abs_diff(1_000) <= 10, "{new}");
    let lines = rig.finished(10_000).await;
    let counted = lines.iter().filter(|line| line.model.as_deref() == Some("new")).count();
    assert_eq!(counted, new);
    assert!(lines.iter().all(|line| line.split.as_deref() == Some("m") && !line.mirrored));
    // Only the arm that says so is renamed.
    assert!(body_of(&arms.new.requests()[0]).contains(r#""model":"canary""#));
    assert_eq!(body_of(&arms.old.requests()[0]), PLAIN);
}

/// An adopted engine may know its model by another name, whichever of its names clients say.
#[tokio::test]
async fn a_model_is_asked_for_by_the_name_that_its_engines_know() {
    let engine = Engine::start(Does::Answers(200, r#"{"a":1}"#)).await;
    let rig = Rig::start(&[&engine], |settings| {
        settings.models = vec![ModelSettings {
            name: "m".to_owned(),
            known_as: Some("org/m".to_owned()),
            ..ModelSettings::default()
        }];
        let arms = vec![arm("m", 1, None)];
        settings.splits = vec![Split { name: "also".to_owned(), arms, ..Split::default() }];
    });
    for name in ["m", "also", "org/m"] {
        rig.whole(&chat(&PLAIN.replace("\"m\"", &format!("\"{name}\"")))).await;
    }
    let bodies = engine.requests();
    assert_eq!(bodies.len(), 2, "its own name is none of ours");
    let known = PLAIN.replace("\"m\"", "\"org/m\"");
    assert!(bodies.iter().all(|request| body_of(request) == known), "{bodies:?}");
}

#[tokio::test]
async fn who_is_sticky_stays_on_its_arm_also_on_another_gateway() {
    let arms = Arms::start().await;
    let even = || {
        let halves = vec![arm("old", 1, None), arm("new", 1, None)];
        Split { arms: halves, sticky: Sticky::User, ..split() }
    };
    let gateways = [0, 1].map(|_| arms.rig(None, |s| s.splits = vec![even()]));
    let mut news = 0;
    for user in 0..40 {
        let body = format!(r#"{{"model":"m","messages":[],"user":"u{user}"}}"#);
        let mut answers = Vec::new();
        for rig in gateways.iter().chain(&gateways) {
            answers.push(body_of(&rig.whole(&chat(&body)).await).to_owned());
        }
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{user}: {answers:?}");
        news += usize::from(answers[0].contains("new"));
    }
    assert!((8..=32).contains(&news), "{news}");
}

#[tokio::test]
async fn rules_come_first_and_splits_are_listed() {
    let arms = Arms::start().await;
    let rig = arms.rig(None, |s| {
        let to_new = |caller: Option<&str>, header: Option<&str>| SplitRule {
            caller: caller.map(str::to_owned),
            header: header.map(str::to_owned),
            value: None,
            arm: "new".to_owned(),
        };
        let rules = vec![to_new(Some("tester"), None), to_new(None, Some("x-canary"))];
        let arms = vec![arm("old", 1, None), arm("new", 0, None)];
        s.splits = vec![Split { rules, arms, ..split() }];
        s.keys = vec![key("tester", None), key("user", None)];
    });
    for (secret, headers, expected) in
        [("user", "", "old"), ("tester", "", "new"), ("user", "x-canary: 1\r\n", "new")]
    {
        for _ in 0..5 {
            let answer = rig.whole(&chat_of(secret, headers, PLAIN)).await;
            assert!(body_of(&answer).contains(expected), "{secret} {headers}: {answer}");
        }
    }
    let get = |path: &str| {
        format!("GET {path} HTTP/1.1\r\nhost: x\r\nx-api-key: user\r\nconnection: close\r\n\r\n")
    };
    assert!(rig.whole(&get("/v1/models")).await.contains(r#""id":"m""#));
    assert!(rig.whole(&get("/v1/models/m")).await.starts_with("HTTP/1.1 200"));
    // The arms have names of their own, too.
    let direct = PLAIN.replace("\"m\"", "\"new\"");
    assert!(rig.whole(&chat_of("user", "", &direct)).await.contains(r#"{"new":1}"#));
}

#[tokio::test]
async fn a_changed_weight_holds_at_once() {
    let arms = Arms::start().await;
    let rig = arms.rig(None, |s| s.splits = vec![split()]);
    let mut changed =
        GatewaySettingsFile { splits: vec![split()], ..GatewaySettingsFile::default() };
    changed.splits[0].arms = vec![arm("old", 0, None), arm("new", 1, None)];
    rig.gateway.change(&changed);
    ask_often(&rig, 20, &post("/v1/chat/completions", "", PLAIN)).await;
    assert_eq!((arms.old.requests().len(), arms.new.requests().len()), (0, 20));
    rig.gateway.change(&GatewaySettingsFile::default());
    assert!(rig.whole(&chat(PLAIN)).await.starts_with("HTTP/1.1 404"));
}

#[tokio::test]
async fn a_copy_is_answered_and_counted_and_never_reaches_the_client() {
    let arms = Arms::start().await;
    let next = Engine::start(Does::Answers(200, r#"{"next":1}"#)).await;
    let rig = arms.rig(Some(next.address), |s| {
        s.splits = vec![Split { mirror: mirror(1_000), ..split() }];
        s.keys = vec![key("ann", None)];
    });
    // As many as may be under way at once, so that none is dropped.
    for _ in 0..64 {
        let answer = rig.whole(&chat_of("ann", "", PLAIN)).await;
        assert!(answer.starts_with("HTTP/1.1 200") && !answer.contains("next"), "{answer}");
    }
    let lines = rig.finished(128).await;
    let (copies, originals): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line.mirrored);
    assert_eq!((copies.len(), originals.len()), (64, 64));
    for copy in copies {
        assert_eq!(
            (copy.model.as_deref(), copy.caller.as_str(), copy.status),
            (Some("next"), "", 200)
        );
        assert_eq!(copy.split.as_deref(), Some("m"));
    }
    assert!(
        originals.iter().all(|line| line.caller == "ann" && line.model.as_deref() != Some("next"))
    );
    let requests = next.requests();
    assert_eq!(requests.len(), 64);
    assert!(requests.iter().all(|request| request.contains(r#""model":"n""#)), "{}", requests[0]);
    // Copies let go of all that they took, a moment after they are counted.
    let until = Instant::now() + LONG;
    while (rig.gateway.inside().requests, rig.gateway.inside().bytes) != (0, 0) {
        assert!(Instant::now() < until, "{:?}", rig.gateway.inside());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn a_mirror_that_is_slow_broken_or_gone_does_no_harm() {
    let arms = Arms::start().await;
    let next = Engine::start(Does::Closes).await;
    let rig = arms.rig(Some(next.address), |s| {
        s.splits = vec![Split { mirror: mirror(1_000), ..split() }];
    });
    let request = post("/v1/chat/completions", "", PLAIN);
    ask_often(&rig, 20, &request).await;
    let lines = rig.finished(40).await;
    assert!(lines.iter().all(|line| line.mirrored == (line.status != 200)), "{lines:?}");
    // A copy is not tried again: that is for clients.
    assert!(lines.iter().all(|line| line.retries == 0), "{lines:?}");
    next.now(Does::Hangs);
    ask_often(&rig, 100, &request).await;
    let answered = rig.finished(140).await.iter().filter(|line| line.status == 200).count();
    assert_eq!(answered, 120);
    // 64 hang still, so that no client has waited for one.
    assert_eq!(rig.copies_dropped(), 100 - 64);
    let nobody = arms.rig(None, |s| s.splits = vec![Split { mirror: mirror(1_000), ..split() }]);
    ask_often(&nobody, 20, &request).await;
    let lines = nobody.finished(40).await;
    assert_eq!(lines.iter().filter(|line| !line.mirrored && line.status == 200).count(), 20);
}
