//! Settings of `flyball batch`: one struct, read from one TOML file, unknown keys refused, all problems reported at once.

use flyball_identity::KeyHash;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use toml::{Table, Value};

/// Bytes of a settings file.
const MAX_BYTES: usize = 4 << 20;

/// Lines at the gateway at once, at most.
const MAX_LINES: u64 = 100_000;

/// Batches of a worker at once, at most: each has some megabytes in memory.
const MAX_BATCHES: u64 = 1_000;

/// All settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchSettings {
    /// Address for clients.
    pub listen: SocketAddr,
    /// Folder that holds everything.
    pub store: PathBuf,
    /// The gateway, `HOST:PORT`.
    pub gateway: String,
    /// Allow serving without keys on an address that others can reach.
    pub open: bool,
    /// Lines at the gateway at once.
    pub lines: usize,
    /// Batches at once.
    pub batches: usize,
    /// Days that files last.
    pub retention_days: u64,
    /// Who may ask.
    pub callers: Vec<BatchCaller>,
}

/// A caller's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchCaller {
    /// Whose batches these are.
    pub tenant: String,
    /// SHA-256 of the key.
    pub sha256: KeyHash,
    /// What is shown to the gateway for its lines.
    pub gateway_key_file: Option<PathBuf>,
}

/// A setting as the reference lists it.
struct Row {
    name: &'static str,
    takes: &'static str,
    default: &'static str,
    what: &'static str,
}

const fn row(
    name: &'static str,
    takes: &'static str,
    default: &'static str,
    what: &'static str,
) -> Row {
    Row { name, takes, default, what }
}

const ROOT: &[Row] = &[
    row("listen", "`IP:PORT`", "`127.0.0.1:8081`", "Address for clients."),
    row(
        "store",
        "a folder",
        "required",
        "Where files, batches and results are: all that there is. Several processes may share it. Buckets: not yet.",
    ),
    row("gateway", "`HOST:PORT`", "required", "The gateway to which lines go. Plain HTTP."),
    row(
        "open",
        "`true` or `false`",
        "`false`",
        "Whoever shows no key of a caller is the tenant `default`. Without it and without callers, only an address that nobody \
         else can reach is served.",
    ),
    row("lines", "1 to 100000", "`64`", "Lines at the gateway at once."),
    row(
        "batches",
        "1 to 1000",
        "`64`",
        "Batches that this process has at once, those with the earliest deadlines. Others may have more.",
    ),
    row(
        "retention_days",
        "1 to 30",
        "`30`",
        "How long files last, of input and of results, unless their owner says otherwise.",
    ),
    row("callers", "a list of sections", "", "Who may ask."),
];

const CALLER: &[Row] = &[
    row(
        "tenant",
        "a name, or a path such as `ml/search`",
        "required",
        "Whose files and batches these are.",
    ),
    row("sha256", "64 hexadecimal digits", "required", "SHA-256 of the caller's key."),
    row(
        "gateway_key_file",
        "a file",
        "",
        "The key that the gateway sees for this tenant's lines, so that they are counted and limited as the tenant's. \
         Without it none is shown.",
    ),
];

