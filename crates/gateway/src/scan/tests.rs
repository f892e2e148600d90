use super::{BLOCK_BYTES, ScanError, ScanLimits, Scanned, Scanner, Steers};
use crate::surface::Surface;

pub(super) fn scan_as(surface: Surface, body: &[u8]) -> Result<Scanned, ScanError> {
    let mut scanner = Scanner::new(surface, ScanLimits::DEFAULT);
    scanner.feed(body)?;
    scanner.finish()
}

pub(super) fn scan(body: &str) -> Result<Scanned, ScanError> {
    scan_as(Surface::Chat, body.as_bytes())
}

fn wrong(result: &Result<Scanned, ScanError>) -> Option<&'static str> {
    match result {
        Err(ScanError::Wrong { key, .. }) => Some(key),
        _ => None,
    }
}

#[test]
fn what_a_body_says_is_read() {
    let body = r#" {"messages":[{"role":"user","content":"a \"b\" ]}"}], "model" : "org\/m-\u0041",
        "stream":true,"stream_options":{"x":[1],"include_usage":true},"max_tokens":12,
        "max_completion_tokens":9,"n":2,"cache_salt":"s","other":{"model":"not me"}} "#;
    let scanned = scan(body).unwrap();
    assert_eq!(
        scanned,
        Scanned {
            model: "org/m-A".into(),
            stream: true,
            include_usage: true,
            max_tokens: Some(9),
            most_output: Some(12),
            answers: Some(2),
            cache_salt: Some("s".into()),
            greedy: false,
            seeded: false,
            session: None,
            flex: false,
            steers: Steers::default(),
            marks: scanned.marks.clone(),
            plain: false,
            prompts: 0,
            prompt_bytes: r#"[{"role":"user","content":"a \"b\" ]}"}]"#.len() as u64,
            media: 0,
            media_bytes: 0,
            prefixes: Vec::new(),
            whole: scanned.whole,
        }
    );
}

