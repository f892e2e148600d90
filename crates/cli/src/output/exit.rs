//! What the exit status means. It never depends on `-o`.

use std::process::ExitCode;

/// One meaning per number, so that a pipeline can tell "bad" from "blind".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The answer is yes, or the command did what it was asked.
    Yes,
    /// The answer is known, and it is no.
    No,
    /// The command line is wrong, or Flyball has a bug.
    Usage,
    /// The answer could not be had: no cluster, no permission, no data.
    Unknown,
    /// A wait ended before the answer became yes.
    TimedOut,
    /// A person pressed Ctrl-C.
    Interrupted,
}

impl Exit {
    pub(crate) fn number(self) -> u8 {
        match self {
            Exit::Yes => 0,
            Exit::No => 1,
            Exit::Usage => 2,
            Exit::Unknown => 3,
            Exit::TimedOut => 4,
            Exit::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.number())
    }
}
