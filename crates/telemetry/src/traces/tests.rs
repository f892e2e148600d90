use super::*;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[test]
fn a_traceparent_is_read_and_written() {
    let context = TraceContext::parse(PARENT).unwrap();
    assert_eq!(context.trace_id, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
    assert_eq!(context.span_id, 0x00f0_67aa_0ba9_02b7);
    assert!(context.sampled);
    assert_eq!(context.header(), PARENT);
    let later = PARENT.replacen("00", "cc", 1) + "-what-comes-later";
    assert_eq!(TraceContext::parse(&later), Some(context));
}

#[test]
fn what_the_recommendation_calls_invalid_is_no_parent() {
    let zeros = |at: std::ops::Range<usize>| {
        let mut text = PARENT.to_owned();
        text.replace_range(at.clone(), &"0".repeat(at.len()));
        text
    };
    for wrong in [
        String::new(),
        PARENT[..54].to_owned(),
        PARENT.to_uppercase(),
        PARENT.replacen("00", "ff", 1),
        PARENT.replace("4b", "4é"),
        PARENT.replace('-', "_"),
        format!("{PARENT}-more"),
        format!("cc{}x", &PARENT[2..]),
        zeros(3..35),
        zeros(36..52),
    ] {
        assert_eq!(TraceContext::parse(&wrong), None, "{wrong}");
    }
}

fn span() -> Span {
    let now = SystemTime::UNIX_EPOCH;
    Span {
        context: TraceContext::parse(PARENT).unwrap(),
        parent: None,
        side: SpanSide::Server,
        name: "chat".into(),
        start: now,
        end: now,
        attributes: vec![("a", Value::Count(1))],
        events: Vec::new(),
        error: None,
    }
}

#[test]
fn nobody_waits_for_room_in_the_queue() {
    // A queue that nobody takes anything from: whoever waited for room would wait for ever.
    let (queue, _spans) = sync_channel(QUEUE);
    let traces = Traces { queue, shared: Arc::default(), sender: Mutex::default() };
    (0..3 * QUEUE).for_each(|_| traces.send(span()));
    assert_eq!(traces.dropped(), 2 * QUEUE as u64);
}

#[test]
fn what_a_receiver_that_is_not_there_should_get_is_dropped_and_counted() {
    // Port 9 of loopback: nothing listens there, and nothing is asked that could be.
    let traces = Traces::start("http://127.0.0.1:9", "test", "1.2.3").unwrap();
    let many = 3 * QUEUE as u64;
    (0..many).for_each(|_| traces.send(span()));
    traces.close();
    assert_eq!(traces.dropped(), many);
    traces.send(span());
    assert_eq!(traces.dropped(), many + 1);
}

#[test]
fn an_address_that_is_none_is_said_at_once() {
    let error = Traces::start("not an address", "test", "1.2.3").unwrap_err().to_string();
    assert!(error.contains("`not an address`") && error.contains("http://"), "{error}");
}
