//! From a file's text to settings, or to everything that is wrong with it.

use super::check;
use super::fields::{Field, Kind, Section};
use super::problem::{Code, SettingProblem};
use super::sections::ROOT;
use super::{GatewaySettingsFile, MAX_BYTES};
use serde::Deserialize as _;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

/// Namespaces that are watched apart: each is a connection or two.
const MAX_NAMESPACES: usize = 1_000;

/// Problems that are reported. A file of garbage has one per line, and nobody reads them all.
const REPORTED: usize = 100;

pub(super) fn parse(text: &str) -> Result<GatewaySettingsFile, Vec<SettingProblem>> {
    if text.len() > MAX_BYTES {
        let what = format!("the file has {} bytes; the limit is {MAX_BYTES}", text.len());
        return Err(vec![SettingProblem::new(
            Code::Unreadable,
            "",
            what,
            "split it or shorten it",
        )]);
    }
    let (mut table, errors) = DeTable::parse_recoverable(text);
    let lines = Lines::of(text);
    if !errors.is_empty() {
        return Err(reported(errors.iter().map(|error| lines.syntax(error)).collect()));
    }
    let mut walk =
        Walk { lines, problems: Vec::new(), places: BTreeMap::new(), bad: BTreeSet::new() };
    walk.section(&ROOT, "", table.get_ref());
    let Walk { mut problems, places, bad, lines } = walk;
    // What is wrong is taken out, so that the rest can be checked too.
    prune(&ROOT, "", table.get_mut(), &bad);
    match GatewaySettingsFile::deserialize(Deserializer::from(table)) {
        Ok(settings) => {
            let wrong: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
            let found = check::check(&settings, &wrong);
            let with_line = |problem: SettingProblem| {
                let line = place(&places, &problem.path);
                problem.at(line)
            };
            problems.extend(found.into_iter().map(with_line).collect::<Vec<_>>());
            if problems.is_empty() { Ok(settings) } else { Err(reported(problems)) }
        }
        Err(error) if problems.is_empty() => Err(vec![lines.syntax(&error)]),
        Err(_) => Err(reported(problems)),
    }
}

/// In the order of the file, and not too many.
fn reported(mut problems: Vec<SettingProblem>) -> Vec<SettingProblem> {
    problems.sort_by_key(|problem| problem.line.unwrap_or(usize::MAX));
    if problems.len() > REPORTED {
        let more = problems.len() - REPORTED;
        problems.truncate(REPORTED);
        let what = format!("{more} more problems are not listed");
        problems.push(SettingProblem::new(Code::Unreadable, "", what, "fix these first"));
    }
    problems
}

/// The line of a setting, or of the nearest section around it.
fn place(places: &BTreeMap<String, usize>, path: &str) -> Option<usize> {
    if let Some(line) = places.get(path) {
        return Some(*line);
    }
    let end = path.rfind(['.', '['])?;
    place(places, &path[..end])
}

fn prune(section: &Section, path: &str, table: &mut DeTable<'_>, bad: &BTreeSet<String>) {
    let names: Vec<String> = table.keys().map(|name| name.get_ref().to_string()).collect();
    for name in names {
        let path = join(path, &name);
        if bad.contains(&path) {
            table.remove(name.as_str());
            continue;
        }
        let kind = section.field(&name).map(|field| field.kind);
        match (kind, table.get_mut(name.as_str()).map(Spanned::get_mut)) {
            (Some(Kind::Section(inner)), Some(DeValue::Table(table))) => {
                prune(inner, &path, table, bad);
            }
            (Some(Kind::Sections(inner, _)), Some(DeValue::Array(items))) => {
                for (index, item) in items.as_mut().iter_mut().enumerate() {
                    if let DeValue::Table(table) = item.get_mut() {
                        prune(inner, &format!("{path}[{index}]"), table, bad);
                    }
                }
            }
            _ => {}
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Where lines begin.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        Self(memchr::memchr_iter(b'\n', text.as_bytes()).collect())
    }

    fn at(&self, byte: usize) -> usize {
        self.0.partition_point(|end| *end < byte) + 1
    }

    fn syntax(&self, error: &toml::de::Error) -> SettingProblem {
        let line = error.span().map(|span| self.at(span.start));
        let what = error.message().replace('\n', ", ");
        SettingProblem::new(Code::Unreadable, "", what, "fix the TOML syntax in this line").at(line)
    }
}

struct Walk {
    lines: Lines,
    problems: Vec<SettingProblem>,
    /// The line of each setting that is there.
    places: BTreeMap<String, usize>,
    /// Settings that must be taken out.
    bad: BTreeSet<String>,
}

impl Walk {
    fn section(&mut self, section: &Section, path: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            let (name, line) = (key.get_ref().as_ref(), self.lines.at(key.span().start));
            let path = join(path, name);
            self.places.insert(path.clone(), line);
            match section.field(name) {
                Some(field) => self.value(field, &path, line, value),
                None => self.unknown(section, path, name, line),
            }
        }
        for field in section.fields.iter().filter(|field| field.required) {
            if !table.contains_key(field.name) {
                let line = place(&self.places, path);
                let (takes, what) = (field.kind.words(), field.what.trim_end_matches('.'));
                let hint = format!("give {takes}. {what}");
                let path = join(path, field.name);
                let problem = SettingProblem::new(Code::BadValue, path, "is missing", hint);
                self.problems.push(problem.at(line));
            }
        }
    }

    fn unknown(&mut self, section: &Section, path: String, name: &str, line: usize) {
        let hint = section.nearest(name).map_or_else(
            || {
                let names: Vec<_> = section.fields.iter().map(|field| field.name).collect();
                format!("there are {}", names.join(", "))
            },
            |near| format!("did you mean `{near}`?"),
        );
        let problem =
            SettingProblem::new(Code::UnknownSetting, path.clone(), "is not a setting", hint);
        self.problems.push(problem.at(Some(line)));
        self.bad.insert(path);
    }

    fn value(&mut self, field: &Field, path: &str, line: usize, value: &Spanned<DeValue<'_>>) {
        match (field.kind, value.get_ref()) {
            (Kind::Section(section), DeValue::Table(table)) => self.section(section, path, table),
            (Kind::Sections(section, most), DeValue::Array(items)) if items.len() <= most => {
                for (index, item) in items.iter().enumerate() {
                    let path = format!("{path}[{index}]");
                    let line = self.lines.at(item.span().start);
                    self.places.insert(path.clone(), line);
                    if let DeValue::Table(table) = item.get_ref() {
                        self.section(section, &path, table);
                    } else {
                        self.refuse(field, &path, line, item.get_ref());
                        self.bad.insert(parent(&path));
                    }
                }
            }
            (kind, value) => {
                if !takes(kind, value) {
                    self.refuse(field, path, line, value);
                    self.bad.insert(path.to_owned());
                }
            }
        }
    }

    fn refuse(&mut self, field: &Field, path: &str, line: usize, value: &DeValue<'_>) {
        let what = format!("expected {}, got {}", field.kind.words(), shown(value));
        let problem =
            SettingProblem::new(Code::BadValue, path, what, "change the value".to_owned());
        self.problems.push(problem.at(Some(line)));
    }
}

