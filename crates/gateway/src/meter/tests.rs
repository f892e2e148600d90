use super::*;
use crate::AdmittedDemand;
use crate::settings::{Arm, Key, ModelSettings, Split};
use crate::sse::{Finish, Usage};
use crate::surface::Surface;
use crate::tokens::{KeySetNow, KeySetSource, KeySetsNow};
use flyball_telemetry::metrics::{Metric, MetricPart, Metrics};
use std::collections::BTreeSet;
use std::io;
use std::sync::Mutex;

const STARTED: Duration = Duration::from_millis(1_794_000_000_123);

pub(super) fn settings() -> GatewaySettingsFile {
    let model = |name: &str| ModelSettings { name: name.to_owned(), ..ModelSettings::default() };
    let key = |name: &str| Key { name: name.to_owned(), sha256: "0".repeat(64), ..Key::default() };
    GatewaySettingsFile {
        models: vec![model("qwen"), model("llama")],
        keys: vec![key("search"), key("chatbot")],
        splits: vec![Split {
            name: "chat".to_owned(),
            arms: ["qwen", "llama"]
                .map(|model| Arm { model: model.to_owned(), weight: 1, known_as: None })
                .to_vec(),
            ..Split::default()
        }],
        ..GatewaySettingsFile::default()
    }
}

pub(super) fn request() -> Finished<'static> {
    Finished {
        request_id: "req-1",
        traceparent: None,
        caller: "search",
        key: None,
        model: Some("qwen"),
        endpoint: Some("10.0.0.1:8000"),
        surface: Surface::Chat,
        status: 200,
        outcome: RequestOutcome::Answered,
        reason: None,
        stream: true,
        started: SystemTime::UNIX_EPOCH + STARTED,
        took: Duration::from_millis(1_100),
        read: Some(Duration::from_micros(15)),
        first: Some(Duration::from_millis(100)),
        chosen: Some(Duration::from_micros(40)),
        queued: Duration::ZERO,
        held: false,
        split: None,
        mirrored: false,
        cached: false,
        hedged: false,
        continued: 0,
        batch: false,
        preempted: 0,
        finish: Some(Finish::Stop),
        retries: 1,
        tries: &[],
        hoped_blocks: Some(3),
        usage: Usage { input: 1_000, cached: Some(768), output: 101 },
        estimated: false,
        bytes_in: 4_096,
        bytes_out: 20_000,
    }
}

/// One model with an engine, and somebody who waits for it.
fn now() -> MeterNow {
    let engine = EngineNow {
        name: "e1".into(),
        address: ([10, 0, 0, 1], 8000).into(),
        uid: None,
        state: EngineState::Open,
        in_flight: 2,
        running: Some(3),
        waiting: None,
        kv_used_per_thousand: Some(250),
    };
    let queue = AdmittedDemand {
        waiting: 5,
        batch_running: 4,
        oldest_ms: 1_500,
        ..AdmittedDemand::default()
    };
    let qwen = ModelNow { name: "qwen".into(), engines: vec![engine], queue, trouble: None };
    // Beyond the cap, or in settings that have just come: no series.
    let stranger = ModelNow { name: "stranger".into(), ..ModelNow::default() };
    let age = Some(Duration::from_secs(7));
    let set = KeySetNow {
        setting: "tenants.issuers[0]".to_owned(),
        source: KeySetSource::Kubernetes,
        issuer: None,
        keys: 1,
        age,
        trouble: None,
    };
    let key_sets = KeySetsNow { sets: vec![set], ..KeySetsNow::default() };
    let tenants = Some(TenantsNow { age, key_sets, ..TenantsNow::default() });
    MeterNow { models: vec![qwen, stranger], tenants, ..MeterNow::default() }
}

fn page(meter: &Arc<Meter>) -> String {
    Metrics::new("1.2.3").with(Arc::clone(meter)).encode().unwrap()
}

