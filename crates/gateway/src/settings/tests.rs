use super::fields::{Kind, Section};
use super::sections::ROOT;
use super::*;
use proptest::prelude::*;

const MODEL: &str = "[[models]]\nname = \"qwen\"\nendpoints = [\"10.0.0.1:8000\"]\n";

fn problems(text: &str) -> Vec<String> {
    GatewaySettingsFile::parse(text).unwrap_err().iter().map(ToString::to_string).collect()
}

#[track_caller]
fn refused(text: &str, expected: &[&str]) {
    let found = problems(&format!("{text}\n{MODEL}"));
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.contains(expected), "{expected} not in {found}");
    }
}

#[test]
fn the_least_file_is_one_model_and_the_rest_has_defaults() {
    let settings = GatewaySettingsFile::parse(MODEL).unwrap();
    assert_eq!(settings.models[0].name, "qwen");
    let models = settings.models.clone();
    assert_eq!(settings, GatewaySettingsFile { models, ..GatewaySettingsFile::default() });
    assert!(settings.warnings().is_empty());
}

#[test]
fn everything_wrong_is_said_at_once_with_its_line() {
    let text = r#"listne = "127.0.0.1:80"
threads = -1
open = "yes"

[limits]
body_bytes = 0
held_bytes = 1.5

[[keys]]
name = "a"
sha256 = "abc"

[[keys]]
name = "a"

[[models]]
name = "m"
service = "no-namespace:80"

[[models]]
name = "m"
endpoints = ["10.0.0.1:80"]
pool = "a/b"

[colour]
"#;
    let found = problems(text);
    let expected = [
        "FLY-802 line 1 listne: is not a setting; did you mean `listen`?",
        "FLY-803 line 2 threads: expected 0 to 1024, got -1; change the value",
        "FLY-803 line 3 open: expected `true` or `false`, got a string of 3 bytes; change the value",
        "FLY-803 line 6 limits.body_bytes: expected 1024 to 1073741824, got 0; change the value",
        "FLY-803 line 7 limits.held_bytes: expected",
        "FLY-803 line 11 keys[0].sha256: expected 64 hexadecimal digits, got a string of 3 bytes",
        "FLY-803 line 13 keys[1].sha256: is missing",
        "FLY-804 line 14 keys[1].name: duplicates keys[0]",
        "FLY-803 line 18 models[0].service: expected",
        "FLY-804 line 20 models[1]: more than one setting says where its engines are",
        "FLY-804 line 21 models[1].name: duplicates models[0]",
        "FLY-802 line 25 colour: is not a setting; there are listen, ",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{expected}\n{found}");
    }
}

#[test]
fn what_is_no_toml_is_said_with_its_line() {
    let found = problems("threads = 1\nlisten = \n[limits\nx = 1\n");
    assert!(found.len() >= 2, "{found:#?}");
    assert!(found[0].starts_with("FLY-801 line 2: "), "{found:#?}");
    assert!(found.iter().any(|problem| problem.contains("line 3")), "{found:#?}");
}

