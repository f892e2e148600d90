use super::*;
use std::collections::BTreeSet;

#[test]
fn names_follow_the_convention_and_are_unique() {
    let names: BTreeSet<_> = Metric::ALL.iter().map(|metric| metric.name()).collect();
    assert_eq!(names.len(), Metric::ALL.len());
    for metric in Metric::ALL {
        let name = metric.name();
        assert!(name.starts_with("flyball_"), "{name}");
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{name}");
        assert!(!name.contains("__"), "{name}");
        let stem = name.strip_suffix(metric.kind().suffix());
        assert!(stem.is_some(), "{name} must end in {}", metric.kind().suffix());
        let in_seconds = stem.is_some_and(|stem| stem.ends_with("_seconds"));
        assert_eq!(in_seconds, metric.unit() == Unit::Seconds, "{name}");
        assert!(!metric.help().is_empty() && !metric.help().ends_with('.'), "{name}");
        for label in metric.labels() {
            // `namespace` clashes with the label that the scrape adds for the pod itself.
            assert!(!["namespace", "pod", "job", "instance"].contains(label), "{name}: {label}");
        }
    }
}

#[test]
fn everything_listed_is_written_and_everything_written_is_listed() {
    let text = Metrics::new("1.2.3").encode().unwrap();
    let written: BTreeSet<_> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(['{', ' ']).next())
        .collect();
    let listed: BTreeSet<_> = Metric::ALL.iter().map(|metric| metric.name()).collect();
    assert_eq!(written, listed);
    for metric in Metric::ALL {
        for label in metric.labels() {
            assert!(text.contains(&format!("{label}=\"")), "{label}");
        }
    }
}

#[test]
fn violations_are_counted_by_rule_from_zero() {
    let metrics = Metrics::new("1.2.3");
    metrics.count_violation(Invariant::NoScaleDownBlind);
    metrics.count_violation(Invariant::NoScaleDownBlind);
    let text = metrics.encode().unwrap();
    for invariant in Invariant::ALL {
        let count = if *invariant == Invariant::NoScaleDownBlind { 2 } else { 0 };
        let id = invariant.id();
        let line = format!("flyball_invariant_violations_total{{invariant=\"{id}\"}} {count}");
        assert!(text.lines().any(|found| found == line), "{line} not in\n{text}");
    }
}

#[test]
fn the_build_is_named() {
    let text = Metrics::new("1.2.3").encode().unwrap();
    assert!(text.contains("flyball_build_info{version=\"1.2.3\"} 1\n"), "{text}");
    assert!(text.ends_with("# EOF\n"), "{text}");
}
