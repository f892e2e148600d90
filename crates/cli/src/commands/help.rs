//! `flyball help`: the help of a command, or a page about what all commands have in common.

use clap::{Args, Command};
use schemars::JsonSchema;
use serde::Serialize;

use crate::help::{self, Length, TOPICS};
use crate::output::document::Block;
use crate::output::{Answer, Detail, Document, Exit, Failure, Printer};

/// Show the help of a command, or a page
///
/// Pages are environment, models, output, policies and units.
#[derive(Debug, Args)]
pub(crate) struct HelpArgs {
    /// Command, as in plan serve, or page; all commands if not set
    #[arg(value_name = "COMMAND|PAGE")]
    words: Vec<String>,
}

/// A page of help.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct HelpAnswer {
    /// What it is about.
    topic: String,
    /// The page, in Markdown; the help of a command is plain text.
    text: String,
}

impl Answer for HelpAnswer {
    const KIND: &'static str = "Help";

    fn view(&self, _: Detail) -> Document {
        Document { blocks: vec![Block::Page(self.text.clone())] }
    }
}

pub(crate) fn run(args: &HelpArgs, root: &Command, printer: &Printer) -> Result<Exit, Failure> {
    answer(&args.words, root).map(|answer| printer.answer(&answer))
}

fn answer(words: &[String], root: &Command) -> Result<HelpAnswer, Failure> {
    let topic = words.join(" ");
    if let Some(page) = TOPICS.iter().find(|page| page.name == topic) {
        return Ok(HelpAnswer { topic, text: page.text.to_owned() });
    }
    let mut dressed = help::command(root.clone(), Length::Long);
    let mut found = Some(&mut dressed);
    for word in words {
        found = found.and_then(|command| command.find_subcommand_mut(word));
    }
    match found {
        Some(command) => Ok(HelpAnswer { topic, text: command.render_long_help().to_string() }),
        None => Err(unknown(&topic, root)),
    }
}

fn unknown(topic: &str, root: &Command) -> Failure {
    let failure = Failure::new(Exit::Usage, format!("there is no help about {topic:?}"));
    let mut names: Vec<String> = TOPICS.iter().map(|page| page.name.to_owned()).collect();
    paths(&help::command(root.clone(), Length::Short), "", &mut names);
    let likeness = |name: &String| strsim::jaro_winkler(name, topic);
    let near = names.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    match near.filter(|near| likeness(near) > 0.75) {
        Some(near) => failure.hint(format!("did you mean: flyball help {near}")),
        None => failure.hint("flyball help lists the commands; pages are environment, models, output, policies, units"),
    }
}

fn paths(command: &Command, before: &str, names: &mut Vec<String>) {
    for below in command.get_subcommands() {
        let path = format!("{before}{}", below.get_name());
        paths(below, &format!("{path} "), names);
        names.push(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use crate::output::{answer_json, conforms};
    use clap::CommandFactory as _;

    fn page_of(text: &str) -> Result<HelpAnswer, Failure> {
        answer(&words(text), &Cli::command())
    }

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn commands_and_pages_are_found_and_others_are_guessed() {
        assert!(page_of("plan serve").unwrap().text.contains("Usage: flyball plan serve"));
        assert!(page_of("").unwrap().text.contains("Usage: flyball"));
        let units = page_of("units").unwrap();
        assert!(units.text.starts_with("# Units"));
        conforms("help", &answer_json(&units));
        let wrong = |text: &str| format!("{:?}", page_of(text).unwrap_err());
        assert!(wrong("plan sreve").contains("plan serve"));
        assert!(wrong("unit").contains("flyball help units"));
        assert!(wrong("zzz").contains("lists the commands"));
    }
}
