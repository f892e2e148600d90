//! `flyball trace`: what it shows of files, what it writes, what it records and how it refuses.

use serde_json::json;

use super::flyball::{Run, command, finish, folder};
use super::server::{self, Reply};

/// Runs in a folder with this file, so that no path of the machine is shown.
fn with_file(name: &str, text: &str, args: &[&str]) -> Run {
    let folder = folder("trace");
    std::fs::write(format!("{folder}/{name}"), text).expect("a file can be written");
    let run = finish(command(args).current_dir(&folder));
    let wide = run.stdout.lines().chain(run.stderr.lines()).find(|l| l.chars().count() > 100);
    assert_eq!(wide, None);
    run
}

/// Ten minutes of a request each second, twice as many in the last three.
fn requests() -> String {
    let mut text = "time,prompt_tokens,output_tokens,hash_ids,who\n".to_owned();
    for second in 0..=600 {
        let row = format!("{second},{},{},1 {second},x\n", 600 + second, 50 + second % 100);
        text.push_str(&row.repeat(if second > 420 { 2 } else { 1 }));
    }
    text + "601,many,5,,x\n"
}

const RATES: &str = "time,requests_per_second,prompt_tokens,output_tokens\n0,2,100,10\n\
                     60,3,110,12\n120,,,\n180,4,120,11\n240,3,100,10\n";

#[test]
fn files_are_shown() {
    let run = with_file("requests.csv", &requests(), &["trace", "inspect", "requests.csv"]);
    assert_eq!(run.status, Some(0), "{}", run.shown());
    insta::assert_snapshot!("trace_requests", run.shown());
    let run = with_file("rates.csv", RATES, &["trace", "inspect", "rates.csv"]);
    insta::assert_snapshot!("trace_rates", run.shown());
    let args = ["trace", "inspect", "rates.csv", "-o", "json"];
    let json = with_file("rates.csv", RATES, &args).json();
    assert_eq!(json["kind"], "TraceReport");
    assert_eq!(json["models"][0]["gaps"][0]["startSeconds"], 120.0);
    assert_eq!(json["models"][0]["series"]["rates"][2], serde_json::Value::Null);
}

#[test]
fn files_that_are_not_traffic_are_refused() {
    for (name, text) in [("columns.csv", "a,b\n1,2\n"), ("words.csv", "time,rps\nnow,x\n")] {
        let run = with_file(name, text, &["trace", "inspect", name]);
        assert_eq!(run.status, Some(2), "{}", run.shown());
        insta::assert_snapshot!(format!("trace_{name}"), run.shown());
    }
    let args = ["trace", "inspect", "models.csv", "--model", "c"];
    let text = "time,input,output,model\n0,1,1,a\n1,1,1,b\n";
    let run = with_file("models.csv", text, &args);
    assert_eq!(run.status, Some(2), "{}", run.shown());
    assert!(run.stderr.contains("hint: name one of them: a, b"), "{}", run.stderr);
}

#[test]
fn every_form_can_be_written_and_read_again() {
    let shown = |file: &str| {
        let json =
            finish(command(&["trace", "inspect", file, "-o", "json"]).current_dir(folder("trace")));
        json.json()["models"].clone()
    };
    let text = requests();
    for form in ["csv", "parquet", "jsonl"] {
        let output = format!("converted.{form}");
        let args = ["trace", "convert", "source.csv", "--to", form, "--output", &output];
        let run = with_file("source.csv", &text, &args);
        assert_eq!(run.status, Some(0), "{}", run.shown());
        assert_eq!(shown(&output), shown("source.csv"), "{form}");
        insta::assert_snapshot!(format!("trace_to_{form}"), run.shown());
    }
    let args = ["trace", "convert", "rates2.csv", "--to", "jsonl", "--output", "no.jsonl"];
    let run = with_file("rates2.csv", RATES, &args);
    assert_eq!(run.status, Some(2), "{}", run.shown());
    insta::assert_snapshot!("trace_rates_to_jsonl", run.shown());
}

/// A Prometheus with four samples, one of them not a number.
fn prometheus(path: &str) -> Reply {
    let series = |le: Option<&str>, values: [&str; 4]| {
        let mut metric = json!({"model_name": "m"});
        if let Some(le) = le {
            metric["le"] = le.into();
        }
        let values = values.iter().enumerate().map(|(i, v)| json!([1_700_000_000 + 60 * i, v]));
        json!({"metric": metric, "values": values.collect::<Vec<_>>()})
    };
    let result = match path {
        path if !path.starts_with("/api/v1/query_range?query=sum%20by") => {
            return Reply::Status(404, "no such page");
        }
        path if path.contains("success_total%7Bmodel_name%3D%22none") => json!([]),
        path if path.contains("success_total") => json!([series(None, ["2", "NaN", "3", "4"])]),
        _ => json!([series(Some("100"), ["1"; 4]), series(Some("+Inf"), ["2"; 4])]),
    };
    Reply::Json(json!({"status": "success", "data": {"resultType": "matrix", "result": result}}))
}

#[test]
fn a_prometheus_is_recorded() {
    let folder = folder("trace");
    let address = server::start(prometheus);
    let record = |model: &str| {
        let args =
            ["trace", "record", "--prometheus", &address, "--since", "14d", "--model", model];
        let mut command = command(&args);
        // Our image has no certificate authorities, and plain HTTP needs none.
        command.env("SSL_CERT_FILE", "/nonexistent");
        finish(command.args(["--output", "recorded.json"]).current_dir(&folder))
    };
    let run = record("m");
    assert_eq!(run.status, Some(0), "{}", run.shown());
    let again = finish(command(&["trace", "inspect", "recorded.json"]).current_dir(&folder));
    insta::assert_snapshot!("trace_recorded", again.shown());
    let run = record("none");
    assert_eq!(run.status, Some(3), "{}", run.shown());
    insta::assert_snapshot!("trace_record_nothing", run.shown());
}
