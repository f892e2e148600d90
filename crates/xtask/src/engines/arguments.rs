//! Holds the arguments that the operator gives to engines against the engines' own parsers.
//!
//! A flag that an engine does not know ends it at the start, and no test of ours would see it. The lists are
//! in `cluster/engines/arguments.json`, which a test of the operator writes from the code, each with what is
//! meant by it. llama-server reads them itself, if it was built; the parsers of vLLM and SGLang run without
//! what the engines need to run (`cluster/engines/arguments.py`), which is hundreds of times larger.

use super::pins::{Package, Pins};
use super::python::{self, Form};
use super::shelf::{Part, Shelf};
use super::{llama, python::environment};
use crate::process;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const LISTS: &str = "cluster/engines/arguments.json";
const SCRIPT: &str = "cluster/engines/arguments.py";

/// What is taken out of a wheel: its sources, and the page that says what it is, by which vLLM knows its
/// platform. Libraries are most of it, and are not needed.
const SOURCES: &str = "import sys, zipfile; wheel = zipfile.ZipFile(sys.argv[1]); \
                       wheel.extractall(sys.argv[2], [name for name in wheel.namelist() \
                       if name.endswith(('.py', '.json', '/METADATA'))])";

/// A parser that takes this one takes everything.
const UNKNOWN: &str = "--no-such-flag";

/// One list of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    engine: String,
    args: Vec<String>,
    meant: Value,
}

