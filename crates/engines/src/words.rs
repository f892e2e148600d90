//! Reads the command line of an engine that somebody else wrote.

use crate::LaunchFlags;

impl LaunchFlags {
    /// The names by which an engine with these arguments knows its model. None where they do not say it, or where any
    /// name will do.
    pub fn names_in(&self, args: &[String]) -> Vec<String> {
        if self.served.is_empty() {
            return Vec::new();
        }
        let words = words(args);
        let mut names = listed_after(&words, self.served);
        if names.is_empty() {
            names.extend(listed_after(&words, self.model).first());
        }
        // What only a shell knows is not a name.
        let known = |name: &&str| !name.contains(['$', '"', '\'']);
        names.into_iter().filter(known).map(str::to_owned).collect()
    }
}

/// The words of arguments. Those of `sh -c "vllm serve ..."` are in one; otherwise a space is a part of a value.
fn words(args: &[String]) -> Vec<&str> {
    let mut words = Vec::new();
    let mut is_script = false;
    for arg in args {
        if is_script {
            words.extend(arg.split_whitespace());
        } else {
            words.push(arg.as_str());
        }
        let letters = arg.strip_prefix('-').unwrap_or_default();
        is_script = letters.ends_with('c') && letters.bytes().all(|b| b.is_ascii_lowercase());
    }
    words
}

/// All words behind the last of these flags, up to the next flag: of several, parsers take the last.
fn listed_after<'a>(words: &[&'a str], flags: &[&str]) -> Vec<&'a str> {
    let is_word = |word: &str, flag: &str| {
        word.strip_prefix(flag).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    let is_flag = |word: &&str| flags.iter().any(|flag| is_word(word, flag));
    let Some(last) = words.iter().rposition(is_flag) else { return Vec::new() };
    match words[last].split_once('=') {
        Some((_, value)) => vec![value],
        None => words[last + 1..].iter().copied().take_while(|w| !w.starts_with('-')).collect(),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Engine, LaunchRequest};

    fn names(engine: Engine, args: &[&str]) -> Vec<String> {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        engine.facts().launch.names_in(&args)
    }

    #[test]
    fn names_are_those_that_the_engine_answers_to() {
        let of = |args: &[&str]| names(Engine::Vllm, args);
        assert_eq!(of(&["--model", "org/m"]), ["org/m"]);
        assert_eq!(of(&["--model=org/m", "--served-model-name=a"]), ["a"]);
        assert_eq!(of(&["--served-model-name", "a", "b", "--port", "1"]), ["a", "b"]);
        assert_eq!(of(&["--served-model-name=a", "--served-model-name", "b"]), ["b"], "the last");
        assert_eq!(of(&["--served-model-name", "my model"]), ["my model"]);
        assert_eq!(of(&["sh", "-c", "exec vllm serve org/m --port 1"]), ["org/m"]);
        assert_eq!(of(&["bash", "-lc", "vllm serve m --served-model-name a b"]), ["a", "b"]);
        assert_eq!(of(&["--model", "$MODEL"]), [""; 0], "only a shell knows it");
        assert_eq!(of(&["--served-model-name"]), [""; 0]);
        assert_eq!(of(&["emulate", "--served-name=a"]), [""; 0]);
        assert_eq!(names(Engine::LlamaCpp, &["--model", "m.gguf"]), [""; 0], "any name will do");
    }

    #[test]
    fn what_flyball_writes_is_read_again() {
        let both = ["chat".to_owned(), "my model".to_owned()];
        for engine in Engine::ALL {
            let launch = &engine.facts().launch;
            let request = LaunchRequest {
                model: "org/m",
                names: &both,
                gpus: 1,
                port: 8000,
                drain_seconds: 1,
            };
            let listed = launch.names_in(&(launch.write)(&request).args);
            let expected: &[String] = match engine {
                Engine::Vllm => &both,
                Engine::Sglang | Engine::TensorRtLlm => &both[..1],
                Engine::LlamaCpp => &[],
            };
            assert_eq!(listed, expected, "{engine}");
        }
    }
}
