//! `flyball gateway --check`: good and bad settings, as people and programs see it.

use crate::flyball::flyball;
use std::path::PathBuf;

const GOOD: &str = r#"
listen = "0.0.0.0:8080"

[[keys]]
name = "search"
sha256 = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"

[[models]]
name = "qwen"
service = "serving/qwen:http"
"#;

const BAD: &str = r#"
listne = "127.0.0.1:8080"
listen = "0.0.0.0:8080"

[limits]
body_bytes = 0

[[models]]
name = "qwen"
service = "serving/qwen:http"
pool = "serving/qwen"
"#;

fn file(name: &str, text: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("a file can be written");
    path.to_str().expect("a plain path").to_owned()
}

#[test]
fn good_settings_are_said_to_be_good() {
    let path = file("gateway-good.toml", GOOD);
    let run = flyball(&["gateway", "--check", "--config", &path]);
    insta::assert_snapshot!("gateway_good", run.shown().replace(&path, "gateway.toml"));
    let json = flyball(&["gateway", "--check", "--config", &path, "-o", "json"]).json();
    assert_eq!((&json["kind"], &json["models"]), (&"GatewaySettings".into(), &1.into()));
}

#[test]
fn bad_settings_are_refused_with_all_their_problems() {
    let path = file("gateway-bad.toml", BAD);
    // Also without --check: nothing is served with such a file.
    for args in [["gateway", "--check", "--config"], ["gateway", "-q", "--config"]] {
        let run = flyball(&[args[0], args[1], args[2], &path]);
        insta::assert_snapshot!("gateway_bad", run.shown().replace(&path, "gateway.toml"));
    }
    let json = flyball(&["gateway", "--check", "--config", &path, "-o", "json"]).json();
    assert_eq!((&json["kind"], &json["code"]), (&"Error".into(), &"FLY-802".into()));
}

#[test]
fn a_file_that_is_not_there_is_said_to_be_missing() {
    let run = flyball(&["gateway", "--check", "--config", "/nonexistent/gateway.toml"]);
    assert_eq!(run.status, Some(2));
    assert!(run.stderr.contains("FLY-801"), "{}", run.stderr);
}
