//! The public models whose shapes come with the program, so that it answers without a download.

/// Embeds one file of `catalog/models` per name.
macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../catalog/models/", $name, ".json")))),*]
    };
}

/// Name and `config.json` of every shipped model, by name.
const SHIPPED: &[(&str, &str)] = shipped![
    "codellama-34b",
    "deepseek-v3",
    "deepseek-v3.2",
    "gemma-2-27b",
    "gemma-2-9b",
    "gemma-2b",
    "gemma-3-1b",
    "glm-5",
    "glm-5-fp8",
    "gpt-oss-120b",
    "gpt-oss-20b",
    "kimi-k2",
    "kimi-k2.5",
    "llama-2-13b",
    "llama-2-70b",
    "llama-2-7b",
    "llama-3.1-405b",
    "llama-3.1-70b",
    "llama-3.1-8b",
    "llama-3.2-1b",
    "llama-3.2-3b",
    "llama-4-maverick",
    "llama-4-scout",
    "minimax-m2.5",
    "mistral-7b-v0.1",
    "mistral-nemo-12b",
    "mixtral-8x22b",
    "mixtral-8x7b",
    "phi-3-mini",
    "phi-4",
    "qwen2.5-7b",
    "qwen3-0.6b",
    "qwen3-1.7b",
    "qwen3-14b",
    "qwen3-235b-a22b",
    "qwen3-235b-a22b-fp8",
    "qwen3-30b-a3b",
    "qwen3-32b",
    "qwen3-32b-fp8",
    "qwen3-4b",
    "qwen3-8b",
    "qwen3-coder-480b-a35b",
    "qwen3.5-27b",
    "qwen3.5-397b-a17b",
    "yi-34b",
];

/// The names of the shipped models.
pub fn names() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|(name, _)| *name)
}

/// The `config.json` of a shipped model. An organisation in front, the case, and endings that do
/// not change the shape (`-Instruct`, `-hf`) may differ.
pub fn config(name: &str) -> Option<&'static str> {
    let wanted = plain(name);
    SHIPPED.iter().find(|(shipped, _)| *shipped == wanted).map(|(_, config)| *config)
}

/// The name under which the model of a shipped `config.json` is published.
pub fn published_name(config: &'static str) -> Option<&'static str> {
    let (_, rest) = config.split_once("\"_name_or_path\": \"")?;
    rest.split('"').next()
}

fn plain(name: &str) -> String {
    let name = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
    let mut name = name.strip_prefix("meta-").unwrap_or(&name);
    for ending in ["-hf", "-v0.1", "-instruct", "-chat", "-base", "-it"] {
        // Mistral 7B's versions differ in shape, so a name that is shipped whole stays whole.
        if SHIPPED.iter().all(|(shipped, _)| *shipped != name) {
            name = name.strip_suffix(ending).unwrap_or(name);
        }
    }
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_catalogue_is_shipped() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../catalog/models");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter_map(|file| file.strip_suffix(".json").map(str::to_owned))
            .collect();
        files.sort();
        assert_eq!(names().collect::<Vec<_>>(), files);
    }

    #[test]
    fn every_model_has_the_name_it_is_published_under() {
        for (name, config) in SHIPPED {
            let published = published_name(config).unwrap_or_else(|| panic!("{name}"));
            assert!(published.contains('/'), "{name}: {published}");
        }
    }

    #[test]
    fn names_as_people_write_them_are_found() {
        for (written, shipped) in [
            ("Qwen/Qwen3-32B-FP8", "qwen3-32b-fp8"),
            ("meta-llama/Meta-Llama-3.1-8B", "llama-3.1-8b"),
            ("meta-llama/Llama-2-70b-chat-hf", "llama-2-70b"),
            ("mistralai/Mistral-7B-v0.1", "mistral-7b-v0.1"),
            ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b"),
        ] {
            assert_eq!(plain(written), shipped);
            assert!(config(written).is_some(), "{written}");
        }
        assert!(config("my-own-model").is_none());
    }
}
