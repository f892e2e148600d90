use super::*;
use crate::output::Charset;
use crate::text::{WIDTH, width};

/// A plan as `plan` may show it; the numbers are invented.
pub(crate) fn example() -> Document {
    let columns = vec![
        Column::right("#"),
        Column::left("GPU"),
        Column::right("GPUS"),
        Column::right("TTFT-P99"),
        Column::right("$/H"),
        Column::left("EVIDENCE"),
    ];
    let mut table = Table::new(columns);
    table.rows = vec![
        Row { mark: Some('*'), ..Row::new(["1", "H200", "4", "430 ms ±70", "31.64", "own data"]) },
        Row::new([
            Cell::from("2"),
            "H100".into(),
            "5".into(),
            "410 ms ±60".into(),
            "34.40".into(),
            Cell::toned("other GPU; may miss TTFT", Tone::Caution),
        ]),
        Row {
            muted: true,
            below: vec![Below::Words("34.0 GB of weights do not fit into 22.1 GB".to_owned())],
            ..Row::new(["", "L4", "", "", "", "rejected: memory"])
        },
    ];
    Document {
        blocks: vec![
            Block::Facts(vec![
                ("Model".to_owned(), "Qwen/Qwen3-32B-FP8, 32.8 B, FP8".to_owned()),
                ("Load".to_owned(), "12 req/s, 2000 in / 400 out".to_owned()),
                ("Deadline".to_owned(), String::new()),
            ]),
            Block::Gap,
            Block::Heading("Choices".to_owned()),
            Block::Table(table),
            Block::Gap,
            Block::Notes(vec!["prices | on demand, <us-east>".to_owned()]),
            Block::Line("chosen 1: cheapest whose whole interval stays inside".to_owned()),
        ],
    }
}

fn plain(document: &Document, charset: Charset) -> String {
    anstream::adapter::strip_str(&document.terminal(charset, WIDTH).into_string()).to_string()
}

#[test]
fn one_description_is_a_table_and_markdown() {
    insta::assert_snapshot!("terminal", plain(&example(), Charset::Utf8));
    insta::assert_snapshot!("markdown", example().markdown());
    assert!(plain(&example(), Charset::Ascii).is_ascii());
}

#[test]
fn wide_tables_wrap_their_text_and_keep_their_numbers() {
    let columns = vec![Column::left("NAME"), Column::right("N"), Column::left("WHY")];
    let words = "a reason that goes on ".repeat(9);
    let name = "東京".repeat(12);
    let rows = vec![Row::new([name.as_str(), "123,456", &words])];
    let document = Document { blocks: vec![Block::Table(Table { rows, ..Table::new(columns) })] };
    let text = plain(&document, Charset::Utf8);
    assert!(text.lines().all(|line| width(line) <= 100), "{text}");
    assert!(text.contains("123,456"), "{text}");
    insta::assert_snapshot!("wide", text);
}

#[test]
fn a_narrow_terminal_gets_rows_as_records_and_no_picture() {
    let numbers = ["GPUS", "TOKENS/S", "TTFT-P95", "ITL-P95", "USD/H", "USD/M-TOKENS"];
    let numbers = numbers.map(Column::right);
    let columns: Vec<Column> = std::iter::once(Column::left("GPU")).chain(numbers).collect();
    let cells = ["h100-sxm-80gb", "16", "123,456", "1.2 s", "38 ms", "$44.16", "$0.31"];
    let mut row = Row::new(cells);
    row.mark = Some('*');
    row.below.push(Below::Words("the cheapest whose whole interval stays inside of it".into()));
    let table = Table { rows: vec![row], ..Table::new(columns) };
    let picture = Table { overflow: Overflow::Hide, ..table.clone() };
    let blocks = vec![
        Block::Line("one part   another part that is longer   and a third that is long".into()),
        Block::Table(table),
        Block::Table(picture),
    ];
    let document = Document { blocks };
    let text = document.terminal(Charset::Utf8, 60).into_string();
    let text = anstream::adapter::strip_str(&text).to_string();
    assert!(text.lines().all(|line| width(line) <= 60), "{text}");
    insta::assert_snapshot!("narrow", text);
}

#[test]
fn colour_is_never_the_only_carrier() {
    let styled = example().terminal(Charset::Utf8, WIDTH).into_string();
    assert!(styled.contains('\x1b'));
    let text = plain(&example(), Charset::Utf8);
    for word in ["* 1", "may miss", "rejected"] {
        assert!(text.contains(word), "{text}");
    }
}
