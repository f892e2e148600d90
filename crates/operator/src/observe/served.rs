//! Which model a workload serves, by the arguments of its engine.

use super::drain::kind_of;
use super::facts::Workload;
use flyball_perf::models;

/// The known model that a workload of others serves on so many accelerators. Nothing where its arguments do not say
/// it, or say that it is served otherwise than it was published.
pub(super) fn model(workload: &Workload, gpus: u32) -> Option<String> {
    let launch = &kind_of(workload)?.facts().launch;
    if !launch.takes_names {
        return None;
    }
    // Of `sh -c "vllm serve ..."` the words are in one argument.
    let words: Vec<&str> = workload.args.iter().flat_map(|arg| arg.split_whitespace()).collect();
    if words.iter().any(|word| launch.alters.iter().any(|flag| word.starts_with(flag))) {
        return None;
    }
    let tensor = after(&words, launch.tensor).map_or(Some(1), |count| count.parse().ok())?;
    let name = after(&words, launch.model).filter(|name| models::config(name).is_some())?;
    (tensor == gpus.max(1)).then(|| name.to_owned())
}

/// The value of the first of these flags that is there.
fn after<'a>(words: &[&'a str], flags: &[&str]) -> Option<&'a str> {
    flags.iter().find_map(|flag| {
        let mut rest = words.iter().skip_while(|word| {
            *word != flag && !word.strip_prefix(flag).is_some_and(|rest| rest.starts_with('='))
        });
        let found = rest.next()?;
        found.split_once('=').map(|(_, value)| value).or_else(|| rest.next().copied())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(image: &str, args: &[&str], gpus: u32) -> Option<String> {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        model(&Workload { image: image.to_owned(), args, ..Workload::default() }, gpus)
    }

    const VLLM: &str = "vllm/vllm-openai:v0.32.0";

    #[test]
    fn arguments_name_the_model() {
        let qwen = Some("Qwen/Qwen3-32B".to_owned());
        assert_eq!(served(VLLM, &["--model", "Qwen/Qwen3-32B"], 1), qwen);
        assert_eq!(served(VLLM, &["--port=8000", "--model=Qwen/Qwen3-32B"], 0), qwen);
        let spread = ["sh", "-c", "exec vllm serve Qwen/Qwen3-32B --tensor-parallel-size 2"];
        assert_eq!(served("r/own:1", &spread, 2), qwen);
        let sglang = ["-m", "sglang.launch_server", "--model-path", "Qwen/Qwen3-32B", "--tp=4"];
        assert_eq!(served("r/own:1", &sglang, 4), qwen);
    }

    #[test]
    fn what_is_unknown_or_served_otherwise_is_not_predicted() {
        assert_eq!(served(VLLM, &["--model", "/models/mine"], 1), None);
        assert_eq!(served(VLLM, &["--model"], 1), None);
        assert_eq!(served("r/own:1", &["--model", "Qwen/Qwen3-32B"], 1), None, "which engine?");
        assert_eq!(served(VLLM, &["--model", "Qwen/Qwen3-32B", "--quantization=fp8"], 1), None);
        let spread = ["--model", "Qwen/Qwen3-32B", "--tensor-parallel-size", "2"];
        assert_eq!(served(VLLM, &spread, 1), None, "spread otherwise than it was stated");
        assert_eq!(served("llama.cpp:server", &["--model", "Qwen/Qwen3-32B"], 1), None);
    }
}
