use super::super::tree::made_up;
use super::*;

/// What is wrong with a crate of these files of its `src`.
fn found(files: &[(&str, &str)]) -> Vec<String> {
    let files: Vec<(String, &str)> =
        files.iter().map(|(path, text)| (format!("crates/x/src/{path}"), *text)).collect();
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    modules(&made_up(&files)).into_iter().map(|finding| finding.wrong).collect()
}

/// What is wrong with two modules `a` and `b` of a library, of which `b` names `A` of `a`.
fn two(a: &str) -> Vec<String> {
    let a = format!("pub(crate) struct A;\n{a}\n");
    let b = "use crate::a::A;\npub(crate) struct B(A);\npub(crate) fn make() {}\n";
    found(&[("lib.rs", "mod a;\nmod b;\npub use b::B;\n"), ("a.rs", &a), ("b.rs", b)])
}

#[test]
fn two_modules_that_name_each_other_fail_and_each_place_is_said() {
    let wrong = "a circle of modules in the crate's root: `a` names B of `b` (crates/x/src/a.rs:2), \
                 `b` names A of `a` (crates/x/src/b.rs:1)";
    assert_eq!(two("use crate::b::B;"), [wrong]);
    assert_eq!(two(""), [""; 0]);
    let below = "use crate::c::C;\npub(crate) struct A(C);\n";
    let mended = [
        ("lib.rs", "mod a;\nmod b;\nmod c;\n"),
        ("a.rs", below),
        ("b.rs", "use crate::{a::A, c::C};\n"),
        ("c.rs", "pub(crate) struct C;\n"),
    ];
    assert_eq!(found(&mended), [""; 0]);
}

#[test]
fn every_way_to_name_something_counts() {
    for text in [
        "use super::b;",
        "use super::{b::{self, B as Other}};",
        "use crate::b::B as _;",
        // By the parent's re-export.
        "use super::B;",
        "pub use crate::B;",
        "fn f() { super::b::make(); }",
        "fn f() { use crate::b::make; make(); }",
        "fn f() -> crate::b::B { todo() }",
        "use crate::*;\nfn f(b: B) {}",
        "use crate::*;\nfn f() { b::make() }",
        "use crate::b::*;\nfn f() { make() }",
        "fn f() { for x in super::b::all() {} }",
        "mod inner { use super::super::b::B; }",
        "macro_rules! m { () => { $crate::b::make() } }",
        "#[derive(Clone)] struct C<'a, 'b>(&'a str, crate::b::B);",
    ] {
        assert_eq!(two(text).len(), 1, "{text}");
    }
}

#[test]
fn words_tests_and_other_crates_do_not_count() {
    for text in [
        "// use crate::b::B;\n/// See [`crate::b::B`].",
        "const T: &str = \"crate::b::B\";\nconst C: char = '\"';",
        "#[cfg(test)]\nuse crate::b::B;",
        "#[cfg(test)]\nmod tests { use crate::b::B; }",
        "#[cfg(test)]\n#[expect(x)]\npub(crate) fn f(a: u8, b: u8) { crate::b::make() }",
        "#[test]\nfn f() { crate::b::make() }",
        "struct C { #[cfg(test)] c: crate::b::B, d: u8 }",
        "use b::B;\nfn f() { b::make() }",
        "fn f(b: C) { b.make::<u8>(); }",
        "pub(in crate::b) fn f() {}",
    ] {
        assert_eq!(two(text), [""; 0], "{text}");
    }
    assert_eq!(two("#[cfg(test)]\nmod tests;\nuse crate::b::B;").len(), 1, "what follows counts");
}

#[test]
fn what_the_parent_itself_defines_is_there_for_all() {
    let parent = "mod a;\nmod b;\npub struct Root;\nfn f() { a::f(); b::f(); }\n";
    let child = "use super::Root;\npub fn f() { crate::f() }\n";
    assert_eq!(found(&[("main.rs", parent), ("a.rs", child), ("b.rs", child)]), [""; 0]);
}

#[test]
fn children_are_held_against_each_other_at_every_depth() {
    let files = [
        ("lib.rs", "mod out;\nmod shared;\n"),
        ("out/mod.rs", "mod a;\nmod b { pub(super) fn f() { super::a::deep::f() } }\n"),
        ("out/a.rs", "pub(super) mod deep;\n"),
        ("out/a/deep.rs", "\npub(in crate::out) fn f() { crate::out::b::f() }\n"),
        ("shared.rs", ""),
    ];
    let wrong = found(&files);
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert!(wrong[0].starts_with("a circle of modules in `out`: `a` names f of `b`"), "{wrong:?}");
    assert!(wrong[0].contains("crates/x/src/out/a/deep.rs:2"), "{wrong:?}");
    let up = [
        ("bin/one.rs", "mod a;\nmod c;\n"),
        ("bin/a.rs", "mod below;\npub struct A;\n"),
        ("bin/a/below.rs", "use crate::c::C;\n"),
        ("bin/c.rs", "use crate::a::A;\npub struct C;\n"),
    ];
    // Each file of `bin` is a program of its own; those that are modules have none of the others.
    assert_eq!(found(&up).len(), 1);
}

#[test]
fn of_many_that_are_tied_up_the_shortest_circle_is_told() {
    let files = [
        ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\nmod e;\n"),
        ("a.rs", "use crate::b::B;\npub struct A;\n"),
        ("b.rs", "use crate::c::C;\npub struct B;\n"),
        ("c.rs", "use crate::{d::D};\npub struct C;\n"),
        ("d.rs", "use crate::a::A;\nuse crate::c::C;\npub struct D;\n"),
        ("e.rs", "use crate::a::A;\n"),
    ];
    let wrong = found(&files);
    let start = "a circle of modules in the crate's root: `c` names D of `d` (";
    assert!(wrong[0].starts_with(start), "{wrong:?}");
    assert!(wrong[0].ends_with("; 4 modules are tied up by such circles"), "{wrong:?}");
    assert_eq!(wrong.len(), 1);
}

#[test]
fn imports_that_go_in_a_circle_come_to_an_end() {
    let files = [
        ("lib.rs", "mod a;\nmod b;\n"),
        ("a.rs", "pub use crate::b::*;\npub use crate::b::Lost;\n"),
        ("b.rs", "pub use crate::a::*;\npub use crate::a::Lost;\nfn f() { Lost::new(); gone() }\n"),
    ];
    assert_eq!(found(&files), [""; 0]);
}
