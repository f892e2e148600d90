use super::*;
use std::collections::BTreeSet;

#[test]
fn names_follow_the_convention_and_are_unique() {
    let names: BTreeSet<_> = Metric::ALL.iter().map(|metric| metric.name()).collect();
    assert_eq!(names.len(), Metric::ALL.len());
    for metric in Metric::ALL {
        let name = metric.name();
        assert!(name.starts_with("flyball_") || name.starts_with("gen_ai_"), "{name}");
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{name}");
        assert!(!name.contains("__"), "{name}");
        let stem = name.strip_suffix(metric.kind().suffix());
        assert!(stem.is_some(), "{name} must end in {}", metric.kind().suffix());
        let in_seconds = stem.is_some_and(|stem| stem.ends_with("_seconds"));
        assert_eq!(in_seconds, metric.unit() == Unit::Seconds, "{name}");
        let in_bytes = stem.is_some_and(|stem| stem.ends_with("_bytes"));
        assert_eq!(in_bytes, metric.unit() == Unit::Bytes, "{name}");
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
    let every = || Metric::ALL.iter().filter(|metric| metric.part() == MetricPart::Every);
    let listed: BTreeSet<_> = every().map(|metric| metric.name()).collect();
    assert_eq!(written, listed);
    for metric in every() {
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

#[derive(Debug)]
struct Odd;

impl MetricsSource for Odd {
    fn write(&self, page: &mut Page<'_>) -> fmt::Result {
        page.counter(Metric::GatewayRetries, [(["a\"b\\c\nd"], 3)])?;
        page.gauge(Metric::GatewayInFlight, [([""; 0], 2.0)])?;
        let sizes = Sizes { sum: 1.5, buckets: vec![(1.0, 2), (f64::INFINITY, 1)] };
        page.histogram(Metric::GatewayChosen, [([""; 0], sizes)])
    }
}

#[test]
fn a_source_writes_its_numbers_and_odd_names_stay_inside_their_quotes() {
    let text = Metrics::new("1.2.3").with(Odd).encode().unwrap();
    for line in [
        r#"flyball_gateway_retries_total{model="a\"b\\c\nd"} 3"#,
        "flyball_gateway_in_flight 2.0",
        "flyball_gateway_routing_seconds_sum 1.5",
        "flyball_gateway_routing_seconds_count 3",
        r#"flyball_gateway_routing_seconds_bucket{le="+Inf"} 3"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line} not in\n{text}");
    }
}

#[test]
fn the_reference_is_current() {
    let mut text = String::from(
        "# Metrics\n\n\
         *Generated from the code. `UPDATE=1 cargo test -p flyball-telemetry` writes it anew.*\n\n\
         Names that begin with `gen_ai_` are those of OpenTelemetry's GenAI conventions as\n\
         Prometheus spells them.\n",
    );
    for (part, title) in [
        (MetricPart::Every, "Of every process"),
        (MetricPart::Gateway, "Of `flyball gateway`"),
        (MetricPart::Operator, "Of `flyball operator`"),
    ] {
        text += &format!(
            "\n## {title}\n\n| Name | Kind | Labels | What it says |\n|---|---|---|---|\n"
        );
        for metric in Metric::ALL.iter().filter(|metric| metric.part() == part) {
            let labels: Vec<_> = metric.labels().iter().map(|label| format!("`{label}`")).collect();
            let (name, kind, labels) = (metric.name(), metric.kind().name(), labels.join(", "));
            text += &format!("| `{name}` | {kind} | {labels} | {} |\n", metric.help());
        }
    }
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/metrics.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(file, &text).unwrap();
    }
    let committed = std::fs::read_to_string(file).unwrap_or_default();
    assert!(committed == text, "run: UPDATE=1 cargo test -p flyball-telemetry");
}
