//! Running other programs: one place that waits, captures and says what failed.

use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::io::Write;
use std::process::{Command, Output, Stdio};

/// Runs to the end with the caller's output streams; an error names the command line.
pub fn run(command: &mut Command) -> Result<()> {
    let line = line_of(command);
    let status = apart(command).status().with_context(|| format!("could not start `{line}`"))?;
    if !status.success() {
        bail!("`{line}` ended with {status}");
    }
    Ok(())
}

/// Runs to the end and returns standard output; an error carries the end of standard error.
pub fn read(command: &mut Command) -> Result<String> {
    let line = line_of(command);
    let output = apart(command)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("could not start `{line}`"))?;
    text_of(&line, output)
}

/// Runs with `input` on standard input and returns standard output.
pub fn feed(command: &mut Command, input: &str) -> Result<String> {
    let line = line_of(command);
    let mut child = apart(command)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("could not start `{line}`"))?;
    let mut stdin = child.stdin.take().context("standard input was not piped")?;
    let input = input.to_owned();
    // Written from a thread: a program that answers while it reads would otherwise fill both pipes.
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output()?;
    // A broken pipe means the program stopped reading; its own exit status says why.
    let _ = writer.join();
    text_of(&line, output)
}

/// Without what cargo says about xtask's own package to whom it runs: `ring`'s build script looks at
/// `CARGO_PKG_NAME`, so that a cargo that hears of it builds ring, TLS and the Kubernetes client anew, and
/// the next one that does not hear of it once more.
///
/// What the caller says of a package stays: [`crate::checkout::root`] of who is run looks at it.
pub fn apart(command: &mut Command) -> &mut Command {
    let stated: Vec<OsString> = command.get_envs().map(|(name, _)| name.to_owned()).collect();
    std::env::vars_os()
        .filter(|(name, _)| name.to_str().is_some_and(is_of_a_package) && !stated.contains(name))
        .fold(command, |command, (name, _)| command.env_remove(name))
}

fn is_of_a_package(variable: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_CRATE_NAME", "CARGO_BIN_NAME", "CARGO_PRIMARY_PACKAGE"]
        .iter()
        .any(|prefix| variable.starts_with(prefix))
}

fn text_of(line: &str, output: Output) -> Result<String> {
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let tail: Vec<&str> = stderr.lines().rev().take(12).collect();
        let tail: Vec<&str> = tail.into_iter().rev().collect();
        bail!("`{line}` ended with {}:\n{}", output.status, tail.join("\n"));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn line_of(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|arg| arg.to_string_lossy().into_owned()));
    let line = words.join(" ");
    match line.char_indices().nth(200) {
        Some((cut, _)) => format!("{} …", &line[..cut]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::{apart, is_of_a_package};
    use std::process::Command;

    #[test]
    fn children_do_not_hear_which_package_runs_them() {
        // Cargo sets it for its tests as it does for what it runs.
        assert!(std::env::var_os("CARGO_PKG_NAME").is_some());
        let mut env = Command::new("env");
        let output = apart(&mut env).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let left: Vec<&str> = text.lines().filter(|line| is_of_a_package(line)).collect();
        assert!(left.is_empty(), "{left:?}");
    }

    #[test]
    fn children_hear_of_the_package_that_they_are_told_of() {
        let mut env = Command::new("env");
        env.env("CARGO_MANIFEST_DIR", "crates/other");
        let text = super::read(&mut env).unwrap();
        let left: Vec<&str> = text.lines().filter(|line| is_of_a_package(line)).collect();
        assert_eq!(left, ["CARGO_MANIFEST_DIR=crates/other"]);
    }

    #[test]
    fn what_a_person_set_for_cargo_stays() {
        for name in ["CARGO_HOME", "CARGO_TARGET_DIR", "CARGO_BUILD_JOBS", "CARGO_TERM_COLOR"] {
            assert!(!is_of_a_package(name), "{name}");
        }
    }
}