fn series(page: &str) -> BTreeSet<&str> {
    page.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.rsplit_once(' '))
        .map(|(series, _)| series)
        .collect()
}

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl io::Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Captured {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

#[test]
fn a_request_is_counted_once_in_every_place() {
    let meter = Arc::new(Meter::quiet(&settings()));
    meter.finished(&request());
    meter.freed(Duration::from_millis(30));
    let engines = Engines { open: 3, broken: 1, ..Engines::default() };
    meter.observe_with(move || MeterNow { requests: 2, engines, ..now() });
    let page = page(&meter);
    let chat = r#"gen_ai_operation_name="chat",gen_ai_request_model="qwen""#;
    for line in [
        r#"flyball_gateway_requests_total{model="qwen",outcome="answered",status_class="2xx"} 1"#,
        r#"flyball_gateway_requests_total{model="llama",outcome="answered",status_class="2xx"} 0"#,
        r#"flyball_gateway_retries_total{model="qwen"} 1"#,
        r#"flyball_gateway_finish_total{model="qwen",reason="stop"} 1"#,
        r#"flyball_gateway_finish_total{model="qwen",reason="length"} 0"#,
        r#"flyball_gateway_split_requests_total{split="chat",model="qwen"} 0"#,
        r#"flyball_gateway_queue_wait_seconds_count{model="qwen"} 1"#,
        r#"flyball_gateway_queued{model="qwen"} 5.0"#,
        r#"flyball_gateway_oldest_wait_seconds{model="qwen"} 1.5"#,
        r#"flyball_gateway_model_engines{model="qwen",state="open"} 1.0"#,
        r#"flyball_gateway_caller_requests_total{caller="search",outcome="answered"} 1"#,
        r#"flyball_gateway_caller_tokens_total{caller="search",token_type="cached"} 768"#,
        r#"flyball_gateway_choices_total{by="affinity"} 1"#,
        r#"flyball_gateway_engines{state="open"} 3.0"#,
        r#"flyball_gateway_engines{state="broken"} 1.0"#,
        "flyball_gateway_in_flight 2.0",
        "flyball_gateway_cancel_to_free_seconds_count 1",
        "flyball_gateway_received_bytes_total 4096",
        "flyball_gateway_config_last_reload_successful 1.0",
        &format!("gen_ai_server_request_duration_seconds_sum{{{chat}}} 1.1"),
        &format!("gen_ai_server_time_to_first_token_seconds_sum{{{chat}}} 0.1"),
        // A second for the hundred tokens after the first.
        &format!("gen_ai_server_time_per_output_token_seconds_sum{{{chat}}} 0.01"),
        &format!(r#"gen_ai_client_token_usage_sum{{{chat},gen_ai_token_type="input"}} 1000.0"#),
        &format!(r#"gen_ai_client_token_usage_sum{{{chat},gen_ai_token_type="output"}} 101.0"#),
    ] {
        assert!(page.lines().any(|found| found == line), "{line} not in\n{page}");
    }
}

#[test]
fn everything_listed_is_written_and_everything_written_is_listed() {
    let meter = Arc::new(Meter::quiet(&settings()));
    meter.observe_with(now);
    let page = page(&meter);
    let families: BTreeSet<_> = page
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .map(|family| family.split_once(' ').unwrap())
        .collect();
    // Those of shadow policies are written by `shadow`, and held by its own tests.
    let own = |metric: &&Metric| {
        metric.part() != MetricPart::Operator
            && !metric.name().starts_with("flyball_gateway_shadow_")
    };
    let listed: BTreeSet<_> = Metric::ALL
        .iter()
        .filter(own)
        .map(|metric| {
            let kind = metric.kind();
            (metric.name().strip_suffix(kind.suffix()).unwrap(), kind.name())
        })
        .collect();
    assert_eq!(families, listed);
    for metric in
        Metric::ALL.iter().filter(own).filter(|metric| metric.part() == MetricPart::Gateway)
    {
        let begins = |line: &&str| line.starts_with(metric.name());
        let found = page.lines().find(begins).unwrap_or_default();
        let labelled = metric.labels().iter().all(|l| found.contains(&format!("{l}=\"")));
        assert!(!found.is_empty() && labelled, "{}: {found}", metric.name());
    }
}

#[test]
fn what_is_special_about_a_request_is_counted() {
    let meter = Arc::new(Meter::quiet(&settings()));
    let split = Finished { split: Some("chat"), ..request() };
    meter.finished(&Finished { held: true, queued: Duration::from_secs(40), ..split });
    meter.finished(&Finished { hedged: true, continued: 2, ..split });
    meter.finished(&Finished { batch: true, preempted: 3, ..split });
    meter.finished(&Finished { cached: true, model: Some("llama"), ..split });
    meter.finished(&Finished { split: Some("nobody's"), ..request() });
    // A copy is counted where it went, and for nobody who asked.
    let lost = RequestOutcome::Failed;
    meter.finished(&Finished { mirrored: true, reason: Some("no_engine"), outcome: lost, ..split });
    let page = page(&meter);
    for line in [
        r#"flyball_gateway_split_requests_total{split="chat",model="qwen"} 3"#,
        r#"flyball_gateway_split_requests_total{split="chat",model="llama"} 1"#,
        r#"flyball_gateway_held_requests_total{model="qwen"} 1"#,
        r#"flyball_gateway_hedged_total{model="qwen"} 1"#,
        r#"flyball_gateway_continued_total{model="qwen"} 2"#,
        r#"flyball_gateway_preempted_total{model="qwen"} 3"#,
        r#"flyball_gateway_response_cache_hits_total{model="llama"} 1"#,
        r#"flyball_gateway_mirrored_total{model="qwen"} 1"#,
        r#"flyball_gateway_queue_wait_seconds_bucket{le="30.0",model="qwen"} 3"#,
        r#"flyball_gateway_queue_wait_seconds_bucket{le="60.0",model="qwen"} 4"#,
        r#"flyball_gateway_refused_total{reason="no_engine"} 0"#,
        r#"flyball_gateway_caller_requests_total{caller="search",outcome="failed"} 0"#,
    ] {
        assert!(page.lines().any(|found| found == line), "{line} not in\n{page}");
    }
    assert!(!page.contains("nobody's"));
}

#[test]
fn one_look_shows_models_callers_and_refusals_of_the_last_minute() {
    let meter = Meter::quiet(&settings());
    meter.observe_with(|| MeterNow { zombies: 2, ..now() });
    let full = Finished { reason: Some("overloaded"), status: 529, first: None, ..request() };
    (0..30).for_each(|_| meter.finished(&request()));
    meter.finished(&Finished { outcome: RequestOutcome::Refused, caller: "chatbot", ..full });
    let state = meter.state(request().ended() + Duration::from_secs(5));
    let [qwen, stranger] = &state.models[..] else { panic!("{state:?}") };
    assert_eq!((qwen.engines[0].running, qwen.engines[0].waiting), (Some(3), None));
    assert_eq!((qwen.engines[0].kv_used, qwen.queue.waiting), (Some(0.25), 5));
    assert_eq!((qwen.last_minute.answered, qwen.last_minute.refused), (30, 1));
    assert_eq!(qwen.last_minute.hit_rate(), Some(0.768));
    let p95 = qwen.last_minute.first_token.p95_seconds.unwrap();
    assert!((0.1..=0.125).contains(&p95), "{p95}");
    assert!(qwen.requests_per_second > 1.0, "{}", qwen.requests_per_second);
    assert_eq!(stranger.last_minute, crate::state::Minute::default());
    let callers: Vec<_> = state.callers.iter().map(|caller| caller.name.as_str()).collect();
    assert_eq!(callers, ["chatbot", "search"]);
    assert_eq!((state.refusals[0].reason.as_str(), state.refusals[0].count), ("overloaded", 1));
    assert_eq!((state.troubles[0].what.as_str(), state.troubles[0].count), ("zombies", 2));
    let later = meter.state(request().ended() + Duration::from_secs(70));
    assert!(later.callers.is_empty() && later.refusals.is_empty());
}

#[test]
fn the_slowest_and_the_heaviest_callers_are_shown_and_no_others() {
    let mut settings = settings();
    let name = |n: u64| format!("caller-{n:03}");
    let key = |n| Key { name: name(n), ..Key::default() };
    settings.keys = (0..100).map(key).collect();
    let meter = Meter::quiet(&settings);
    for n in 0..100 {
        let usage = Usage { input: 1_000 - n, ..Usage::default() };
        let first = Some(Duration::from_millis(if n < 90 { 10 } else { 100 }));
        meter.finished(&Finished { caller: &name(n), usage, first, ..request() });
    }
    let shown: Vec<_> =
        meter.state(request().ended()).callers.into_iter().map(|c| c.name).collect();
    let expected: Vec<_> = (0..10).chain(90..100).map(name).collect();
    assert_eq!(shown, expected);
}

#[test]
fn words_of_requests_make_no_series() {
    let meter = Arc::new(Meter::quiet(&settings()));
    meter.finished(&request());
    meter.finished(&Finished {
        model: None,
        outcome: RequestOutcome::Refused,
        reason: Some("model_not_found"),
        status: 404,
        ..request()
    });
    let before = page(&meter);
    for n in 0..10_000 {
        let (model, caller) = (format!("model-{n}"), format!("caller-{n}"));
        meter.finished(&Finished { model: Some(&model), caller: &caller, ..request() });
        meter.finished(&Finished { model: None, caller: "", ..request() });
    }
    let after = page(&meter);
    assert_eq!(series(&before), series(&after));
    for line in [
        r#"flyball_gateway_labels_capped_total{label="model"} 10000"#,
        r#"flyball_gateway_labels_capped_total{label="caller"} 10000"#,
        r#"flyball_gateway_requests_total{model="other",outcome="answered",status_class="2xx"} 10000"#,
        r#"flyball_gateway_requests_total{model="unknown",outcome="refused",status_class="4xx"} 1"#,
        r#"flyball_gateway_refused_total{reason="model_not_found"} 1"#,
    ] {
        assert!(after.lines().any(|found| found == line), "{line} not in\n{after}");
    }
}

#[test]
fn names_of_settings_are_capped_and_those_that_stay_keep_their_counts() {
    let mut settings = settings();
    let meter = Arc::new(Meter::quiet(&settings));
    meter.finished(&request());
    settings.models.truncate(1);
    settings.splits.clear();
    let name = |n: usize| ModelSettings { name: format!("model-{n}"), ..ModelSettings::default() };
    settings.models.extend((0..2 * MODELS).map(name));
    // A model of this name shares the counts of the rest and does not double a series.
    settings
        .models
        .insert(1, ModelSettings { name: series::OTHER.to_owned(), ..ModelSettings::default() });
    meter.follow(&settings);
    meter.finished(&Finished { model: Some("model-1999"), ..request() });
    let page = page(&meter);
    let retries: Vec<_> =
        page.lines().filter(|line| line.starts_with("flyball_gateway_retries_total{")).collect();
    assert_eq!(retries.len(), MODELS + 1);
    assert!(retries.contains(&r#"flyball_gateway_retries_total{model="qwen"} 1"#), "{retries:?}");
    assert!(retries.contains(&r#"flyball_gateway_retries_total{model="other"} 1"#));
    assert!(!page.contains("llama"));
}

#[test]
fn a_line_is_json_with_the_names_of_opentelemetry() {
    let captured = Captured::default();
    let meter = Meter::start(&settings(), "1.2.3", captured.clone()).unwrap();
    meter.finished(&request());
    meter.finished(&Finished {
        model: None,
        caller: "",
        endpoint: None,
        first: None,
        chosen: None,
        hoped_blocks: None,
        ..request()
    });
    drop(meter);
    let text = captured.text();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let expected = serde_json::json!({
        "time": "2026-11-06T21:20:00.123000Z",
        "flyball.request.id": "req-1",
        "gen_ai.operation.name": "chat",
        "url.path": "/v1/chat/completions",
        "gen_ai.request.model": "qwen",
        "flyball.caller": "search",
        "flyball.endpoint": "10.0.0.1:8000",
        "http.response.status_code": 200,
        "flyball.outcome": "answered",
        "gen_ai.request.stream": true,
        "flyball.duration_seconds": 1.1,
        "flyball.ttft_seconds": 0.1,
        "flyball.routing_seconds": 0.000_04,
        "flyball.retries": 1,
        "flyball.expected_cached_blocks": 3,
        "gen_ai.response.finish_reasons": "stop",
        "gen_ai.usage.input_tokens": 1000,
        "gen_ai.usage.cache_read.input_tokens": 768,
        "gen_ai.usage.output_tokens": 101,
        "flyball.usage.estimated": false,
        "http.request.body.size": 4096,
        "http.response.body.size": 20000,
    });
    assert_eq!(lines[0], expected);
    assert!(lines[1].get("gen_ai.request.model").is_none(), "{}", lines[1]);
    assert_eq!(lines.len(), 2);
}

#[test]
fn a_line_speaks_of_what_was_special() {
    let captured = Captured::default();
    let meter = Meter::start(&settings(), "1.2.3", captured.clone()).unwrap();
    meter.finished(&Finished {
        queued: Duration::from_millis(1_500),
        held: true,
        hedged: true,
        cached: true,
        mirrored: true,
        continued: 2,
        batch: true,
        preempted: 3,
        split: Some("chat"),
        ..request()
    });
    drop(meter);
    let line: serde_json::Value = serde_json::from_str(&captured.text()).unwrap();
    for (name, value) in [
        ("queued_seconds", serde_json::json!(1.5)),
        ("held", true.into()),
        ("hedged", true.into()),
        ("cached", true.into()),
        ("mirrored", true.into()),
        ("continued", 2.into()),
        ("batch", true.into()),
        ("preempted", 3.into()),
        ("split", "chat".into()),
    ] {
        assert_eq!(line[format!("flyball.{name}")], value, "{name}");
    }
}

#[test]
fn no_client_writes_a_line_or_a_terminal_code() {
    let captured = Captured::default();
    let meter = Meter::start(&settings(), "1.2.3", captured.clone()).unwrap();
    let evil = "a\"b\\c\n{\"x\":1}\u{1b}[2J\u{7f}\u{9b}31m\u{2028}\u{202e}é";
    let long = "x".repeat(5_000);
    meter.finished(&Finished { request_id: evil, ..request() });
    meter.finished(&Finished { request_id: &long, ..request() });
    drop(meter);
    let text = captured.text();
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    let line: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(line["flyball.request.id"], evil);
    assert!(text.len() < 2_500, "{}", text.len());
}

#[test]
fn a_log_that_nobody_reads_drops_lines_and_counts_them() {
    struct Stuck(std::sync::mpsc::Receiver<()>);
    impl io::Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Until the test lets go.
            let _ = self.0.recv();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let (release, stuck) = std::sync::mpsc::channel();
    let meter = Arc::new(Meter::start(&settings(), "1.2.3", Stuck(stuck)).unwrap());
    // Some 550 bytes each: more than the buffer of this thread twice over.
    (0..5_000).for_each(|_| meter.finished(&request()));
    let dropped = meter.log_dropped();
    assert!((1_000..5_000).contains(&dropped), "{dropped}");
    assert!(page(&meter).contains(&format!("{{signal=\"log\"}} {dropped}\n")));
    drop(release);
}

#[test]
fn the_log_can_be_switched_off_while_it_runs() {
    let captured = Captured::default();
    let mut settings = settings();
    let meter = Meter::start(&settings, "1.2.3", captured.clone()).unwrap();
    settings.telemetry.access_log = false;
    meter.follow(&settings);
    meter.finished(&request());
    drop(meter);
    assert_eq!(captured.text(), "");
}

#[test]
fn tenants_have_counts_of_their_own_up_to_a_bound_and_who_is_new_takes_nobodys() {
    let meter = Meter::quiet(&settings());
    let path = |n: usize| -> Arc<str> { format!("ml/t{n:05}").into() };
    let paths = |from: usize, to: usize| -> Vec<Arc<str>> { (from..to).map(path).collect() };
    let has = |name: &str| meter.names.load().callers.contains_key(name);
    // Two places are those of keys of the settings.
    meter.tenants(&paths(100, 100 + CALLERS - 2));
    meter.finished(&Finished { caller: &path(100), ..request() });
    // Others come whose names are before theirs.
    meter.tenants(&paths(0, 100 + CALLERS));
    assert!(has("search") && has(&path(100)) && has(&path(100 + CALLERS - 3)));
    assert!(!has(&path(0)) && !has(&path(100 + CALLERS - 1)));
    meter.finished(&Finished { caller: &path(0), ..request() });
    assert_eq!(meter.totals.capped[1].load(Relaxed), 1);
    // A settings file that is read anew forgets none, and a Tenant that goes takes its counts along.
    meter.follow(&settings());
    assert!(has(&path(100)));
    let answered = || meter.names.load().callers[&*path(100)].requests[0].load(Relaxed);
    assert_eq!(answered(), 1);
    meter.tenants(&paths(0, 100));
    assert!(has(&path(0)) && !has(&path(100)));
}
