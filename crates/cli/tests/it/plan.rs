//! `flyball plan` and `flyball fit`: what they show, and how they refuse.

use super::flyball::{Run, command, finish, flyball, folder};

const SERVE: [&str; 14] = [
    "plan",
    "serve",
    "--model",
    "qwen3-32b-fp8",
    "--ttft-p95",
    "500ms",
    "--itl-p95",
    "40ms",
    "--rate",
    "12/s",
    "--input",
    "1500",
    "--output",
    "300",
];

fn serve(more: &[&str]) -> Run {
    finish(command(&SERVE).args(more).env("LC_ALL", "C.UTF-8"))
}

fn fits(run: &Run) {
    let wide = run.stdout.lines().chain(run.stderr.lines()).find(|l| l.chars().count() > 100);
    assert_eq!(wide, None);
}

/// Everything, with the numbers: unlike times of a run, predictions do not vary.
fn shown(run: &Run) -> String {
    format!("status: {:?}\n----- stdout\n{}----- stderr\n{}", run.status, run.stdout, run.stderr)
}

#[test]
fn a_service_is_planned() {
    for (name, more) in [
        ("serve", &[][..]),
        ("serve_few_parts", &["--gpu", "h100,l40s,l4", "--explain"]),
        ("serve_spot", &["--gpu", "h100,h200", "--spot", "--provider", "aws"]),
        ("serve_fastest", &["--objective", "fastest", "--budget", "60", "--top", "3"]),
        ("serve_too_tight", &["--itl-p95", "2ms"]),
        ("serve_markdown", &["--gpu", "h100,h200", "-o", "markdown"]),
    ] {
        let given: Vec<&str> = more.to_vec();
        let run = match name {
            "serve_too_tight" => {
                let mut args = SERVE.to_vec();
                args[7] = "2ms";
                finish(command(&args).env("LC_ALL", "C.UTF-8"))
            }
            _ => serve(&given),
        };
        if !name.ends_with("markdown") {
            fits(&run);
        }
        insta::assert_snapshot!(name, shown(&run));
    }
}

#[test]
fn engines_get_their_command_lines() {
    let mut texts = String::new();
    for engine in ["vllm", "sglang", "trtllm"] {
        let run = serve(&["--engine", engine, "--emit", "--cache-dtype", "fp8"]);
        assert_eq!(run.status, Some(0), "{}", shown(&run));
        texts.push_str(&run.stdout);
    }
    let experts = flyball(&[
        "plan",
        "serve",
        "--model",
        "deepseek-v3",
        "--rate",
        "4/s",
        "--input",
        "2k",
        "--output",
        "500",
        "--gpu",
        "h200",
        "--engine",
        "sglang",
        "--emit",
    ]);
    texts.push_str(&experts.stdout);
    insta::assert_snapshot!(texts);
}

#[test]
fn a_run_is_planned() {
    let train = ["plan", "train", "--model", "llama-3.1-70b", "--tokens", "1T"];
    for (name, more) in [
        ("train_gpus", &["--gpus", "512", "--gpu", "h100,a100-sxm-80gb,l40s"][..]),
        ("train_deadline", &["--deadline", "30d", "--precision", "fp8"]),
        ("train_budget_too_small", &["--budget", "1k", "--gpu", "h100"]),
        ("train_megatron", &["--gpus", "512", "--gpu", "h100", "--emit"]),
        ("train_fsdp", &["--gpus", "512", "--gpu", "h100", "--emit", "--framework", "fsdp"]),
        ("train_odd_size", &["--gpus", "96", "--gpu", "h100,h200,b200"]),
        (
            "train_largest",
            &["--budget", "1M", "--gpu", "mi300x", "--most-gpus", "64", "--top", "2"],
        ),
    ] {
        let run = finish(command(&train).args(more).env("LC_ALL", "C.UTF-8"));
        if !name.contains("megatron") {
            fits(&run);
        }
        insta::assert_snapshot!(name, shown(&run));
    }
}

#[test]
fn a_run_with_uneven_stages_gets_its_settings() {
    let train = ["plan", "train", "--tokens", "14.8T", "--gpus", "2048", "--gpu", "h100"];
    let ask = |more: &[&str]| {
        let run = finish(command(&train).args(more).env("LC_ALL", "C.UTF-8"));
        assert_eq!(run.status, Some(0), "{}", shown(&run));
        run.stdout
    };
    insta::assert_snapshot!("train_uneven", ask(&["--model", "deepseek-v3"]));
    let mut emitted = ask(&["--model", "deepseek-v3", "--emit"]);
    let fsdp = ["--model", "llama-3.1-405b", "--precision", "fp8", "--framework", "fsdp", "--emit"];
    emitted.push_str(&ask(&fsdp));
    insta::assert_snapshot!("train_uneven_emitted", emitted);
}

#[test]
fn fit_says_yes_tight_or_no() {
    for (name, args) in [
        ("fit", &["fit", "Qwen/Qwen3-235B-A22B-FP8"][..]),
        ("fit_one", &["fit", "llama-3.1-70b", "--gpu", "h100", "--tp", "2"]),
        ("fit_two_hosts", &["fit", "deepseek-v3", "--gpu", "h100", "--tp", "16"]),
        ("fit_nowhere", &["fit", "kimi-k2", "--gpu", "l4"]),
    ] {
        let run = flyball(args);
        fits(&run);
        insta::assert_snapshot!(name, shown(&run));
    }
}

