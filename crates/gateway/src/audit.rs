//! The audit log: a line of JSON for every act that is not a request, so that one can see later who
//! or what changed the gateway, and when.
//!
//! Acts are rare (a person, a wake call, an engine that misbehaves), so a line is written at once
//! and under a lock. It never holds a key, a hash of one or a value of the settings: of changed
//! settings it says which sections changed. Start at [`Audit`].

use crate::settings::GatewaySettingsFile;
use crate::settings::reload::Reload;
use serde::Serialize;
use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// Bytes of a text in a line: names are shorter, lists of problems are cut.
const TEXT_BYTES: usize = 512;

/// Writes the lines. One for all threads.
pub struct Audit {
    out: Mutex<Box<dyn Write + Send>>,
}

/// One line, in the order in which it is written.
#[derive(Serialize)]
struct Line<'a> {
    time: String,
    act: &'static str,
    what: &'a str,
    outcome: &'a str,
}

impl Audit {
    /// One that adds to this file, or writes to standard error without one.
    pub fn open(file: Option<&Path>) -> io::Result<Self> {
        Ok(match file {
            Some(file) => Self::to(OpenOptions::new().create(true).append(true).open(file)?),
            None => Self::to(io::stderr()),
        })
    }

    /// One that writes here.
    pub fn to(out: impl Write + Send + 'static) -> Self {
        Self { out: Mutex::new(Box::new(out)) }
    }

    /// The settings file had changed. `before` are those in use until now, `after` the new ones if
    /// they are good.
    pub fn settings(
        &self,
        before: &GatewaySettingsFile,
        after: Option<&GatewaySettingsFile>,
        reload: &Reload,
    ) {
        match after {
            Some(after) => {
                let outcome = match reload.needs_restart.join(", ") {
                    none if none.is_empty() => "accepted".to_owned(),
                    some => format!("accepted; needs a restart: {some}"),
                };
                self.line("settings", &changed(before, after).join(", "), &outcome);
            }
            // The problems name places and rules, never what stands in the file.
            None => {
                let outcome = format!("refused: {}", reload.problems.join("; "));
                self.line("settings", "", &outcome);
            }
        }
    }

    /// ModelServices have changed what is served.
    pub fn served(&self, added: &[String], removed: &[String]) {
        let signed = |sign: &str, names: &[String]| -> Vec<String> {
            names.iter().map(|name| format!("{sign}{name}")).collect()
        };
        let all = [signed("+", added), signed("-", removed)].concat();
        self.line("models", &all.join(" "), "loaded from ModelServices");
    }

    /// Tenants have changed who is let in: `+` is new, `~` other than before, `-` gone.
    pub fn tenants(&self, changes: &[String]) {
        self.line("tenants", &changes.join(" "), "loaded from Tenants");
    }

    /// Requests were refused because of their key, which is told of by its id.
    pub fn key_refused(&self, what: &str, outcome: &str) {
        self.line("key", what, outcome);
    }

    /// The key set of an issuer has changed, cannot be fetched, or can be again.
    pub fn key_set(&self, issuer: &str, outcome: &str) {
        self.line("key-set", issuer, outcome);
    }

    /// A model without an engine was asked for, and whoever wakes it was told; `outcome` is what
    /// came of that.
    pub fn wake(&self, model: &str, outcome: &str) {
        self.line("wake", model, outcome);
    }

    /// An engine gets nothing new because it ignores hang-ups.
    pub fn quarantined(&self, engine: &str, zombies: u32) {
        self.line(
            "quarantine",
            engine,
            &format!("started with {zombies} requests that the engine did not cancel"),
        );
    }

    /// The operator keeps new requests away from so many engines, or its word has lapsed.
    pub fn ordered(&self, drained: usize, outcome: &str) {
        self.line("orders", &format!("{drained} engines drain"), outcome);
    }

    /// An engine gets requests again.
    pub fn released(&self, engine: &str) {
        self.line("quarantine", engine, "ended");
    }

    /// The gateway takes nothing new from now on.
    pub fn drain_begins(&self, requests: usize) {
        self.line("drain", &format!("{requests} requests in flight"), "begun");
    }

    /// The gateway ends.
    pub fn drain_ended(&self, cut: usize) {
        self.line("drain", &format!("{cut} requests cut off"), "ended");
    }

