//! The watcher against a parser that follows the WHATWG's text, pieces against the whole, and events
//! of our own put in between.

#![no_main]

#[path = "../../crates/gateway/src/sse/client.rs"]
mod client;

use client::parse;
use flyball_fuzz::Input;
use flyball_fuzz::sse::{Watcher, usage_of, write_event};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some(input) = Input::of(data) else { return };
    usage_of(input.bytes);
    one_event(input.bytes);
    let mut whole = Watcher::new(input.surface);
    let progress = whole.feed(input.bytes);
    let mut pieces = Watcher::new(input.surface);
    let (mut events, mut fed) = (0, 0);
    let (mut between, mut put_in) = (true, false);
    let expected = parse(input.bytes);
    for piece in input.pieces() {
        let Ok(progress) = pieces.feed(piece) else {
            assert!(whole.feed(b"").is_err(), "only the pieces are broken");
            return;
        };
        events += progress.events;
        fed += piece.len();
        between = progress.between_events;
        // Once: inputs with many such places would cost their square.
        if between && !put_in {
            put_in = true;
            let (before, after) = input.bytes.split_at(fed);
            let ours = write_event(Some("ours"), "{}");
            let mut with = parse(&[before, &ours[..], after].concat());
            let place = with.iter().position(|(name, data)| name == "ours" && data == "{}");
            with.remove(place.expect("our event is read"));
            assert_eq!(with, expected, "an event was put in at {fed}");
        }
    }
    let progress = progress.expect("the pieces were fine");
    assert_eq!((pieces.seen(), events), (whole.seen(), progress.events));
    assert_eq!(between, progress.between_events);
    assert!(whole.seen().events <= expected.len() as u64);
});

/// Whatever a text holds, as data or as a name, it is one event.
fn one_event(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let read = parse(&write_event(Some(&text), &text));
    assert_eq!(read.len(), 1);
    assert_eq!(read[0].1, text.replace("\r\n", "\n").replace('\r', "\n"));
}
