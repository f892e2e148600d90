//! The command line: one variant per command.

use crate::programs::{self, ACCURACY, BENCH};
use crate::{
    charts, checkout, ci, cluster, e2e, engines, figures_table, fuzz, heartbeat, house, image,
    tidy, trust,
};
use anyhow::Result;
use clap::Parser;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Task {
    /// Check the coding guidelines: arrows between crates, sizes, names, documents
    Tidy,
    /// Score the performance model against published measurements
    #[command(disable_help_flag = true)]
    Accuracy(Rest),
    /// Count the models whose shapes come with the program
    #[command(disable_help_flag = true)]
    Models(Rest),
    /// Ask what others have published the answers to, and hold Flyball's against them
    #[command(disable_help_flag = true)]
    KnownAnswers(Rest),
    /// Measure the simulator, the governor and the gateway
    #[command(disable_help_flag = true)]
    Bench(Rest),
    /// Lint and render the Helm charts, and hold them against what they are made from
    Charts(charts::Args),
    /// Show the measured figures against their targets, or record one
    Figures(figures_table::Args),
    /// Build xtask from nothing, and say how long that takes
    House(house::Args),
    /// A real Kubernetes on this machine, for tests
    #[command(subcommand)]
    Cluster(cluster::Command),
    /// Build the static binary and the image
    Image {
        /// Write `image.megabytes`
        #[arg(long)]
        figure: bool,
        /// For test clusters: of the program that is built beside the tests, which takes seconds
        #[arg(long, conflicts_with = "figure")]
        for_tests: bool,
        /// For tests, of this program, which was built for this machine; print only the path of the archive
        #[arg(long, requires = "for_tests", value_name = "PATH")]
        program: Option<PathBuf>,
    },
    /// Get and build real inference engines and their models, for tests
    Engines(engines::Args),
    /// The Python package of training runs: its tests, its cost, and a run that is killed
    #[command(subcommand)]
    Heartbeat(heartbeat::Command),
    /// Run the stories on a real cluster
    E2e(e2e::Args),
    /// Run the fuzz targets
    Fuzz(fuzz::Args),
    /// What was found wrong: mends taken out again, random worlds, what is open
    #[command(subcommand)]
    Trust(trust::Command),
    /// Before every commit: format, lints, tidy, tests, licences, documents
    Check(ci::CheckArgs),
    /// Everything CI runs, in its order, with a summary
    Ci(ci::Args),
}

/// Arguments that another program reads, `--help` too.
#[derive(clap::Args)]
struct Rest {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

impl Rest {
    /// Behind the name of their command.
    fn of(self, command: &str) -> Vec<OsString> {
        [OsString::from(command)].into_iter().chain(self.args).collect()
    }
}

pub(crate) fn run() -> Result<ExitCode> {
    let root = checkout::root()?;
    let accuracy = |command, rest: Rest| programs::run(&root, ACCURACY, &rest.of(command));
    match Task::parse() {
        Task::Tidy => return tidy::run(&root),
        Task::Charts(args) => charts::run(&root, &args)?,
        Task::Figures(args) => return figures_table::run(&root, args),
        Task::Accuracy(rest) => return accuracy("accuracy", rest),
        Task::Models(rest) => return accuracy("models", rest),
        Task::KnownAnswers(rest) => return accuracy("known-answers", rest),
        Task::Bench(rest) => return programs::run(&root, BENCH, &rest.args),
        Task::House(args) => house::run(&root, &args)?,
        Task::Cluster(command) => cluster::main(&root, command)?,
        Task::Check(args) => return ci::check(&root, &args),
        Task::Ci(args) => return ci::run(&root, &args),
        Task::Image { program: Some(program), .. } => {
            println!("{}", image::of_program(program)?.archive.display());
        }
        Task::Image { for_tests: true, .. } => image::build_for_tests(&root).map(drop)?,
        Task::Image { figure, .. } => image::build(&root, figure).map(drop)?,
        Task::Engines(args) => engines::run(&root, &args)?,
        Task::Heartbeat(command) => heartbeat::run(&root, &command)?,
        Task::E2e(args) => e2e::run(&root, &args).map(drop)?,
        Task::Fuzz(args) => fuzz::run(&root, &args)?,
        Task::Trust(command) => trust::run(&root, &command)?,
    }
    Ok(ExitCode::SUCCESS)
}
