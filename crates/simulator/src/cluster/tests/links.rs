//! A broken network shows in what becomes of requests, and no request is forgotten.

use super::*;
use crate::network;

/// One request a second for ten seconds, each of which takes a second and a little.
fn played(rules: &str) -> ClusterRun {
    let mut setup = small(vec![TrafficStage::level(1.0, 10.0)]);
    let script = network::Script::from_toml(rules).unwrap();
    setup.faults = vec![Fault::Network { script }];
    play(&setup, &mut Script::new(&[]))
}

/// How many were answered, killed and refused.
fn ends(rules: &str) -> [usize; 3] {
    let run = played(rules);
    let count =
        |is: fn(&AnsweredBy) -> bool| run.histories[0].ends.iter().filter(|a| is(a)).count();
    [
        count(|answer| matches!(answer, AnsweredBy::Finished { .. })),
        count(|answer| *answer == AnsweredBy::Killed),
        count(|answer| *answer == AnsweredBy::Refused),
    ]
}

#[test]
fn a_request_is_answered_refused_or_broken_as_the_script_says() {
    assert_eq!(ends(""), [10, 0, 0]);
    assert_eq!(ends("[[rules]]\naction = \"refuse\""), [0, 0, 10]);
    assert_eq!(ends("[[rules]]\naction = \"reset\"\nafter_bytes = 200"), [0, 10, 0]);
    assert_eq!(ends("[[rules]]\naction = \"reset\"\nafter_bytes = 9000"), [0, 10, 0]);
    // An answer of 100 tokens has 18,130 bytes.
    assert_eq!(ends("[[rules]]\naction = \"reset\"\nafter_bytes = 18130"), [10, 0, 0]);
    let lost = "[[rules]]\ndirection = \"to-server\"\naction = \"reset\"";
    assert_eq!(ends(lost), [0, 10, 0]);
    // Nobody hangs up here, so what waits in vain is refused once it has waited long enough.
    assert_eq!(ends("[[rules]]\naction = \"hang\""), [0, 0, 10]);
    assert_eq!(ends("[[rules]]\naction = \"stall\"\nafter_bytes = 500"), [0, 0, 10]);
}

#[test]
fn a_rule_hits_only_those_who_come_in_its_time() {
    let some = "[[rules]]\naction = \"refuse\"\nduring = \"2s..5s\"";
    assert_eq!(ends(some), [7, 0, 3]);
}

#[test]
fn a_delay_makes_first_tokens_late_on_either_way() {
    // A prompt of 100 tokens is read within 20 ms; half a second is the objective.
    let missed = |rules: &str| {
        let run = played(rules);
        run.histories[0].answers.iter().filter(|(_, missed)| *missed).count()
    };
    assert_eq!(missed(""), 0);
    for direction in ["to-client", "to-server"] {
        let delay = |milliseconds| {
            let rule = format!("[[rules]]\ndirection = \"{direction}\"\naction = \"delay\"\n");
            missed(&format!("{rule}milliseconds = {milliseconds}"))
        };
        assert_eq!((delay(100), delay(600)), (0, 10), "{direction}");
    }
}
