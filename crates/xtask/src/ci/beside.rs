//! Steps that run beside the stories, which mostly wait: what they leave of two cores is enough for lints and tests.
//!
//! They are one process with the kernel's idle policy, so that a story never waits for them. Stories beside a build
//! of ordinary priority failed; an API server that answers late looks like one that is gone. What they say is held
//! back until they are over: two streams of lines in one would be of no use to anybody.

use super::steps::{Outcome, STEPS};
use super::{Finished, errors};
use crate::process;
use anyhow::{Context as _, Result, ensure};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// What the summary calls them.
const NAME: &str = "beside-stories";

/// Those steps, while they run.
pub(super) struct Beside {
    child: Child,
    log: PathBuf,
    began: Instant,
}

impl Beside {
    pub(super) fn begin(root: &Path) -> Result<Self> {
        let names: Vec<&str> =
            STEPS.iter().filter(|step| step.is_beside_stories).map(|step| step.name).collect();
        let log = std::env::temp_dir().join(format!("flyball-ci-{}.log", std::process::id()));
        let file = File::create(&log).with_context(|| format!("create {}", log.display()))?;
        println!("==== {} run beside the stories; their output follows those", names.join(", "));
        let mut command = Command::new("chrt");
        command.args(["--idle", "0"]).arg(std::env::current_exe()?);
        command.args(["ci", "--only", &names.join(",")]);
        command.env("CARGO_MANIFEST_DIR", root.join("crates/xtask"));
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let child = process::apart(&mut command).spawn();
        let child =
            child.context("could not start `chrt`\n\nhint: Debian's package `util-linux`")?;
        Ok(Self { child, log, began: Instant::now() })
    }

    /// Waits for them and prints what they said.
    pub(super) fn end(mut self) -> Finished {
        let outcome = self.wait();
        if let Err(error) = &outcome {
            println!("{NAME} failed: {}", errors::in_words(error));
        }
        Finished { name: NAME, took: self.began.elapsed(), outcome }
    }

    fn wait(&mut self) -> Result<Outcome> {
        let status = self.child.wait()?;
        println!("==== {NAME}");
        print!("{}", std::fs::read_to_string(&self.log)?);
        ensure!(status.success(), "a step beside the stories failed; its own summary says which");
        Ok(Outcome::Done)
    }
}

impl Drop for Beside {
    /// Who does not wait for them wants no answer. After `end` there is nothing left to end.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.log);
    }
}
