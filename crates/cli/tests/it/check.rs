//! `flyball check` against servers that answer, refuse, hang, or are not there.

use std::time::Duration;

use super::flyball::{command, finish, flyball, kubeconfig};
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
    assert!(run.took < Duration::from_secs(3), "{:?}", run.took);
    let json = flyball(&["check", "--kubeconfig", &config, "-o", "json"]);
    assert_eq!(json.status, run.status, "the status does not depend on -o");
    assert_eq!(json.json()["verdict"], "incomplete");
}

#[test]
fn a_silent_server_ends_by_the_time_limit() {
    let config = kubeconfig("silent", &server::start(|_| Reply::Silence));
    let run = flyball(&["check", "--kubeconfig", &config, "--timeout", "300ms"]);
    assert_eq!(run.status, Some(3), "{}", run.shown());
    assert!(run.stdout.contains("timed out after 300 ms"), "{}", run.shown());
    assert!(run.took < Duration::from_secs(3), "{:?}", run.took);
}

#[test]
fn one_silent_answer_does_not_hold_up_the_others() {
    fn reply(path: &str) -> Reply {
        let silent = path.starts_with("/api/v1/nodes") || path.contains("selfsubject");
        if silent { Reply::Silence } else { server::healthy(path) }
    }
    let config = kubeconfig("half", &server::start(reply));
    let run = flyball(&["check", "--kubeconfig", &config, "--timeout", "400ms", "-o", "json"]);
    let counts = &run.json()["counts"];
    assert_eq!((&counts["ok"], &counts["unknown"]), (&7.into(), &14.into()), "{}", run.shown());
    assert_eq!(run.status, Some(3));
    assert!(run.took < Duration::from_secs(3), "{:?}", run.took);
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
    use std::sync::atomic::{AtomicU32, Ordering};
    static ASKED: AtomicU32 = AtomicU32::new(0);
    fn reply(path: &str) -> Reply {
        match ASKED.fetch_add(1, Ordering::Relaxed) {
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
            Some("/api/v1/nodes") => Reply::Json(serde_json::json!({"metadata": {}, "items": []})),
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
            "/-/ready" => Reply::Text("ready"),
            _ => Reply::Status(404, ""),
        }
    }
    let (cluster, address) = (server::start(server::healthy), server::start(prometheus));
    let config = kubeconfig("prometheus", &cluster);
    let args = ["check", "--kubeconfig", &config, "--only", "parts", "--prometheus", &address];
    let run = flyball(&args);
    assert_eq!(run.status, Some(0), "{}", run.shown());
    assert!(run.stdout.contains("version unknown, http://127.0.0.1"), "{}", run.shown());
}

#[test]
fn an_interrupt_is_not_an_answer() {
    let config = kubeconfig("interrupted", &server::start(|_| Reply::Silence));
    let mut child = command(&["check", "--kubeconfig", &config, "--timeout", "20s"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the binary starts");
    std::thread::sleep(Duration::from_millis(500));
    let id = child.id().to_string();
    let sent = std::process::Command::new("kill").args(["-INT", &id]).status();
    assert!(sent.is_ok_and(|status| status.success()));
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
}
