//! One line on stderr that says what is going on, and leaves no trace.

use std::io::{IsTerminal, Write};

/// Shown only when a person looks at stderr: in a log the characters that erase a line are noise.
#[derive(Debug)]
pub(crate) struct Progress {
    shown: bool,
}

impl Progress {
    pub(super) fn new(is_enabled: bool) -> Progress {
        Progress { shown: is_enabled && std::io::stderr().is_terminal() }
    }

    pub(crate) fn show(&self, words: &str) {
        if self.shown {
            // A lost progress line is nobody's problem.
            let _ = write!(std::io::stderr(), "\r\x1b[2K{words}");
            let _ = std::io::stderr().flush();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.show("");
    }
}
