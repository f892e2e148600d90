//! The same for people: a table of all, or a tree of one.

use super::{ListedRun, RunList};
use crate::moment::clock_of;
use crate::output::document::{Block, Cell, Column, Node, Row, Table, Tone};
use crate::output::{Answer, Detail, Document, Exit, plural};
use crate::training_run::RunState;

/// What is not known.
const UNKNOWN: &str = "–";

impl Answer for RunList {
    const KIND: &'static str = "RunList";

    fn view(&self, detail: Detail) -> Document {
        let now = self.asked_at.parse().unwrap_or(jiff::Timestamp::MAX);
        match self.runs.as_slice() {
            [run] if self.one => one(run, now),
            _ => self.table(detail, now),
        }
    }

    fn exit(&self) -> Exit {
        let Some(run) = self.runs.first().filter(|_| self.waited) else { return Exit::Yes };
        match run.state {
            _ if self.timed_out => Exit::TimedOut,
            RunState::Complete => Exit::Yes,
            _ => Exit::No,
        }
    }
}

impl RunList {
    fn table(&self, detail: Detail, now: jiff::Timestamp) -> Document {
        let mut document = Document::new();
        let columns = vec![
            Column::left("RUN"),
            Column::left("STATE"),
            Column::right("STEP"),
            Column::right("DONE"),
            Column::left("END"),
            Column::right("COST"),
            Column::left("RECOMMENDED"),
        ];
        let bad = |run: &&ListedRun| matches!(run.state, RunState::Failed | RunState::Stalled);
        let shown = self.runs.iter().filter(|run| detail == Detail::Full || bad(run));
        let rows: Vec<Row> = shown.map(|run| run.row(now)).collect();
        if !rows.is_empty() {
            document.push(Block::Table(Table { rows, ..Table::new(columns) }));
            document.push(Block::Gap);
        }
        let notes = self.runs.iter().filter(bad);
        let notes: Vec<String> = notes
            .filter_map(|run| Some(format!("{}: {}", run.run, run.message.as_ref()?)))
            .collect();
        if !notes.is_empty() {
            document.push(Block::Notes(notes));
            document.push(Block::Gap);
        }
        let count = |state| self.runs.iter().filter(|run| run.state == state).count();
        let states = [
            RunState::Running,
            RunState::Waiting,
            RunState::Stalled,
            RunState::Complete,
            RunState::Failed,
            RunState::Unknown,
        ];
        let counts = states.map(|state| format!("{} {}", count(state), state.word()));
        let runs = plural(self.runs.len(), "run");
        document.push(Block::Line(format!("{runs}: {}", counts.join(", "))));
        document
    }
}

fn one(run: &ListedRun, now: jiff::Timestamp) -> Document {
    let mut document = Document::new();
    document.push(Block::Line(format!("{}   {}   {}", run.run, run.state.word(), run.mode)));
    document.push(Block::Tree(run.nodes(now)));
    document
}

impl ListedRun {
    /// What `--watch` says of a change.
    pub(super) fn line(&self, now: jiff::Timestamp) -> String {
        let message = self.message.as_ref().map_or_else(String::new, |text| format!(", {text}"));
        let end = self.end(now).map_or_else(String::new, |end| format!(", end {end}"));
        format!("{} is {}{message}{end}", self.run, self.state.word())
    }

    fn row(&self, now: jiff::Timestamp) -> Row {
        let tone = match self.state {
            RunState::Complete | RunState::Running => Tone::Good,
            RunState::Waiting | RunState::Unknown => Tone::Caution,
            RunState::Failed | RunState::Stalled => Tone::Bad,
        };
        let progress = self.progress.as_ref();
        let or = |text: Option<String>| Cell::from(text.unwrap_or_else(|| UNKNOWN.to_owned()));
        Row::new([
            self.run.clone().into(),
            Cell::toned(self.state.word(), tone),
            or(progress.and_then(|one| one.step).map(|step| step.to_string())),
            or(progress.and_then(|one| one.percent.as_ref()).map(|share| format!("{share} %"))),
            or(self.end(now)),
            or(self.cost.as_ref().map(|cost| format!("{} {}", cost.spent, cost.currency))),
            or(self.decision.as_ref().map(|decision| decision.choice.clone())),
        ])
    }

