//! Help, errors and explanations, word for word.

use super::flyball::{command, finish, flyball, kubeconfig};

#[test]
fn help_of_every_command() {
    for (name, args) in [
        ("help", &["--help"][..]),
        ("help_audit", &["audit", "--help"]),
        ("help_backtest", &["backtest", "--help"]),
        ("help_collect", &["collect", "--help"]),
        ("help_emulate", &["emulate", "--help"]),
        ("help_check", &["check", "--help"]),
        ("help_check_short", &["check", "-h"]),
        ("help_decisions", &["decisions", "--help"]),
        ("help_diff", &["diff", "--help"]),
        ("help_freeze", &["freeze", "--help"]),
        ("help_resume", &["resume", "--help"]),
        ("help_status", &["status", "--help"]),
        ("help_whatif", &["whatif", "--help"]),
        ("help_why", &["why", "--help"]),
        ("help_explain", &["explain", "--help"]),
        ("help_simulate", &["simulate", "--help"]),
        ("help_gpus", &["gpus", "--help"]),
        ("help_key_create", &["key", "create", "--help"]),
        ("help_key_revoke", &["key", "revoke", "--help"]),
        ("help_tenants", &["tenants", "--help"]),
        ("help_models", &["models", "--help"]),
        ("help_prices", &["prices", "--help"]),
        ("help_plan_train", &["plan", "train", "--help"]),
        ("help_top", &["top", "--help"]),
        ("help_version", &["version", "--help"]),
    ] {
        let run = flyball(args);
        assert!(run.stdout.lines().all(|line| line.len() <= 100), "{}", run.stdout);
        insta::assert_snapshot!(name, run.shown());
    }
}

#[test]
fn explanations() {
    insta::assert_snapshot!("explain_list", flyball(&["explain"]).shown());
    insta::assert_snapshot!("explain_one", flyball(&["explain", "fly301"]).shown());
    insta::assert_snapshot!("explain_typo", flyball(&["explain", "FYL-301"]).shown());
    insta::assert_snapshot!("explain_nonsense", flyball(&["explain", "zzz"]).shown());
    insta::assert_snapshot!(
        "explain_typo_json",
        flyball(&["explain", "FYL-301", "-ojson"]).shown()
    );
}

#[test]
fn versions() {
    let run = flyball(&["version"]);
    assert_eq!(
        (run.stdout.as_str(), run.status),
        ("client 0.0.0 (a development build)\n", Some(0))
    );
    assert_eq!(flyball(&["version", "-o", "json"]).json()["client"], "0.0.0");
}

#[test]
fn every_form_of_an_answer() {
    let yaml = flyball(&["version", "-o", "yaml"]);
    assert_eq!(yaml.stdout, "apiVersion: cli.flyball.dev/v1\nkind: Version\nclient: \"0.0.0\"\n");
    assert_eq!(
        flyball(&["version", "-o", "markdown"]).stdout,
        "client 0.0.0 (a development build)\n"
    );
    let (page, plain) =
        (flyball(&["explain", "FLY-101", "-omd"]), flyball(&["explain", "FLY-101"]));
    assert_eq!(page.stdout, plain.stdout, "a page is Markdown already");
    let list = flyball(&["explain", "-o", "markdown", "--color", "always"]).stdout;
    assert!(list.starts_with("| Name | Meaning |\n|---|---|\n| BreakEven"), "{list}");
    assert!(!list.contains('\x1b'), "Markdown has no colour");
}

#[test]
fn the_status_does_not_depend_on_the_form() {
    for form in ["table", "json", "yaml", "markdown"] {
        let run = flyball(&["explain", "zzz", "-o", form]);
        assert_eq!(run.status, Some(2), "{}", run.shown());
        assert!(run.stderr.starts_with("error: "), "{}", run.shown());
        let document = ["json", "yaml"].contains(&form);
        assert_eq!(run.stdout.is_empty(), !document, "{}", run.shown());
    }
}

#[test]
fn wrong_usage() {
    for (name, args) in [
        ("usage_command", &["chek"][..]),
        ("usage_json", &["check", "--wait", "soon", "-o", "json"]),
        ("usage_command_json", &["chek", "-o", "json"]),
        ("usage_command_yaml", &["chek", "--format=yaml"]),
        ("usage_category", &["check", "--only", "cpu"]),
        ("usage_code", &["check", "--skip", "FLY-999"]),
        ("usage_time", &["check", "--timeout", "0"]),
        ("usage_address", &["check", "--prometheus", "prom:9090"]),
    ] {
        let run = flyball(args);
        assert_eq!(run.status, Some(2), "{}", run.shown());
        insta::assert_snapshot!(name, run.shown());
    }
}

#[test]
fn no_cluster() {
    let config = kubeconfig("named", "https://127.0.0.1:1");
    insta::assert_snapshot!("cluster_none", flyball(&["check"]).shown());
    insta::assert_snapshot!("cluster_none_json", flyball(&["check", "-o", "json"]).shown());
    let wrong = ["check", "--kubeconfig", "/nonexistent/config"];
    insta::assert_snapshot!("cluster_no_file", flyball(&wrong).shown());
    let run = finish(command(&["check", "--context", "prod"]).env("KUBECONFIG", &config));
    insta::assert_snapshot!("cluster_no_context", run.shown());
}

#[test]
fn colour_only_when_wanted() {
    let styled = |run: &super::flyball::Run| run.stdout.contains('\x1b');
    assert!(!styled(&flyball(&["explain", "FLY-101"])));
    assert!(styled(&flyball(&["explain", "FLY-101", "--color", "always"])));
    assert!(styled(&finish(command(&["explain", "FLY-101"]).env("FLYBALL_COLOR", "always"))));
    let none = command(&["explain", "FLY-101"]).env("NO_COLOR", "1").output();
    assert!(!none.expect("it runs").stdout.contains(&b'\x1b'));
}

#[test]
fn flags_are_read_from_the_environment() {
    let run =
        finish(command(&["version"]).env("FLYBALL_FORMAT", "json").env("FLYBALL_VERBOSE", "2"));
    assert_eq!(run.json()["kind"], "Version", "{}", run.shown());
    for yes in ["1", "true", "yes"] {
        let quiet = finish(command(&["version"]).env("FLYBALL_QUIET", yes));
        assert_eq!(quiet.status, Some(0), "{}", quiet.shown());
    }
}

#[test]
fn a_kubectl_plugin_calls_itself_one() {
    use std::os::unix::process::CommandExt;
    let run = finish(command(&["check", "-h"]).arg0("kubectl-flyball"));
    assert!(run.stdout.contains("Usage: kubectl flyball check"), "{}", run.shown());
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let mut child = command(&["explain"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the binary starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}
