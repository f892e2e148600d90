//! `flyball gpus`, `flyball models` and `flyball prices`: what they show, and how they refuse.

use super::flyball::{Run, command, finish, flyball, folder};

/// Runs in a folder with this catalog file, so that no path of the machine is shown.
fn with_file(name: &str, text: &str, args: &[&str]) -> Run {
    let folder = folder("catalog");
    std::fs::write(format!("{folder}/{name}"), text).expect("a file can be written");
    finish(command(args).current_dir(&folder))
}

fn fits(run: &Run) {
    let wide = run.stdout.lines().chain(run.stderr.lines()).find(|l| l.chars().count() > 100);
    assert_eq!(wide, None);
}

#[test]
fn accelerators_are_listed_and_shown_one_by_one() {
    for (name, args) in [
        ("gpus", &["gpus"][..]),
        ("gpus_h100", &["gpus", "H100"]),
        ("gpus_label", &["gpus", "NVIDIA-GB200"]),
        ("gpus_not_measured", &["gpus", "gaudi-3"]),
    ] {
        let run = flyball(args);
        assert_eq!(run.status, Some(0), "{}", run.shown());
        fits(&run);
        insta::assert_snapshot!(name, run.shown());
    }
    let json = flyball(&["gpus", "h100", "-o", "json"]).json();
    assert_eq!(json["kind"], "Accelerator");
    assert_eq!(json["accelerator"]["bandwidthBytesPerSecond"], 3.35e12);
    assert_eq!(json["accelerator"]["measured"]["gemm"][1]["p99Fraction"], 0.794);
}

#[test]
fn models_are_listed_and_shown_one_by_one() {
    for (name, args) in [
        ("models_qwen3_vl", &["models", "qwen3", "vl"][..]),
        ("models_one", &["models", "llama-3.3-70b"]),
        ("models_stored", &["models", "nvidia/DeepSeek-V3.1-NVFP4"]),
        ("models_none", &["models", "llama-3.3-71b"]),
        ("models_nonsense", &["models", "zzz"]),
    ] {
        let run = flyball(args);
        fits(&run);
        insta::assert_snapshot!(name, run.shown());
    }
    let all = flyball(&["models"]);
    fits(&all);
    let json = flyball(&["models", "-o", "json"]).json();
    let models = json["models"].as_array().expect("a list");
    assert!(all.stdout.contains(&format!("\n{} models, ", models.len())), "{}", all.stdout);
    assert_eq!(json["kind"], "ModelList");
}

#[test]
fn prices_are_filtered_and_sorted() {
    for (name, args) in [
        ("prices_l40s", &["prices", "--accelerator", "l40s"][..]),
        ("prices_gcp_reserved", &["prices", "--provider", "GCP", "--purchase", "reserved-1y"]),
        ("prices_none", &["prices", "--accelerator", "gaudi-3"]),
    ] {
        let run = flyball(args);
        fits(&run);
        insta::assert_snapshot!(name, run.shown());
    }
    let all = flyball(&["prices"]);
    fits(&all);
    let json = flyball(&["prices", "-o", "json"]).json();
    let prices = json["prices"].as_array().expect("a list");
    assert!(all.stdout.contains(&format!("\n{} prices, of ", prices.len())), "{}", all.stdout);
    let dollars = prices.iter().map(|price| price["usdPerGpuHour"].as_f64());
    assert!(dollars.is_sorted());
}

#[test]
fn names_that_are_not_there_are_wrong_usage() {
    for (name, args) in [
        ("unknown_gpu", &["gpus", "h100-smx"][..]),
        ("unknown_gpu_several", &["gpus", "a100"]),
        ("unknown_gpu_nonsense", &["prices", "--accelerator", "zzz"]),
        ("unknown_gpu_json", &["gpus", "a100", "-o", "json"]),
        ("unknown_provider", &["prices", "--provider", "nobody"]),
        ("unknown_purchase", &["prices", "--purchase", "hourly"]),
    ] {
        let run = flyball(args);
        assert_eq!(run.status, Some(2), "{}", run.shown());
        fits(&run);
        insta::assert_snapshot!(name, run.shown());
    }
}

#[test]
fn a_file_adds_parts_and_prices() {
    let page = flyball(&["explain", "FLY-602"]).stdout;
    let example: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("    ")).collect();
    let args = ["gpus", "h20-96gb", "--catalog", "good.toml"];
    let run = with_file("good.toml", &example.join("\n"), &args);
    assert_eq!(run.status, Some(0), "{}", run.shown());
    fits(&run);
    insta::assert_snapshot!("gpus_own", run.shown());
}

#[test]
fn the_file_of_the_guide_works() {
    let guide = include_str!("../../../../docs/guides/catalog.md");
    let example = guide.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let args = ["prices", "--provider", "our-cloud"];
    let folder = folder("catalog");
    std::fs::write(format!("{folder}/ours.toml"), example.expect("an example")).expect("a file");
    let run = finish(command(&args).current_dir(&folder).env("FLYBALL_CATALOG", "ours.toml"));
    assert_eq!(run.status, Some(0), "{}", run.shown());
    // What the guide shows is what is printed.
    assert!(guide.contains(&run.stdout), "{}", run.stdout);
    let contract =
        ["prices", "--accelerator", "h100", "--provider", "aws", "--purchase", "on-demand"];
    let run = finish(command(&contract).current_dir(&folder).env("FLYBALL_CATALOG", "ours.toml"));
    assert!(guide.contains(&run.stdout), "{}", run.stdout);
}

#[test]
fn everything_wrong_with_a_file_is_told_at_once() {
    let text = "[[accelerator]]\nid = \"My GPU\"\nmemory_gib = 80\n\n[[price]]\n\
                accelerator = \"h100\"\nprovider = \"us\"\npurchase = \"yearly\"\n\
                usd_per_gpu_hour = 0\nas_of = 2026-11-01\n";
    let args = ["gpus", "--catalog", "bad.toml"];
    let run = with_file("bad.toml", text, &args);
    assert_eq!(run.status, Some(2), "{}", run.shown());
    fits(&run);
    insta::assert_snapshot!("file_bad", run.shown());
    let json = with_file("bad-json.toml", text, &["gpus", "--catalog", "bad-json.toml", "-ojson"]);
    assert_eq!((json.status, &json.json()["code"]), (Some(2), &"FLY-602".into()));
    let run = finish(command(&["prices", "--catalog", "none.toml"]).current_dir(folder("catalog")));
    assert_eq!(run.status, Some(2), "{}", run.shown());
    insta::assert_snapshot!("file_missing", run.shown());
}