#[test]
fn a_door_is_open_only_if_somebody_says_so() {
    let listen = "listen = \"0.0.0.0:8080\"\n";
    refused(listen, &["FLY-805 line 1 listen: 0.0.0.0:8080 can be reached from outside"]);
    refused("listen = \"[::]:8080\"", &["FLY-805"]);
    let key = format!("[[keys]]\nname = \"a\"\nsha256 = \"{}\"\n", "0f".repeat(32));
    let with_keys = GatewaySettingsFile::parse(&format!("{listen}{MODEL}{key}")).unwrap();
    assert!(with_keys.warnings()[0].contains("plain text"), "{:?}", with_keys.warnings());
    let open = GatewaySettingsFile::parse(&format!("open = true\n{listen}{MODEL}")).unwrap();
    assert!(open.warnings()[0].contains("every client"), "{:?}", open.warnings());
    let admin = format!("admin = \"0.0.0.0:9090\"\n{MODEL}[admin_clients]\nopen = true\n");
    let warnings = GatewaySettingsFile::parse(&admin).unwrap().warnings();
    assert!(warnings[0].contains("read the settings"), "{warnings:?}");
    for loopback in ["127.0.0.1:80", "127.9.9.9:80", "[::1]:80"] {
        assert!(GatewaySettingsFile::parse(&format!("listen = \"{loopback}\"\n{MODEL}")).is_ok());
    }
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    refused("admin = \"127.0.0.1:8080\"", &["FLY-804 line 1 admin: is also the address of listen"]);
    refused("[limits]\nheld_bytes = 2048", &["FLY-804 line 1 limits.body_bytes"]);
    refused("[limits]\nconnections = 2", &["FLY-804 line 1 limits.in_flight"]);
    refused("[timeouts]\nconnect_ms = 5000\nfirst_byte_ms = 5000", &["line 2 timeouts.connect_ms"]);
    refused("[timeouts]\nkeep_alive_ms = 50", &["timeouts.head_ms"]);
    assert!(problems("")[0].contains("no model is configured"));
    assert!(problems("[[models]]\nname = \"a\"")[0].contains("no setting says where"));
}

#[test]
fn splits_name_models_and_arms_that_there_are() {
    let split = |rest: &str| format!("[[splits]]\nname = \"chat\"\n{rest}");
    let arm = "[[splits.arms]]\nmodel = \"qwen\"\nweight = 9\n";
    assert!(GatewaySettingsFile::parse(&format!("{MODEL}{}", split(arm))).is_ok());
    refused(&split("arms = []"), &["splits[0].arms: all weights are 0"]);
    refused(
        "[[splits]]\nname = \"qwen\"\n[[splits.arms]]\nmodel = \"qwen\"\nweight = 1",
        &["splits[0].name: is also the name of a model"],
    );
    let other = "[[splits.arms]]\nmodel = \"other\"\nweight = 1";
    refused(&split(other), &["splits[0].arms[0].model: is not a model"]);
    refused(&split(&format!("sticky = \"header\"\n{arm}")), &["splits[0].sticky: `header` and"]);
    let rules = "[[splits.rules]]\narm = \"b\"\nvalue = \"x\"";
    refused(
        &split(&format!("{arm}{rules}")),
        &["splits[0].rules[0]: matches every", "splits[0].rules[0].arm: is not an arm"],
    );
    let mirror = "[splits.mirror]\nmodel = \"b\"\nper_thousand = 1";
    refused(&split(&format!("{arm}{mirror}")), &["splits[0].mirror.model: is not a model"]);
    refused("[waker]\nagain_ms = 5", &["waker: exactly one of url"]);
    let header = "sticky = \"header\"\nsticky_header = \"X-Session\"\n";
    refused(&split(&format!("{header}{arm}")), &["splits[0].sticky_header: expected"]);
}

#[test]
fn a_gateway_that_watches_model_services_needs_no_model_of_its_own() {
    let watch = "[kubernetes]\nwatch = \"model-services\"\n";
    let settings = GatewaySettingsFile::parse(watch).unwrap();
    assert!(settings.kubernetes.watches() && settings.models.is_empty());
    assert!(settings.kubernetes.namespaces.is_empty(), "everywhere");
    let split = "[[splits]]\nname = \"chat\"\n[[splits.arms]]\nmodel = \"qwen\"\nweight = 1\n";
    assert!(GatewaySettingsFile::parse(&format!("{watch}{split}")).is_ok(), "it may come later");
    let some = "[kubernetes]\nwatch = \"model-services\"\nnamespaces = [\"team-a\", \"b\"]\n";
    assert_eq!(GatewaySettingsFile::parse(some).unwrap().kubernetes.namespaces, ["team-a", "b"]);
    assert!(problems("[kubernetes]\nnamespaces = [\"a\"]\n")[0].contains("no model is configured"));
    refused("[kubernetes]\nwatch = \"pods\"", &["kubernetes.watch: expected"]);
    refused("[kubernetes]\nnamespaces = [\"Team\"]", &["kubernetes.namespaces: expected"]);
    // What comes from a ModelService cannot be said in a file.
    refused("[[models]]\nname = \"a\"\npool = \"a/b\"\nmodel_service = {}", &["is not a setting"]);
}