#[test]
fn the_tier_flex_is_read_and_no_other() {
    let of =
        |tier: &str| scan(&format!(r#"{{"model":"m","service_tier":{tier}}}"#)).map(|s| s.flex);
    for (tier, flex) in [
        (r#""flex""#, true),
        (r#""fl\u0065x""#, true),
        (r#""priority""#, false),
        (r#""Flex""#, false),
        ("null", false),
        ("7", false),
        (r#"["flex"]"#, false),
    ] {
        assert_eq!(of(tier), Ok(flex), "{tier}");
    }
    let twice = scan(r#"{"model":"m","service_tier":"auto","service_tier":"flex"}"#);
    assert_eq!(twice.map(|s| s.flex), Err(ScanError::Twice { key: "service_tier" }));
}

#[test]
fn pictures_are_told_apart_from_text_in_whatever_pieces_they_come() {
    let base64 = "iVBORw0KGgoAAAANSUhEUg/+".repeat(12);
    let picture = format!("data:image/png;base64,{base64}");
    let text = "data:image/png;base64, they wrote, and so on. ".repeat(9);
    let far = "https://a/b.png".to_owned();
    let none = String::new();
    for (surface, part, medium) in [
        (Surface::Chat, r#"{"type":"image_url","image_url":{"url":"IT"}}"#, &picture),
        (Surface::Chat, r#"{"type":"image_url","image_url":{"url":"IT"}}"#, &far),
        (Surface::Responses, r#"{"type":"input_image","image_url":"IT"}"#, &picture),
        (Surface::Chat, r#"{"type":"input_audio","input_audio":{"data" : "IT"}}"#, &base64),
        (Surface::Messages, r#"{"type":"image","source":{"type":"base64","data":"IT"}}"#, &base64),
        (Surface::Messages, &format!(r#"{{"type":"text","data":"{text}"}}"#), &none),
        (Surface::Chat, &format!(r#"{{"type":"text","text":"{text}"}}"#), &none),
        (Surface::Chat, &format!(r#"{{"type":"text","text":"{picture}"}}"#), &none),
        (Surface::Chat, r#"{"type":"text","data":"short"}"#, &none),
    ] {
        let (key, part) = (surface.prompt_keys().last().unwrap(), part.replace("IT", medium));
        let body = format!(
            r#"{{"model":"m","{key}":[{{"role":"user","content":[{part},{part}]}}],
            "metadata":{{"url":"{picture}"}}}}"#
        );
        let whole = scan_as(surface, body.as_bytes()).unwrap();
        let media = if medium.is_empty() { 0 } else { 2 };
        assert_eq!((whole.media, whole.media_bytes), (media, 2 * medium.len() as u64), "{part}");
        for cut in 1..body.len() {
            let mut scanner = Scanner::new(surface, ScanLimits::DEFAULT);
            scanner.feed(&body.as_bytes()[..cut]).unwrap();
            scanner.feed(&body.as_bytes()[cut..]).unwrap();
            assert_eq!(scanner.finish().as_ref(), Ok(&whole), "cut at {cut}");
        }
    }
}

#[test]
fn null_says_nothing() {
    let scanned =
        scan(r#"{"model":"m","stream":null,"max_tokens":null,"n":null,"stream_options":null}"#);
    let scanned = scanned.unwrap();
    let (marks, whole) = (scanned.marks.clone(), scanned.whole);
    assert_eq!(
        scanned,
        Scanned { model: "m".into(), plain: true, marks, whole, ..Scanned::default() }
    );
    assert_eq!(scan(r#"{"model":null}"#), Err(ScanError::NoModel));
    assert_eq!(scan("{}"), Err(ScanError::NoModel));
}

#[test]
fn only_a_temperature_that_is_the_number_0_is_greedy() {
    for (text, greedy) in [
        ("0", true),
        ("0.0", true),
        ("-0", true),
        ("0e7", true),
        ("1", false),
        ("1e-3", false),
        ("\"0\"", false),
        ("null", false),
        ("false", false),
        ("[0]", false),
    ] {
        let body = format!(r#"{{"model":"m","temperature":{text},"seed":{text}}}"#);
        let scanned = scan(&body).unwrap();
        assert_eq!((scanned.greedy, scanned.seeded), (greedy, text != "null"), "{text}");
    }
    assert!(!scan(r#"{"model":"m"}"#).unwrap().greedy);
    let nearly = format!(r#"{{"model":"m","temperature":0.{}1}}"#, "0".repeat(600));
    assert!(!scan(&nearly).unwrap().greedy);
}

#[test]
fn the_user_is_the_session_before_the_cache_key_and_may_be_anything() {
    let session = |members: &str| scan(&format!(r#"{{"model":"m"{members}}}"#)).unwrap().session;
    assert_eq!(session(""), None);
    assert_eq!(session(r#","user":null"#), None);
    let (user, key) = (session(r#","user":"u""#), session(r#","prompt_cache_key":"k""#));
    assert!(user.is_some() && key.is_some() && user != key);
    assert_eq!(session(r#","prompt_cache_key":"k","user":"u""#), user);
    let long = "x".repeat(10_000);
    assert!(session(&format!(r#","user":{{"a":["{long}"]}}"#)).is_some());
}

#[test]
fn keys_that_shape_an_answer_are_noticed_and_unknown_ones_too() {
    let with = |key: &str| scan(&format!(r#"{{"model":"m","messages":[],"{key}":[]}}"#)).unwrap();
    for key in ["temperature", "seed", "stop", "user", "top_k"] {
        assert!(with(key).plain, "{key}");
    }
    let long = "x".repeat(100);
    for key in ["tools", "logprobs", "response_format", "guided_json", "new_in_2027", &long] {
        assert!(!with(key).plain, "{key}");
    }
}

#[test]
fn the_least_limit_and_the_most_answers_count() {
    let body = r#"{"model":"m","max_tokens":5,"max_output_tokens":7,"n":1,"best_of":4}"#;
    let scanned = scan(body).unwrap();
    assert_eq!((scanned.max_tokens, scanned.answers), (Some(5), Some(4)));
}

#[test]
fn an_answer_is_as_long_as_the_keys_allow_that_its_engines_go_by() {
    let most = |surface, members: &str| {
        let body = format!(r#"{{"model":"m",{members}}}"#);
        scan_as(surface, body.as_bytes()).unwrap().most_output
    };
    for (surface, members, expected) in [
        (Surface::Chat, r#""max_tokens":5,"max_completion_tokens":900"#, Some(900)),
        (Surface::Chat, r#""max_completion_tokens":7,"max_tokens":null"#, Some(7)),
        (Surface::Chat, r#""max_output_tokens":1"#, None),
        (Surface::Completions, r#""max_tokens":4,"max_completion_tokens":900"#, Some(4)),
        (Surface::Responses, r#""max_tokens":1,"max_output_tokens":9"#, Some(9)),
        (Surface::Messages, r#""max_tokens":3"#, Some(3)),
    ] {
        assert_eq!(most(surface, members), expected, "{surface:?} {members}");
    }
}

#[test]
fn each_prompt_of_a_completion_counts() {
    for (prompt, expected) in [
        (r#""one [ of them""#, 1),
        (r#"["one"]"#, 1),
        (r#"["a, \"[b", "c"]"#, 2),
        ("[1, 2, 3]", 1),
        ("[[1, 2], [3]]", 2),
    ] {
        let body = format!(r#"{{"model":"m","prompt":{prompt}}}"#);
        let scanned = scan_as(Surface::Completions, body.as_bytes()).unwrap();
        assert_eq!(scanned.prompts, expected, "{prompt}");
    }
}

#[test]
fn values_of_the_wrong_kind_are_refused() {
    let long = format!(r#""{}""#, "x".repeat(513));
    let cases = [
        ("model", "[]"),
        ("model", "1"),
        ("model", "\"\""),
        ("model", long.as_str()),
        ("model", "\"\\ud800\""),
        ("stream", "\"true\""),
        ("stream", "1"),
        ("stream", "truetrue"),
        ("max_tokens", "-1"),
        ("max_tokens", "1.0"),
        ("max_tokens", "1e3"),
        ("max_tokens", "01"),
        ("max_tokens", "99999999999999999999"),
        ("max_tokens", "\"1\""),
        ("n", "{}"),
        ("n", "NaN"),
        ("best_of", "true"),
        ("cache_salt", "{\"a\":1}"),
        ("cache_salt", long.as_str()),
        ("stream_options", "[true]"),
        ("stream_options", "{\"include_usage\":1}"),
        ("stream_options", "{\"include_usage\":true,}"),
    ];
    for (key, value) in cases {
        let result = scan(&format!(r#"{{"{key}":{value}}}"#));
        assert_eq!(wrong(&result), Some(key), "{key}: {value} gives {result:?}");
    }
}

#[test]
fn a_value_as_long_as_allowed_passes() {
    let scanned = scan(&format!(r#"{{"model":"{}"}}"#, "x".repeat(512))).unwrap();
    assert_eq!(scanned.model.len(), 512);
}

#[test]
fn the_grammar_of_the_top_is_strict() {
    let cases = [
        "",
        " ",
        "[]",
        "null",
        "{",
        r#"{"model""#,
        r#"{"model":"#,
        r#"{"model":"m""#,
        r#"{"model":"m",}"#,
        r#"{"model":"m"}}"#,
        r#"{"model":"m"} x"#,
        r#"{"model":"m"}{"model":"m"}"#,
        r#"{,"model":"m"}"#,
        r#"{"model" "m"}"#,
        r#"{"model"::"m"}"#,
        r#"{"model":}"#,
        r#"{"model":"m" "n":1}"#,
        r#"{"model":"m","x":1 2}"#,
        r#"{"model":"m","x":[1}}"#,
        r#"{"model":"m","x":{"a":1]}"#,
        r#"{model:"m"}"#,
        r#"{'model':"m"}"#,
        "{\"model\":\"m\"/**/}",
        "{\"mod\nel\":\"m\"}",
        "\u{feff}{\"model\":\"m\"}",
        "{\"model\":\"m\"}\0",
        "{\0\"model\":\"m\"}",
        "{\"model\":\"m\u{a0}\"}\u{a0}",
    ];
    for body in cases {
        let result = scan(body);
        assert!(matches!(result, Err(ScanError::NotJson { .. })), "{body:?} gives {result:?}");
    }
}

#[test]
fn a_refusal_stays() {
    let mut scanner = Scanner::new(Surface::Chat, ScanLimits::DEFAULT);
    assert!(scanner.feed(b"[").is_err());
    assert!(scanner.feed(br#"{"model":"m"}"#).is_err());
    assert!(scanner.finish().is_err());
}

#[test]
fn errors_name_the_place() {
    let at = r#"{"model":"m", "#.len();
    assert_eq!(scan(r#"{"model":"m", "a\u0062":1}"#), Err(ScanError::Escaped { at }));
    let what = "something other than `:`";
    assert_eq!(scan(r#"{"a"1"#), Err(ScanError::NotJson { what, at: 4 }));
}

#[test]
fn only_whole_blocks_count_and_the_end_of_an_array_is_not_part_of_one() {
    let body = |bytes: usize| format!(r#"{{"model":"m","prompt":"{}"}}"#, "x".repeat(bytes));
    let blocks =
        |bytes| scan_as(Surface::Completions, body(bytes).as_bytes()).unwrap().prefixes.len();
    // The string's first quote belongs to the first block, its last to none.
    assert_eq!(blocks(BLOCK_BYTES - 2), 0);
    assert_eq!(blocks(BLOCK_BYTES - 1), 1);
    assert_eq!(blocks(3 * BLOCK_BYTES - 2), 2);
    assert_eq!(blocks(3 * BLOCK_BYTES - 1), 3);
}

#[test]
fn model_salt_and_earlier_parts_are_in_every_prefix() {
    let body = |model: &str, salt: &str, tools: &str| {
        let text = "y".repeat(3000);
        format!(r#"{{"model":"{model}",{salt}"tools":[{tools}],"messages":["{text}"]}}"#)
    };
    let prefixes = |body: String| scan(&body).unwrap().prefixes;
    let base = prefixes(body("m", "", ""));
    assert_eq!(base.len(), 2);
    let others = [
        prefixes(body("m2", "", "")),
        prefixes(body("m", r#""cache_salt":"s","#, "")),
        prefixes(body("m", r#""cache_salt":"t","#, "")),
        prefixes(body("m", "", "{}")),
    ];
    for (index, other) in others.iter().enumerate() {
        assert!(base.iter().all(|hash| !other.contains(hash)), "{index}");
        assert_eq!(other.len(), 2);
    }
    assert_ne!(others[1], others[2]);
}

/// `cargo test --release -p flyball-gateway --lib -- --ignored --nocapture speed`
#[test]
#[ignore = "a measurement, of use only in release"]
#[expect(clippy::print_stderr, reason = "the figure is the point")]
fn speed_of_a_body_of_400_kb() {
    for escape_every in [usize::MAX, 300, 70] {
        let mut text = String::new();
        let mut since = 0;
        for word in (0_u64..).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
            let word = format!("{word:x} ");
            since += word.len();
            text.push_str(&word);
            if since >= escape_every {
                text.push_str("\\n");
                since = 0;
            }
            if text.len() > 400_000 {
                break;
            }
        }
        let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{text}"}}]}}"#);
        for piece in [usize::MAX, 16 << 10] {
            let best = (0..500)
                .map(|_| {
                    let begin = std::time::Instant::now();
                    let mut scanner = Scanner::new(Surface::Chat, ScanLimits::DEFAULT);
                    for piece in body.as_bytes().chunks(piece) {
                        scanner.feed(piece).unwrap();
                    }
                    assert_eq!(scanner.finish().unwrap().prefixes.len(), 390);
                    begin.elapsed()
                })
                .min();
            eprintln!("escape every {escape_every}, pieces of {piece}: {best:?}");
        }
    }
}
