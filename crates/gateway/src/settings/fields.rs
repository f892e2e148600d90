//! What a setting is: its name, what it takes, and what it is for. `sections` lists them all.

/// What a setting takes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// `IP:PORT`.
    Address,
    /// A list of `IP:PORT`.
    Addresses,
    /// `true` or `false`.
    Flag,
    /// A whole number from the first to the second.
    Count(u64, u64),
    /// A name: printable, no longer than this many bytes.
    Name(usize),
    /// 64 hexadecimal digits.
    Sha256,
    /// A file.
    File,
    /// `namespace/name:port`.
    Service,
    /// `namespace/name`.
    Pool,
    /// A list of names of namespaces.
    Namespaces,
    /// `http://HOST:PORT`.
    Url,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A list of these words.
    Words(&'static [&'static str]),
    /// The name of a header.
    Header,
    /// A section of its own.
    Section(&'static Section),
    /// A list of sections, at most this many.
    Sections(&'static Section, usize),
}

/// One setting.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) required: bool,
    pub(super) what: &'static str,
}

/// Settings that stand together.
#[derive(Debug)]
pub(super) struct Section {
    /// As the reference heads it.
    pub(super) title: &'static str,
    pub(super) fields: &'static [Field],
}

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

pub(super) const fn field(name: &'static str, kind: Kind, what: &'static str) -> Field {
    Field { name, kind, required: false, what }
}

pub(super) const fn required(name: &'static str, kind: Kind, what: &'static str) -> Field {
    Field { name, kind, required: true, what }
}

pub(super) const fn time(name: &'static str, what: &'static str) -> Field {
    field(name, Kind::Count(1, DAY_MS), what)
}

impl Section {
    /// The field of this name.
    pub(super) fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The name that somebody probably meant.
    pub(super) fn nearest(&self, name: &str) -> Option<&'static str> {
        self.fields
            .iter()
            .map(|field| (strsim::jaro_winkler(field.name, name), field.name))
            // Below this the names have so little in common that a guess would only distract.
            .filter(|(likeness, _)| *likeness > 0.8)
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, name)| name)
    }
}

impl Kind {
    /// What it takes, in words.
    pub(super) fn words(self) -> String {
        match self {
            Self::Address => "`IP:PORT`".to_owned(),
            Self::Addresses => "list of `IP:PORT`".to_owned(),
            Self::Flag => "`true` or `false`".to_owned(),
            Self::Count(least, most) => format!("{least} to {most}"),
            Self::Name(bytes) => format!("text of 1 to {bytes} printable bytes"),
            Self::Sha256 => "64 hexadecimal digits".to_owned(),
            Self::File => "path of a file".to_owned(),
            Self::Service => "`namespace/name:port`".to_owned(),
            Self::Pool => "`namespace/name`".to_owned(),
            Self::Namespaces => "list of names of namespaces".to_owned(),
            Self::Url => "`http://HOST:PORT`".to_owned(),
            Self::Word(words) => {
                words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
            }
            Self::Words(words) => {
                format!("list of {}", Self::Word(words).words())
            }
            Self::Header => "name of a header, in lower case".to_owned(),
            Self::Section(section) => format!("section {}", section.title),
            Self::Sections(section, most) => format!("sections {}, at most {most}", section.title),
        }
    }
}
