//! docs/accuracy.md: what was missed first, then everything.

use super::section::{Section, Split, Table};
use std::fmt::Write as _;

const HEAD: &str = "# How accurate the performance model is

Written by `cargo xtask accuracy`; do not edit. All rows are published measurements of others, in
[validation](../validation/README.md). An error is |predicted / measured - 1|. Rows are held out by
group (series, suite, GPU, model), never one by one. A row that the model refuses counts as 100 %.
*Sealed* suites were never fitted on and never used to choose the model; the tables mark them. Two
things were decided after seeing them, and both are said where they stand: the interval of training with
experts was widened because the narrow one had failed there, and is called not validated; and one number
of the catalogue that no row in the open could judge was vetoed.
";

/// The page.
pub(super) fn page(sections: &[Section]) -> String {
    let mut page = HEAD.to_owned();
    misses(&mut page, sections);
    figures(&mut page, sections);
    for section in sections {
        // Writing to a String cannot fail, here and below.
        let _ = write!(page, "\n## {}\n\n{}\n", section.title, section.intro.trim());
        if !section.splits.is_empty() {
            splits(&mut page, &section.splits);
        }
        for one in &section.tables {
            table(&mut page, one);
        }
    }
    page
}

fn misses(page: &mut String, sections: &[Section]) {
    page.push_str("\n## Not reached\n");
    for miss in sections.iter().flat_map(|section| &section.misses) {
        let _ = write!(page, "\n**{}.** {}\n", miss.what.trim_end_matches('.'), miss.cause);
        if !miss.tried.is_empty() {
            page.push_str("\nTried:\n");
        }
        for tried in &miss.tried {
            let _ = writeln!(page, "- {tried}");
        }
    }
}

fn figures(page: &mut String, sections: &[Section]) {
    page.push_str("\n## Against the targets\n\n| Figure | Value | Target | |\n|---|---|---|---|\n");
    for figure in sections.iter().flat_map(|section| &section.figures) {
        let target = figure.target;
        let verdict = if target.is_met(figure.value) { "reached" } else { "**missed**" };
        let _ = writeln!(
            page,
            "| `{}` | {:.2} {} | {target} | {verdict} |",
            figure.name, figure.value, figure.unit
        );
    }
}

fn splits(page: &mut String, splits: &[Split]) {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in splits.iter().flat_map(|split| &split.baselines) {
        if !names.contains(name) {
            names.push(name);
        }
    }
    page.push_str("\n| Rows | n | answered | median | p90 | mean | bias |");
    for name in &names {
        let _ = write!(page, " {name} |");
    }
    page.push_str("\n|---|---|---|---|---|---|---|");
    page.push_str(&"---|".repeat(names.len()));
    page.push('\n');
    for split in splits {
        let sealed = if split.sealed { " (sealed)" } else { "" };
        let score = &split.score;
        let _ = write!(
            page,
            "| {}{sealed} | {} | {:.0} % | {:.1} % | {:.1} % | {:.1} % | {} |",
            split.key,
            score.rows(),
            score.answered_pct(),
            score.median_pct(),
            score.p90_pct(),
            score.mean_pct(),
            Some(score.bias_pct())
                .filter(|bias| bias.is_finite())
                .map_or("-".to_owned(), |bias| format!("{bias:+.1} %"))
        );
        for name in &names {
            match split.baselines.iter().find(|(known, _)| known == name) {
                Some((_, score)) => {
                    let (median, p90) = (score.median_pct(), score.p90_pct());
                    let _ = write!(page, " {median:.1} / {p90:.1} % |");
                }
                None => page.push_str(" |"),
            }
        }
        page.push('\n');
    }
}

fn table(page: &mut String, table: &Table) {
    let _ = write!(page, "\n### {}\n\n", table.title);
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    page.push_str(&line(&table.columns));
    page.push_str(&line(&vec!["---".to_owned(); table.columns.len()]));
    for row in &table.rows {
        page.push_str(&line(row));
    }
}
