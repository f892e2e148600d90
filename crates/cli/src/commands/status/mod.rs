//! `flyball status`: waits until models are as their owners want them, for pipelines.
//!
//! What settled means is kstatus's: `judge` reads the conditions, the loop here waits.

mod judge;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use flyball_resources::ModelService;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::Instant;

use crate::cluster::{Cluster, connect};
use crate::flags::{ClusterArgs, time};
use crate::output::document::{Block, Cell, Column, Row, Table, Tone};
use crate::output::{Answer, Detail, Document, Exit, Failure, Printer, age, plural};
use crate::served::{find, full_name, list};
use judge::{Judged, State};

/// Between two looks.
const EVERY: Duration = Duration::from_secs(1);

/// Wait until a model has settled
///
/// The exit status says whether it has. Settled is what kstatus calls current: Ready is True, nothing is Reconciling,
/// and the status is about the newest spec. A model that is Stalled needs a person, which ends the wait with status 1.
/// Changes are printed to stderr.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// The model: NAME, or NAMESPACE/NAME; all of the namespace if absent
    #[arg(value_name = "NAME")]
    model: Option<String>,

    /// How long to wait; 0 checks once
    // Not `--timeout`: that is for one request.
    #[arg(long, value_name = "TIME", env = "FLYBALL_STATUS_WAIT", hide_env_values = true)]
    #[arg(default_value = "10m", value_parser = time)]
    wait: Duration,
}

/// Whether models have settled.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatusAnswer {
    /// Whether the wait timed out.
    timed_out: bool,
    /// Seconds waited.
    waited_seconds: u64,
    /// Each model.
    models: Vec<Judged>,
}

impl Answer for StatusAnswer {
    const KIND: &'static str = "Status";

    fn view(&self, _: Detail) -> Document {
        let columns = vec![
            Column::left("MODEL"),
            Column::left("STATE"),
            Column::right("READY"),
            Column::right("DESIRED"),
            Column::left("REASON"),
            Column::left("MESSAGE"),
        ];
        let rows = self.models.iter().map(row).collect();
        let count = |state| self.models.iter().filter(|one| one.state == state).count();
        let verdict = format!(
            "{}: {} settled, {} stalled, {} in progress   {} {}",
            plural(self.models.len(), "model"),
            count(State::Settled),
            count(State::Stalled),
            count(State::InProgress),
            if self.timed_out { "timed out after" } else { "in" },
            age(Duration::from_secs(self.waited_seconds)),
        );
        let table = Block::Table(Table { rows, ..Table::new(columns) });
        Document { blocks: vec![table, Block::Gap, Block::Line(verdict)] }
    }

    fn exit(&self) -> Exit {
        match self.models.iter().map(|one| one.state).max() {
            _ if self.timed_out => Exit::TimedOut,
            Some(State::Stalled) => Exit::No,
            _ => Exit::Yes,
        }
    }
}

fn row(one: &Judged) -> Row {
    let tone = match one.state {
        State::Settled => Tone::Good,
        State::InProgress => Tone::Caution,
        State::Stalled => Tone::Bad,
    };
    let count = |count: Option<i32>| count.map_or("–".to_owned(), |count| count.to_string());
    let cells = [
        one.model.clone().into(),
        Cell::toned(one.state.word(), tone),
        count(one.ready).into(),
        count(one.wants).into(),
        one.reason.clone().unwrap_or_else(|| "–".to_owned()).into(),
        one.message.clone().into(),
    ];
    Row::new(cells)
}

pub(crate) async fn run(
    args: &StatusArgs,
    global: &ClusterArgs,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let cluster = connect(global).await?;
    let (began, mut printed) = (Instant::now(), BTreeMap::new());
    // The first look must work; later ones may fail while time is left.
    let mut models = fetch(args, &cluster, global).await?;
    loop {
        let judged: Vec<Judged> = models.iter().map(judge::judge).collect();
        print_changes(&judged, &mut printed, printer);
        let stalled = judged.iter().any(|one| one.state == State::Stalled);
        let waits = judged.iter().any(|one| one.state == State::InProgress);
        let timed_out = began.elapsed() >= args.wait;
        if stalled || !waits || timed_out {
            return Ok(printer.answer(&StatusAnswer {
                timed_out: waits && !stalled && timed_out,
                waited_seconds: began.elapsed().as_secs(),
                models: judged,
            }));
        }
        let left = args.wait.saturating_sub(began.elapsed());
        tokio::time::sleep(EVERY.min(left)).await;
        if let Ok(seen) = fetch(args, &cluster, global).await {
            models = seen;
        }
    }
}

async fn fetch(
    args: &StatusArgs,
    cluster: &Cluster,
    global: &ClusterArgs,
) -> Result<Vec<ModelService>, Failure> {
    if let Some(name) = &args.model {
        return Ok(vec![find(cluster, global, name).await?]);
    }
    let mut models = list(cluster, global.namespace.as_deref(), global.timeout).await?;
    if models.is_empty() {
        // Saying yes about nothing would be a false green.
        return Err(Failure::new(Exit::Unknown, "there is no ModelService to wait for")
            .at(cluster.address.clone())
            .hint("docs/guides/operator.md adopts a Deployment with six lines"));
    }
    models.sort_by_key(full_name);
    Ok(models)
}

/// Says what changed since the last look, on stderr.
fn print_changes(judged: &[Judged], printed: &mut BTreeMap<String, String>, printer: &Printer) {
    if printer.quiet {
        return;
    }
    for one in judged {
        let line = one.line();
        if printed.get(&one.model) != Some(&line) {
            let at = jiff::Timestamp::now().strftime("%H:%M:%S");
            printer.note(&format!("{at} UTC  {line}"));
            printed.insert(one.model.clone(), line);
        }
    }
}
