use super::*;
use proptest::prelude::*;

fn line(id: &str) -> String {
    format!(
        r#"{{"custom_id":"{id}","method":"POST","url":"/v1/completions","body":{{"model":"m","prompt":"{id}"}}}}"#
    )
}

fn check(text: &str) -> Result<CheckedInput, Vec<LineProblem>> {
    let mut check = InputCheck::new("/v1/completions");
    check.push(text.as_bytes());
    check.finish()
}

fn codes(text: &str) -> Vec<(String, Option<u64>)> {
    check(text).unwrap_err().into_iter().map(|one| (one.code, one.line)).collect()
}

#[test]
fn a_good_file_has_its_lines_found_wherever_it_is_cut() {
    let text = format!("{}\r\n\n  \n{}\n{}", line("a"), line("b"), line("c\\u00e9"));
    for cut in 0..text.len() {
        let mut check = InputCheck::new("/v1/completions");
        check.push(&text.as_bytes()[..cut]);
        check.push(&text.as_bytes()[cut..]);
        let found = check.finish().unwrap();
        assert_eq!(found.model, "m");
        let lines: Vec<&str> = found
            .places
            .iter()
            .map(|place| &text[place.from as usize..][..place.bytes as usize])
            .collect();
        assert_eq!(lines, [format!("{}\r", line("a")), line("b"), line("c\\u00e9")], "{cut}");
    }
}

#[test]
fn each_fault_has_its_code_and_line() {
    let one = |code: &str, number| vec![(code.to_owned(), number)];
    assert_eq!(codes(""), one("empty_file", None));
    assert_eq!(codes("\n \n"), one("empty_file", None));
    assert_eq!(codes(&format!("{}\n{{", line("a"))), one("invalid_json_line", Some(2)));
    assert_eq!(codes("[1]"), one("invalid_json_line", Some(1)));
    assert_eq!(
        codes(&format!("{}\n{}\n", line("a"), line("a"))),
        one("duplicate_custom_id", Some(2))
    );
    // The same id in another spelling.
    assert_eq!(
        codes(&format!("{}\n{}\n", line("a"), line("\\u0061"))),
        one("duplicate_custom_id", Some(2))
    );
    for (from, to, code) in [
        ("/v1/completions", "/v1/embeddings", "url_mismatch"),
        ("POST", "GET", "invalid_method"),
        ("\"custom_id\":\"a\",", "", "missing_required_parameter"),
        ("\"method\":\"POST\",", "", "missing_required_parameter"),
        ("\"model\":\"m\",", "", "missing_required_parameter"),
        ("\"model\":\"m\"", "\"model\":4", "invalid_type"),
        ("\"custom_id\":\"a\"", "\"custom_id\":\"\"", "invalid_value"),
    ] {
        let text = line("a").replace(from, to);
        assert_ne!(text, line("a"), "{code}");
        assert_eq!(codes(&text), one(code, Some(1)), "{text}");
    }
    let other = line("b").replace("\"m\"", "\"n\"");
    assert_eq!(codes(&format!("{}\n\n{other}", line("a"))), one("model_mismatch", Some(3)));
}

#[test]
fn too_many_lines_and_a_line_that_is_too_long_are_refused() {
    let many: String = (0..=MAX_LINES).map(|n| line(&n.to_string()) + "\n").collect();
    assert_eq!(codes(&many), [("too_many_tasks".to_owned(), None)]);
    let most = many.trim_end().rsplit_once('\n').unwrap().0;
    assert_eq!(check(most).unwrap().places.len(), MAX_LINES);
    let long = line(&"x".repeat(MAX_LINE_BYTES));
    let text = format!("{}\n{long}\n{}\n{{", line("a"), line("b"));
    let expected =
        [("line_too_long".to_owned(), Some(2)), ("invalid_json_line".to_owned(), Some(4))];
    assert_eq!(codes(&text), expected);
    // In pieces too, and the memory stays that of a line.
    let mut check = InputCheck::new("/v1/completions");
    for piece in text.as_bytes().chunks(1 << 20) {
        check.push(piece);
        assert!(check.partial.capacity() <= 2 * MAX_LINE_BYTES);
    }
    let found: Vec<_> = check.finish().unwrap_err().into_iter().map(|p| (p.code, p.line)).collect();
    assert_eq!(found, expected);
}

#[test]
fn inputs_of_embeddings_are_counted() {
    let text = |input: &str, lines: usize| -> Vec<String> {
        let line = |n| {
            format!(
                r#"{{"custom_id":"{n}","method":"POST","url":"/v1/embeddings","body":{{"model":"m","input":{input}}}}}"#
            )
        };
        let mut check = InputCheck::new("/v1/embeddings");
        (0..lines).for_each(|n| check.push((line(n) + "\n").as_bytes()));
        check.finish().err().unwrap_or_default().into_iter().map(|one| one.code).collect()
    };
    let list = format!("[{}]", vec!["\"x\""; 25_000].join(","));
    assert_eq!(text(&list, 2), [""; 0]);
    assert_eq!(text(&list, 3), ["too_many_inputs"]);
    // A list of numbers is one text of tokens.
    let tokens = format!("[{}]", vec!["7"; 25_000].join(","));
    assert_eq!(text(&tokens, 3), [""; 0]);
}

proptest! {
    #[test]
    fn whatever_comes_it_ends_and_finds_lines_inside(bytes: Vec<u8>, cut in 0..100_usize) {
        let mut check = InputCheck::new("/v1/completions");
        let cut = cut.min(bytes.len());
        check.push(&bytes[..cut]);
        check.push(&bytes[cut..]);
        prop_assert!(check.finish().is_err());
    }
}
