//! Whether the settings of an engine let a pod finish its requests before it ends. Pure.
//!
//! Flyball drains a pod before it goes, but it is not alone: nodes are emptied and Deployments rolled
//! without asking. Then what counts is what the engine does when it is told to end. vLLM stalls streams
//! at its default; llama-server cuts them at once; SGLang finishes them, if it is given the time.

use super::facts::Workload;
use flyball_engines::{Engine, Shutdown};

/// Answers that take longer than this are rare; where nothing is set, this is what is advised.
const ADVISED_SECONDS: i64 = 60;

/// The least that is taken for time to finish, where nobody said how long answers take: a pause of a few
/// seconds is there for endpoints to be told, not for answers to be written.
const SHORTEST_SECONDS: i64 = 30;

/// For the engine to end once its requests have.
pub(crate) const END_SECONDS: i64 = 15;

/// Kubernetes takes this where no grace period is set.
const DEFAULT_GRACE: i64 = 30;

/// Whether pods of a workload get the time to finish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Drain {
    /// They do.
    Finishes,
    /// They do not; what to set.
    Cuts(String),
    /// It is not known what the engine does.
    Unknown,
}

/// Looks at a workload of which only its image and arguments tell what it runs.
pub fn drain(workload: &Workload) -> Drain {
    let kind = kind_of(workload);
    kind.map_or(Drain::Unknown, |kind| Time::of(workload).judge(kind, &workload.args, None))
}

/// The engine that a workload runs, by its image and arguments.
pub(crate) fn kind_of(workload: &Workload) -> Option<Engine> {
    Engine::of_container(&workload.image, &workload.args)
}

/// Looks at a workload that runs this engine, whose requests may take so many seconds.
pub fn drain_of(kind: Engine, seconds: i64, workload: &Workload) -> Drain {
    Time::of(workload).judge(kind, &workload.args, Some(seconds))
}

/// What a pod gets once it is to end: the grace period, of which the pause is a part.
struct Time {
    grace: i64,
    pause: i64,
}

impl Time {
    fn of(workload: &Workload) -> Self {
        Self {
            grace: workload.grace_seconds.unwrap_or(DEFAULT_GRACE),
            pause: workload.pause_seconds.unwrap_or(0),
        }
    }

    fn judge(&self, kind: Engine, args: &[String], needs: Option<i64>) -> Drain {
        let title = kind.facts().title;
        match kind.facts().shutdown {
            Shutdown::Flag(flag) => self.with_flag(title, flag, args, needs),
            Shutdown::Finishes => self.finishes(title, needs),
            Shutdown::Cuts => self.cuts(title, needs),
        }
    }

    fn with_flag(&self, title: &str, flag: &str, args: &[String], needs: Option<i64>) -> Drain {
        let Self { grace, pause } = *self;
        let advised = needs.unwrap_or(ADVISED_SECONDS);
        match value(args, flag).unwrap_or(0) {
            ..=0 => {
                let least = pause + advised + END_SECONDS;
                Drain::Cuts(format!(
                    "{title} without {flag} stalls the streams of a pod that ends: add {flag} \
                     {advised} and set terminationGracePeriodSeconds to {} or more",
                    least.max(grace)
                ))
            }
            timeout if needs.is_some_and(|needs| timeout < needs) => Drain::Cuts(format!(
                "{flag} {timeout} ends before the {advised} s that a request may take: \
                 remove it, or lower drainSeconds"
            )),
            timeout if pause + timeout >= grace => Drain::Cuts(format!(
                "a grace period of {grace} s ends before a pause of {pause} s and {flag} {timeout} \
                 have passed: set terminationGracePeriodSeconds to {} or more",
                pause + timeout + END_SECONDS
            )),
            _ => Drain::Finishes,
        }
    }

    /// It answers what it has, however long that takes.
    fn finishes(&self, title: &str, needs: Option<i64>) -> Drain {
        let Self { grace, pause } = *self;
        if grace - pause >= needs.unwrap_or(SHORTEST_SECONDS) + END_SECONDS {
            return Drain::Finishes;
        }
        Drain::Cuts(format!(
            "{title} finishes its requests, but a grace period of {grace} s with a pause of {pause} s ends \
             before: set terminationGracePeriodSeconds to {} or more",
            pause + needs.unwrap_or(ADVISED_SECONDS) + END_SECONDS
        ))
    }

    fn cuts(&self, title: &str, needs: Option<i64>) -> Drain {
        if self.pause >= needs.unwrap_or(SHORTEST_SECONDS) && self.pause < self.grace {
            return Drain::Finishes;
        }
        let advised = needs.unwrap_or(ADVISED_SECONDS);
        Drain::Cuts(format!(
            "{title} cuts its streams on SIGTERM: set lifecycle.preStop.sleep.seconds to the time \
             of a long response, such as {advised}, and terminationGracePeriodSeconds to {} or \
             more",
            advised + END_SECONDS
        ))
    }
}