#[test]
fn a_gateway_that_watches_tenants_is_closed_and_needs_no_key_in_the_file() {
    let kubernetes = "[kubernetes]\nwatch = \"model-services\"\n";
    let watch = format!("{kubernetes}[tenants]\nwatch = true\n");
    let parsed = GatewaySettingsFile::parse(&watch).unwrap();
    assert!(parsed.tenants.watch && parsed.tenants.cache_file.is_none() && parsed.keys.is_empty());
    let reachable = GatewaySettingsFile::parse(&format!("listen = \"0.0.0.0:8080\"\n{watch}"));
    assert!(reachable.unwrap().warnings()[0].contains("keys in plain text"));
    assert!(GatewaySettingsFile::parse(&format!("{watch}cache_file = \"/var/t\"\n")).is_ok());
    refused("[tenants]\nwatch = true", &["tenants.watch: is true, but kubernetes.watch is"]);
    refused("[tenants]\ncache_file = \"/var/t\"", &["tenants.cache_file: is set, but"]);
    refused(&format!("open = true\n{watch}"), &["line 1 open: is true, but every request"]);
    // A mistake beside it is not called an open door too.
    refused(
        &format!("listen = \"0.0.0.0:8080\"\n{kubernetes}[tenants]\nwatch = 1"),
        &["line 5 tenants.watch: expected `true` or `false`"],
    );
}

#[test]
fn an_issuer_says_who_it_is_and_in_one_way_where_its_keys_are() {
    let watch = "[kubernetes]\nwatch = \"model-services\"\n[tenants]\nwatch = true\n";
    let one = |rest: &str| format!("{watch}[[tenants.issuers]]\n{rest}");
    let named = "issuer = \"https://a\"\naudience = \"f\"\n";
    for good in [
        "kubernetes = true".to_owned(),
        "kubernetes = true\nissuer = \"kubernetes/serviceaccount\"\naudience = \"x\"".to_owned(),
        format!("{named}jwks_file = \"/keys.json\""),
        format!("{named}jwks_url = \"https://a/keys\"\nca = \"/ca.pem\""),
        format!("{named}jwks_url = \"http://127.0.0.1:8080/keys\""),
        format!("{named}jwks_url = \"http://[::1]/keys\""),
    ] {
        let parsed = GatewaySettingsFile::parse(&one(&good));
        assert!(parsed.is_ok(), "{good}: {:?}", parsed.unwrap_err());
    }
    let cluster = GatewaySettingsFile::parse(&one("kubernetes = true")).unwrap();
    assert_eq!(cluster.tenants.issuers[0].audience(), "flyball");
    let way = "exactly one of jwks_url, jwks_file and kubernetes";
    refused(&one(named), &[way]);
    refused(&one("kubernetes = true\njwks_file = \"f\""), &[way]);
    refused(
        &one("jwks_file = \"f\""),
        &["tenants.issuers[0].issuer: is missing", "tenants.issuers[0].audience: is missing"],
    );
    refused(
        &one("jwks_file = \"f\"\nissuer = \"a\"\naudience = \"f\""),
        &["[0].issuer: is missing"],
    );
    for (url, what) in [
        ("http://a/keys", "is neither https nor http on this machine"),
        ("http://localhost/keys", "is neither https nor"),
        ("http://127.0.0.1.evil.test/keys", "is neither https nor"),
        ("https://user:canary@a/keys", "has a user or a password"),
    ] {
        refused(&one(&format!("{named}jwks_url = \"{url}\"")), &[what]);
    }
    refused(&one("kubernetes = true\nca = \"/ca.pem\""), &["[0].ca: is set, but no jwks_url"]);
    refused(
        &one("kubernetes = true\njwks = \"/keys\""),
        &["tenants.issuers[0].jwks: is not a setting"],
    );
    let twice = format!("{named}jwks_file = \"f\"\n[[tenants.issuers]]\n{named}jwks_file = \"g\"");
    refused(&one(&twice), &["tenants.issuers[1].issuer: duplicates tenants.issuers[0]"]);
    refused(
        &one("kubernetes = true\n[[tenants.issuers]]\nkubernetes = true"),
        &["tenants.issuers[1].kubernetes: is true for a second issuer"],
    );
    refused(
        "[[tenants.issuers]]\nkubernetes = true",
        &["tenants.issuers: are set, but tenants.watch"],
    );
    let many = "[[tenants.issuers]]\nkubernetes = true\n".repeat(33);
    assert!(problems(&format!("{watch}{many}{MODEL}"))[0].contains("at most 32"));
}