impl BatchSettings {
    /// Reads a file's text, or says everything that is wrong with it.
    pub fn parse(text: &str) -> Result<Self, Vec<String>> {
        if text.len() > MAX_BYTES {
            return Err(vec![format!("the file has more than {MAX_BYTES} bytes")]);
        }
        let mut table: Table =
            toml::from_str(text).map_err(|error| vec![error.to_string().trim().to_owned()])?;
        let mut found = Found { problems: Vec::new(), path: String::new() };
        found.unknown(ROOT, &table);
        let listen =
            found.take(&mut table, "listen", "IP:PORT", |value| value.as_str()?.parse().ok());
        let store = found.required(&mut table, "store", "a folder", file);
        let gateway = found.required(&mut table, "gateway", "HOST:PORT", address);
        let open = found.take(&mut table, "open", "true or false", Value::as_bool);
        let lines = found.take(&mut table, "lines", "1 to 100000", |value| count(value, MAX_LINES));
        let batches =
            found.take(&mut table, "batches", "1 to 1000", |value| count(value, MAX_BATCHES));
        let days = found.take(&mut table, "retention_days", "1 to 30", |value| count(value, 30));
        let callers = found.callers(&mut table);
        let settings = Self {
            listen: listen.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 8081))),
            store: store.unwrap_or_default(),
            gateway: gateway.unwrap_or_default(),
            open: open.unwrap_or_default(),
            lines: lines.unwrap_or(64) as usize,
            batches: batches.unwrap_or(64) as usize,
            retention_days: days.unwrap_or(30),
            callers,
        };
        found.together(&settings);
        if found.problems.is_empty() { Ok(settings) } else { Err(found.problems) }
    }

    /// The reference, as it stands in the documents.
    pub fn reference() -> String {
        let mut text = String::from(
            "# Settings of files and batches\n\n\
             *Generated from the code. `UPDATE=1 cargo test -p flyball-batch` writes it anew.*\n\n\
             One TOML file, given with `flyball batch --config FILE`. Unknown settings are refused.\n\
             `flyball batch --config FILE --check` reports every problem in a file. It is read when the process starts. The\n\
             [guide](../guides/batch.md) has an example.\n",
        );
        for (title, rows) in [("Top level", ROOT), ("`[[callers]]`", CALLER)] {
            text += &format!(
                "\n## {title}\n\n| Setting | Takes | Default | What it is |\n|---|---|---|---|\n"
            );
            for row in rows {
                let Row { name, takes, default, what } = row;
                text += &format!("| `{name}` | {takes} | {default} | {what} |\n");
            }
        }
        text
    }

    /// Whether anybody may ask. On this machine alone that needs no word.
    pub(crate) fn is_open(&self) -> bool {
        self.open || self.callers.is_empty()
    }
}

/// What was found out about a file.
struct Found {
    problems: Vec<String>,
    /// Of the section, such as `callers[0].`.
    path: String,
}

impl Found {
    fn wrong(&mut self, name: &str, what: &str) {
        self.problems.push(format!("{}{name}: {what}", self.path));
    }

    fn unknown(&mut self, rows: &[Row], table: &Table) {
        for name in table.keys().filter(|name| rows.iter().all(|row| row.name != *name)) {
            let names: Vec<_> = rows.iter().map(|row| row.name).collect();
            let what = format!("is not a setting; there are {}", names.join(", "));
            self.wrong(&name.escape_default().to_string(), &what);
        }
    }

