//! From a command line to an exit status.

use std::ffi::OsString;
use std::path::Path;

use clap::{CommandFactory as _, FromArgMatches, error::ErrorKind};

use crate::args::{Cli, Command};
use crate::commands::{
    audit, backtest, check, collect, decisions, emulate, explain, fit, freeze, gateway, gpus,
    heartbeat, help, install, key, models, operator, plan, prices, run as training_run, simulate,
    status, tenants, top, trace, version, whatif, why,
};
use crate::help::{self as dressed, Length};
use crate::output::{Color, Exit, Failure, Format, Printer};

pub(crate) fn run(args: impl Iterator<Item = OsString>) -> Exit {
    let args: Vec<OsString> = args.collect();
    let cli = match parse(&args) {
        Ok(cli) => cli,
        Err(error) => return refuse(&error, &args),
    };
    start_logs(cli.global.output.verbose);
    let printer = cli.global.output.printer();
    match execute(cli, printer) {
        Ok(exit) => exit,
        Err(failure) => printer.failure(&failure),
    }
}

fn execute(cli: Cli, printer: Printer) -> Result<Exit, Failure> {
    let cluster = &cli.global.cluster;
    match cli.command {
        Command::Check(args) => until_interrupted(check::run(&args, cluster, &printer)),
        Command::Why(args) => until_interrupted(why::run(&args, cluster, &printer)),
        Command::Decisions(args) => until_interrupted(decisions::run(&args, cluster, &printer)),
        Command::Status(args) => until_interrupted(status::run(&args, cluster, &printer)),
        Command::Whatif(args) => until_interrupted(whatif::run(&args, cluster, &printer)),
        Command::Diff(args) => until_interrupted(whatif::diff(&args, cluster, &printer)),
        Command::Freeze(args) => until_interrupted(freeze::freeze(&args, cluster, &printer)),
        Command::Resume(args) => until_interrupted(freeze::resume(&args, cluster, &printer)),
        Command::Explain(args) => explain::run(&args, &printer),
        Command::Backtest(args) => backtest::run(&args, &printer),
        Command::Simulate(args) => simulate::run(&args, &printer),
        Command::Collect(args) => until_interrupted(collect::run(&args)),
        Command::Emulate(args) => until_interrupted(emulate::run(&args, &printer)),
        Command::Fit(args) => fit::run(&args, &printer),
        Command::Plan(args) => plan::run(&args, &printer),
        Command::Gateway(args) => gateway::run(&args, &printer),
        Command::Gpus(args) => gpus::run(&args, &printer),
        Command::Heartbeat(args) => until_interrupted(heartbeat::run(&args)),
        Command::Key(args) => until_interrupted(key::run(&args, cluster, &printer)),
        Command::Models(args) => models::run(&args, &printer),
        Command::Operator(args) => until_interrupted(operator::run(&args)),
        Command::Prices(args) => prices::run(&args, &printer),
        Command::Run(args) => until_interrupted(training_run::run(&args, cluster, &printer)),
        Command::Tenants(args) => until_interrupted(tenants::run(&args, cluster, &printer)),
        Command::Audit(args) => audit::run(&args, &printer),
        Command::Top(args) => until_interrupted(top::run(&args, cluster, &printer)),
        Command::Trace(args) => until_interrupted(trace::run(&args, cluster, &printer)),
        Command::Help(args) => help::run(&args, &Cli::command(), &printer),
        Command::Completions(args) => install::completions(&args, Cli::command()),
        Command::Man(args) => install::man(&args, Cli::command(), &printer),
        Command::Version => Ok(version::run(&printer)),
    }
}

/// Runs a command that talks to the outside world. Ctrl-C ends it at any point.
fn until_interrupted(
    command: impl Future<Output = Result<Exit, Failure>>,
) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Usage, "cannot start").because(error.to_string()))?;
    let result = runtime.block_on(async {
        tokio::select! {
            result = command => result,
            _ = tokio::signal::ctrl_c() => Ok(Exit::Interrupted),
        }
    });
    // A name lookup or a credential plugin may still hang in a thread; it must not hold us.
    runtime.shutdown_background();
    result
}

fn parse(args: &[OsString]) -> Result<Cli, clap::Error> {
    let short = args.iter().any(|arg| arg == "-h");
    let length = if short { Length::Short } else { Length::Long };
    let mut command = dressed::command(Cli::command(), length);
    // A link named kubectl-flyball makes this a kubectl plugin; its help should say so.
    let called = args.first().map(Path::new).and_then(Path::file_stem);
    if called.is_some_and(|name| name == "kubectl-flyball") {
        command = command.bin_name("kubectl flyball");
    }
    let matches = command.try_get_matches_from_mut(args)?;
    if let Some((name, flag)) = dressed::out_of_place(&matches) {
        let what = format!("flyball {name} needs no cluster and takes no --{flag}");
        return Err(command.error(ErrorKind::UnknownArgument, what));
    }
    Cli::from_arg_matches(&matches)
}

/// Help and version are answers; everything else is wrong usage.
fn refuse(error: &clap::Error, args: &[OsString]) -> Exit {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // A reader that went away is not an error; nothing else can be done about it.
        let _ = error.print();
        return Exit::Yes;
    }
    let Some(format) = document_format(args) else {
        let _ = error.print();
        return Exit::Usage;
    };
    let rendered = error.render().to_string();
    let mut lines = rendered.lines().map(str::trim).filter(|line| !line.is_empty());
    let what = lines.next().unwrap_or_default();
    let what = what.strip_prefix("error: ").unwrap_or(what);
    let mut failure = Failure::new(Exit::Usage, what).hint("flyball --help lists what exists");
    // "tip: ..." and "[possible values: ...]" follow; usage is for people.
    let why: Vec<&str> = lines
        .take_while(|line| !line.starts_with("Usage") && !line.starts_with("For more"))
        .collect();
    if !why.is_empty() {
        failure = failure.because(why.join("; "));
    }
    let printer = Printer { format, color: Color::Auto, quiet: false, progress: false };
    printer.failure(&failure)
}

/// The arguments could not be read, yet a script that asked for a document should get one.
fn document_format(args: &[OsString]) -> Option<Format> {
    let words: Vec<&str> = args.iter().filter_map(|arg| arg.to_str()).collect();
    let pairs = words.windows(2).filter(|pair| matches!(pair[0], "-o" | "--format"));
    let joined = words.iter().filter_map(|word| {
        let long = word.strip_prefix("--format=").or_else(|| word.strip_prefix("-o="));
        long.or_else(|| word.strip_prefix("-o"))
    });
    let typed = pairs.map(|pair| pair[1]).chain(joined);
    let variable = std::env::var("FLYBALL_FORMAT").ok();
    typed.chain(variable.as_deref()).find_map(|form| match form {
        "json" => Some(Format::Json),
        "yaml" => Some(Format::Yaml),
        _ => None,
    })
}

/// Logs come on standard error, and only when asked for: a library's log line is not an answer.
fn start_logs(verbose: u8) {
    let filter = match verbose {
        0 => return,
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    // Fails only if logging was set up before; then it is set up.
    let _ = flyball_telemetry::logs::init(flyball_telemetry::logs::Format::Text, filter);
}
