//! Takes each mend out again, in a copy of the checkout, and sees that its test fails.

use super::list::{self, Finding, Mutation, TestTarget};
use super::scratch::Scratch;
use crate::figures::{self, FigureTarget, Op};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only those of these findings or rules, as in `6a`
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Write `trust.mutations_caught_pct`
    #[arg(long, conflicts_with = "only")]
    figure: bool,
}

/// What came of a mutation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    Caught,
    Survived,
    DoesNotCompile,
}

/// One mutation and the finding that it brings back.
struct Row<'a> {
    finding: &'a Finding,
    mutation: &'a Mutation,
}

pub(crate) fn run(root: &Path, args: &Args) -> Result<()> {
    let mut findings = list::read(root)?;
    findings.extend(list::rules(root)?);
    let rows = rows(&findings, &args.only)?;
    for row in &rows {
        let path = root.join(&row.mutation.file);
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", row.place()))?;
        row.mutation.applied(&text).with_context(|| format!("finding {}", row.finding.number))?;
    }
    let scratch = Scratch::of(root)?;
    all_pass(&scratch, &rows)?;
    let mut caught = 0;
    let mut others = Vec::new();
    for row in &rows {
        let came = came_of(&scratch, row.mutation)?;
        println!("{}", line(row, came));
        match came {
            Came::Caught => caught += 1,
            came => others.push(line(row, came)),
        }
    }
    println!("mutations: {caught} of {} caught", rows.len());
    if args.figure {
        let percent = 100.0 * caught as f64 / rows.len() as f64;
        let target = FigureTarget { op: Op::AtLeast, value: 100.0 };
        let command = "cargo xtask trust mutations --figure";
        figures::write("trust.mutations_caught_pct", percent, "%", target, command)?;
    }
    ensure!(others.is_empty(), "nothing noticed these:\n{}", others.join("\n"));
    Ok(())
}

/// The mutations, those of one test program together, so that less is built.
fn rows<'a>(findings: &'a [Finding], only: &[String]) -> Result<Vec<Row<'a>>> {
    let known = |number: &String| findings.iter().any(|finding| finding.number == *number);
    let unknown = only.iter().find(|number| !known(number));
    ensure!(unknown.is_none(), "there is no finding {}", unknown.map_or("", String::as_str));
    let chosen = findings.iter().filter(|one| only.is_empty() || only.contains(&one.number));
    let mut rows: Vec<Row<'_>> = chosen
        .flat_map(|finding| finding.mutations.iter().map(move |mutation| Row { finding, mutation }))
        .collect();
    ensure!(!rows.is_empty(), "no finding that was named has a mutation");
    rows.sort_by(|a, b| a.program().cmp(&b.program()));
    Ok(rows)
}

/// Whether every test passes while the mends are in. One that fails anyway would prove nothing.
fn all_pass(scratch: &Scratch, rows: &[Row<'_>]) -> Result<()> {
    let mut programs: BTreeMap<(&str, TestTarget), Vec<&str>> = BTreeMap::new();
    for row in rows {
        programs.entry(row.program()).or_default().push(&row.mutation.test);
    }
    for ((package, target), tests) in programs {
        println!("building the tests of {package}");
        let program = scratch.build(package, target)?;
        let program = program.with_context(|| format!("the tests of {package} do not compile"))?;
        for test in tests {
            let passes = scratch.passes(&program, package, test)?;
            ensure!(passes, "{package}: {test} fails without any mutation");
        }
    }
    Ok(())
}

fn came_of(scratch: &Scratch, mutation: &Mutation) -> Result<Came> {
    let _restored_when_dropped = scratch.mutate(mutation)?;
    let Some(program) = scratch.build(&mutation.package, mutation.target)? else {
        return Ok(Came::DoesNotCompile);
    };
    Ok(match scratch.passes(&program, &mutation.package, &mutation.test)? {
        true => Came::Survived,
        false => Came::Caught,
    })
}

impl Row<'_> {
    fn program(&self) -> (&str, TestTarget) {
        (&self.mutation.package, self.mutation.target)
    }

    fn place(&self) -> &str {
        &self.mutation.file
    }
}

fn line(row: &Row<'_>, came: Came) -> String {
    let word = match came {
        Came::Caught => "caught",
        Came::Survived => "SURVIVED",
        Came::DoesNotCompile => "DOES NOT COMPILE",
    };
    let Row { finding, mutation } = row;
    format!(
        "{:<4} {word:<9} {}: {} ({})",
        finding.number,
        row.place(),
        mutation.effect,
        mutation.test
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(number: &str, package: &str) -> Finding {
        let text = format!(
            "number = '{number}'\nseverity = 'low'\nwrong = 'w'\n[[mutations]]\neffect = 'it breaks'\n\
             file = 'a.rs'\ntext = 'x'\nbecomes = 'y'\npackage = '{package}'\ntest = 't::works'\n"
        );
        toml::from_str(&text).unwrap()
    }

    #[test]
    fn mutations_of_one_program_stand_together_and_can_be_chosen() {
        let all = [finding("1", "operator"), finding("2", "core"), finding("3", "operator")];
        let order = |only: &[&str]| -> Vec<String> {
            let only: Vec<String> = only.iter().map(|one| (*one).to_owned()).collect();
            rows(&all, &only).unwrap().iter().map(|row| row.finding.number.clone()).collect()
        };
        assert_eq!(order(&[]), ["2", "1", "3"]);
        assert_eq!(order(&["3"]), ["3"]);
        assert!(rows(&all, &["9".to_owned()]).is_err());
    }

    #[test]
    fn a_line_says_which_finding_came_back_and_whether_anything_noticed() {
        let all = [finding("6a", "core")];
        let rows = rows(&all, &[]).unwrap();
        assert_eq!(line(&rows[0], Came::Caught), "6a   caught    a.rs: it breaks (t::works)");
        assert!(line(&rows[0], Came::Survived).contains("SURVIVED"));
    }
}