    fn take<T>(
        &mut self,
        table: &mut Table,
        name: &str,
        takes: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Option<T> {
        let value = table.remove(name)?;
        let found = read(&value);
        if found.is_none() {
            self.wrong(name, &format!("expected {takes}, got {}", value.type_str()));
        }
        found
    }

    fn required<T>(
        &mut self,
        table: &mut Table,
        name: &str,
        takes: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Option<T> {
        if !table.contains_key(name) {
            self.wrong(name, &format!("is missing; give {takes}"));
        }
        self.take(table, name, takes, read)
    }

    fn callers(&mut self, table: &mut Table) -> Vec<BatchCaller> {
        let sections = |value: &Value| value.as_array().cloned();
        let list = self.take(table, "callers", "a list of sections", sections).unwrap_or_default();
        let mut callers = Vec::new();
        for (index, section) in list.into_iter().enumerate() {
            self.path = format!("callers[{index}].");
            let Value::Table(mut section) = section else {
                self.wrong("", "expected a section");
                continue;
            };
            self.unknown(CALLER, &section);
            let tenant = self.required(&mut section, "tenant", "a name", tenant);
            let sha256 = self.required(&mut section, "sha256", "64 hexadecimal digits", hash);
            let file = self.take(&mut section, "gateway_key_file", "a file", file);
            if let (Some(tenant), Some(sha256)) = (tenant, sha256) {
                callers.push(BatchCaller { tenant, sha256, gateway_key_file: file });
            }
        }
        self.path.clear();
        callers
    }

    /// What contradicts.
    fn together(&mut self, settings: &BatchSettings) {
        if settings.callers.is_empty() && !settings.open && !settings.listen.ip().is_loopback() {
            let what = format!(
                "is false, there are no callers, and others can reach {}: add callers, or say open = true",
                settings.listen
            );
            self.wrong("open", &what);
        }
        let mut hashes = BTreeMap::new();
        let mut files = BTreeMap::new();
        for (index, caller) in settings.callers.iter().enumerate() {
            let BatchCaller { tenant, sha256, gateway_key_file } = caller;
            if let Some(before) = hashes.insert(sha256, index) {
                self.wrong(
                    &format!("callers[{index}].sha256"),
                    &format!("is that of callers[{before}] too"),
                );
            }
            if *files.entry(tenant).or_insert(gateway_key_file) != gateway_key_file {
                let what =
                    format!("{tenant:?} has another one in an earlier section; a tenant has one");
                self.wrong(&format!("callers[{index}].gateway_key_file"), &what);
            }
        }
    }
}

fn file(value: &Value) -> Option<PathBuf> {
    let text = value.as_str()?;
    (!text.is_empty() && !text.contains('\0')).then(|| PathBuf::from(text))
}

fn address(value: &Value) -> Option<String> {
    let text = value.as_str()?;
    let (host, port) = text.rsplit_once(':')?;
    let is_good = !host.is_empty() && !host.contains('/') && port.parse::<u16>().is_ok();
    is_good.then(|| text.to_owned())
}

fn count(value: &Value, most: u64) -> Option<u64> {
    let number = u64::try_from(value.as_integer()?).ok()?;
    (1..=most).contains(&number).then_some(number)
}

/// A name of which no part could lead out of its folder.
fn tenant(value: &Value) -> Option<String> {
    let text = value.as_str()?;
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.';
    let is_part = |part: &str| {
        part.bytes().all(plain) && part.starts_with(|c: char| c.is_ascii_alphanumeric())
    };
    (text.len() <= 253 && text.split('/').all(is_part)).then(|| text.to_owned())
}

fn hash(value: &Value) -> Option<KeyHash> {
    let text = value.as_str().filter(|text| text.len() == 64 && text.is_ascii())?;
    let mut hash = [0; 32];
    for (byte, digits) in hash.iter_mut().zip(text.as_bytes().chunks(2)) {
        let digits = std::str::from_utf8(digits).ok()?;
        let is_plain = digits.bytes().all(|b| b.is_ascii_hexdigit());
        *byte = is_plain.then(|| u8::from_str_radix(digits, 16).ok())??;
    }
    Some(KeyHash(hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "store = \"/data\"\ngateway = \"gateway.flyball:8080\"\n";

    #[test]
    fn everything_that_is_wrong_is_reported_at_once() {
        let text = "listen = \"0.0.0.0:80\"\nstroe = \"x\"\ngateway = \"http://x\"\nlines = 0\n\
                    [[callers]]\ntenant = \"../x\"\nsha256 = \"zz\"\nkey = \"secret\"\n";
        let problems = BatchSettings::parse(text).unwrap_err();
        insta::assert_snapshot!(problems.join("\n"));
        assert!(!problems.join("").contains("secret"));
    }

    #[test]
    fn defaults_are_those_of_the_reference() {
        let settings = BatchSettings::parse(GOOD).unwrap();
        let of = |name: &str| ROOT.iter().find(|row| row.name == name).unwrap().default;
        assert_eq!(of("listen"), format!("`{}`", settings.listen));
        assert_eq!(of("open"), format!("`{}`", settings.open));
        assert_eq!(of("lines"), format!("`{}`", settings.lines));
        assert_eq!(of("batches"), format!("`{}`", settings.batches));
        assert_eq!(of("retention_days"), format!("`{}`", settings.retention_days));
    }

    #[test]
    fn the_door_is_closed_unless_somebody_opens_it() {
        let reachable = format!("{GOOD}listen = \"0.0.0.0:1\"\n");
        assert!(BatchSettings::parse(&reachable).unwrap_err()[0].starts_with("open: "));
        assert!(BatchSettings::parse(&format!("{reachable}open = true\n")).unwrap().is_open());
        let caller =
            format!("{reachable}[[callers]]\ntenant = \"a\"\nsha256 = \"{}\"\n", "ab".repeat(32));
        assert!(!BatchSettings::parse(&caller).unwrap().is_open());
        let twice =
            format!("{caller}[[callers]]\ntenant = \"b\"\nsha256 = \"{}\"\n", "AB".repeat(32));
        assert_eq!(
            BatchSettings::parse(&twice).unwrap_err(),
            ["callers[1].sha256: is that of callers[0] too"]
        );
    }

    #[test]
    fn the_reference_and_the_example_of_the_guide_are_current() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/batch-settings.md");
        let text = BatchSettings::reference();
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(file, &text).unwrap();
        }
        let committed = std::fs::read_to_string(file).unwrap_or_default();
        assert!(committed == text, "run: UPDATE=1 cargo test -p flyball-batch");
        let guide = include_str!("../../../docs/guides/batch.md");
        let examples = guide.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
        assert!(examples.clone().count() > 0);
        examples.for_each(|example| {
            BatchSettings::parse(example).unwrap();
        });
    }
}
