//! `flyball backtest`: what it shows, how it refuses, and that the same seeds give the same bytes.

use super::flyball::{Run, command, finish, folder};

/// A folder of its own, with small made-up traffic: three hours with a ramp, one with a step.
fn traffic() -> String {
    let folder = folder("backtest");
    let rate = |minute: usize| 2.0 + 4.0 * (minute.min(180 - minute) as f64 / 90.0).powi(2);
    for (name, scale) in [("requests", 1.0), ("chat", 0.8), ("code", 0.4)] {
        let mut text = "time,input,output\n".to_owned();
        let mut owed = 0.0;
        for second in 0..10_800 {
            owed += scale * rate(second / 60);
            while owed >= 1.0 {
                owed -= 1.0;
                let (input, output) = (600 + second % 9 * 200, 80 + second % 5 * 40);
                text.push_str(&format!("{second},{input},{output}\n"));
            }
        }
        write(&folder, &format!("{name}.csv"), &text);
    }
    write(&folder, "hpa.yaml", HPA);
    write(&folder, "deployment.yaml", "apiVersion: apps/v1\nkind: Deployment\n");
    write(&folder, "broken.csv", "time,input,output\n1,x,2\n2,y,3\n");
    folder
}

/// Several tests write the same files: a file that is there whole is never seen half.
fn write(folder: &str, name: &str, text: &str) {
    let file = format!("{folder}/{name}");
    if std::fs::read_to_string(&file).is_ok_and(|known| known == text) {
        return;
    }
    // Tests are threads of one process, or processes of which each calls its thread the same.
    let (process, thread) = (std::process::id(), std::thread::current().id());
    let own = format!("{file}.{process}.{thread:?}");
    std::fs::write(&own, text).expect("a file");
    std::fs::rename(&own, &file).expect("a file");
}

const HPA: &str = "\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: qwen
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: qwen}
  minReplicas: 2
  maxReplicas: 12
  metrics:
  - type: Pods
    pods:
      metric: {name: 'vllm:num_requests_running'}
      target: {type: AverageValue, averageValue: '8'}
";

const BASE: [&str; 7] =
    ["backtest", "--traffic", "requests.csv", "--model", "qwen3-32b", "--per-replica", "1.4rps"];

fn backtest(more: &[&str]) -> Run {
    let mut args = BASE.to_vec();
    args.extend(more);
    ask(&args)
}

fn ask(args: &[&str]) -> Run {
    finish(command(args).current_dir(traffic()).env("LC_ALL", "C.UTF-8"))
}

fn fits(run: &Run) {
    let wide = run.stdout.lines().chain(run.stderr.lines()).find(|l| l.chars().count() > 100);
    assert_eq!(wide, None);
}

/// Everything, with the numbers, but how long it took.
fn shown(run: &Run) -> String {
    let text = format!(
        "status: {:?}\n----- stdout\n{}----- stderr\n{}",
        run.status, run.stdout, run.stderr
    );
    let timeless = |line: &str| match line.split_once("done in ") {
        Some((before, _)) => format!("{before}done in <time>"),
        None => line.to_owned(),
    };
    text.lines().map(timeless).collect::<Vec<_>>().join("\n")
}

#[test]
fn policies_are_replayed_and_compared() {
    let all = ["--policy", "hpa-rate,hpa.yaml,static@5", "--price", "2.50"];
    let run = backtest(&all);
    assert_eq!(run.status, Some(0), "{}", shown(&run));
    fits(&run);
    insta::assert_snapshot!("table", shown(&run));
}

#[test]
fn the_governor_is_replayed_and_explains_itself() {
    let run = backtest(&["--policy", "governor,hpa-rate", "-o", "json"]);
    assert_eq!(run.status, Some(0), "{}", shown(&run));
    let answer = run.json();
    let governor = &answer["policies"][1];
    assert_eq!(governor["name"], "governor");
    assert!(governor["gpuHours"]["mean"].as_f64() > Some(1.0), "{governor}");
    assert!(!governor["decisions"].as_array().expect("decisions").is_empty());
    let mut why = BASE.to_vec();
    why.insert(1, "why");
    why.extend(["--at", "01:10"]);
    let run = ask(&why);
    assert_eq!(run.status, Some(0), "{}", shown(&run));
    fits(&run);
    assert!(run.stdout.starts_with("qwen3-32b at day 1, 01:10\n"), "{}", run.stdout);
    assert!(run.stdout.matches(". ").count() >= 2, "three sentences: {}", run.stdout);
}

#[test]
fn the_same_seeds_give_the_same_bytes() {
    let args = ["--policy", "hpa-rate", "--cold-start", "60s/180s", "-o", "json", "--report"];
    let mut texts = Vec::new();
    for name in ["one.html", "two.html"] {
        let mut args = args.to_vec();
        args.push(name);
        let run = backtest(&args);
        assert_eq!(run.status, Some(0), "{}", shown(&run));
        let page = std::fs::read_to_string(format!("{}/{name}", traffic())).expect("the page");
        texts.push((run.stdout, page));
    }
    assert!(texts[0] == texts[1]);
    assert!(texts[0].1.len() < 300_000, "{}", texts[0].1.len());
}

