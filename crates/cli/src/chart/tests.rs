use super::*;
use crate::charset::Charset;
use crate::output::document::{Block, Document, html, tests::example as document};

fn point(label: &str, x: f64, y: f64) -> Point {
    let series = label.split(' ').next().unwrap_or_default().to_owned();
    Point {
        x,
        y,
        y_low_high: Some((y * 0.85, y * 1.18)),
        series,
        label: label.to_owned(),
        ..Point::default()
    }
}

/// Twelve choices of three accelerators; the numbers are invented.
fn example() -> Chart {
    let mut points = vec![
        point("H200 TP1 x4", 31.64, 430.0),
        point("H200 TP2 x2", 36.20, 310.0),
        point("H200 TP4 x1", 42.90, 265.0),
        point("H200 TP8 x1", 63.28, 190.0),
        point("H100 TP1 x5", 34.40, 410.0),
        point("H100 TP2 x3", 41.28, 330.0),
        point("H100 TP4 x2", 55.04, 250.0),
        point("H100 TP8 x1", 55.04, 215.0),
        point("L40S TP2 x9", 33.48, 640.0),
        point("L40S TP4 x5", 37.20, 560.0),
        point("L40S TP8 x3", 44.60, 520.0),
        point("L40S TP1 x12", 22.32, 880.0),
    ];
    points[0].chosen = true;
    points[0].x_low_high = Some((29.9, 35.1));
    for index in [8, 9, 10, 11] {
        points[index].rejected = true;
    }
    let limits = vec![
        Limit { axis: Which::Y, value: 500.0, label: "TTFT target".to_owned() },
        Limit { axis: Which::X, value: 60.0, label: "budget".to_owned() },
    ];
    let title = "Qwen3-32B-FP8 at 12 req/s: cost and time to first token";
    Chart::new(title, Axis::new("Cost", "$/h"), Axis::new("TTFT p99", "ms"), points, limits)
}

fn drawn(chart: &Chart, charset: Charset) -> String {
    anstream::adapter::strip_str(&terminal::draw(chart, charset).into_string()).to_string()
}

#[test]
fn pictures() {
    let chart = example();
    assert_eq!(chart.frontier, [0, 4, 1, 2, 7, 3]);
    insta::assert_snapshot!("terminal", drawn(&chart, Charset::Utf8));
    insta::assert_snapshot!("terminal_ascii", drawn(&chart, Charset::Ascii));
    insta::assert_snapshot!("svg", svg::draw(&chart, "picture-1"));
    let mut document = document();
    document.blocks.insert(1, Block::Picture(chart));
    let page = html::page("Plan for Qwen3-32B-FP8", &document, &[]);
    // To look at: FLYBALL_PAGE=plan.html cargo test -p flyball-cli pictures
    if let Some(file) = std::env::var_os("FLYBALL_PAGE") {
        std::fs::write(file, &page).unwrap();
    }
    insta::assert_snapshot!("html", page);
}

#[test]
fn a_terminal_picture_is_plain_and_narrow() {
    let text = drawn(&example(), Charset::Ascii);
    assert!(text.is_ascii(), "{text}");
    assert!(text.lines().all(|line| line.len() <= 76), "{text}");
    assert!(text.lines().count() <= 24, "{text}");
}

#[test]
fn far_apart_values_get_logarithmic_axes() {
    let points = vec![point("A a", 1.0, 20.0), point("A b", 2.0, 9_000.0)];
    let chart = Chart::new("t", Axis::new("x", "$"), Axis::new("y", "ms"), points, Vec::new());
    assert_eq!((chart.x.log, chart.y.log), (false, true));
    insta::assert_snapshot!("terminal_log", drawn(&chart, Charset::Utf8));
}

#[test]
fn names_of_users_stay_text() {
    let evil = "<script>&\"' ]]> \u{1b}[31m";
    let points = vec![Point { chosen: true, ..point(evil, 1.0, 1.0) }];
    let limits = vec![Limit { axis: Which::X, value: 1.5, label: evil.to_owned() }];
    let chart = Chart::new(evil, Axis::new(evil, evil), Axis::new(evil, evil), points, limits);
    let svg = svg::draw(&chart, "p");
    let mut document = document();
    document.push(Block::Heading(evil.to_owned()));
    document.push(Block::Page(evil.to_owned()));
    document.push(Block::Facts(vec![(evil.to_owned(), evil.to_owned())]));
    let page = html::page(evil, &document, std::slice::from_ref(&chart));
    for markup in [&svg, &page] {
        assert!(!markup.contains("<script"), "{markup}");
        assert!(!markup.contains('\u{1b}'), "{markup}");
        assert!(markup.contains("&lt;script&gt;&amp;&quot;&#39;"), "{markup}");
        for outside in ["href", "src=", "url(", "@import"] {
            assert!(!markup.contains(outside), "{outside}");
        }
    }
    assert!(!drawn(&chart, Charset::Utf8).contains('\u{1b}'));
}

#[test]
fn odd_charts_are_drawn_without_a_fault() {
    let axis = || Axis::new("a", "s");
    let nothing = Chart::new("none", axis(), axis(), Vec::new(), Vec::new());
    assert!(drawn(&nothing, Charset::Utf8).contains("Nothing to draw"));
    let strange = vec![
        Point { x: f64::NAN, ..point("A a", 0.0, 1.0) },
        Point { x_low_high: Some((f64::NAN, 2.0)), ..point("A b", 0.0, 0.0) },
        Point { y_low_high: Some((-9.0, f64::INFINITY)), ..point("B c", -1.0, 0.0) },
    ];
    let strange = Chart::new("odd", axis(), axis(), strange, Vec::new());
    let many = (0..200).map(|i| point(&format!("S{} n", i % 40), f64::from(i), f64::from(200 - i)));
    let many = Chart::new("many", axis(), axis(), many.collect(), Vec::new());
    for chart in [nothing, strange, many] {
        let page = html::page("t", &Document::new(), std::slice::from_ref(&chart));
        assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
        assert!(!drawn(&chart, Charset::Ascii).is_empty());
    }
}
