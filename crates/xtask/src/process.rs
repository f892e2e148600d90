//! Running other programs: one place that waits, captures and says what failed.

use anyhow::{Context, Result, bail};
use std::io::Write;
use std::process::{Command, Output, Stdio};

/// Runs to the end with the caller's output streams; an error names the command line.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = line_of(command);
    let status = command.status().with_context(|| format!("could not start `{line}`"))?;
    if !status.success() {
        bail!("`{line}` ended with {status}");
    }
    Ok(())
}

/// Runs to the end and returns standard output; an error carries the end of standard error.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    let line = line_of(command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("could not start `{line}`"))?;
    text_of(&line, output)
}

/// Runs with `input` on standard input and returns standard output.
pub(crate) fn feed(command: &mut Command, input: &str) -> Result<String> {
    let line = line_of(command);
    let mut child = command
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
