//! Whether the settings of an engine let a pod finish its requests before it ends. Pure.
//!
//! Flyball drains a pod before it goes, but it is not alone: nodes are emptied and Deployments rolled
//! without asking. Then what counts is what the engine does when it is told to end. vLLM stalls streams
//! at its default; llama-server cuts them at once. What Flyball makes itself has the right settings.

use crate::observe::Workload;

/// Answers that take longer than this are rare; where nothing is set, this is what is advised.
const ADVISED_SECONDS: i64 = 60;

/// For the engine to end once its requests have.
const END_SECONDS: i64 = 15;

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

/// Looks at a workload that somebody else made.
pub fn drain(workload: &Workload) -> Drain {
    let names = |word: &str| {
        let image = workload.image.rsplit('/').next().unwrap_or_default();
        workload.image.contains(&format!("{word}/"))
            || image.contains(word)
            || workload.args.iter().any(|arg| arg.contains(word))
    };
    let grace = workload.grace_seconds.unwrap_or(DEFAULT_GRACE);
    let pause = workload.pause_seconds.unwrap_or(0);
    if names("vllm") {
        vllm(&workload.args, grace, pause)
    } else if names("llama-server") || names("llama.cpp") {
        llama(grace, pause)
    } else {
        Drain::Unknown
    }
}

fn vllm(args: &[String], grace: i64, pause: i64) -> Drain {
    match value(args, "--shutdown-timeout").unwrap_or(0) {
        ..=0 => {
            let least = pause + ADVISED_SECONDS + END_SECONDS;
            Drain::Cuts(format!(
                "vLLM without --shutdown-timeout stalls the streams of a pod that ends: add \
                 --shutdown-timeout {ADVISED_SECONDS} and set terminationGracePeriodSeconds to {} or more",
                least.max(grace)
            ))
        }
        timeout if pause + timeout >= grace => Drain::Cuts(format!(
            "a grace period of {grace} s ends before a pause of {pause} s and --shutdown-timeout \
             {timeout} have passed: set terminationGracePeriodSeconds to {} or more",
            pause + timeout + END_SECONDS
        )),
        _ => Drain::Finishes,
    }
}

fn llama(grace: i64, pause: i64) -> Drain {
    if pause > 0 && pause < grace {
        return Drain::Finishes;
    }
    Drain::Cuts(format!(
        "llama-server cuts its streams when it is told to end: set lifecycle.preStop.sleep.seconds to as \
         long as an answer takes, such as {ADVISED_SECONDS}, and terminationGracePeriodSeconds to {} or more",
        ADVISED_SECONDS + END_SECONDS
    ))
}

/// The whole number behind an option: `--a 5` or `--a=5`, alone or inside the text of a shell command.
fn value(args: &[String], option: &str) -> Option<i64> {
    let mut words = args.iter().flat_map(|arg| arg.split_whitespace());
    while let Some(word) = words.next() {
        match word.strip_prefix(option) {
            Some("") => return words.next()?.parse().ok(),
            Some(rest) if rest.starts_with('=') => return rest[1..].parse().ok(),
            _ => {}
        }
    }
    None
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
            ("r/own:1", &["/bin/llama-server", "-m", "x"], 30, Some(30), "llama-server cuts"),
        ] {
            let Drain::Cuts(said) = drain(&workload(image, args, grace, pause)) else {
                panic!("{image} {args:?}")
            };
            assert!(said.contains(words), "{said}");
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
        ] {
            assert_eq!(drain(&workload(image, args, grace, pause)), Drain::Finishes, "{args:?}");
        }
    }

    #[test]
    fn of_other_engines_nothing_is_said() {
        assert_eq!(drain(&workload("r/own:1", &["serve"], 1, None)), Drain::Unknown);
    }
}
