//! `flyball check` against servers that answer, refuse, hang, or are not there.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::flyball::{Run, command, finish, flyball, kubeconfig};
use super::server::{self, Reply};

#[test]
fn a_healthy_cluster_passes() {
    let config = kubeconfig("healthy", &server::start(server::healthy));
    let run = flyball(&["check", "--kubeconfig", &config]);
    insta::assert_snapshot!(run.shown());
    let json = flyball(&["check", "--kubeconfig", &config, "-o", "json"]);
    assert_eq!(json.status, Some(0));
    let answer = json.json();
    assert_eq!(answer["kind"], "Check");
    assert_eq!(answer["verdict"], "passed");
    assert_eq!(answer["accelerators"][0]["devices"], 16);
}

#[test]
fn an_api_server_that_is_not_there_is_known_at_once() {
    let config = kubeconfig("refused", "https://127.0.0.1:1");
    let run = flyball(&["check", "--kubeconfig", &config]);
    insta::assert_snapshot!(run.shown());
    assert_eq!(run.status, Some(3));
    let json = flyball(&["check", "--kubeconfig", &config, "-o", "json"]);
    assert_eq!(json.status, run.status, "the status does not depend on -o");
    assert_eq!(json.json()["verdict"], "incomplete");
}

#[test]
fn a_silent_server_ends_by_the_time_limit() {
    let config = kubeconfig("silent", &server::start(|_| Reply::Silence));
    let run = flyball(&["check", "--kubeconfig", &config, "--timeout", "3s"]);
    assert_eq!(run.status, Some(3), "{}", run.shown());
    assert!(run.stdout.contains("timed out after 3 s"), "{}", run.shown());
}

#[test]
fn one_silent_answer_does_not_hold_up_the_others() {
    fn reply(path: &str) -> Reply {
        let silent = path.starts_with("/api/v1/nodes") || path.contains("selfsubject");
        if silent { Reply::Silence } else { server::healthy(path) }
    }
    let config = kubeconfig("half", &server::start(reply));
    let run = flyball(&["check", "--kubeconfig", &config, "--timeout", "4s", "-o", "json"]);
    let counts = &run.json()["counts"];
    assert_eq!((&counts["ok"], &counts["unknown"]), (&7.into(), &16.into()), "{}", run.shown());
    assert_eq!(run.status, Some(3));
}

#[test]
fn refused_questions_are_unknown() {
    fn reply(path: &str) -> Reply {
        match path.split('?').next() {
            Some("/version") => server::healthy(path),
            _ => Reply::Status(403, "nodes is forbidden: User \"ann\" cannot list resource"),
        }
    }
    let config = kubeconfig("forbidden", &server::start(reply));
    let run = flyball(&["check", "--kubeconfig", &config, "--only", "parts,capacity"]);
    insta::assert_snapshot!(run.shown());
}

#[test]
fn waiting_ends_in_its_own_status() {
    let config = kubeconfig("waiting", "https://127.0.0.1:1");
    let run = flyball(&["check", "--kubeconfig", &config, "--only", "cluster", "--wait", "1s"]);
    insta::assert_snapshot!(run.shown());
    assert_eq!(run.status, Some(4));
}

#[test]
fn waiting_ends_when_the_check_passes() {
    static REQUESTS: AtomicU32 = AtomicU32::new(0);
    fn reply(path: &str) -> Reply {
        match REQUESTS.fetch_add(1, Ordering::Relaxed) {
            0 => Reply::Status(503, "starting"),
            _ => server::healthy(path),
        }
    }
    let config = kubeconfig("starting", &server::start(reply));
    let run = flyball(&["check", "--kubeconfig", &config, "--only", "cluster", "--wait", "1m"]);
    assert_eq!(run.status, Some(0), "{}", run.shown());
    assert!(run.stdout.starts_with("cluster\n  ok "), "tries leave no trace: {}", run.shown());
    assert_eq!(run.stderr, "");
}

/// Kueue is not there for the first `tries` tries.
fn without_kueue(path: &str, tries: u32, requests: &AtomicU32) -> Reply {
    let Reply::Json(mut groups) = server::healthy(path) else { return server::healthy(path) };
    if path == "/apis" && requests.fetch_add(1, Ordering::Relaxed) < tries {
        groups["groups"].as_array_mut().expect("groups").remove(0);
    }
    Reply::Json(groups)
}

