//! Takes in a changed file while the gateway runs, or refuses it and keeps the last good one.
//!
//! The file is read every second and compared by its bytes: a ConfigMap is changed by swapping
//! links, which file watches and times of change do not show. SIGHUP looks at once.
//! Start at [`Watched`], which is the whole logic without a clock; [`watch`] runs it.

use super::{GatewaySettingsFile, MAX_BYTES};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::signal::unix::{SignalKind, signal};

/// Between two looks.
const TICK: Duration = Duration::from_secs(1);

/// What became of the last change of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Reload {
    /// Whether the file as it is now is in use.
    pub successful: bool,
    /// When the settings in use were taken in.
    pub good_since: SystemTime,
    /// When the file was last looked into because it had changed.
    pub tried: SystemTime,
    /// What is wrong with the file.
    pub problems: Vec<String>,
    /// What the file changes that this process cannot change while it runs.
    pub needs_restart: Vec<&'static str>,
}

/// A settings file that may change.
#[derive(Debug)]
pub struct Watched {
    path: PathBuf,
    /// What was last read, or why it could not be.
    seen: Result<Vec<u8>, String>,
    /// With what the process began: this is what a restart would change.
    first: GatewaySettingsFile,
    reload: Reload,
}

/// What a look at the file brought.
#[derive(Clone, Debug, PartialEq)]
pub enum SettingChange {
    /// Nothing.
    None,
    /// Good settings.
    Good(Box<GatewaySettingsFile>),
    /// A file that is refused; [`Watched::reload`] has the problems.
    Bad,
}

impl Watched {
    /// Begins with a file that must be good.
    pub fn open(path: &Path, now: SystemTime) -> Result<(Self, GatewaySettingsFile), Vec<String>> {
        let bytes = read(path).map_err(|error| vec![unreadable(&error)])?;
        let settings = parse(&bytes)?;
        let watched = Self {
            path: path.to_owned(),
            seen: Ok(bytes),
            first: settings.clone(),
            reload: Reload::good(now),
        };
        Ok((watched, settings))
    }

    /// Looks at the file. A bad one is reported once and not again until it changes.
    pub fn check(&mut self, now: SystemTime) -> SettingChange {
        let seen = read(&self.path).map_err(|error| unreadable(&error));
        if seen == self.seen {
            return SettingChange::None;
        }
        self.seen = seen;
        let parsed = match &self.seen {
            Ok(bytes) => parse(bytes),
            Err(error) => Err(vec![error.clone()]),
        };
        match parsed {
            Ok(settings) => {
                let needs_restart = needs_restart(&self.first, &settings);
                self.reload = Reload { needs_restart, ..Reload::good(now) };
                SettingChange::Good(Box::new(settings))
            }
            Err(problems) => {
                self.reload.successful = false;
                self.reload.tried = now;
                self.reload.problems = problems;
                SettingChange::Bad
            }
        }
    }

    /// What became of the last change.
    pub const fn reload(&self) -> &Reload {
        &self.reload
    }
}

/// Looks at the file every second and at SIGHUP, for ever, and says loudly what it found. `taken`
/// is told after each change, with the new settings if they are good.
pub async fn watch(
    mut watched: Watched,
    mut taken: impl FnMut(Option<&GatewaySettingsFile>, &Reload),
) {
    // Without a handler SIGHUP ends the process, so it is set up first; if it cannot be, the
    // looks every second remain.
    let mut hangup = signal(SignalKind::hangup()).ok();
    loop {
        tokio::select! {
            () = tokio::time::sleep(TICK) => {}
            () = hangup_received(hangup.as_mut()) => {}
        }
        let change = watched.check(SystemTime::now());
        let reload = watched.reload();
        match &change {
            SettingChange::None => continue,
            SettingChange::Good(settings) => {
                tracing::info!(models = settings.models.len(), "settings reloaded");
                settings.warnings().iter().for_each(|warning| tracing::warn!("{warning}"));
                if !reload.needs_restart.is_empty() {
                    let settings = reload.needs_restart.join(", ");
                    tracing::warn!(settings, "some changed settings need a restart");
                }
                taken(Some(settings), reload);
            }
            SettingChange::Bad => {
                for problem in &reload.problems {
                    tracing::error!(problem, "invalid settings; keeping the previous ones");
                }
                taken(None, reload);
            }
        }
    }
}

impl Reload {
    /// Settings were taken in at this time.
    pub const fn good(at: SystemTime) -> Self {
        Self {
            successful: true,
            good_since: at,
            tried: at,
            problems: Vec::new(),
            needs_restart: Vec::new(),
        }
    }

    /// [`Self::good_since`] in seconds since 1970.
    pub fn good_since_seconds(&self) -> f64 {
        self.good_since.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
    }
}