#[test]
fn a_limit_is_a_limit() {
    let taken = |name: &str, value: u64| {
        let section = if name == "answers" { "limits" } else { "telemetry" };
        GatewaySettingsFile::parse(&format!("{MODEL}[{section}]\n{name} = {value}\n")).is_ok()
    };
    for (name, least, most) in [("answers", 1, 10_000), ("sampled_per_thousand", 0, 1_000)] {
        assert!(taken(name, least) && taken(name, most), "{name}");
        assert!(!taken(name, most + 1) && !taken(name, 10 * most), "{name}");
        assert!(least == 0 || !taken(name, least - 1), "{name}");
    }
}

#[test]
fn kubernetes_names_are_checked_as_kubernetes_does() {
    let with =
        |setting: &str| GatewaySettingsFile::parse(&format!("[[models]]\nname = \"m\"\n{setting}"));
    for good in ["a/b:80", "team-a/qwen.v2:http", "a/b:65535"] {
        assert!(with(&format!("service = \"{good}\"")).is_ok(), "{good}");
    }
    for bad in
        ["b:80", "a/b", "a/b:0", "a/b:", "A/b:80", "a/-b:80", "a/b:65536", "a/b/c:80", "/b:1"]
    {
        assert!(with(&format!("service = \"{bad}\"")).is_err(), "{bad}");
    }
    assert!(with("pool = \"a/b\"").is_ok());
    assert!(with("pool = \"b\"").is_err());
}

#[test]
fn names_that_would_break_a_line_are_refused() {
    for bad in ["", " a", "a\\nb", "a\\\"b", "a\\u001bb", &"x".repeat(257)] {
        let text = format!("[[models]]\nname = \"{bad}\"\nendpoints = [\"10.0.0.1:80\"]");
        assert!(GatewaySettingsFile::parse(&text).is_err(), "{bad}");
    }
    let slashes = "[[models]]\nname = \"Qwen/Qwen3-32B\"\nendpoints = [\"10.0.0.1:80\"]";
    assert!(GatewaySettingsFile::parse(slashes).is_ok());
}

#[test]
fn no_problem_repeats_a_text_of_the_file() {
    let secret = "sk-canary-5d41402abc4b2a76b9719d911017c592";
    for text in [
        format!("listen = \"{secret}\""),
        format!("[[keys]]\nname = \"a\"\nsha256 = \"{secret}\""),
        format!("[telemetry]\notlp = \"{secret}\""),
        format!("[[models]]\nname = \"m\"\nengine = \"{secret}\"\npool = \"{secret}\""),
    ] {
        let found = problems(&text).join("\n");
        assert!(!found.contains("canary"), "{found}");
    }
}

