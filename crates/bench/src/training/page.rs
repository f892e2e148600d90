//! What was measured, as sections of a page.

use super::saves::Saved;
use super::verdict::{Came, Sums, groups, mean, of};
use flyball_simulator::training::rivals::RunRival;
use std::fmt::Write as _;

pub(super) fn runs(all: &[Came], sums: &Sums, save_seconds: u64) -> String {
    let mut text = format!(
        "{} runs on recorded spot machines at the prices of those days: 48 hours of work (24 on recordings of a week), a \
         restart of 13 minutes, a save of {save_seconds} seconds, no notice of reclaims; costs in per cent of what on-demand \
         machines alone cost. Zones: every recorded one with GPUs, one in each of three regions in every combination, and \
         all of a recording; 16 and 8 machines at once where 16 were recorded, 4 where 4 were. The prior of hazards is the first \
         half of the longest recording, and changes to the law were tried there; judged is its second half and every \
         other recording. Each run has watched its zones from the first recorded step on.\n\n\
         The optimum knows the future and saves for nothing. \"Statistics known\" is the same law with the hazards, \
         shares and waiting times of the whole recording, its future included: what better learning could bring. \
         Rivals save as often as our law. Late rivals count with what they paid. A cell is a set of zones at one slack, {} in all; it is \
         won if our mean is below that of greedy and that of Uniform Progress: {:.0} % are. {} runs were late, {} decisions \
         broke an invariant, {} runs cost less than the bound.\n\n\
         | Zones | Deadline / work | Optimum | Ours | Statistics known | Uniform Progress | Greedy | SkyPilot (late) | \
         Points above optimum: median, most | Lost, saving, starting, % of work |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
        sums.runs,
        sums.cells,
        sums.won_pct(),
        sums.late,
        sums.broken,
        sums.below_optimum,
    );
    for (reach, slack, group) in groups(all) {
        let mut points: Vec<f64> = group.iter().map(|one| one.ours - one.optimum).collect();
        points.sort_by(f64::total_cmp);
        let late = |one: &&&Came| one.rivals_late.last() == Some(&true);
        let _ = writeln!(
            text,
            "| {} | {slack} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} ({} of {}) | {:.1}, {:.1} | {:.1}, {:.1}, {:.1} |",
            reach.name(),
            mean(&group, |one| one.optimum),
            mean(&group, |one| one.ours),
            mean(&group, |one| one.knows),
            mean(&group, |one| of(one, RunRival::UniformProgress)),
            mean(&group, |one| of(one, RunRival::Greedy)),
            mean(&group, |one| of(one, RunRival::SpotWithFallback)),
            group.iter().filter(late).count(),
            group.len(),
            points[points.len() / 2],
            points[points.len() - 1],
            mean(&group, |one| one.overheads[0]),
            mean(&group, |one| one.overheads[1]),
            mean(&group, |one| one.overheads[2]),
        );
    }
    text
}

pub(super) fn saves(all: &[Saved]) -> String {
    let mut text = "A run that is in one zone whenever that has machines: work that it did and saved, with the interval that \
        our law works out from what was seen so far, over that with the fixed interval which would have been the best of 18 \
        between 1 minute and 4 hours. Judged parts of the recordings only.\n\n\
        | Zone | Save | Best fixed interval | Ours, % of it |\n|---|---|---|---|\n"
        .to_owned();
    for one in all {
        let _ =
            writeln!(text, "| {} | {} | {} | {:.1} |", one.zone, one.save, one.best, one.percent);
    }
    text
}