#[test]
fn waiting_is_also_for_a_part_that_comes_later() {
    static REQUESTS: AtomicU32 = AtomicU32::new(0);
    let address = server::start(|path| without_kueue(path, 1, &REQUESTS));
    let config = kubeconfig("later", &address);
    let args = ["check", "--kubeconfig", &config, "--only", "parts", "--wait", "1m"];
    let run = flyball(&[&args[..], &["-o", "json"]].concat());
    assert_eq!(run.status, Some(0), "{}", run.shown());
    assert_eq!(status(&run, "FLY-301"), "ok", "{}", run.shown());
    assert_eq!(REQUESTS.load(Ordering::Relaxed), 2);
}

#[test]
fn a_part_that_never_comes_ends_the_wait_as_a_warning() {
    static REQUESTS: AtomicU32 = AtomicU32::new(0);
    let address = server::start(|path| without_kueue(path, u32::MAX, &REQUESTS));
    let config = kubeconfig("never", &address);
    let args = ["check", "--kubeconfig", &config, "--only", "parts", "--wait", "1s"];
    let run = flyball(&args);
    assert_eq!(run.status, Some(0), "{}", run.shown());
    assert!(run.took >= Duration::from_secs(1), "{:?}", run.took);
    assert!(run.stdout.contains("check passed: 3 ok, 1 warning"), "{}", run.shown());
    let strict = flyball(&[&args[..], &["--fail-on", "warning"]].concat());
    assert_eq!(strict.status, Some(4), "{}", strict.shown());
}

#[test]
fn refused_credentials_are_told_once() {
    let config = kubeconfig("strangers", &server::start(|_| Reply::Status(401, "Unauthorized")));
    let run = flyball(&["check", "--kubeconfig", &config, "--only", "clock", "-q"]);
    insta::assert_snapshot!(run.shown());
}

#[test]
fn warnings_fail_only_when_asked() {
    fn reply(path: &str) -> Reply {
        match path.split('?').next() {
            Some("/api/v1/nodes") => Reply::Json(json!({"metadata": {}, "items": []})),
            _ => server::healthy(path),
        }
    }
    let config = kubeconfig("warning", &server::start(reply));
    let args = ["check", "--kubeconfig", &config, "-q"];
    assert_eq!(flyball(&args).status, Some(0));
    let strict = finish(command(&args).env("FLYBALL_CHECK_FAIL_ON", "warning"));
    assert_eq!(strict.status, Some(1), "{}", strict.shown());
    let skipped = flyball(&[&args[..], &["--skip", "fly-401", "--fail-on", "warning"]].concat());
    assert_eq!(skipped.status, Some(0), "{}", skipped.shown());
}

#[test]
fn prometheus_may_be_anywhere() {
    fn prometheus(path: &str) -> Reply {
        match path {
            "/api/v1/status/buildinfo" => Reply::Json(json!({"data": {"version": "3.1.4"}})),
            _ => Reply::Status(404, ""),
        }
    }
    let (cluster, address) = (server::start(server::healthy), server::start(prometheus));
    let config = kubeconfig("prometheus", &cluster);
    let args = ["check", "--kubeconfig", &config, "--only", "parts", "--prometheus", &address];
    let run = flyball(&args);
    assert_eq!(run.status, Some(0), "{}", run.shown());
    assert!(run.stdout.contains("3.1.4, http://127.0.0.1"), "{}", run.shown());
}

/// The status of one check, from `-o json`.
fn status(run: &Run, code: &str) -> String {
    let answer = run.json();
    let sections = answer["sections"].as_array().expect("sections").iter();
    let mut checks = sections.flat_map(|section| section["checks"].as_array().expect("checks"));
    let found = checks.find(|check| check["code"] == code).expect("the check is there");
    found["status"].as_str().expect("a status").to_owned()
}

fn parts(name: &str, reply: fn(&str) -> Reply) -> Run {
    parts_within(name, reply, "50s")
}

/// With this much time for each answer: only where one never comes may it be short.
fn parts_within(name: &str, reply: fn(&str) -> Reply, limit: &str) -> Run {
    let config = kubeconfig(name, &server::start(reply));
    let args = ["check", "--kubeconfig", &config, "--only", "parts", "--timeout", limit];
    flyball(&[&args[..], &["-o", "json"]].concat())
}

#[test]
fn what_answers_for_prometheus_must_be_prometheus() {
    fn with(path: &str, reply: Reply) -> Reply {
        if path.contains("/proxy/") { reply } else { server::healthy(path) }
    }
    fn login(path: &str) -> Reply {
        with(path, Reply::Status(302, "/login"))
    }
    fn dashboard(path: &str) -> Reply {
        with(path, Reply::Text("<!doctype html><title>Grafana</title>"))
    }
    fn overload(path: &str) -> Reply {
        with(path, Reply::Status(429, "too many requests"))
    }
    fn starting(path: &str) -> Reply {
        with(path, Reply::Status(503, "Service Unavailable"))
    }
    fn nobody(path: &str) -> Reply {
        with(path, Reply::Status(503, "no endpoints available for service \"prometheus\""))
    }
    for (name, reply, expected) in [
        ("login", login as fn(&str) -> Reply, "unknown"),
        ("dashboard", dashboard, "warn"),
        ("overload", overload, "unknown"),
        ("starting-up", starting, "unknown"),
        ("nobody", nobody, "warn"),
    ] {
        let run = parts(name, reply);
        assert_eq!(status(&run, "FLY-303"), expected, "{name}: {}", run.shown());
    }
}

