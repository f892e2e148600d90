use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use flyball_gateway::state::{
    CallerView, EngineView, GatewayStateView, Minute, ModelView, QueueView, Refusal, Times,
    TroubleView, VERSION,
};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::answer::{Asked, Top};
use super::screen::{Screen, Then};
use crate::output::{Answer as _, Detail, Exit, Failure, answer_json, answer_table, conforms};

fn engine(name: &str, state: &str, running: Option<u32>) -> EngineView {
    EngineView {
        name: name.to_owned(),
        address: "10.0.0.1:8000".to_owned(),
        state: state.to_owned(),
        in_flight: 3,
        running,
        waiting: running.map(|_| 0),
        kv_used: running.map(|_| 0.815),
    }
}

fn minute(answered: u64, first_micros: u64) -> Minute {
    Minute {
        answered,
        input_tokens: 1_000 * answered,
        cached_tokens: 640 * answered,
        output_tokens: 100 * answered,
        first_token: Times::of(vec![(first_micros, answered)]),
        per_token: Times::of(vec![(24_576, answered)]),
        ..Minute::default()
    }
}

fn state() -> GatewayStateView {
    let model = |name: &str, engines, last_minute| ModelView {
        name: name.to_owned(),
        engines,
        requests_per_second: 11.8,
        last_minute,
        ..ModelView::default()
    };
    let caller = |name: &str, last_minute| CallerView {
        name: name.to_owned(),
        requests_per_second: 2.5,
        last_minute,
    };
    let sleeping = ModelView {
        name: "embed-small".to_owned(),
        queue: QueueView {
            held: 12,
            oldest_seconds: 41.0,
            eta_seconds: Some(19.0),
            ..QueueView::default()
        },
        ..ModelView::default()
    };
    let busy = ModelView {
        queue: QueueView { waiting: 31, oldest_seconds: 2.4, ..QueueView::default() },
        ..model(
            "qwen3-32b",
            vec![
                engine("serving/qwen3-32b-7f9c5d4b8-x2x4q", "open", Some(14)),
                engine("serving/qwen3-32b-7f9c5d4b8-zzkwt", "broken", None),
            ],
            Minute { refused: 4, failed: 1, ..minute(700, 655_360) },
        )
    };
    GatewayStateView {
        version: VERSION,
        time: "2026-11-06T21:20:00.123Z".to_owned(),
        gateways: 1,
        connections: 34,
        requests: 12,
        held_bytes: 4_096,
        troubles: vec![
            TroubleView { what: "zombies".to_owned(), count: 2 },
            TroubleView { what: "reload-failed".to_owned(), count: 1 },
        ],
        models: vec![
            model("coder-30b", vec![engine("e1", "open", Some(2))], minute(1_200, 98_304)),
            sleeping,
            busy,
        ],
        callers: vec![
            caller("batch", Minute { refused: 4, ..minute(500, 655_360) }),
            caller("chatbot", minute(40, 81_920)),
        ],
        refusals: vec![Refusal { reason: "queue_full".to_owned(), count: 4 }],
        tenants: None,
    }
}

fn top() -> Top {
    let queried = |url: &str, problem: Option<&str>| Asked {
        url: url.to_owned(),
        problem: problem.map(str::to_owned),
    };
    let gateways = vec![
        queried("http://10.0.0.1:9090", None),
        queried("http://10.0.0.2:9090", Some("Connection refused")),
    ];
    Top::new(gateways, state())
}

fn drawn(screen: &mut Screen, top: &Top, failure: Option<&Failure>, size: (u16, u16)) -> String {
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).expect("a terminal");
    terminal.draw(|frame| screen.draw(frame, top, failure)).expect("it draws");
    let buffer = terminal.backend().buffer();
    let cells = buffer.content.chunks(usize::from(size.0).max(1));
    let lines = cells.map(|line| {
        let line: String = line.iter().map(|cell| cell.symbol()).collect();
        format!("{}\n", line.trim_end())
    });
    lines.collect()
}

fn press(screen: &mut Screen, code: KeyCode) -> Then {
    screen.key(KeyEvent::new(code, KeyModifiers::NONE))
}

#[test]
fn a_model_whose_engines_cannot_be_looked_for_says_why() {
    let mut state = state();
    let why = "cannot watch pods of serving; hint: fix the Role";
    state.models[0].trouble = Some(why.to_owned());
    let top = Top::new(Vec::new(), state);
    let table = answer_table(&top, Detail::Problems);
    assert!(table.contains(&format!("! coder-30b: {why}")), "{table}");
    conforms("top", &answer_json(&top));
}

#[test]
fn the_table_is_as_wide_as_a_screen_and_json_has_its_schema() {
    let top = top();
    let table = answer_table(&top, Detail::Full);
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    insta::assert_snapshot!("table", table);
    insta::assert_snapshot!("table_quiet", answer_table(&top, Detail::Problems));
    conforms("top", &answer_json(&top));
    // One gateway did not tell.
    assert_eq!(top.exit(), Exit::Unknown);
}

#[test]
fn nothing_known_is_shown_as_nothing_known() {
    let mut state = state();
    state.models = vec![ModelView { name: "qwen".to_owned(), ..ModelView::default() }];
    state.callers.clear();
    state.refusals.clear();
    state.troubles.clear();
    let queried = Asked { url: "http://10.0.0.1:9090".to_owned(), problem: None };
    let top = Top::new(vec![queried], state);
    insta::assert_snapshot!("table_empty", answer_table(&top, Detail::Full));
    assert_eq!(top.exit(), Exit::Yes);
}

#[test]
fn the_live_screen() {
    let (top, mut screen) = (top(), Screen::default());
    insta::assert_snapshot!("live", drawn(&mut screen, &top, None, (110, 30)));
    press(&mut screen, KeyCode::Char('?'));
    insta::assert_snapshot!("live_help", drawn(&mut screen, &top, None, (110, 30)));
    // Any key goes back, and does nothing else.
    assert_eq!(press(&mut screen, KeyCode::Char('q')), Then::Stay);
    press(&mut screen, KeyCode::Char('/'));
    for letter in "zzk".chars() {
        assert_eq!(press(&mut screen, KeyCode::Char(letter)), Then::Stay);
    }
    insta::assert_snapshot!("live_filter", drawn(&mut screen, &top, None, (110, 30)));
    press(&mut screen, KeyCode::Esc);
    let failure = Failure::new(Exit::Unknown, "cannot reach any gateway's admin API");
    insta::assert_snapshot!("live_small", drawn(&mut screen, &top, Some(&failure), (80, 14)));
    assert_eq!(press(&mut screen, KeyCode::Char('q')), Then::End);
}

#[test]
fn no_size_and_no_key_breaks_the_screen() {
    let (top, mut screen) = (top(), Screen::default());
    let keys = [KeyCode::Tab, KeyCode::PageDown, KeyCode::Down, KeyCode::BackTab, KeyCode::Up];
    for size in [(0, 0), (1, 1), (20, 3), (80, 24), (300, 100)] {
        for code in keys {
            press(&mut screen, code);
            drawn(&mut screen, &top, None, size);
        }
    }
}