    fn end(&self, now: jiff::Timestamp) -> Option<String> {
        Some(clock_of(&self.expected_end.as_ref()?.likely, now))
    }

    fn nodes(&self, now: jiff::Timestamp) -> Vec<Node> {
        let or = |text: Option<String>| text.unwrap_or_else(|| "unknown".to_owned());
        let mut nodes = Vec::new();
        if let Some(reason) = &self.reason {
            nodes.push(Node::new(
                "state",
                reason.clone(),
                self.message.clone().unwrap_or_default(),
            ));
        } else {
            nodes.push(Node::new("state", "unknown", "is an operator running? flyball check"));
        }
        nodes.push(self.steps());
        let over = self.state.is_over();
        let end = self.expected_end.as_ref();
        let about = end.map_or_else(String::new, |end| {
            let [first, last] = [&end.earliest, &end.latest].map(|at| clock_of(at, now));
            format!("from {first} to {last}, {}", end.origin.to_lowercase())
        });
        if !over {
            nodes.push(Node::new("end", or(self.end(now)), about));
        }
        let deadline = self.deadline.as_ref().map(|at| clock_of(at, now));
        let deadline = deadline.unwrap_or_else(|| "none".to_owned());
        nodes.push(Node::new("deadline", deadline, self.in_time.clone().unwrap_or_default()));
        if !over {
            nodes.push(Node::new("machines", or(self.machines.clone()), ""));
        }
        nodes.push(self.money());
        nodes.push(self.losses());
        if !over {
            nodes.push(self.advice());
        }
        if let Some(every) = self.suggested_save_seconds {
            nodes.push(Node::new("save", format!("every {every} s"), "suggested"));
        }
        nodes
    }

    fn steps(&self) -> Node {
        let Some(progress) = &self.progress else { return Node::new("step", "unknown", "") };
        let Some(step) = progress.step else {
            let done = progress.percent.as_ref().map(|share| format!("{share} % done"));
            let about = "by its time on machines; no step was reported";
            return Node::new("step", done.unwrap_or_else(|| "unknown".to_owned()), about);
        };
        let of = progress.total_steps.map_or_else(String::new, |total| format!(" of {total}"));
        let done =
            progress.percent.as_ref().map_or_else(String::new, |share| format!(", {share} %"));
        let saved = match progress.saved_step {
            Some(saved) => format!("last saved at {saved}"),
            None => "never saved".to_owned(),
        };
        let each = progress.step_seconds.as_ref();
        let each = each.map_or_else(String::new, |seconds| format!(", {seconds} s per step"));
        Node::new("step", format!("{step}{of}{done}"), format!("{saved}{each}"))
    }

    fn money(&self) -> Node {
        let Some(cost) = &self.cost else {
            return Node::new("cost", "unknown", "no price of the pool is known");
        };
        let expected = cost.expected.as_ref();
        let expected = expected.map_or("the end is unknown".to_owned(), |at_end| {
            format!("{at_end} {} expected at the end", cost.currency)
        });
        let hourly = cost.hourly.as_ref();
        let hourly =
            hourly.map_or_else(String::new, |cost_now| format!(", {cost_now} per hour now"));
        let spent = format!("{} {} so far", cost.spent, cost.currency);
        Node::new("cost", spent, format!("{expected}{hourly}"))
    }

    fn losses(&self) -> Node {
        let goodput = self.goodput_percent.as_ref();
        let goodput = goodput.map_or("unknown".to_owned(), |share| format!("{share} %"));
        let each = self.lost.iter().map(|lost| {
            let times = plural(usize::try_from(lost.times).unwrap_or(0), "time");
            format!("{} {times}, {} steps ({} s)", lost.cause, lost.steps, lost.seconds)
        });
        let each: Vec<String> = each.collect();
        let lost = if each.is_empty() { "nothing was lost".to_owned() } else { each.join("; ") };
        Node::new("goodput", goodput, lost)
    }

    fn advice(&self) -> Node {
        let Some(decision) = &self.decision else {
            return Node::new("decision", "none", "flyball why run/NAME says what is missing");
        };
        let note = format!("{}; flyball explain {}", decision.message, decision.reason);
        Node::new("decision", decision.choice.clone(), note)
    }
}
