//! The verdicts as lines and as a page.

use super::play::{Came, RIVALS};
use super::verdict::{Stand, Sums, Verdict};
use std::fmt::Write as _;

/// One line, for whoever waits.
pub(super) fn line(verdict: &Verdict) -> String {
    let (best, word) = columns(verdict);
    let later = later(verdict);
    format!("{}: {} | {best} | {word} | later {later}", verdict.world, of(&verdict.governor))
}

/// The page.
pub(super) fn markdown(verdicts: &[Verdict], sums: &Sums) -> String {
    let mut text = format!(
        "`flyball backtest --method requests` with TTFT of 3 s, 100 ms per token and one request in a hundred that may \
         miss; GPU-hours / share missed. Rivals are the {} that follow the load, at their published defaults. \"Later\" \
         is the second half, scored after the first was lived through, beside the cheapest of all, static numbers too, \
         that kept the limit in the first half: the one that an owner would have picked. A world counts as kept where \
         the governor keeps the limit, or where nobody does and nobody both missed fewer and cost less.\n\n\
         Kept in {:.0} % of {} worlds; the cheapest of those that kept it in {:.0} %, at worst {:+.0} % against the best. \
         Both methods say the same of {:.0} % of the static numbers.\n\n\
         | World | Clairvoyant | Governor | Best rival | | Later: governor, picked |\n|---|---|---|---|---|---|\n",
        RIVALS.len(),
        sums.kept_pct,
        verdicts.len(),
        sums.cheapest_pct,
        sums.worst_pct,
        sums.agree_pct,
    );
    for one in verdicts {
        let (best, word) = columns(one);
        let (world, bound, governor) = (&one.world, one.clairvoyant, of(&one.governor));
        let later = later(one);
        let _ = writeln!(text, "| {world} | {bound:.2} | {governor} | {best} | {word} | {later} |");
    }
    text
}

fn columns(verdict: &Verdict) -> (String, String) {
    let rival = verdict.best.as_ref().or(verdict.dominated_by.as_ref());
    let rival = rival.map_or_else(|| "nobody keeps it".to_owned(), named);
    let word = match (verdict.stand(), verdict.dearer_pct()) {
        (Stand::Kept, Some(pct)) => format!("{pct:+.0} %"),
        (Stand::Kept, None) => "alone".to_owned(),
        (Stand::Broke, _) => "**broken**".to_owned(),
        (Stand::Unbeaten, _) => "unbeaten".to_owned(),
        (Stand::Dominated, _) => "**dominated**".to_owned(),
    };
    (rival, word)
}

fn later(verdict: &Verdict) -> String {
    let picked = verdict.picked.as_ref().map_or_else(|| "nobody".to_owned(), named);
    format!("{}, {picked}", of(&verdict.later))
}

fn named(came: &Came) -> String {
    format!("{} {}", came.policy, of(came))
}

fn of(came: &Came) -> String {
    format!("{:.2} / {:.2} %", came.gpu_hours, 100.0 * came.missed)
}