async fn hangup_received(hangup: Option<&mut tokio::signal::unix::Signal>) {
    match hangup {
        Some(hangup) => {
            hangup.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// The file, but not more of it than one byte too many.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn unreadable(error: &io::Error) -> String {
    format!("FLY-801: cannot read the file: {error}; check that it exists and is readable")
}

fn parse(bytes: &[u8]) -> Result<GatewaySettingsFile, Vec<String>> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        vec![format!("FLY-801: the file is not valid UTF-8 from byte {at} on; save it as UTF-8")]
    })?;
    GatewaySettingsFile::parse(text)
        .map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

/// What differs that a process takes only when it starts.
fn needs_restart(first: &GatewaySettingsFile, new: &GatewaySettingsFile) -> Vec<&'static str> {
    [
        ("listen", first.listen != new.listen),
        ("admin", first.admin != new.admin),
        ("admin_clients", first.admin_clients != new.admin_clients),
        ("threads", first.threads != new.threads),
        ("tls", first.tls != new.tls),
        ("operator", first.operator != new.operator),
        ("kubernetes", first.kubernetes != new.kubernetes),
        ("tenants", first.tenants != new.tenants),
        ("collector", first.collector != new.collector),
        ("telemetry.otlp", first.telemetry.otlp != new.telemetry.otlp),
        ("telemetry.audit_log", first.telemetry.audit_log != new.telemetry.audit_log),
    ]
    .into_iter()
    .filter_map(|(name, differs)| differs.then_some(name))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    const GOOD: &str = "[[models]]\nname = \"m\"\nendpoints = [\"10.0.0.1:80\"]\n";

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn a_good_change_is_taken_and_a_bad_one_leaves_the_last_good() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gateway.toml");
        fs::write(&path, GOOD).unwrap();
        let (mut watched, first) = Watched::open(&path, at(1)).unwrap();
        assert_eq!(watched.check(at(2)), SettingChange::None);
        fs::write(&path, GOOD.replace("\"m\"", "\"n\"")).unwrap();
        let SettingChange::Good(second) = watched.check(at(3)) else {
            panic!("{:?}", watched.reload())
        };
        assert_eq!((first.models[0].name.as_str(), second.models[0].name.as_str()), ("m", "n"));
        assert_eq!(watched.reload(), &Reload::good(at(3)));
        fs::write(&path, format!("treads = 1\nopen = 3\n{GOOD}")).unwrap();
        assert_eq!(watched.check(at(4)), SettingChange::Bad);
        let reload = watched.reload();
        assert!(!reload.successful && reload.problems.len() == 2, "{reload:?}");
        assert_eq!((reload.good_since, reload.tried), (at(3), at(4)));
        // Said once, not every second.
        assert_eq!(watched.check(at(5)), SettingChange::None);
        fs::remove_file(&path).unwrap();
        assert_eq!(watched.check(at(6)), SettingChange::Bad);
        assert!(watched.reload().problems[0].contains("cannot read the file"));
        fs::write(&path, [0xff, 0xfe]).unwrap();
        assert_eq!(watched.check(at(7)), SettingChange::Bad);
        assert!(watched.reload().problems[0].contains("UTF-8"));
        fs::write(&path, GOOD).unwrap();
        assert!(matches!(watched.check(at(8)), SettingChange::Good(_)));
        assert!(watched.reload().successful);
    }

    #[test]
    fn a_config_map_is_followed_through_its_links() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for (version, model) in [("v1", "\"m\""), ("v2", "\"n\"")] {
            fs::create_dir(path(version)).unwrap();
            let text = GOOD.replace("\"m\"", model);
            fs::write(path(version).join("gateway.toml"), text).unwrap();
        }
        symlink("v1", path("..data")).unwrap();
        symlink("..data/gateway.toml", path("gateway.toml")).unwrap();
        let (mut watched, _) = Watched::open(&path("gateway.toml"), at(1)).unwrap();
        // As the kubelet does it.
        symlink("v2", path("..data_tmp")).unwrap();
        fs::rename(path("..data_tmp"), path("..data")).unwrap();
        let SettingChange::Good(settings) = watched.check(at(2)) else { panic!("not seen") };
        assert_eq!(settings.models[0].name, "n");
    }

    #[test]
    fn what_needs_a_restart_is_said_until_it_is_undone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gateway.toml");
        fs::write(&path, GOOD).unwrap();
        let (mut watched, _) = Watched::open(&path, at(1)).unwrap();
        let other = "threads = 7\nadmin = \"127.0.0.1:1\"\n[telemetry]\naccess_log = false\n";
        fs::write(&path, format!("{other}{GOOD}")).unwrap();
        assert!(matches!(watched.check(at(2)), SettingChange::Good(_)));
        assert_eq!(watched.reload().needs_restart, ["admin", "threads"]);
        fs::write(&path, GOOD).unwrap();
        assert!(matches!(watched.check(at(3)), SettingChange::Good(_)));
        assert!(watched.reload().needs_restart.is_empty());
    }

    #[test]
    fn a_bad_file_at_the_start_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gateway.toml");
        assert!(Watched::open(&path, at(1)).unwrap_err()[0].contains("cannot read the file"));
        fs::write(&path, "open = 3").unwrap();
        assert_eq!(Watched::open(&path, at(1)).unwrap_err().len(), 2);
    }
}
