//! Bodies that somebody writes to be read in two ways, or to cost more than they should.

use super::guarded::GUARDED;
use super::tests::{scan, scan_as};
use super::{ScanError, ScanLimits, Scanner};
use crate::surface::Surface;

#[test]
fn a_guarded_key_stands_once() {
    for key in GUARDED.into_iter().chain(["tools", "messages"]) {
        let body = format!(r#"{{"{key}":null,"other":1,"{key}":null}}"#);
        assert_eq!(scan(&body), Err(ScanError::Twice { key }));
    }
    let twice =
        r#"{"model":"m","stream_options":{"include_usage":true,"include_\u0075sage":false}}"#;
    assert_eq!(scan(twice), Err(ScanError::Twice { key: "include_usage" }));
}

#[test]
fn other_keys_may_stand_twice_as_engines_allow_it() {
    assert!(scan(r#"{"model":"m","top_k":1,"top_k":2,"logit":{"model":1,"model":2}}"#).is_ok());
    // A prompt of another interface is just a key.
    assert!(scan(r#"{"model":"m","prompt":1,"prompt":2}"#).is_ok());
}

#[test]
fn a_key_at_the_top_has_no_escapes() {
    assert_eq!(scan(r#"{"model":"m","m\u006fdel":"x"}"#), Err(ScanError::Escaped { at: 13 }));
    assert_eq!(scan(r#"{"\"":1}"#), Err(ScanError::Escaped { at: 1 }));
    let long = format!(r#"{{"{}\n":1}}"#, "k".repeat(100_000));
    assert_eq!(scan(&long), Err(ScanError::Escaped { at: 1 }));
    assert!(scan(r#"{"model":"m","x":{"m\u006fdel":"x"}}"#).is_ok());
}

#[test]
fn a_million_keys_are_read_in_little_memory() {
    let mut scanner = Scanner::new(Surface::Chat, ScanLimits::DEFAULT);
    scanner.feed(br#"{"model":"m""#).unwrap();
    for index in 0..1_000_000 {
        scanner.feed(format!(r#","k{index}":{index}"#).as_bytes()).unwrap();
    }
    scanner.feed(b"}").unwrap();
    assert_eq!(scanner.finish().unwrap().model, "m");
}

#[test]
fn a_string_of_100_mb_is_refused_at_the_limit() {
    let mut scanner = Scanner::new(Surface::Chat, ScanLimits::DEFAULT);
    scanner.feed(br#"{"messages":""#).unwrap();
    let piece = vec![b'x'; 1 << 20];
    let taken = (0..100).take_while(|_| scanner.feed(&piece).is_ok()).count();
    // The 32nd would go beyond by the 13 bytes before it.
    assert_eq!(taken, 31);
    assert_eq!(scanner.finish(), Err(ScanError::TooLong { limit: 32 << 20 }));
}

#[test]
fn a_model_name_of_100_mb_is_refused_at_once() {
    let mut scanner = Scanner::new(Surface::Chat, ScanLimits::DEFAULT);
    scanner.feed(br#"{"model":""#).unwrap();
    assert!(matches!(
        scanner.feed(&vec![b'x'; 1 << 20]),
        Err(ScanError::Wrong { key: "model", .. })
    ));
}

#[test]
fn nesting_of_a_million_levels_is_refused_at_the_65th() {
    let deep = |levels: usize| {
        let open = "[".repeat(levels);
        let close = "]".repeat(levels);
        format!(r#"{{"model":"m","x":{open}{close}}}"#)
    };
    // The object at the top is the first level.
    assert!(scan(&deep(63)).is_ok());
    assert_eq!(scan(&deep(64)), Err(ScanError::TooDeep { limit: 64 }));
    assert_eq!(scan(&deep(1_000_000)), Err(ScanError::TooDeep { limit: 64 }));
    let objects = format!(r#"{{"model":"m","x":{}"#, r#"{"x":"#.repeat(1_000_000));
    assert_eq!(scan(&objects), Err(ScanError::TooDeep { limit: 64 }));
}

#[test]
fn deeper_limits_than_the_stack_has_bits_are_cut() {
    let limits = ScanLimits { depth: 1000, ..ScanLimits::DEFAULT };
    let mut scanner = Scanner::new(Surface::Chat, limits);
    let refused = scanner.feed(format!(r#"{{"x":{}"#, "[".repeat(100)).as_bytes());
    assert_eq!(refused, Err(ScanError::TooDeep { limit: 64 }));
}

#[test]
fn invalid_utf_8_is_refused_where_it_matters() {
    let chat = |body: &[u8]| scan_as(Surface::Chat, body);
    assert!(matches!(chat(b"{\"model\":\"\xff\"}"), Err(ScanError::Wrong { key: "model", .. })));
    // `model` with an overlong `o`.
    let overlong = b"{\"model\":\"m\",\"m\xc1\xafdel\":1}";
    assert!(matches!(chat(overlong), Err(ScanError::NotJson { .. })));
    // Text is the engine's to refuse: no byte of a longer character is a quote or a backslash.
    assert!(chat(b"{\"model\":\"m\",\"messages\":[\"\xff\xfe\xc3\"]}").is_ok());
}

#[test]
fn utf_16_and_utf_32_are_refused() {
    let text = r#"{"model":"m"}"#;
    let units: Vec<u16> = text.encode_utf16().collect();
    let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
    let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
    let wide: Vec<u8> = text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
    for body in [little, big, wide] {
        let result = scan_as(Surface::Chat, &body);
        assert!(matches!(result, Err(ScanError::NotJson { .. })), "{result:?}");
    }
}

#[test]
fn lone_surrogates_are_refused_in_what_is_read_and_passed_on_in_text() {
    assert!(matches!(scan(r#"{"model":"m\ud800"}"#), Err(ScanError::Wrong { key: "model", .. })));
    assert!(matches!(
        scan(r#"{"model":"m","cache_salt":"\udc00\ud800"}"#),
        Err(ScanError::Wrong { key: "cache_salt", .. })
    ));
    assert!(scan(r#"{"model":"m","messages":["\ud800"]}"#).is_ok());
}

#[test]
fn huge_numbers_are_refused_in_what_is_read_and_passed_on_elsewhere() {
    let digits = "9".repeat(100_000);
    let body = format!(r#"{{"model":"m","n":{digits}}}"#);
    assert!(matches!(scan(&body), Err(ScanError::Wrong { key: "n", .. })));
    assert!(matches!(
        scan(r#"{"model":"m","max_tokens":1e400}"#),
        Err(ScanError::Wrong { key: "max_tokens", .. })
    ));
    assert_eq!(
        scan(&format!(r#"{{"model":"m","n":{}}}"#, u64::MAX)).unwrap().answers,
        Some(u64::MAX)
    );
    assert!(scan(&format!(r#"{{"model":"m","seed":{digits},"x":[1e400]}}"#)).is_ok());
}

#[test]
fn a_byte_order_mark_is_refused() {
    let result = scan("\u{feff}{\"model\":\"m\"}");
    assert!(matches!(result, Err(ScanError::NotJson { at: 0, .. })), "{result:?}");
}

#[test]
fn backslashes_before_quotes_are_counted_across_pieces_of_every_length() {
    for backslashes in 0..140 {
        let tail = if backslashes % 2 == 1 { "\"" } else { "" };
        let text = format!("{}\"{tail}", "\\".repeat(backslashes));
        let body = format!(r#"{{"x":"{text},"model":"m","y":[{{"z":"{text}}}]}}"#);
        for piece in 1..70 {
            let mut scanner = Scanner::new(Surface::Chat, ScanLimits::DEFAULT);
            for piece in body.as_bytes().chunks(piece) {
                scanner.feed(piece).unwrap();
            }
            assert_eq!(scanner.finish().unwrap().model, "m");
        }
    }
}