#[test]
fn a_short_trace_goes_through_the_engine_request_by_request() {
    let base =
        ["backtest", "--traffic", "requests.csv", "--model", "llama-3.1-8b", "--gpu", "l40s"];
    let method = |more: &[&str]| {
        let mut args = base.to_vec();
        args.extend(["--policy", "governor,static@3", "--seeds", "1", "-o", "json"]);
        args.extend(more);
        let run = ask(&args);
        assert_eq!(run.status, Some(0), "{}", shown(&run));
        run.json()
    };
    let (by_request, as_flow) = (method(&[]), method(&["--method", "rates"]));
    assert_eq!((&by_request["method"], &as_flow["method"]), (&"requests".into(), &"fluid".into()));
    // Three replicas for three hours: both ways pay the same for what does not change.
    for answer in [&by_request, &as_flow] {
        let hours = answer["policies"][2]["gpuHours"]["mean"].as_f64().expect("hours");
        assert!((8.0..9.5).contains(&hours), "{hours}");
        assert_eq!(answer["policies"][2]["killed"]["mean"], 0.0);
    }
    let refused = backtest(&["--method", "requests", "--policy", "static@3"]);
    assert_eq!(refused.status, Some(2), "{}", shown(&refused));
}

#[test]
fn rules_decide_the_status() {
    let static_5 = ["--policy", "static@5", "--seeds", "1", "-q"];
    let ask = |rule: &str| {
        let mut args = static_5.to_vec();
        args.extend(["--fail-if", rule]);
        backtest(&args)
    };
    assert_eq!(ask("killed>0").status, Some(0));
    let broken = ask("gpu-hours>1");
    assert_eq!(broken.status, Some(1), "{}", shown(&broken));
    assert!(broken.stdout.contains("gpu-hours>1: FAIL (static@5: 15"), "{}", broken.stdout);
    // Nobody said what a GPU costs.
    assert_eq!(ask("cost>1").status, Some(1));
    assert_eq!(ask("speed>1").status, Some(2));
}

#[test]
fn settings_are_searched_on_one_part_and_tested_on_the_rest() {
    let mut args = BASE.to_vec();
    args.insert(1, "tune");
    args.extend(["--policy", "hpa-rate", "--seeds", "1", "-o", "json"]);
    let run = ask(&args);
    assert_eq!(run.status, Some(0), "{}", shown(&run));
    let answer = run.json();
    let tried = answer["tried"].as_array().expect("settings");
    assert!(tried.len() > 3, "{answer}");
    assert_eq!(tried.iter().filter(|one| one["best"] == true).count(), 1);
    assert_eq!(answer["tested"].as_array().map(Vec::len), Some(3));
    assert_eq!(
        (answer["trainSeconds"].as_f64(), answer["testSeconds"].as_f64()),
        (Some(5_400.0), Some(5_400.0))
    );
}

#[test]
fn what_cannot_be_replayed_is_refused() {
    let mut texts = String::new();
    for (more, status) in [
        (&["--policy", "hpb"][..], 2),
        (&["--policy", "deployment.yaml"], 2),
        (&["--policy", "nowhere.yaml"], 2),
        (&["--policy", "hpa", "--against", "keda"], 2),
        (&["--policy", "cron"], 2),
        (&["--from", "09:00"], 2),
        (&["--warm-up", "1d"], 2),
        (&["--fail-if", "missed"], 2),
        (&["--model", "other"], 2),
    ] {
        let run = backtest(more);
        assert_eq!(run.status, Some(status), "{more:?}\n{}", shown(&run));
        texts.push_str(&run.stderr);
    }
    for (args, status) in [
        (&["backtest", "--traffic", "broken.csv", "--per-replica", "1rps"][..], 3),
        (&["backtest", "--traffic", "nowhere.csv", "--per-replica", "1rps"], 3),
        (&["backtest", "--traffic", "requests.csv"], 2),
        (&["backtest", "--traffic", "requests.csv", "--model", "kimi-k2", "--gpu", "l4"], 1),
    ] {
        let run = ask(args);
        assert_eq!(run.status, Some(status), "{args:?}\n{}", shown(&run));
        texts.push_str(&run.stderr);
    }
    assert!(texts.lines().all(|line| line.chars().count() <= 100), "{texts}");
    insta::assert_snapshot!("refused", texts);
}

#[test]
fn what_the_guide_tells_to_type_works() {
    let file = format!("{}/../../docs/guides/backtest.md", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(file).expect("the guide").replace("\\\n", " ");
    let lines: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("$ flyball ")).collect();
    assert!(lines.len() >= 5, "{lines:?}");
    for line in lines {
        let words: Vec<&str> =
            line.split_whitespace().map(|word| word.trim_matches('\'')).collect();
        let run = ask(&words);
        assert_eq!(run.status, Some(0), "{line}\n{}", shown(&run));
    }
}
