//! Log lines on standard error, as text for people or JSON for machines.
//!
//! Standard output is left to answers. Messages are lower case without a full stop, with values
//! as fields: `info!(model = %id, "replica drained")`. An ERROR line means a person should look.

use std::str::FromStr;
use thiserror::Error;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// How a log line is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// One line of words.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

impl FromStr for Format {
    type Err = LogError;

    fn from_str(text: &str) -> Result<Self, LogError> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(LogError::UnknownFormat(text.to_owned())),
        }
    }
}

/// Why logging could not be set up.
#[derive(Debug, Error)]
pub enum LogError {
    /// Neither `text` nor `json`.
    #[error("log format `{0}` must be `text` or `json`")]
    UnknownFormat(String),
    /// Not a filter.
    #[error(
        "log filter `{0}` must be a level (error, warn, info, debug, trace, off) or a list such \
         as `info,flyball_operator=debug`"
    )]
    BadFilter(String),
    /// Logging was set up before.
    #[error("logging is already set up")]
    AlreadySetUp,
}

/// Sets up logging for the whole process. Call it once.
///
/// `filter` is the one setting for what is logged, such as `info,flyball_operator=debug`.
pub fn init(format: Format, filter: &str) -> Result<(), LogError> {
    let subscriber = subscriber(format, filter, std::io::stderr)?;
    tracing::subscriber::set_global_default(subscriber).map_err(|_| LogError::AlreadySetUp)
}

fn subscriber<W>(
    format: Format,
    filter: &str,
    writer: W,
) -> Result<Box<dyn Subscriber + Send + Sync>, LogError>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    // No colours: these lines are read through `kubectl logs` and collectors, where the escape
    // codes are noise.
    let builder = tracing_subscriber::fmt()
        .with_env_filter(parse_filter(filter)?)
        .with_writer(writer)
        .with_ansi(false);
    Ok(match format {
        Format::Text => Box::new(builder.finish()),
        Format::Json => Box::new(builder.json().flatten_event(true).finish()),
    })
}

/// Reads a filter, strictly: levels, and `module=level`.
///
/// The filter library takes a misspelt level such as `inof` for the name of a module and then
/// logs nothing at all. So a word without `=` must be a level here.
fn parse_filter(filter: &str) -> Result<EnvFilter, LogError> {
    let bad = || LogError::BadFilter(filter.to_owned());
    let is_level = |word: &str| !word.is_empty() && word.parse::<LevelFilter>().is_ok();
    let is_module = |word: &str| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "_:".contains(c))
    };
    let is_part = |part: &str| match part.split_once('=') {
        Some((module, level)) => is_module(module) && is_level(level),
        None => is_level(part),
    };
    if !filter.split(',').all(|part| is_part(part.trim())) {
        return Err(bad());
    }
    EnvFilter::try_new(filter).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::{Arc, Mutex};
    use tracing::{debug, info, warn};

    #[derive(Clone, Default)]
    struct Captured(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(format: Format, filter: &str) -> String {
        let captured = Captured::default();
        let writer = captured.clone();
        let subscriber = subscriber(format, filter, move || writer.clone()).unwrap();
        tracing::subscriber::with_default(subscriber, || {
            debug!("details");
            info!(model = "a/qwen", replicas = 3, "replica drained");
            warn!(target: "elsewhere", "signal is stale");
        });
        let bytes = captured.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn text_is_one_line_per_event_with_its_fields() {
        let text = logged(Format::Text, "info");
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines[0].ends_with(r#"replica drained model="a/qwen" replicas=3"#), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn json_has_message_and_fields_at_the_top() {
        let text = logged(Format::Json, "info");
        let line = text.lines().next().unwrap();
        assert!(line.starts_with('{') && line.ends_with('}'), "{line}");
        for part in [r#""level":"INFO""#, r#""message":"replica drained""#, r#""replicas":3"#] {
            assert!(line.contains(part), "{line}");
        }
    }

    #[test]
    fn the_filter_is_followed() {
        assert_eq!(logged(Format::Text, "off"), "");
        assert_eq!(logged(Format::Text, "debug").lines().count(), 3);
        assert_eq!(logged(Format::Text, "info,elsewhere=off").lines().count(), 1);
    }

    #[test]
    fn a_misspelt_filter_is_refused_and_not_silence() {
        for wrong in ["", "inof", "info,", "info,flyball_core=loud", "info flyball=debug"] {
            assert!(matches!(parse_filter(wrong), Err(LogError::BadFilter(_))), "{wrong}");
        }
    }

    #[test]
    fn formats_are_read_by_name() {
        assert_eq!("text".parse::<Format>().unwrap(), Format::Text);
        assert_eq!("json".parse::<Format>().unwrap(), Format::Json);
        let error = "yaml".parse::<Format>().unwrap_err().to_string();
        assert_eq!(error, "log format `yaml` must be `text` or `json`");
    }
}
