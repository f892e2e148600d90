//! What holds for every stream, read by a parser that follows the WHATWG's text to the letter.

use super::client::parse;
use super::{Watcher, write_event};
use crate::surface::Surface;
use proptest::collection::vec;
use proptest::prelude::*;

/// Text that would like to be more than one event.
fn text() -> impl Strategy<Value = String> {
    let bits = vec![
        "\n", "\r", "\r\n", "\n\n", "data: x", "event: y", ":", " ", "id: 1", "\u{feff}",
        "\u{2028}", "\u{85}", "é", "{}", "[DONE]", "\u{0}",
    ];
    vec(proptest::sample::select(bits), 0..12).prop_map(|bits| bits.concat())
}

fn line() -> impl Strategy<Value = String> {
    proptest::sample::select(vec![
        "",
        "",
        ": comment",
        ":",
        "data: {\"choices\":[]}",
        "data: {\"stop_reason\":null}",
        "data: {\"stop_reason\":\"end_turn\"}",
        "data:{\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}",
        "data: {\"error\":{}}",
        "data: [DONE]",
        "data",
        "id: 7",
        "event: message_stop",
        "event:error",
        "retry: 10",
        "other: x",
    ])
    .prop_map(str::to_owned)
}

fn stream() -> impl Strategy<Value = String> {
    let end = proptest::sample::select(vec!["\n", "\r", "\r\n"]);
    vec((line(), end), 0..20)
        .prop_map(|lines| lines.into_iter().map(|(line, end)| line + end).collect())
}

proptest! {
    #[test]
    fn what_we_write_is_one_event_whatever_is_in_it(name in text(), data in text(), named in any::<bool>()) {
        let written = write_event(named.then_some(name.as_str()), &data);
        let plain = |c: char| if matches!(c, '\r' | '\n' | '\0') { ' ' } else { c };
        let expected = match named && !name.is_empty() {
            true => name.chars().map(plain).collect(),
            false => "message".to_owned(),
        };
        let read = parse(&[&written[..], b"data: next\n\n"].concat());
        prop_assert_eq!(read.len(), 2);
        // A parser takes the name's first space for the one behind the colon only once.
        prop_assert_eq!(&read[0].0, &expected);
        prop_assert_eq!(&read[0].1, &data.replace("\r\n", "\n").replace('\r', "\n"));
        prop_assert_eq!(&read[1], &("message".to_owned(), "next".to_owned()));
    }

    #[test]
    fn pieces_show_what_the_whole_shows(stream in stream(), cuts in vec(any::<usize>(), 0..8)) {
        let mut whole = Watcher::new(Surface::Messages);
        let progress = whole.feed(stream.as_bytes()).unwrap();
        let mut pieces = Watcher::new(Surface::Messages);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (stream.len() + 1)).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let mut events = 0;
        let mut last = None;
        for cut in cuts.windows(2) {
            let progress = pieces.feed(&stream.as_bytes()[cut[0]..cut[1]]).unwrap();
            events += progress.events;
            last = Some(progress.between_events);
        }
        prop_assert_eq!(pieces.seen(), whole.seen());
        prop_assert_eq!(events, progress.events);
        prop_assert_eq!(last, Some(progress.between_events));
    }

    #[test]
    fn events_are_those_that_a_client_sees(stream in stream()) {
        let mut watcher = Watcher::new(Surface::Chat);
        watcher.feed(stream.as_bytes()).unwrap();
        let quiet = |(name, data): &(String, String)| {
            name != "message_stop" && !data.split('\n').any(|line| line == "[DONE]")
        };
        let events = parse(stream.as_bytes());
        let seen = watcher.seen();
        // An event may hold both an end mark and a name, or two lines of data; those are not worth
        // a rule of their own.
        prop_assert!(seen.events <= events.len() as u64);
        prop_assert!(seen.events >= events.iter().filter(|event| quiet(event)).count() as u64);
    }

    #[test]
    fn what_is_put_in_between_two_events_changes_none(stream in stream(), cut in any::<usize>()) {
        let cut = cut % (stream.len() + 1);
        let (before, after) = stream.as_bytes().split_at(cut);
        let mut watcher = Watcher::new(Surface::Chat);
        if watcher.feed(before).unwrap().between_events {
            let ours = write_event(Some("error"), "{}");
            let mut with: Vec<_> = parse(&[before, &ours[..], after].concat());
            let place = with.iter().position(|event| *event == ("error".into(), "{}".into()));
            with.remove(place.unwrap());
            prop_assert_eq!(with, parse(stream.as_bytes()));
        }
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in vec(any::<u8>(), 0..300)) {
        let mut watcher = Watcher::new(Surface::Responses);
        let _ = watcher.feed(&bytes);
        let _ = super::usage_of(&bytes);
    }
}
