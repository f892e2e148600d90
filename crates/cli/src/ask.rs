//! Asks before something is changed.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use crate::output::{Exit, Failure};

/// Shows what will be done and asks. Refuses where nobody can answer.
pub(crate) fn may_go_on(plan: &[String]) -> Result<bool, Failure> {
    let (mut out, input) = (std::io::stderr(), std::io::stdin());
    if !input.is_terminal() {
        return Err(Failure::new(Exit::Usage, "this needs confirmation, and there is no terminal")
            .because("stdin is not a terminal")
            .problems(plan.to_vec())
            .hint("-y skips the confirmation, --dry-run only shows what would be done"));
    }
    for line in plan {
        let _ = writeln!(out, "{line}");
    }
    let _ = write!(out, "Proceed? [y/N] ");
    let _ = out.flush();
    let mut answer = String::new();
    let read = input.lock().read_line(&mut answer);
    Ok(read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