#[test]
fn a_silent_prometheus_does_not_hide_another() {
    fn reply(path: &str) -> Reply {
        let service = |name: &str, port: Value| json!({"metadata": {"namespace": "m", "name": name}, "spec": {"ports": [port]}});
        match path.split('?').next() {
            Some("/api/v1/services") => Reply::Json(json!({"metadata": {}, "items": [
                service("prometheus-grafana", json!({"name": "web", "port": 80})),
                service("silent", json!({"name": "web", "port": 9090})),
                service("good", json!({"name": "https", "port": 9091})),
            ]})),
            Some("/api/v1/namespaces/m/services/https:good:9091/proxy/api/v1/status/buildinfo") => {
                Reply::Json(json!({"data": {"version": "3.1.4"}}))
            }
            Some(path) if path.contains("/proxy/") => Reply::Silence,
            _ => server::healthy(path),
        }
    }
    let run = parts_within("several", reply, "8s");
    assert_eq!(status(&run, "FLY-303"), "ok", "{}", run.shown());
}

#[test]
fn a_controller_scaled_to_nothing_is_down() {
    fn reply(path: &str) -> Reply {
        if !path.starts_with("/apis/apps/v1/deployments") {
            return server::healthy(path);
        }
        let mut none = server::deployment("kueue");
        none["status"]["availableReplicas"] = Value::Null;
        // For JobSet there is one that works beside it.
        let items = match path.contains("kueue") {
            true => json!([none]),
            false => json!([none, server::deployment("jobset")]),
        };
        Reply::Json(json!({"metadata": {}, "items": items}))
    }
    let run = parts("scaled", reply);
    assert_eq!(status(&run, "FLY-301"), "fail", "{}", run.shown());
    assert_eq!(status(&run, "FLY-302"), "ok", "{}", run.shown());
}

#[test]
fn controllers_are_found_without_the_right_to_list() {
    fn reply(path: &str) -> Reply {
        match path.split('?').next() {
            Some("/apis/apps/v1/deployments") => Reply::Status(403, "no"),
            Some("/apis/apps/v1/namespaces/kueue-system/deployments/kueue-controller-manager") => {
                Reply::Json(server::deployment("kueue"))
            }
            _ => server::healthy(path),
        }
    }
    let run = parts("unlisted", reply);
    assert_eq!(status(&run, "FLY-301"), "ok", "{}", run.shown());
    // Not where it usually is: it may be anywhere.
    assert_eq!(status(&run, "FLY-302"), "unknown", "{}", run.shown());
}

#[test]
fn overload_says_nothing_about_resource_metrics() {
    fn with(path: &str, reply: Reply) -> Reply {
        if path == "/apis/metrics.k8s.io/v1beta1" { reply } else { server::healthy(path) }
    }
    fn busy(path: &str) -> Reply {
        with(path, Reply::Status(429, "too many requests"))
    }
    fn broken(path: &str) -> Reply {
        with(path, Reply::Status(502, "bad gateway"))
    }
    fn down(path: &str) -> Reply {
        with(path, Reply::Status(503, "service unavailable"))
    }
    for (name, reply, expected) in [
        ("metrics-busy", busy as fn(&str) -> Reply, "unknown"),
        ("metrics-broken", broken, "unknown"),
        ("metrics-down", down, "warn"),
    ] {
        let run = parts(name, reply);
        assert_eq!(status(&run, "FLY-304"), expected, "{name}: {}", run.shown());
    }
}

#[test]
fn an_interrupt_is_not_an_answer() {
    static REQUESTS: AtomicU32 = AtomicU32::new(0);
    let address = server::start(|_| {
        REQUESTS.fetch_add(1, Ordering::Relaxed);
        Reply::Silence
    });
    let config = kubeconfig("interrupted", &address);
    let mut child = command(&["check", "--kubeconfig", &config, "--timeout", "50s"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the binary starts");
    // Who asks listens for interrupts, too.
    while REQUESTS.load(Ordering::Relaxed) == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let id = child.id().to_string();
    let sent = std::process::Command::new("kill").args(["-INT", &id]).status();
    assert!(sent.is_ok_and(|status| status.success()));
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
}
