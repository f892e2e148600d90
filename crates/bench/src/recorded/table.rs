//! The verdicts as lines and as a page.

use super::knee::Knee;
use super::play::{Came, MOST, rivals};
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
         miss; GPU-hours / share missed; nobody has more than {} replicas. \"Best rival\" is the cheapest that kept the limit: \
         of the {} that follow the load at their published defaults, and of each of them and of static numbers at the \
         setting that did best in the first half. \"Later\" is the second half, scored after the first was lived through, \
         beside the cheapest of all that kept the limit in the first half: the one that an owner would have picked. \
         \"In reach\" is what somebody pays who sees the load of each minute and knows, from the whole recording, which \
         loads follow it and how often, but not what comes; with the fewest misses that this allows. The clairvoyant \
         knows what comes and misses nothing. A world counts as kept where \
         the governor keeps the limit, or where nobody does and nobody both missed fewer and cost less.\n\n\
         For what came later the governor was the better choice than the rival that an owner would have picked in {:.0} % of \
         the worlds, and cost {:+.0} % in the middle of those in which both kept the limit. Over all of the time it kept \
         the limit in {:.0} % of {} worlds, and was the cheapest of those that kept it in {:.0} %, at worst {:+.0} % against the best. \
         Both methods say the same of {:.0} % of the static numbers.\n\n\
         | World | Later: governor, picked | Governor | Best rival | | In reach | Clairvoyant |\n\
         |---|---|---|---|---|---|---|\n",
        MOST,
        rivals().count(),
        sums.over_picked_pct,
        sums.over_picked_cost_pct,
        sums.within_limit_pct,
        verdicts.len(),
        sums.cheapest_pct,
        sums.worst_pct,
        sums.agree_pct,
    );
    for one in verdicts {
        let (best, word) = columns(one);
        let (world, bound, governor) = (&one.world, one.clairvoyant, of(&one.governor));
        let later = later(one);
        let causal = one.causal.as_ref().map_or_else(String::new, of);
        let _ = writeln!(
            text,
            "| {world} | {later} | {governor} | {best} | {word} | {causal} | {bound:.2} |"
        );
    }
    text
}

/// What replicas are said to carry, and what they do.
pub(super) fn knees(knees: &[Knee]) -> String {
    let mut text = "Requests per second that one replica carries within the objectives: as `flyball backtest` tells \
         policies, and as it finds when it puts 6,000 requests of the trace through one replica at random times, at \
         ever closer rates until one in a hundred misses. The objectives are 100 ms per token and a TTFT of 3 s, or the \
         first of 6, 12, 24 ... that an idle engine keeps: where more than one prompt in a hundred takes longer than that \
         alone, no rate is within the objectives, and `flyball backtest` says so.\n\n\
         | Trace, model, GPU | TTFT | Said | Found | Off by |\n|---|---|---|---|---|\n"
        .to_owned();
    for one in knees {
        let Knee { name, first_token, stated, found } = one;
        let off = one.off_pct();
        let _ =
            writeln!(text, "| {name} | {first_token} s | {stated:.3} | {found:.3} | {off:.1} % |");
    }
    text
}

fn columns(verdict: &Verdict) -> (String, String) {
    let rival = verdict.best.as_ref().or(verdict.dominated_by.as_ref());
    let rival = rival.map_or_else(|| "nobody keeps it".to_owned(), named);
    let word = match (verdict.stand(), verdict.dearer_pct()) {
        (Stand::WithinLimit, Some(pct)) => format!("{pct:+.0} %"),
        (Stand::WithinLimit, None) => "alone".to_owned(),
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

pub(super) fn named(came: &Came) -> String {
    format!("{} {}", came.policy, of(came))
}

pub(super) fn of(came: &Came) -> String {
    format!("{:.2} / {:.2} %", came.gpu_hours, 100.0 * came.missed)
}