#[test]
fn models_that_are_not_there_or_not_understood_are_refused() {
    let folder = folder("plan");
    std::fs::create_dir_all(format!("{folder}/odd")).expect("a folder");
    let odd = r#"{"model_type": "rwkv7", "hidden_size": 2688}"#;
    std::fs::write(format!("{folder}/odd/config.json"), odd).expect("a file");
    let short = r#"{"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32}"#;
    std::fs::write(format!("{folder}/short.json"), short).expect("a file");
    for (name, model) in [
        ("model_unknown", "llama-3.1-9b"),
        ("model_not_understood", "odd"),
        ("model_short", "short.json"),
    ] {
        let run = finish(command(&["fit", model]).current_dir(&folder));
        assert!([Some(2), Some(3)].contains(&run.status), "{}", shown(&run));
        fits(&run);
        insta::assert_snapshot!(name, shown(&run));
    }
}

#[test]
fn a_trace_gives_rate_and_lengths() {
    let mut text = "time,input,output\n".to_owned();
    for second in 0..1200 {
        text.push_str(&format!("{second},{},{}\n", 500 + second % 7 * 300, 100 + second % 5 * 50));
    }
    let folder = folder("plan");
    std::fs::write(format!("{folder}/requests.csv"), text).expect("a file");
    std::fs::write(format!("{folder}/broken.csv"), "time,input,output\n1,2,x\n").expect("a file");
    let ask = |file: &str| {
        let args = ["plan", "serve", "--model", "llama-3.1-8b", "--gpu", "l40s", "--trace", file];
        finish(command(&args).current_dir(&folder).env("LC_ALL", "C.UTF-8"))
    };
    insta::assert_snapshot!("trace", shown(&ask("requests.csv")));
    insta::assert_snapshot!("trace_broken", shown(&ask("broken.csv")));
    insta::assert_snapshot!("trace_missing", shown(&ask("nowhere.csv")));
}

#[test]
fn the_page_is_one_file_that_loads_nothing() {
    let folder = folder("plan");
    let file = format!("{folder}/plan.html");
    let run = serve(&["--html", &file]);
    assert_eq!(run.status, Some(0), "{}", shown(&run));
    let page = std::fs::read_to_string(&file).expect("the page");
    assert!(page.contains("<svg") && page.contains("Chosen 1"), "{page}");
    for outside in ["<script", "http://", "https://", "src=", "@import"] {
        let inside = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!inside.contains(outside), "{outside}");
    }
    let nowhere = serve(&["--html", "/nonexistent/plan.html"]);
    assert_eq!(nowhere.status, Some(2));
}

#[test]
fn the_pages_of_errors_list_what_is_known() {
    let page = flyball(&["explain", "FLY-603"]).stdout;
    let missing = flyball_perf::models::names().find(|name| !page.contains(&format!("`{name}`")));
    assert_eq!(missing, None, "in docs/errors/FLY-603.md");
    let page = flyball(&["explain", "FLY-604"]).stdout;
    let mut families = flyball_perf::architecture::Architecture::families();
    assert_eq!(families.find(|name| !page.contains(&format!("`{name}`"))), None);
}

/// Lines of a page that begin like this, with the lines they go on in.
fn commands(page: &str, begin: &str) -> Vec<String> {
    let file = format!("{}/../../{page}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(file).expect("the page").replace("\\\n", " ");
    let lines = text.lines().filter_map(|line| line.strip_prefix(begin));
    lines.map(str::to_owned).collect()
}

#[test]
fn what_the_pages_tell_to_type_works() {
    let mut lines = commands("docs/guides/plan.md", "$ flyball ");
    for begin in ["plan ", "fit "] {
        let readme = commands("README.md", &format!("flyball {begin}"));
        assert!(!readme.is_empty(), "the README has no flyball {begin}");
        lines.extend(readme.into_iter().map(|line| format!("{begin}{line}")));
    }
    assert!(lines.len() >= 7, "{lines:?}");
    for line in lines {
        let run = flyball(&line.split_whitespace().collect::<Vec<_>>());
        assert!([Some(0), Some(1)].contains(&run.status), "{line}\n{}", shown(&run));
        assert!(!run.stderr.contains("panicked"), "{line}\n{}", shown(&run));
    }
}

#[test]
fn counts_of_nothing_and_splits_that_do_not_divide_are_refused() {
    let train = ["plan", "train", "--model", "llama-3.1-8b", "--tokens", "1T"];
    let mut texts = String::new();
    for more in [&["--gpus", "0"][..], &["--gpus", "-8"], &["--deadline", "-5d"]] {
        let run = finish(command(&train).args(more));
        assert_eq!(run.status, Some(2), "{}", shown(&run));
        texts.push_str(&run.stderr);
    }
    let fp4 = ["--gpus", "64", "--framework", "fsdp", "--precision", "fp4"];
    texts.push_str(&finish(command(&train).args(fp4)).stderr);
    for tp in ["3", "0"] {
        let run = flyball(&["fit", "llama-3.1-8b", "--tp", tp]);
        assert_eq!(run.status, Some(2), "{}", shown(&run));
        texts.push_str(&run.stderr);
    }
    insta::assert_snapshot!(texts);
}
