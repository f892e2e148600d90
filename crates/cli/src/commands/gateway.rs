//! `flyball gateway`: the front door, or only a look at its settings.

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::BoolishValueParser;
use flyball_gateway::settings::{Code, GatewaySettingsFile, SettingProblem};
use flyball_telemetry::logs;
use schemars::JsonSchema;
use serde::Serialize;

use crate::output::document::Block;
use crate::output::{Answer, Detail, Document, Exit, Failure, FailureCode, Printer, plural};

/// Serve models over OpenAI's and Anthropic's API
///
/// Each request goes to the engine that answers it cheapest. Runs until SIGTERM or SIGINT and then lets requests
/// finish. Logs go to stderr, one line of JSON per request to stdout. A changed settings file is reloaded while it
/// runs; an invalid one is refused and the previous settings stay.
#[derive(Debug, Args)]
pub(crate) struct GatewayArgs {
    /// Settings; docs/reference/gateway-settings.md lists them
    #[arg(long, value_name = "FILE", env = "FLYBALL_GATEWAY_CONFIG", hide_env_values = true)]
    config: PathBuf,

    /// Only check the settings and report every problem
    #[arg(long, env = "FLYBALL_GATEWAY_CHECK", hide_env_values = true)]
    #[arg(value_parser = BoolishValueParser::new())]
    check: bool,

    /// Log filter: a level, or a list such as info,flyball_gateway=debug,flyball_fleet=debug
    #[arg(long, value_name = "FILTER", env = "FLYBALL_LOG", hide_env_values = true)]
    #[arg(default_value = "info,kube_client=off,kube_runtime=off")]
    log: String,

    /// Format of log lines: text or json
    #[arg(long, value_name = "FORM", env = "FLYBALL_LOG_FORMAT", hide_env_values = true)]
    #[arg(default_value = "text")]
    log_format: String,
}

/// Result of a successful check of settings.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GatewaySettings {
    /// The file.
    file: String,
    /// Address for client connections.
    listen: String,
    /// Number of models.
    models: usize,
    /// Number of keys.
    keys: usize,
    /// Warnings.
    warnings: Vec<String>,
}

impl Answer for GatewaySettings {
    const KIND: &'static str = "GatewaySettings";

    fn view(&self, _: Detail) -> Document {
        let (models, keys) = (plural(self.models, "model"), plural(self.keys, "key"));
        let warnings = plural(self.warnings.len(), "warning");
        let notes = self.warnings.iter().map(|warning| format!("warning: {warning}")).collect();
        let verdict =
            format!("{} is good: {}, {models}, {keys}, {warnings}", self.file, self.listen);
        Document { blocks: vec![Block::Notes(notes), Block::Line(verdict)] }
    }
}

pub(crate) fn run(args: &GatewayArgs, printer: &Printer) -> Result<Exit, Failure> {
    let settings = read(&args.config)?;
    if args.check {
        return Ok(printer.answer(&GatewaySettings {
            file: args.config.display().to_string(),
            listen: settings.listen.to_string(),
            models: settings.models.len(),
            keys: settings.keys.len(),
            warnings: settings.warnings(),
        }));
    }
    start_logs(args)?;
    flyball_gateway::process::run(&args.config, env!("CARGO_PKG_VERSION")).map_err(|error| {
        Failure::new(Exit::Unknown, "the gateway cannot run")
            .at(settings.listen.to_string())
            .because(error.to_string())
            .hint("is the address free, and may this user listen on it?")
    })?;
    Ok(Exit::Yes)
}

fn read(file: &Path) -> Result<GatewaySettingsFile, Failure> {
    let shown = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|error| {
        Failure::new(Exit::Usage, "cannot read the settings")
            .at(shown.clone())
            .because(error.to_string())
            .hint("flyball explain FLY-801")
            .code(FailureCode::GatewayFile)
    })?;
    GatewaySettingsFile::parse(&text).map_err(|problems| refused(shown, &problems))
}

fn refused(file: String, problems: &[SettingProblem]) -> Failure {
    let first = problems.first().map_or(Code::Unreadable, |problem| problem.code);
    let code = match first {
        Code::Unreadable => FailureCode::GatewayFile,
        Code::UnknownSetting => FailureCode::GatewaySetting,
        Code::BadValue => FailureCode::GatewayValue,
        Code::Contradiction => FailureCode::GatewayContradiction,
        Code::OpenDoor => FailureCode::GatewayOpenDoor,
    };
    let count = plural(problems.len(), "problem");
    Failure::new(Exit::No, format!("the settings have {count}"))
        .at(file)
        .problems(problems.iter().map(ToString::to_string).collect())
        .hint(format!("flyball explain {}", code.id()))
        .code(code)
}

/// A service logs also without `-v`.
fn start_logs(args: &GatewayArgs) -> Result<(), Failure> {
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
        let answer = GatewaySettings {
            file: "gateway.toml".to_owned(),
            listen: "127.0.0.1:8080".to_owned(),
            models: 2,
            keys: 0,
            warnings: vec!["keys come in plain text".to_owned()],
        };
        conforms("gateway-settings", &answer_json(&answer));
    }

    #[test]
    fn every_code_of_a_problem_is_one_of_a_failure() {
        for code in Code::ALL {
            let problem = SettingProblem {
                code,
                line: None,
                path: String::new(),
                what: String::new(),
                hint: String::new(),
            };
            let failure = refused("gateway.toml".to_owned(), &[problem]);
            assert_eq!(failure.code.map(FailureCode::id), Some(code.id()));
        }
    }

    #[test]
    fn the_examples_of_the_guide_are_good_settings() {
        let guide = include_str!("../../../../docs/guides/gateway.md");
        let examples: Vec<&str> =
            guide.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
        assert!(examples.len() >= 2, "{}", examples.len());
        for example in examples {
            // Some show one setting only; the rest of such a file is a model.
            let model = "[[models]]\nname = \"m\"\npool = \"a/b\"\n";
            let whole = example.contains("[[models]]");
            let parsed =
                GatewaySettingsFile::parse(&format!("{example}{}", if whole { "" } else { model }));
            assert!(parsed.is_ok(), "{example}\n{parsed:?}");
        }
    }
}