fn parent(path: &str) -> String {
    path.rfind('[').map_or_else(String::new, |end| path[..end].to_owned())
}

/// A value as a message shows it. Never text as it is: somebody may have put a key there.
fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("a string of {} bytes", text.len()),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(items) => format!("a list of {}", items.len()),
        DeValue::Table(_) => "a section".to_owned(),
    }
}

fn takes(kind: Kind, value: &DeValue<'_>) -> bool {
    let text = value.as_str();
    match kind {
        Kind::Address => text.is_some_and(|text| text.parse::<SocketAddr>().is_ok()),
        Kind::Addresses => match value {
            DeValue::Array(items) => {
                items.len() <= super::MAX_ENDPOINTS
                    && items.iter().all(|item| takes(Kind::Address, item.get_ref()))
            }
            _ => false,
        },
        Kind::Flag => value.is_bool(),
        Kind::Count(least, most) => value.as_integer().is_some_and(|number| {
            let number = u64::from_str_radix(number.as_str(), number.radix());
            number.is_ok_and(|number| (least..=most).contains(&number))
        }),
        Kind::Name(bytes) => text.is_some_and(|text| is_name(text, bytes)),
        Kind::Sha256 => {
            text.is_some_and(|text| text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit()))
        }
        Kind::File => text.is_some_and(|text| !text.is_empty() && !text.contains('\0')),
        Kind::Service => text
            .and_then(|text| text.rsplit_once(':'))
            .is_some_and(|(name, port)| is_namespaced(name) && is_port(port)),
        Kind::Pool => text.is_some_and(is_namespaced),
        Kind::Namespaces => match value {
            DeValue::Array(items) => {
                items.len() <= MAX_NAMESPACES
                    && items.iter().all(|item| item.get_ref().as_str().is_some_and(is_label))
            }
            _ => false,
        },
        Kind::Url => text.is_some_and(is_url),
        Kind::Word(words) => text.is_some_and(|text| words.contains(&text)),
        Kind::Words(words) => match value {
            DeValue::Array(items) => {
                items.len() <= words.len()
                    && items.iter().all(|item| takes(Kind::Word(words), item.get_ref()))
            }
            _ => false,
        },
        Kind::Header => text.is_some_and(|text| {
            http::HeaderName::from_bytes(text.as_bytes()).is_ok_and(|name| name.as_str() == text)
        }),
        Kind::Section(_) | Kind::Sections(..) => false,
    }
}

/// Names become labels, log fields and lines of a table.
pub(crate) fn is_name(text: &str, bytes: usize) -> bool {
    let odd = |c: char| c.is_control() || c == '"' || c == '\\';
    (1..=bytes).contains(&text.len()) && text.trim() == text && !text.chars().any(odd)
}

fn is_namespaced(text: &str) -> bool {
    text.split_once('/').is_some_and(|(namespace, name)| {
        is_label(namespace) && name.len() <= 253 && name.split('.').all(is_label)
    })
}

/// A number, or a name with a letter in it.
fn is_port(text: &str) -> bool {
    if text.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse::<u16>().is_ok_and(|port| port > 0);
    }
    text.len() <= 15 && is_label(text)
}

/// A DNS label, as Kubernetes names things.
fn is_label(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let edge = |b: Option<&u8>| b.is_some_and(|b| *b != b'-');
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && bytes.iter().all(|b| plain(*b))
        && edge(bytes.first())
        && edge(bytes.last())
}

fn is_url(text: &str) -> bool {
    text.parse::<http::Uri>().is_ok_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.host().is_some_and(|h| !h.is_empty())
    })
}
