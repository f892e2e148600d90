//! The cells as tables.

use super::{ALLOWED, Cell, Contender, median_saving};
use std::fmt::Write as _;

/// One line while the benchmark runs.
pub(crate) fn line(cell: &Cell) -> String {
    let governor = &cell.governor;
    let against = match (&cell.picked, cell.saving_pct()) {
        (Some(rival), Some(saving)) => {
            format!("{saving:5.1} % below {} ({})", rival.policy, rival.setting)
        }
        (Some(rival), None) => {
            format!(
                "{} ({}) misses {:.2} %",
                rival.policy,
                rival.setting,
                100.0 * rival.missed.mean
            )
        }
        _ => "no rival kept the limit in week 1".to_owned(),
    };
    let regret = cell
        .regret
        .as_ref()
        .map_or_else(String::new, |(law, pct)| format!("; {pct:+.1} % against {law}"));
    format!(
        "{:8} {:8} governor {:7.0} GPU-h, {:.3} x clairvoyant, {:.2} % missed; {against}{regret}",
        cell.source,
        cell.cold_start,
        governor.gpu_hours.mean,
        governor.gpu_hours.mean / cell.clairvoyant,
        100.0 * governor.missed.mean,
    )
}

/// The section of the page.
pub(crate) fn markdown(cells: &[Cell], seeds: u64) -> String {
    let won = cells.iter().filter(|cell| cell.is_won()).count();
    let mut text = format!(
        "Fluid replays of ServeGen (steps of 5 s, arrivals drawn from each client's own rate and \
         variation, gaps masked). A replica is scaled so that each model needs 20 on average; a \
         request misses when it waits more than 3 s and hangs up after 30 s. Rivals were tuned on \
         week 1 (the cheapest of their grid with at most {:.0} % missed) and tested on week 2, as \
         the governor was; {seeds} seeds, 95 % intervals. \"Picked\" is the cheapest rival, tuned \
         or at its defaults, that kept the limit in week 1: the one that an owner would have picked. \"Regret\" is what the \
         governor costs over the best of the laws that it chooses from, had that one decided all the time. \"Hindsight\" is the cheapest setting of any rival \
         that keeps it in week 2, chosen by looking at week 2: no real policy has that.\n\n\
         **{won} of {} cells won; {:.1} % fewer GPU-hours in the median cell.**\n\n",
        100.0 * ALLOWED,
        cells.len(),
        median_saving(cells),
    );
    text += "| Model | Cold start | Clairvoyant GPU-h | Governor GPU-h | x clairvoyant | Missed % | TTFT p99 s | Starts | Reversals | Picked | its GPU-h | its missed % | Saved % | Hindsight GPU-h | Regret |\n";
    text += "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";
    for cell in cells {
        let _ = writeln!(text, "{}", row(cell));
    }
    text += "\nEvery tuned rival, as GPU-hours over the governor's (missed %; bold keeps the limit):\n\n";
    text += &everybody(cells, |cell| &cell.tuned);
    text += "\nThe same at published defaults:\n\n";
    text += &everybody(cells, |cell| &cell.defaults);
    text
}

fn row(cell: &Cell) -> String {
    let Cell { source, cold_start, clairvoyant, governor, .. } = cell;
    let mut row = format!(
        "| {source} | {cold_start} | {clairvoyant:.0} | {:.0} | {:.3} | {:.2} | {:.1} | {:.0} | {:.0} |",
        governor.gpu_hours,
        governor.gpu_hours.mean / clairvoyant,
        governor.missed.times(100.0),
        governor.first_token_p99,
        governor.starts,
        governor.reversals,
    );
    row += &governor.beside(cell.picked.as_ref());
    row += &match &cell.hindsight {
        Some((_, tried)) => format!(" {:.0} |", tried.gpu_hours),
        None => " – |".to_owned(),
    };
    row += &match &cell.regret {
        Some((law, pct)) => format!(" {pct:+.1} % on {law} |"),
        None => " – |".to_owned(),
    };
    row
}

/// One row per policy, one column per cell.
fn everybody(cells: &[Cell], list: impl Fn(&Cell) -> &Vec<Contender>) -> String {
    let Some(first) = cells.first() else { return String::new() };
    let names: Vec<&str> = list(first).iter().map(|one| one.policy.as_str()).collect();
    let heads = cells.iter().map(|cell| format!(" {} {} |", cell.source, cell.cold_start));
    let mut text =
        format!("| Policy |{}\n|---|{}\n", heads.collect::<String>(), "---|".repeat(cells.len()));
    for name in names {
        let _ = write!(text, "| {name} |");
        for cell in cells {
            let found = list(cell).iter().find(|one| one.policy == name);
            let _ = match found {
                Some(one) => {
                    let ratio = one.gpu_hours.mean / cell.governor.gpu_hours.mean;
                    let mark = if one.keeps() { "**" } else { "" };
                    write!(text, " {mark}{ratio:.2}{mark} ({:.1}) |", 100.0 * one.missed.mean)
                }
                None => write!(text, " – |"),
            };
        }
        text += "\n";
    }
    text
}