/// The whole number behind an option: `--a 5` or `--a=5`, alone or inside the text of a shell command. Of
/// several the last, as parsers have it.
fn value(args: &[String], option: &str) -> Option<i64> {
    let mut words = args.iter().flat_map(|arg| arg.split_whitespace());
    let mut last = None;
    while let Some(word) = words.next() {
        match word.strip_prefix(option) {
            Some("") => last = words.next()?.parse().ok(),
            Some(rest) if rest.starts_with('=') => last = rest[1..].parse().ok(),
            _ => {}
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(image: &str, args: &[&str], grace: i64, pause: Option<i64>) -> Workload {
        Workload {
            image: image.to_owned(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            grace_seconds: Some(grace),
            pause_seconds: pause,
            ..Workload::default()
        }
    }

    #[test]
    fn settings_that_cut_requests_are_told_with_what_to_set() {
        let vllm = "vllm/vllm-openai:v0.32.0";
        for (image, args, grace, pause, words) in [
            (vllm, &["--model", "m"][..], 30, None, "set terminationGracePeriodSeconds to 75 or"),
            (vllm, &["--shutdown-timeout", "0"], 120, Some(5), "PeriodSeconds to 120 or more"),
            (vllm, &["--shutdown-timeout=60"], 60, None, "PeriodSeconds to 75 or more"),
            (vllm, &["--shutdown-timeout", "50"], 60, Some(10), "ends before a pause of 10 s"),
            (
                "r/mine:1",
                &["sh", "-c", "exec vllm serve m"],
                90,
                None,
                "without --shutdown-timeout",
            ),
            ("ghcr.io/ggml-org/llama.cpp:server", &[], 30, None, "preStop.sleep.seconds"),
            ("r/own:1", &["/bin/llama-server", "-m", "x"], 30, Some(30), "llama.cpp cuts"),
            ("ggml-org/llama.cpp:server", &[], 140, Some(5), "the time of a long response"),
            ("lmsysorg/sglang:v0.5.23", &[], 30, None, "PeriodSeconds to 75 or more"),
            (vllm, &["--shutdown-timeout", "60", "--shutdown-timeout=0"], 90, None, "stalls"),
        ] {
            let Drain::Cuts(hint) = drain(&workload(image, args, grace, pause)) else {
                panic!("{image} {args:?}")
            };
            assert!(hint.contains(words), "{hint}");
        }
    }

    #[test]
    fn settings_that_let_requests_finish_are_fine() {
        let vllm = "vllm/vllm-openai:v0.32.0";
        for (image, args, grace, pause) in [
            (vllm, &["--shutdown-timeout", "60"][..], 75, None),
            (vllm, &["--shutdown-timeout=60"], 90, Some(5)),
            ("r/mine:1", &["sh", "-c", "vllm serve m --shutdown-timeout 20"], 30, None),
            ("r/own:1", &["/bin/llama-server"], 75, Some(60)),
            ("r/own:1", &["python3", "-m", "sglang.launch_server"], 75, Some(5)),
        ] {
            assert_eq!(drain(&workload(image, args, grace, pause)), Drain::Finishes, "{args:?}");
        }
    }

    #[test]
    fn where_it_is_known_how_long_a_request_may_take_it_gets_as_long() {
        let drain_with = |kind, args: &[&str], grace, pause| {
            drain_of(kind, 120, &workload("r/own:1", args, grace, pause))
        };
        let short = "--shutdown-timeout 60 ends before the 120 s";
        for (found, words) in [
            (drain_with(Engine::Vllm, &["--shutdown-timeout", "60"], 300, None), short),
            (drain_with(Engine::LlamaCpp, &[], 140, Some(60)), "such as 120"),
            (drain_with(Engine::Sglang, &[], 120, None), "PeriodSeconds to 135 or more"),
        ] {
            let Drain::Cuts(hint) = found else { panic!("{words}") };
            assert!(hint.contains(words), "{hint}");
        }
        for fine in [
            drain_with(Engine::Vllm, &["--shutdown-timeout", "120"], 140, Some(5)),
            drain_with(Engine::LlamaCpp, &[], 140, Some(125)),
            drain_with(Engine::Sglang, &[], 140, Some(5)),
        ] {
            assert_eq!(fine, Drain::Finishes);
        }
    }

    #[test]
    fn of_other_engines_nothing_is_said() {
        assert_eq!(drain(&workload("r/own:1", &["serve"], 1, None)), Drain::Unknown);
    }
}
