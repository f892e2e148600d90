//! Names in PromQL: which series a query reads, and which labels it speaks of.
//!
//! Not a parser: whether a query is well formed is for promtool to say. What is needed here is only
//! which names stand in it, and those can be told apart by the letters around them.

use std::collections::BTreeSet;

/// What a query speaks of.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Query {
    /// Series, each with the labels of its matchers.
    pub(super) series: Vec<(String, BTreeSet<String>)>,
    /// Labels of `by`, `on` and their like.
    pub(super) labels: BTreeSet<String>,
}

/// Words behind which a list of labels stands.
const LISTS: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];

/// Other words that are neither series nor functions.
const WORDS: [&str; 7] = ["and", "or", "unless", "bool", "offset", "inf", "nan"];

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Text,
    Sign(char),
}

/// Reads a query. Grafana's variables are taken for what they stand for.
pub(super) fn parse(text: &str) -> Result<Query, String> {
    let tokens = tokens(text)?;
    let mut query = Query::default();
    let mut at = 0;
    while at < tokens.len() {
        let Token::Word(word) = &tokens[at] else {
            at += 1;
            continue;
        };
        let next = tokens.get(at + 1);
        at += 1;
        if LISTS.contains(&word.as_str()) && next == Some(&Token::Sign('(')) {
            query.labels.extend(list(&tokens, &mut at, ')')?);
        } else if next == Some(&Token::Sign('{')) {
            let labels = list(&tokens, &mut at, '}')?;
            query.series.push((word.clone(), labels));
        } else if !is_called(next) && !is_plain(word) {
            query.series.push((word.clone(), BTreeSet::new()));
        }
    }
    if query.series.is_empty() && !text.contains("vector(") {
        return Err("reads no series".to_owned());
    }
    Ok(query)
}

/// Whether what stands before this is a function or an aggregation: `rate(`, `sum by`.
fn is_called(next: Option<&Token>) -> bool {
    match next {
        Some(Token::Sign(sign)) => *sign == '(',
        Some(Token::Word(word)) => word == "by" || word == "without",
        _ => false,
    }
}

/// Numbers, durations and operators.
fn is_plain(word: &str) -> bool {
    let number = word.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | '$'));
    number || WORDS.contains(&word.to_lowercase().as_str()) || LISTS.contains(&word)
}

/// The words up to the closing sign that name labels: those before an operator or a comma.
fn list(tokens: &[Token], at: &mut usize, close: char) -> Result<BTreeSet<String>, String> {
    let mut found = BTreeSet::new();
    *at += 1;
    loop {
        match tokens.get(*at) {
            None => return Err(format!("a {close} is missing")),
            Some(Token::Sign(sign)) if *sign == close => break,
            Some(Token::Word(word)) => drop(found.insert(word.clone())),
            Some(Token::Text | Token::Sign(_)) => {}
        }
        *at += 1;
    }
    *at += 1;
    Ok(found)
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.char_indices().peekable();
    while let Some((start, c)) = rest.next() {
        if c == '"' || c == '\'' {
            let mut escaped = false;
            let end = rest.find(|(_, next)| {
                let ends = *next == c && !escaped;
                escaped = *next == '\\' && !escaped;
                ends
            });
            if end.is_none() {
                return Err("a text has no end".to_owned());
            }
            tokens.push(Token::Text);
        } else if is_word(c) {
            let mut end = start + c.len_utf8();
            while let Some((at, next)) = rest.next_if(|(_, next)| is_word(*next)) {
                end = at + next.len_utf8();
            }
            tokens.push(Token::Word(text[start..end].to_owned()));
        } else if !c.is_whitespace() {
            tokens.push(Token::Sign(c));
        }
    }
    Ok(tokens)
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '.' | '$')
}

fn series(text: &str) -> Vec<(String, Vec<String>)> {
    let query = parse(text).unwrap();
    query.series.into_iter().map(|(name, labels)| (name, labels.into_iter().collect())).collect()
}

#[test]
fn series_and_labels_are_found_and_nothing_else_is() {
    let text = r#"histogram_quantile(.95, sum by (le, model) (rate(a_bucket{model=~"$m", x!="by (y)"}[$__rate_interval])))
        / on (model) group_left () (b:c offset 5m > bool 0.5) unless vector(1)"#;
    assert_eq!(
        series(text),
        [
            ("a_bucket".to_owned(), vec!["model".to_owned(), "x".to_owned()]),
            ("b:c".to_owned(), vec![]),
        ]
    );
    let labels: Vec<_> = parse(text).unwrap().labels.into_iter().collect();
    assert_eq!(labels, ["le", "model"]);
}

#[test]
fn what_ends_in_the_middle_is_refused() {
    for text in ["a{b=\"c", "a{b=\"c\"", "sum by (a", "1 + 2", ""] {
        assert!(parse(text).is_err(), "{text}");
    }
}