#[test]
fn a_file_of_garbage_is_refused_with_a_bounded_report() {
    let many: String = (0..5_000).map(|n| format!("x{n} = 1\n")).collect();
    let found = problems(&many);
    assert_eq!(found.len(), 101);
    assert!(found[100].contains("4901 more problems"), "{}", found[100]);
    assert!(problems(&"#".repeat(MAX_BYTES + 1))[0].contains("the limit is"));
    assert!(
        GatewaySettingsFile::parse(&format!("x = {}1{}", "[".repeat(10_000), "]".repeat(10_000)))
            .is_err()
    );
}

#[test]
fn the_list_of_settings_is_that_of_the_structs() {
    let settings = GatewaySettingsFile {
        tls: Some(Tls::default()),
        keys: vec![Key::default()],
        models: vec![ModelSettings::default()],
        splits: vec![Split {
            arms: vec![Arm::default()],
            rules: vec![SplitRule::default()],
            mirror: Some(Mirror::default()),
            ..Split::default()
        }],
        waker: Some(WakerSettings::default()),
        operator: Some(Operator { tls: Some(OperatorTls::default()), ..Operator::default() }),
        tenants: TenantsSettings {
            issuers: vec![IssuerSettings::default()],
            ..TenantsSettings::default()
        },
        ..GatewaySettingsFile::default()
    };
    let value = serde_json::to_value(&settings).unwrap();
    same_names(&ROOT, "", &value);
    assert!(!value.to_string().contains("sha256"));
}

fn same_names(section: &Section, path: &str, value: &serde_json::Value) {
    let mut listed: Vec<_> = section.fields.iter().map(|field| field.name).collect();
    // Those that are never shown.
    listed.retain(|name| !["sha256", "token_sha256"].contains(name));
    listed.sort_unstable();
    let mut there: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
    there.sort_unstable();
    assert_eq!(listed, there, "{path}");
    for field in section.fields {
        match field.kind {
            Kind::Section(inner) => same_names(inner, field.name, &value[field.name]),
            Kind::Sections(inner, _) => same_names(inner, field.name, &value[field.name][0]),
            _ => {}
        }
    }
}

#[test]
fn an_operator_is_named_whole_or_not_at_all() {
    let with = |text: &str| GatewaySettingsFile::parse(&format!("{MODEL}[operator]\n{text}"));
    let plain = "address = \"http://operator:9091\"\n";
    let tls = "address = \"https://operator:9091\"\n[operator.tls]\nca = \"ca.pem\"\n";
    let settings = with(&format!("{plain}token_file = \"token\"\n")).unwrap();
    assert!(settings.warnings().iter().any(|warning| warning.contains("in plain text")));
    assert!(with(tls).unwrap().warnings().is_empty());
    assert!(with(&format!("{tls}certificate = \"a.pem\"\nkey = \"a.key\"\n")).is_ok());
    for (text, path) in [
        ("", "operator.address"),
        ("address = \"https://operator:9091\"\n", "operator.address"),
        (&format!("{plain}[operator.tls]\nca = \"ca.pem\"\n"), "operator.tls"),
        (&format!("{tls}key = \"a.key\"\n"), "operator.tls"),
        (&format!("{plain}tokenfile = \"token\"\n"), "operator.tokenfile"),
    ] {
        let problems = with(text).unwrap_err();
        assert!(problems.iter().any(|problem| problem.path == path), "{text}: {problems:?}");
    }
}

#[test]
fn defaults_are_good_values() {
    let value = serde_json::to_value(GatewaySettingsFile::default()).unwrap();
    let mut text = String::new();
    for field in ROOT.fields {
        match (field.kind, &value[field.name]) {
            (_, serde_json::Value::Null) | (Kind::Sections(..), _) => {}
            (Kind::Section(_), section) => {
                text += &format!("[{}]\n", field.name);
                for (name, value) in
                    section.as_object().unwrap().iter().filter(|(_, v)| !v.is_null())
                {
                    text += &format!("{name} = {value}\n");
                }
            }
            (_, value) => text += &format!("{} = {value}\n", field.name),
        }
    }
    GatewaySettingsFile::parse(&format!("{text}{MODEL}")).unwrap();
}

