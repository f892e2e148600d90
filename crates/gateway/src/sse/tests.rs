use super::{Finish, Progress, SseError, SseProgress, Usage, Watcher, usage_of};
use crate::surface::Surface;

fn watch(surface: Surface, stream: &str) -> SseProgress {
    let mut watcher = Watcher::new(surface);
    watcher.feed(stream.as_bytes()).unwrap();
    *watcher.seen()
}

const CHAT: &str = concat!(
    "data: {\"id\":\"1\",\"choices\":[{\"delta\":{\"role\":\"assistant\"}}],\"usage\":null}\n\n",
    ": keep-alive\n\n",
    "data: {\"id\":\"1\",\"choices\":[{\"delta\":{\"content\":\"usage\"},\"finish_reason\":\"stop\"}],",
    "\"usage\":null}\n\n",
    "data: {\"id\":\"1\",\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3,",
    "\"total_tokens\":10,\"prompt_tokens_details\":{\"cached_tokens\":5}}}\n\n",
    "data: [DONE]\n\n",
);

const MESSAGES: &str = concat!(
    "event: message_start\n",
    "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":25,",
    "\"cache_read_input_tokens\":100,\"cache_creation_input_tokens\":4,\"output_tokens\":1}}}\n\n",
    "event: ping\ndata: {\"type\": \"ping\"}\n\n",
    "event: content_block_delta\n",
    "data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"\\\"usage\\\":{}\"}}\n\n",
    "event: message_delta\n",
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"max_tokens\"},",
    "\"usage\":{\"output_tokens\":15}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

const RESPONSES: &str = concat!(
    "event: response.created\n",
    "data: {\"type\":\"response.created\",\"response\":{\"error\":null,\"usage\":null}}\n\n",
    "event: response.output_text.delta\n",
    "data: {\"type\":\"response.output_text.delta\",\"delta\":\"hi\"}\n\n",
    "event: response.completed\n",
    "data: {\"type\":\"response.completed\",\"response\":{\"error\":null,",
    "\"incomplete_details\":null,\"tools\":[{\"parameters\":{\"usage\":{\"input_tokens\":1}}}],",
    "\"usage\":{\"input_tokens\":9,\"input_tokens_details\":{\"cached_tokens\":8},",
    "\"output_tokens\":2}}}\n\n",
);

#[test]
fn a_chat_is_understood() {
    let usage = Some(Usage { input: 7, cached: Some(5), output: 3 });
    let expected =
        SseProgress { events: 3, usage, ended: true, error: false, finish: Some(Finish::Stop) };
    assert_eq!(watch(Surface::Chat, CHAT), expected);
    assert_eq!(watch(Surface::Completions, CHAT), expected);
}

#[test]
fn anthropics_messages_are_understood() {
    let usage = Some(Usage { input: 129, cached: Some(100), output: 15 });
    let expected =
        SseProgress { events: 3, usage, ended: true, error: false, finish: Some(Finish::Length) };
    assert_eq!(watch(Surface::Messages, MESSAGES), expected);
}

#[test]
fn responses_are_understood() {
    let usage = Some(Usage { input: 9, cached: Some(8), output: 2 });
    let expected =
        SseProgress { events: 3, usage, ended: true, error: false, finish: Some(Finish::Stop) };
    assert_eq!(watch(Surface::Responses, RESPONSES), expected);
}

#[test]
fn an_incomplete_response_says_why() {
    let incomplete = RESPONSES.replace("response.completed", "response.incomplete");
    assert_eq!(watch(Surface::Responses, &incomplete).finish, Some(Finish::Length));
    let withheld = incomplete.replace(
        "\"incomplete_details\":null",
        "\"incomplete_details\":{\"reason\":\"content_filter\"}",
    );
    assert_eq!(watch(Surface::Responses, &withheld).finish, Some(Finish::ContentFilter));
}

#[test]
fn events_without_a_name_are_known_by_their_type() {
    for (surface, stream) in [(Surface::Messages, MESSAGES), (Surface::Responses, RESPONSES)] {
        let nameless: String = stream
            .lines()
            .filter(|line| !line.starts_with("event:"))
            .fold(String::new(), |all, line| all + line + "\n");
        assert_eq!(watch(surface, &nameless), watch(surface, stream));
    }
}

#[test]
fn an_answer_cut_short_has_not_ended() {
    for (surface, stream) in
        [(Surface::Chat, CHAT), (Surface::Messages, MESSAGES), (Surface::Responses, RESPONSES)]
    {
        for cut in 0..stream.len() {
            assert!(!watch(surface, &stream[..cut]).ended, "{cut}");
        }
    }
}

#[test]
fn errors_are_seen_in_every_spelling() {
    let cases = [
        (Surface::Chat, "data: {\"error\":{\"message\":\"x\",\"code\":500}}\n\n"),
        (Surface::Chat, "data: {\"object\":\"error\",\"message\":\"x\"}\n\n"),
        (Surface::Chat, "event: error\ndata: whatever\n\n"),
        (Surface::Chat, "data: {\"id\":1,\n\nevent:error\ndata:{}\n\n"),
        (Surface::Messages, "event: error\ndata: {\"type\":\"error\",\"error\":{}}\n\n"),
        (Surface::Messages, "data: {\"type\":\"error\",\"error\":{}}\n\n"),
        (Surface::Responses, "data: {\"type\":\"error\",\"message\":\"x\"}\n\n"),
        (Surface::Responses, "event: response.failed\ndata: {}\n\n"),
    ];
    for (surface, stream) in cases {
        assert!(watch(surface, stream).error, "{stream}");
    }
    let fine = [
        "data: {\"choices\":[{\"delta\":{\"content\":\"error\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"\\\"error\\\":1\"}}]}\n\n",
        "data: {\"choices\":[],\"error\":null}\n\n",
        ": error\n\n",
        "id: error\n\n",
    ];
    for stream in fine {
        assert!(!watch(Surface::Chat, stream).error, "{stream}");
    }
}

#[test]
fn comments_and_pings_are_no_progress() {
    let mut watcher = Watcher::new(Surface::Messages);
    for quiet in [": ping\n\n", ":\n", "\n\n", "event: ping\ndata: {\"type\":\"ping\"}\n\n"] {
        let progress = watcher.feed(quiet.as_bytes()).unwrap();
        assert_eq!(progress, Progress { events: 0, between_events: true }, "{quiet:?}");
    }
}

#[test]
fn it_says_where_something_may_be_put_in() {
    let mut watcher = Watcher::new(Surface::Chat);
    let mut between = |piece: &str| watcher.feed(piece.as_bytes()).unwrap().between_events;
    assert!(between(""));
    assert!(!between("da"));
    assert!(!between("ta: {}"));
    assert!(!between("\n"));
    assert!(between("\n"));
    assert!(!between(": comment"));
    assert!(between("\r"));
    assert!(between("\n"));
    assert!(!between("data: {}\r"));
    // The line feed belongs to the return.
    assert!(!between("\n"));
    assert!(between("\r\n"));
}

#[test]
fn garbage_is_seen_at_its_first_bytes() {
    let garbage: [&[u8]; 9] = [
        b"<html>",
        b"{\"error\":\"x\"}",
        b"HTTP/1.1 500 Internal Server Error\r\n",
        b"Internal Server Error\n",
        b"\x1f\x8b\x08",
        b"data\x00: x",
        b"data: {\x00}\n",
        b"data: {}\n\n\x16\x03\x01",
        b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ];
    for bytes in garbage {
        let mut watcher = Watcher::new(Surface::Chat);
        assert_eq!(watcher.feed(bytes), Err(SseError::Garbage), "{bytes:?}");
        assert_eq!(watcher.feed(b"data: {}\n\n"), Err(SseError::Garbage), "it stays broken");
    }
    for fine in ["\u{feff}data: {}\n\n", "id: 1\nretry: 5\n\n", "data\n\n", "x-own: 1\n\n"] {
        assert!(Watcher::new(Surface::Chat).feed(fine.as_bytes()).is_ok(), "{fine:?}");
    }
}

#[test]
fn a_line_has_a_limit() {
    let limit = Watcher::LINE_BYTES;
    let too_long = Err(SseError::LineTooLong { limit });
    let line = format!("data: {}\n\n", "x".repeat(limit - 6));
    assert_eq!(Watcher::new(Surface::Chat).feed(line.as_bytes()).unwrap().events, 1);
    let line = format!("data: {}\n\n", "x".repeat(limit - 5));
    assert_eq!(Watcher::new(Surface::Chat).feed(line.as_bytes()), too_long);
    let mut watcher = Watcher::new(Surface::Chat);
    let fed = line.as_bytes().chunks(1000).take_while(|piece| watcher.feed(piece).is_ok()).count();
    assert_eq!(fed, limit / 1000);
}

#[test]
fn usage_at_the_end_of_a_long_line_in_pieces_is_found() {
    let text = "x".repeat(300_000);
    let stream = format!(
        "event: response.completed\ndata: {{\"response\":{{\"output\":\"{text}\",\
         \"usage\":{{\"input_tokens\":9,\"output_tokens\":2}}}}}}\n\n"
    );
    let mut watcher = Watcher::new(Surface::Responses);
    for piece in stream.as_bytes().chunks(4000) {
        watcher.feed(piece).unwrap();
    }
    assert_eq!(watcher.seen().usage, Some(Usage { input: 9, cached: None, output: 2 }));
    assert_eq!(*watcher.seen(), watch(Surface::Responses, &stream));
}

#[test]
fn a_whole_answer_tells_its_usage() {
    let usage = r#""usage":{"prompt_tokens":4,"completion_tokens":6}"#;
    let expected = Some(Usage { input: 4, cached: None, output: 6 });
    assert_eq!(usage_of(format!(r#"{{"choices":[],{usage}}}"#).as_bytes()), expected);
    // With more behind it, plain or not.
    for behind in [r#""prompt_logprobs":null"#, r#""x":"}""#, r#""x":{"y":[1]}"#] {
        let whole = format!(r#"{{"choices":[{{"usage":{{}}}}],{usage},{behind}}}"#);
        assert_eq!(usage_of(whole.as_bytes()), expected, "{behind}");
    }
    // Its own, not that of something inside it.
    let inside =
        r#"{"usage":{"prompt_tokens":4,"completion_tokens":6},"x":{"usage":{"prompt_tokens":1}}}"#;
    assert_eq!(usage_of(inside.as_bytes()), expected);
    // Only its end.
    assert_eq!(usage_of(format!(r#"he end"}}],{usage}}}"#).as_bytes()), expected);
    let spaced = "..., \"usage\" : {\n \"input_tokens\": 4, \"output_tokens\": 6 }\n}";
    assert_eq!(usage_of(spaced.as_bytes()), expected);
    let none = ["", "{}", r#"{"usage":null}"#, r#"{"usage":{"x":1}}"#, r#""usage":{"prompt_tok"#];
    for piece in none {
        assert_eq!(usage_of(piece.as_bytes()), None, "{piece}");
    }
    assert_eq!(usage_of(r#"{"usage":{"prompt_tokens":-1}}"#.as_bytes()), None);
}

#[test]
fn both_namings_at_once_are_no_error() {
    let both =
        r#"{"usage":{"prompt_tokens":4,"input_tokens":4,"completion_tokens":1,"output_tokens":1}}"#;
    assert_eq!(usage_of(both.as_bytes()), Some(Usage { input: 4, cached: None, output: 1 }));
}
