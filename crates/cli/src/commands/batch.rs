//! `flyball batch`: files and batches, or only a look at the settings.

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::BoolishValueParser;
use flyball_batch::settings::BatchSettings;
use flyball_telemetry::logs;
use schemars::JsonSchema;
use serde::Serialize;

use crate::output::document::Block;
use crate::output::{Answer, Detail, Document, Exit, Failure, FailureCode, Printer, plural};

/// Serve OpenAI's files and batches on capacity that nobody else wants
///
/// Takes input files, sends their lines to the gateway in class batch, and stores the results. All state is in one
/// store: another process goes on where one died. Runs until SIGTERM or SIGINT. Logs go to stderr.
#[derive(Debug, Args)]
pub(crate) struct BatchArgs {
    /// Settings; docs/reference/batch-settings.md lists them
    #[arg(long, value_name = "FILE", env = "FLYBALL_BATCH_CONFIG", hide_env_values = true)]
    config: PathBuf,

    /// Only check the settings and report every problem
    #[arg(long, env = "FLYBALL_BATCH_CHECK", hide_env_values = true)]
    #[arg(value_parser = BoolishValueParser::new())]
    check: bool,

    /// Log filter: a level, or a list such as info,flyball_batch=debug
    #[arg(long, value_name = "FILTER", env = "FLYBALL_LOG", hide_env_values = true)]
    #[arg(default_value = "info")]
    log: String,

    /// Format of log lines: text or json
    #[arg(long, value_name = "FORM", env = "FLYBALL_LOG_FORMAT", hide_env_values = true)]
    #[arg(default_value = "text")]
    log_format: String,
}

/// Result of a successful check of settings.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BatchSettingsAnswer {
    /// The file.
    file: String,
    /// Address for client connections.
    listen: String,
    /// Folder of files and batches.
    store: String,
    /// The gateway.
    gateway: String,
    /// Number of keys of callers.
    callers: usize,
}

impl Answer for BatchSettingsAnswer {
    const KIND: &'static str = "BatchSettings";

    fn view(&self, _: Detail) -> Document {
        let Self { file, listen, store, gateway, .. } = self;
        let callers = plural(self.callers, "caller");
        let verdict =
            format!("{file} is good: {listen}, store {store}, gateway {gateway}, {callers}");
        Document { blocks: vec![Block::Line(verdict)] }
    }
}

pub(crate) fn run(args: &BatchArgs, printer: &Printer) -> Result<Exit, Failure> {
    let settings = read(&args.config)?;
    if args.check {
        return Ok(printer.answer(&BatchSettingsAnswer {
            file: args.config.display().to_string(),
            listen: settings.listen.to_string(),
            store: settings.store.display().to_string(),
            gateway: settings.gateway,
            callers: settings.callers.len(),
        }));
    }
    start_logs(args)?;
    flyball_batch::service::run(&settings).map_err(|error| {
        Failure::new(Exit::Unknown, "files and batches cannot be served")
            .at(settings.listen.to_string())
            .because(error.to_string())
            .hint("is the address free, and may this user write into the store?")
    })?;
    Ok(Exit::Yes)
}

fn read(file: &Path) -> Result<BatchSettings, Failure> {
    let shown = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|error| {
        Failure::new(Exit::Usage, "cannot read the settings")
            .at(shown.clone())
            .because(error.to_string())
            .hint("flyball explain FLY-811")
            .code(FailureCode::BatchSettings)
    })?;
    BatchSettings::parse(&text).map_err(|problems| {
        let count = plural(problems.len(), "problem");
        Failure::new(Exit::No, format!("the settings have {count}"))
            .at(shown)
            .problems(problems)
            .hint("flyball explain FLY-811")
            .code(FailureCode::BatchSettings)
    })
}

/// A service logs also without `-v`.
fn start_logs(args: &BatchArgs) -> Result<(), Failure> {
    let wrong = |error: logs::LogError| Failure::new(Exit::Usage, error.to_string());
    let format = args.log_format.parse().map_err(wrong)?;
    match logs::init(format, &args.log) {
        // With `-v` it is set up already.
        Ok(()) | Err(logs::LogError::AlreadySetUp) => Ok(()),
        Err(error) => Err(wrong(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{answer_json, conforms};

    #[test]
    fn json_has_the_shape_of_its_schema() {
        let answer = BatchSettingsAnswer {
            file: "batch.toml".to_owned(),
            listen: "127.0.0.1:8081".to_owned(),
            store: "/data".to_owned(),
            gateway: "127.0.0.1:8080".to_owned(),
            callers: 0,
        };
        conforms("batch-settings", &answer_json(&answer));
    }
}