#[test]
fn the_reference_is_current() {
    let defaults = serde_json::to_value(GatewaySettingsFile::default()).unwrap();
    let mut text = String::from(
        "# Settings of the gateway\n\n\
         *Generated from the code. `UPDATE=1 cargo test -p flyball-gateway` writes it anew.*\n\n\
         One TOML file, given with `flyball gateway --config FILE`. Unknown settings are refused.\n\
         `flyball gateway --config FILE --check` reports every problem in a file. The\n\
         [guide](../guides/gateway.md) has an example.\n\n\
         A changed file is reloaded within a second, or at SIGHUP. Only `listen`, `admin`, `admin_clients`,\n\
         `threads`, `tls`, `kubernetes`, `tenants`, `collector`, `operator`, `telemetry.otlp` and\n\
         `telemetry.audit_log` need a restart.\n",
    );
    section(&mut text, &ROOT, &defaults);
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/gateway-settings.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(file, &text).unwrap();
    }
    let committed = std::fs::read_to_string(file).unwrap_or_default();
    assert!(committed == text, "run: UPDATE=1 cargo test -p flyball-gateway");
}

fn section(text: &mut String, of: &Section, defaults: &serde_json::Value) {
    *text += &format!(
        "\n## {}\n\n| Setting | Takes | Default | What it is |\n|---|---|---|---|\n",
        of.title
    );
    for field in of.fields {
        let default = match (&defaults[field.name], field.kind) {
            (_, _) if field.required => "required".to_owned(),
            (serde_json::Value::Null, _) | (_, Kind::Section(_) | Kind::Sections(..)) => {
                String::new()
            }
            (serde_json::Value::Array(_), _) => String::new(),
            (value, _) => format!("`{}`", value.to_string().trim_matches('"')),
        };
        let (name, takes) = (field.name, field.kind.words());
        *text += &format!("| `{name}` | {takes} | {default} | {} |\n", field.what);
    }
    for field in of.fields {
        match field.kind {
            Kind::Section(inner) if field.name == "waker" => {
                let waker = serde_json::to_value(WakerSettings::default()).unwrap();
                section(text, inner, &waker);
            }
            Kind::Section(inner) => section(text, inner, &defaults[field.name]),
            Kind::Sections(inner, _) => {
                let defaults = match field.name {
                    "models" => serde_json::to_value(ModelSettings::default()),
                    "keys" => serde_json::to_value(Key::default()),
                    "splits" => serde_json::to_value(Split::default()),
                    "issuers" => serde_json::to_value(IssuerSettings::default()),
                    _ => Ok(serde_json::Value::Null),
                };
                section(text, inner, &defaults.unwrap());
            }
            _ => {}
        }
    }
}

proptest! {
    #[test]
    fn no_text_ends_the_process(text in "(\\[{0,2}[a-z_.]{0,8}\\]{0,2}|[a-z_]{1,8} ?= ?[-0-9a-z\"'\\[\\]{}.,:/é]{0,12}|\n){0,12}") {
        if let Err(problems) = GatewaySettingsFile::parse(&text) {
            prop_assert!(!problems.is_empty());
        }
    }

    #[test]
    fn a_file_with_one_mistake_has_at_least_one_problem_and_no_good_file_has_any(
        threads in 0_u64..2_000, n in 0_usize..4,
    ) {
        let models: String = (0..n)
            .map(|n| format!("[[models]]\nname = \"m{n}\"\npool = \"a/b{n}\"\n"))
            .collect();
        let good = threads <= 1_024 && n > 0;
        prop_assert_eq!(GatewaySettingsFile::parse(&format!("threads = {threads}\n{models}")).is_ok(), good);
    }
}
