//! `flyball top`: what gateways do right now.
//!
//! `fetch` asks gateways, `answer` is what they said together, `view` shows it as tables. With
//! `--watch`, `live` asks again and again and listens to keys, and `screen` draws.

mod answer;
mod fetch;
mod live;
mod screen;
#[cfg(test)]
mod tests;
mod view;

use std::io::IsTerminal as _;
use std::time::Duration;

use clap::Args;
use clap::builder::BoolishValueParser;

use crate::flags::{ClusterArgs, time_above_zero};
use crate::output::{Exit, Failure, Format, Printer};
use crate::reach::TokenArgs;
#[cfg(test)]
pub(crate) use answer::Top;

/// Show live traffic of gateways
///
/// Models, engines, queues and the slowest callers. Rates cover the last ten seconds, everything else the last minute
/// or this moment. `!` marks what needs attention. Several gateways are added up; times cover all requests of all
/// gateways.
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Admin address of a gateway; may be repeated
    #[arg(
        long = "gateway",
        value_name = "URL",
        env = "FLYBALL_TOP_GATEWAY",
        hide_env_values = true
    )]
    #[arg(default_value = "http://127.0.0.1:9090", value_delimiter = ',')]
    gateways: Vec<http::Uri>,

    #[command(flatten)]
    token: TokenArgs,

    /// Refresh continuously; q quits, ? shows the keys
    #[arg(short, long, env = "FLYBALL_TOP_WATCH")]
    #[arg(hide_env_values = true, value_parser = BoolishValueParser::new())]
    watch: bool,

    /// With --watch: refresh interval
    #[arg(long, value_name = "TIME", env = "FLYBALL_TOP_EVERY", hide_env_values = true)]
    #[arg(default_value = "1s", value_parser = time_above_zero)]
    every: Duration,
}

pub(crate) async fn run(
    args: &TopArgs,
    cluster: &ClusterArgs,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let token = args.token.read()?;
    let gateways = fetch::Gateways::new(&args.gateways, token, cluster.timeout).await?;
    if !args.watch {
        return gateways.fetch().await.map(|top| printer.answer(&top));
    }
    if printer.format != Format::Table || !std::io::stdout().is_terminal() {
        return Err(Failure::new(Exit::Usage, "--watch needs a terminal")
            .because("it draws on the whole screen")
            .hint("without --watch every form of output works, also into a pipe"));
    }
    live::run(&gateways, args.every).await
}
