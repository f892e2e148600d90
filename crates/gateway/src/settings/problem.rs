//! What is wrong with a settings file: where, what, and what to do.

use std::fmt;

/// A kind of problem. Each has a page in docs/errors; a number never changes its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// The file cannot be read, or is no TOML.
    Unreadable,
    /// There is no such setting.
    UnknownSetting,
    /// A value is missing or is not what the setting takes.
    BadValue,
    /// Two settings contradict each other.
    Contradiction,
    /// Everybody could use the gateway, and nobody said that this is wanted.
    OpenDoor,
}

impl Code {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Unreadable,
        Self::UnknownSetting,
        Self::BadValue,
        Self::Contradiction,
        Self::OpenDoor,
    ];

    /// As it is written.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Unreadable => "FLY-801",
            Self::UnknownSetting => "FLY-802",
            Self::BadValue => "FLY-803",
            Self::Contradiction => "FLY-804",
            Self::OpenDoor => "FLY-805",
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingProblem {
    /// What kind it is.
    pub code: Code,
    /// The line of the file, from 1; `None` for what is not in it.
    pub line: Option<usize>,
    /// The setting, such as `models[1].service`; empty for the file as a whole.
    pub path: String,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub hint: String,
}

impl SettingProblem {
    pub(super) fn new(
        code: Code,
        path: impl Into<String>,
        what: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        let (path, what, hint) = (path.into(), what.into(), hint.into());
        Self { code, line: None, path, what, hint }
    }

    pub(super) fn at(mut self, line: Option<usize>) -> Self {
        self.line = line;
        self
    }
}

impl fmt::Display for SettingProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code.id())?;
        if let Some(line) = self.line {
            write!(f, " line {line}")?;
        }
        if !self.path.is_empty() {
            write!(f, " {}", self.path)?;
        }
        write!(f, ": {}; {}", self.what, self.hint)
    }
}
