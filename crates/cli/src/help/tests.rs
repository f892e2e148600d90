use super::*;
use crate::args::Cli;
use clap::CommandFactory as _;

fn dressed(length: Length) -> Command {
    command(Cli::command(), length)
}

fn walk(command: &Command, path: &str, each: &mut impl FnMut(&Command, &str)) {
    each(command, path);
    for below in command.get_subcommands() {
        let path = format!("{path} {}", below.get_name());
        walk(below, path.trim(), each);
    }
}

/// The words of a line, with quotes as a shell takes them and without what a shell does with the output.
fn words(line: &str) -> Vec<String> {
    let line = line.split(" > ").next().unwrap_or(line);
    let mut words = Vec::new();
    for (index, part) in line.split('\'').enumerate() {
        match index % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

#[test]
fn every_command_has_two_examples_that_can_be_typed() {
    walk(&dressed(Length::Long), "", &mut |_, path| {
        let examples = examples::of(path);
        assert_eq!(examples.len(), 2, "flyball {path}");
        for line in examples {
            assert!(
                line.starts_with(format!("flyball {path}").trim()) || path.is_empty(),
                "{line}"
            );
            assert!(line.chars().count() <= 98, "{line}");
            let matches = dressed(Length::Long).try_get_matches_from(words(line));
            let matches = matches.unwrap_or_else(|error| panic!("{line}: {error}"));
            assert_eq!(out_of_place(&matches), None, "{line}");
        }
    });
}

#[test]
fn flags_of_the_cluster_are_shown_where_they_do_something_and_refused_elsewhere() {
    let help = |path: &[&str]| {
        let mut root = dressed(Length::Long);
        let mut found = &mut root;
        for word in path {
            found = found.find_subcommand_mut(word).expect("a command");
        }
        found.render_long_help().to_string()
    };
    assert!(help(&["check"]).contains("--kubeconfig"));
    assert!(help(&["trace", "record"]).contains("--timeout"));
    for path in [&["plan", "serve"][..], &["backtest"], &["gpus"]] {
        assert!(!help(path).contains("--kubeconfig"), "{path:?}");
    }
    let typed = |line: &str| {
        let matches = dressed(Length::Long).try_get_matches_from(words(line)).expect("a line");
        out_of_place(&matches)
    };
    assert_eq!(typed("flyball gpus --context a"), Some(("gpus".to_owned(), "context")));
    let below = typed("flyball plan serve --model m --trace t --timeout 3s");
    assert_eq!(below, Some(("plan".to_owned(), "timeout")));
    assert_eq!(typed("flyball --context a check"), None);
}

#[test]
fn short_help_fits_on_a_screen() {
    // A terminal of 80 by 50.
    walk(&dressed(Length::Short), "", &mut |one, path| {
        let help = one.clone().term_width(80).render_help().to_string();
        assert!(help.lines().count() <= 50, "flyball {path} -h has {} lines", help.lines().count());
    });
}

#[test]
fn every_help_at_three_widths() {
    for columns in [60, 80, 120] {
        let mut all = String::new();
        walk(&dressed(Length::Short), "", &mut |one, path| {
            let help = one.clone().term_width(columns.min(100)).render_help().to_string();
            // Examples and usage are lines to paste, and stay whole.
            let (before, after) = help.split_once("\nUsage").expect("a usage");
            let after = after.split_once("\n\n").map_or("", |(_, after)| after);
            let lines = before.lines().chain(after.lines());
            let lines = lines.filter(|line| !line.starts_with("  flyball "));
            let wide = lines.map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(wide <= columns, "flyball {path} -h has a line of {wide} columns");
            all.push_str(&format!("==== flyball {path}\n{help}\n"));
        });
        insta::assert_snapshot!(format!("help_{columns}"), all);
    }
}

#[test]
fn what_a_short_help_leaves_out_exists() {
    let root = dressed(Length::Long);
    for (name, flags) in RARE {
        let mut known = Vec::new();
        walk(root.find_subcommand(name).expect("a command"), name, &mut |one, _| {
            known.extend(one.get_arguments().map(|arg| arg.get_id().to_string()));
        });
        for flag in flags {
            assert!(known.iter().any(|one| one == flag), "{name} has no {flag}");
        }
    }
}
