//! `flyball models`: which models can be planned by name, and all about one of them.

use clap::Args;
use flyball_perf::architecture::Architecture;
use flyball_perf::models::{self, ListedModel};
use schemars::JsonSchema;
use serde::Serialize;

use crate::model;
use crate::output::document::{Block, Column, Document, Row, Table};
use crate::output::{Answer, Detail, Exit, Failure, Printer, plural};

/// List models that can be planned by name, or show one in detail
///
/// The shapes are built in and need no network. Hugging Face ids work as names, also those of
/// models with the same shape; endings such as -FP8, -AWQ or -NVFP4 choose the format of the
/// weights.
#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    /// Only models with all of these words in a name; a full name shows one
    #[arg(value_name = "WORDS")]
    words: Vec<String>,
}

/// Models whose shapes come with the program.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ModelList {
    models: Vec<ModelEntry>,
}

/// One model.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ModelEntry {
    /// What to type.
    name: String,
    /// The id under which it is published.
    published: String,
    /// Ids of others that have the same shape.
    aliases: Vec<String>,
    /// `model_type` of its text part.
    family: String,
    /// All weights of the text part.
    parameters: u64,
    /// Weights that one token passes through.
    active_parameters: u64,
    /// Weights of the image or audio encoder in front of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    encoder_parameters: Option<u64>,
    /// Bytes of all weights of the text part in the formats they are stored in.
    weight_bytes: u64,
    /// Longest sequence it was made for; absent where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_context: Option<u32>,
    /// Narrowest format of the layers' matrices.
    dtype: &'static str,
    /// Where the shape is from.
    source: String,
}

pub(crate) fn run(args: &ModelsArgs, printer: &Printer) -> Result<Exit, Failure> {
    Ok(printer.answer(&list(&args.words)?))
}

fn list(words: &[String]) -> Result<ModelList, Failure> {
    if let [word] = words
        && let Some(found) = models::find(word)
    {
        let one = entry(word, found.known, &found.config())?;
        return Ok(ModelList { models: vec![one] });
    }
    let folded_words: Vec<String> = words.iter().map(|word| folded(word)).collect();
    let found: Vec<ModelEntry> = models::all()
        .iter()
        .map(|known| entry(known.name, known, known.config))
        .filter(|entry| entry.as_ref().map_or(true, |entry| entry.has(&folded_words)))
        .collect::<Result<_, _>>()?;
    if found.is_empty() {
        return Err(model::unknown(&words.join(" ")));
    }
    Ok(ModelList { models: found })
}

fn entry(name: &str, known: &ListedModel, config: &str) -> Result<ModelEntry, Failure> {
    let architecture = Architecture::from_config(config)
        .map_err(|error| model::not_understood(name, &error.problems))?;
    let parameters = architecture.parameters();
    Ok(ModelEntry {
        name: name.to_owned(),
        published: known.published.clone(),
        aliases: known.aliases.clone(),
        family: architecture.family.clone(),
        parameters: parameters.total(),
        active_parameters: parameters.active(),
        encoder_parameters: architecture.encoder,
        weight_bytes: architecture.weight_bytes() as u64,
        max_context: Some(architecture.max_context).filter(|tokens| *tokens > 0),
        dtype: architecture.stored.narrowest().name(),
        source: known.source.clone(),
    })
}

/// Letters and digits in small letters: `Qwen3-VL` is found by `qwen3vl` and by `qwen3 vl`.
fn folded(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

impl ModelEntry {
    fn has(&self, words: &[String]) -> bool {
        let own = [&self.name, &self.published, &self.family];
        let spellings: Vec<String> =
            own.into_iter().chain(&self.aliases).map(|name| folded(name)).collect();
        spellings.iter().any(|name| words.iter().all(|word| name.contains(word)))
    }

    fn active(&self) -> String {
        match self.active_parameters < self.parameters {
            true => billions(self.active_parameters),
            false => "all".to_owned(),
        }
    }

    fn context(&self) -> String {
        self.max_context.map_or_else(|| "-".to_owned(), |tokens| tokens.to_string())
    }

    fn facts(&self) -> Vec<(String, String)> {
        let encoder = self.encoder_parameters.map(billions).unwrap_or_default();
        [
            ("published as", self.published.clone()),
            ("family", self.family.clone()),
            ("parameters", billions(self.parameters)),
            ("active", self.active()),
            ("encoder", encoder),
            ("weights", format!("{:.1} GB, {}", self.weight_bytes as f64 / 1e9, self.dtype)),
            ("context", format!("{} tokens", self.context())),
            ("same shape", self.aliases.join(", ")),
            ("source", self.source.clone()),
        ]
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
    }
}

fn billions(count: u64) -> String {
    let digits = if count < 10_000_000_000 { 2 } else { 1 };
    format!("{:.digits$} B", count as f64 / 1e9)
}

impl Answer for ModelList {
    const KIND: &'static str = "ModelList";

    fn view(&self, _: Detail) -> Document {
        let mut document = Document::new();
        if let [one] = self.models.as_slice() {
            document.push(Block::Heading(one.name.clone()));
            document.push(Block::Facts(one.facts()));
            document.push(Block::Gap);
            document.push(Block::Line(format!("more: flyball fit {}", one.name)));
            return document;
        }
        let mut table = Table::new(vec![
            Column::left("NAME"),
            Column::left("FAMILY"),
            Column::right("WEIGHTS"),
            Column::right("ACTIVE"),
            Column::right("CONTEXT"),
            Column::left("FORMAT"),
            Column::right("ALIASES"),
        ]);
        for model in &self.models {
            table.rows.push(Row::new([
                model.name.clone(),
                model.family.clone(),
                billions(model.parameters),
                model.active(),
                model.context(),
                model.dtype.to_owned(),
                model.aliases.len().to_string(),
            ]));
        }
        let aliases: usize = self.models.iter().map(|model| model.aliases.len()).sum();
        let count = plural(self.models.len(), "model");
        document.push(Block::Table(table));
        document.push(Block::Gap);
        document.push(Block::Line(format!(
            "{count}, {aliases} more ids with the same shapes     more: flyball models NAME"
        )));
        document
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{answer_json, conforms};

    fn names(words: &[&str]) -> Vec<String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        list(&words).expect("some").models.into_iter().map(|model| model.name).collect()
    }

    #[test]
    fn json_has_the_shape_of_its_schema() {
        conforms("models", &answer_json(&list(&[]).expect("all")));
    }

    #[test]
    fn words_narrow_the_list_and_a_name_shows_one() {
        assert_eq!(names(&[]).len(), models::all().len());
        assert_eq!(names(&["gpt-oss"]), ["gpt-oss-120b", "gpt-oss-20b"]);
        assert_eq!(names(&["Llama-3.3", "70b"]), ["llama-3.1-70b"], "by an alias");
        assert_eq!(names(&["qwen3-32b"]), ["qwen3-32b"], "not its FP8 sibling");
        assert_eq!(names(&["Qwen3", "VL", "a22b"]), ["qwen3-vl-235b-a22b"]);
        let stored = list(&["nvidia/Llama-3.3-70B-Instruct-FP4".to_owned()]).expect("one");
        assert_eq!(stored.models[0].dtype, "nvfp4");
        assert_eq!(list(&["zzz".to_owned()]).expect_err("none").exit, Exit::Usage);
    }
}