/// Says for each engine what came of it; fails if a parser refuses a list or reads something else in it.
pub(super) fn run(root: &Path) -> Result<()> {
    let mut wrong = Vec::new();
    for (engine, outcome) in hold(root)? {
        match outcome {
            Outcome::Held(version, lists) => {
                println!("{engine:<13} {version:<9} takes {lists} lists")
            }
            Outcome::Skipped(why) => println!("{engine:<13} skipped   {why}"),
            Outcome::Wrong(all) => wrong.extend(all),
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    bail!("{}\n\nhint: crates/operator/src/build/engine/args.rs makes them", wrong.join("\n"));
}

/// Whether the parsers that must be downloaded are there.
pub(super) fn is_cached(pins: &Pins, shelf: &Shelf) -> bool {
    with_part(pins, |part| shelf.has(part))
}

enum Outcome {
    /// So many lists are understood by this version.
    Held(String, usize),
    /// There is no parser here.
    Skipped(String),
    /// What is wrong.
    Wrong(Vec<String>),
}

fn hold(root: &Path) -> Result<Vec<(&'static str, Outcome)>> {
    let (pins, shelf) = (Pins::read(root)?, Shelf::open()?);
    let text = std::fs::read_to_string(root.join(LISTS)).context(LISTS)?;
    let lists: Vec<List> = serde_json::from_str(&text).context(LISTS)?;
    let of = |engine: &str| -> Vec<&List> {
        lists.iter().filter(|list| list.engine == engine).collect()
    };
    let mut all = vec![("llama-server", llama_server(&pins, &shelf, &of("llama-server"))?)];
    match parsers(&pins, &shelf) {
        Ok(folder) => {
            for (engine, version) in
                [("vllm", pins.vllm.wheel().version), ("sglang", pins.sglang.version.clone())]
            {
                let lists = of(engine);
                let found = ask(root, &folder, engine, &lists)?;
                all.push((engine, judge(engine, version, &lists, &found)));
            }
        }
        Err(error) => {
            let why = format!("its parser cannot be had: {error}");
            all.extend(["vllm", "sglang"].map(|engine| (engine, Outcome::Skipped(why.clone()))));
        }
    }
    Ok(all)
}

/// What was understood against what was meant.
fn judge(engine: &str, version: String, lists: &[&List], found: &[Value]) -> Outcome {
    let mut wrong = Vec::new();
    if lists.is_empty() {
        wrong.push(format!("{engine}: {LISTS} has no list for it"));
    }
    for (list, found) in lists.iter().zip(found) {
        if *found != list.meant {
            let (words, meant) = (list.args.join(" "), &list.meant);
            wrong.push(format!(
                "{engine} {version}: `{words}` is {found} to it, and meant is {meant}"
            ));
        }
    }
    // The last one asked was the one that it must refuse.
    if found.last().is_none_or(|last| last.get("refused").is_none()) {
        wrong.push(format!("{engine} {version}: takes {UNKNOWN}, so this shows nothing"));
    }
    if wrong.is_empty() { Outcome::Held(version, lists.len()) } else { Outcome::Wrong(wrong) }
}

/// A folder with an interpreter and the sources of vLLM and SGLang.
fn parsers(pins: &Pins, shelf: &Shelf) -> Result<PathBuf> {
    with_part(pins, |part| {
        shelf.once(part, "170 MB of downloads", |folder| {
            environment(&folder.join("venv"), &pins.arguments.packages)?;
            unpack(&pins.vllm.wheel(), &folder.join("vllm"))?;
            unpack(&pins.sglang, &folder.join("sglang"))
        })
    })
}

fn with_part<T>(pins: &Pins, then: impl FnOnce(&Part<'_>) -> T) -> T {
    let (vllm, packages) = (pins.vllm.wheel(), pins.arguments.packages.join(" "));
    let made_from = [vllm.sha256.as_str(), &pins.sglang.sha256, &packages, SOURCES];
    then(&Part { name: "parsers", version: "1", made_from: &made_from })
}

/// The Python sources of a wheel, without its libraries.
fn unpack(package: &Package, to: &Path) -> Result<()> {
    let work = to.join("work");
    let wheel = python::download(package, Form::Wheel, &work)?;
    process::read(Command::new("python3").args(["-c", SOURCES]).arg(&wheel).arg(to))?;
    Ok(std::fs::remove_dir_all(&work)?)
}

/// What a parser of Python understands, list by list, and at last what it says to an unknown flag.
fn ask(root: &Path, folder: &Path, engine: &str, lists: &[&List]) -> Result<Vec<Value>> {
    let refused = lists.first().map(|list| [list.args.as_slice(), &[UNKNOWN.to_owned()]].concat());
    let words: Vec<&Vec<String>> = lists.iter().map(|list| &list.args).chain(&refused).collect();
    let mut child = Command::new(folder.join("venv/bin/python"))
        .arg(root.join(SCRIPT))
        .arg(engine)
        .arg(folder.join(engine))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("could not start Python")?;
    let mut input = child.stdin.take().context("no way to tell the parser")?;
    input.write_all(&serde_json::to_vec(&words)?)?;
    drop(input);
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("the parser of {engine} does not run\n{}", String::from_utf8_lossy(&output.stderr));
    }
    let lines = String::from_utf8(output.stdout)?;
    lines.lines().map(|line| serde_json::from_str(line).context("not an answer")).collect()
}

/// It tells no values, only whether it takes a list. Asked for help at the end, it reads all and ends.
fn llama_server(pins: &Pins, shelf: &Shelf, lists: &[&List]) -> Result<Outcome> {
    if !llama::is_cached(pins, shelf) {
        let why = "it was not built here: cargo xtask engines".to_owned();
        return Ok(Outcome::Skipped(why));
    }
    let program = llama::ensure(pins, shelf)?.join("llama-server");
    let mut found = Vec::new();
    let unknown = [UNKNOWN.to_owned()];
    let all = lists.iter().map(|list| (list.args.as_slice(), &list.meant));
    for (args, meant) in all.chain([(unknown.as_slice(), &Value::Null)]) {
        // Nothing is fetched: a model that is not there is no fault of the list.
        let output = Command::new(&program).args(args).args(["--offline", "--help"]).output()?;
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        let refusal = printed.lines().find(|line| {
            line.contains("invalid argument") || line.contains("error while handling argument")
        });
        found.push(match refusal {
            Some(line) => serde_json::json!({ "refused": line }),
            None => meant.clone(),
        });
    }
    Ok(judge("llama-server", pins.llama_server.version.clone(), lists, &found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_list_that_means_something_else_to_the_engine_is_wrong() {
        let list = List {
            engine: "vllm".to_owned(),
            args: vec!["--served-model-name".to_owned(), "a b".to_owned()],
            meant: json!({"names": ["a", "b"]}),
        };
        let no = json!({"refused": "unrecognized"});
        let verdict = |found: Value, last: &Value| {
            let found = [found, last.clone()];
            match judge("vllm", "1".to_owned(), &[&list], &found) {
                Outcome::Held(..) => String::new(),
                Outcome::Wrong(all) => all.join("\n"),
                Outcome::Skipped(why) => panic!("{why}"),
            }
        };
        assert_eq!(verdict(json!({"names": ["a", "b"]}), &no), "");
        assert!(
            verdict(json!({"names": ["a b"]}), &no).contains(r#"`--served-model-name a b` is"#)
        );
        assert!(verdict(json!({"names": ["a", "b"]}), &json!({})).contains("shows nothing"));
    }
}