    fn line(&self, act: &'static str, what: &str, outcome: &str) {
        let time = jiff::Timestamp::try_from(SystemTime::now()).unwrap_or_default().to_string();
        let line = Line { time, act, what: short(what), outcome: short(outcome) };
        // Texts can always be written as JSON.
        let mut text = serde_json::to_string(&line).unwrap_or_default();
        text.push('\n');
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        // In one call: lines of two processes that share a file do not mix.
        if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            drop(out);
            tracing::error!(%error, act, what, outcome, "cannot write the audit log");
        }
    }
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Audit").finish_non_exhaustive()
    }
}

/// The sections that differ.
fn changed(before: &GatewaySettingsFile, after: &GatewaySettingsFile) -> Vec<&'static str> {
    // Named one by one, so that a new section is not forgotten here.
    let GatewaySettingsFile {
        listen,
        admin,
        admin_clients,
        threads,
        open,
        tls,
        keys,
        models,
        kubernetes,
        tenants,
        splits,
        limits,
        timeouts,
        collector,
        waker,
        operator,
        recovery,
        response_cache,
        telemetry,
    } = before;
    [
        ("listen", *listen != after.listen),
        ("admin", *admin != after.admin),
        ("admin_clients", *admin_clients != after.admin_clients),
        ("threads", *threads != after.threads),
        ("open", *open != after.open),
        ("tls", *tls != after.tls),
        ("keys", *keys != after.keys),
        ("models", *models != after.models),
        ("kubernetes", *kubernetes != after.kubernetes),
        ("tenants", *tenants != after.tenants),
        ("splits", *splits != after.splits),
        ("limits", *limits != after.limits),
        ("timeouts", *timeouts != after.timeouts),
        ("collector", *collector != after.collector),
        ("waker", *waker != after.waker),
        ("operator", *operator != after.operator),
        ("recovery", *recovery != after.recovery),
        ("response_cache", *response_cache != after.response_cache),
        ("telemetry", *telemetry != after.telemetry),
    ]
    .into_iter()
    .filter_map(|(name, differs)| differs.then_some(name))
    .collect()
}

fn short(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Key;

    fn lines(file: &Path) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(file).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn acts_are_added_to_the_file_without_a_secret() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("audit.jsonl");
        let before = GatewaySettingsFile::default();
        let mut after = before.clone();
        let sha256 = "canary".repeat(10);
        after.keys.push(Key { name: "search".to_owned(), sha256, ..Key::default() });
        after.limits.in_flight = 7;
        let mut reload = Reload::good(SystemTime::now());
        let audit = Audit::open(Some(&file)).unwrap();
        audit.settings(&before, Some(&after), &reload);
        reload.needs_restart = vec!["listen"];
        audit.settings(&before, Some(&before), &reload);
        reload.problems = vec!["FLY-802 line 3: x is not a setting".to_owned()];
        audit.settings(&before, None, &reload);
        // Another process, later.
        let audit = Audit::open(Some(&file)).unwrap();
        audit.wake("qwen", "told, 202");
        audit.served(&["a".to_owned()], &["b".to_owned()]);
        audit.quarantined("e1", 2);
        audit.released("e1");
        audit.drain_begins(3);
        audit.drain_ended(0);
        let lines = lines(&file);
        let written: Vec<_> = lines
            .iter()
            .map(|line| ["act", "what", "outcome"].map(|key| line[key].as_str().unwrap()))
            .collect();
        let expected = [
            ["settings", "keys, limits", "accepted"],
            ["settings", "", "accepted; needs a restart: listen"],
            ["settings", "", "refused: FLY-802 line 3: x is not a setting"],
            ["wake", "qwen", "told, 202"],
            ["models", "+a -b", "loaded from ModelServices"],
            ["quarantine", "e1", "started with 2 requests that the engine did not cancel"],
            ["quarantine", "e1", "ended"],
            ["drain", "3 requests in flight", "begun"],
            ["drain", "0 requests cut off", "ended"],
        ];
        assert_eq!(written, expected);
        assert!(lines.iter().all(|line| line["time"].as_str().unwrap().ends_with('Z')));
        assert!(!std::fs::read_to_string(&file).unwrap().contains("canary"));
    }

    #[test]
    fn a_line_is_one_line_and_has_a_bound() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("audit.jsonl");
        let audit = Audit::open(Some(&file)).unwrap();
        audit.wake(&"é\n\"".repeat(5_000), "told\n{}");
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        // At worst every byte is escaped as six.
        assert!(text.len() < 12 * TEXT_BYTES, "{}", text.len());
        assert_eq!(lines(&file)[0]["outcome"], "told\n{}");
    }

    #[test]
    fn a_folder_that_is_not_there_is_said_at_the_start() {
        assert!(Audit::open(Some(Path::new("/nonexistent/audit.jsonl"))).is_err());
    }
}
