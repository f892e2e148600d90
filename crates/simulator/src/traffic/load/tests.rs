//! Small files of every form. The real ones are read in `traffic::real`.

use super::*;
use crate::seconds::Seconds;
use crate::traffic::{Trace, TrafficRates};

fn trace(loaded: &Loaded) -> &Trace {
    let [LoadedPart { traffic: Traffic::Trace(trace), .. }] = &loaded.parts[..] else {
        panic!("one trace: {loaded:?}")
    };
    trace
}

fn rates(part: &LoadedPart) -> &TrafficRates {
    let Traffic::Rates(rates) = &part.traffic else { panic!("rates: {part:?}") };
    rates
}

fn load(text: &str) -> Loaded {
    read("file", text.as_bytes()).unwrap()
}

fn wrong(text: &str) -> LoadError {
    let error = read("file", text.as_bytes()).unwrap_err();
    assert!(!error.hint.is_empty(), "{error}");
    error
}

/// When, prompt, output.
fn rows(trace: &Trace) -> Vec<(f64, u32, u32)> {
    let row = |one: &crate::traffic::Request| (one.at.get(), one.prompt, one.output);
    trace.requests.iter().map(row).collect()
}

#[test]
fn azure_traces_of_both_years_are_read() {
    for (first, second) in [
        ("2023-11-16 18:15:46.5000000", "2023-11-16 18:15:48.0000000"),
        ("2024-05-10 00:00:00.009930+00:00", "2024-05-10 00:00:01.509930+00:00"),
    ] {
        let text = format!(
            "TIMESTAMP,ContextTokens,GeneratedTokens\r\n{first},374,44\r\n{second},396,109\r\n"
        );
        let loaded = load(&text);
        assert_eq!(loaded.form, Form::Azure);
        let rows = rows(trace(&loaded));
        assert_eq!(rows.len(), 2);
        assert!((rows[1].0 - 1.5).abs() < 1e-5, "{rows:?}");
        assert_eq!((rows[0].1, rows[0].2, rows[1].1, rows[1].2), (374, 44, 396, 109));
        assert!(loaded.start.is_some_and(|start| start > 1.6e9));
    }
}

#[test]
fn failures_of_burstgpt_are_left_out_and_models_told_apart() {
    let loaded = load(
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
         5,ChatGPT,472,18,490,Conversation log\n45,ChatGPT,1087,0,1087,Conversation log\n\
         118,GPT-4,417,276,693,API log\n",
    );
    assert_eq!((loaded.form, loaded.tally.read, loaded.tally.failed), (Form::BurstGpt, 2, 1));
    assert!(loaded.tally.unknown_columns.is_empty());
    let of = |model| match &loaded.part(Some(model)).unwrap().traffic {
        Traffic::Trace(trace) => rows(trace),
        Traffic::Rates(_) => panic!("single requests"),
    };
    // Both count from the first request of the file.
    assert_eq!((of("ChatGPT"), of("GPT-4")), (vec![(0.0, 472, 18)], vec![(113.0, 417, 276)]));
    let error = loaded.part(None).unwrap_err();
    assert_eq!(error.hint, "name one of them: ChatGPT, GPT-4");
    assert!(loaded.part(Some("none")).is_err());
}

#[test]
fn blocks_of_mooncake_and_bailian_are_kept() {
    let loaded = load(
        "{\"timestamp\": 3000, \"input_length\": 700, \"output_length\": 5, \"hash_ids\": [0, 2]}\n\
         {\"timestamp\": 0, \"input_length\": 600, \"output_length\": 4, \"hash_ids\": [0, 1]}\n",
    );
    let mooncake = trace(&loaded);
    assert_eq!((loaded.form, mooncake.block_tokens), (Form::Mooncake, 512));
    assert_eq!(rows(mooncake), [(0.0, 600, 4), (3.0, 700, 5)]);
    let names = |one: usize| {
        let range = &mooncake.requests[one].blocks;
        &mooncake.blocks[range.start as usize..range.end as usize]
    };
    assert_eq!((names(0), names(1)), (&[0, 1][..], &[0, 2][..]));
    let bailian = load(
        "{\"chat_id\": 159, \"parent_chat_id\": -1, \"timestamp\": 61.114, \"input_length\": 20, \
         \"output_length\": 2, \"type\": \"text\", \"turn\": 1, \"hash_ids\": [1089, 1090]}\n\
         {\"chat_id\": 160, \"timestamp\": 62.114, \"input_length\": 3, \"output_length\": 2, \
         \"hash_ids\": [7]}\n",
    );
    assert_eq!((bailian.form, trace(&bailian).block_tokens), (Form::Bailian, 16));
    assert!((rows(trace(&bailian))[1].0 - 1.0).abs() < 1e-9);
}

#[test]
fn plain_tables_are_read_by_name_and_the_rest_is_named() {
    let loaded = load(
        "\u{feff}user, time ,prompt_tokens,output tokens,prefix_hash,block_tokens\n\
         7,1.5,10,3,ab cd,64\n8,0.5,20,4,,64\n9,2.5,x,4,ab,64\n",
    );
    let table = trace(&loaded);
    assert_eq!(rows(table), [(0.0, 20, 4), (1.0, 10, 3)]);
    assert_eq!((loaded.form, table.block_tokens, table.blocks.len()), (Form::Csv, 64, 2));
    assert_eq!(loaded.tally.unknown_columns, ["user"]);
    assert_eq!(loaded.tally.examples, ["line 4: \"x\" is not a number"]);
    assert_eq!((loaded.tally.read, loaded.tally.unread, loaded.start), (2, 1, None));
}

#[test]
fn missing_windows_of_rates_are_gaps_and_not_zero() {
    let loaded = load(
        "time,requests_per_second,prompt_tokens,output_tokens\n0,2,100,10\n60,,,\n120,4,200,20\n\
         180,NaN,1,1\n240,6,300,30\n420,1,100,10\n",
    );
    assert_eq!(loaded.form, Form::RateCsv);
    let part = loaded.part(None).unwrap();
    let rates = rates(part);
    assert_eq!((rates.window, rates.windows()), (Seconds(60.0), 8));
    assert_eq!(rates.gaps, [1..2, 3..4, 5..7]);
    assert_eq!((rates.total(2), rates.clients[0][2].variation), (4.0, 1.0));
    // Weighted by rate, by hand: (2 * 100 + 4 * 200 + 6 * 300 + 100) / 13 = 223.
    let (prompt, _) = part.lengths.as_ref().unwrap().means();
    assert!((prompt - 223.0).abs() < 15.0, "{prompt}");
}

#[test]
fn servegen_is_read_from_a_file_a_folder_and_a_tar() {
    let quiet = "0,0,0,,0,0\n600,0.5,1.5,Gamma,1,1\n1200,0,0,,0,0\n";
    let busy = "0,3,1,Gamma,1,1\n600,4,1,Weibull,1,1\n1800,5,1,Gamma,1,1\n";
    let one = load(busy);
    assert_eq!(rates(&one.parts[0]).gaps.first(), Some(&(2..3)));
    let mut tar = tar::Builder::new(Vec::new());
    for (path, text) in [
        ("./a/m/chunk-10-trace.csv", quiet),
        ("./a/m/chunk-9-trace.csv", busy),
        ("./a/m/chunk-9-dataset.json", "{}"),
        ("./b/chunk-0-trace.csv", quiet),
    ] {
        let mut header = tar::Header::new_ustar();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, path, text.as_bytes()).unwrap();
    }
    let loaded = read("rates.tar", &tar.into_inner().unwrap()).unwrap();
    assert_eq!(loaded.form, Form::ServeGen);
    assert!(loaded.part(Some("b")).is_ok());
    let both = rates(loaded.part(Some("a/m")).unwrap());
    assert_eq!((both.clients.len(), both.windows(), both.gaps.len()), (2, 4, 0));
    // By number, not by letter: client 9 comes before client 10.
    assert_eq!(both.clients[0][0].rate, 3.0);
    assert_eq!((both.total(1), both.clients[1][1].variation), (4.5, 1.5));
}

#[test]
fn gzip_is_unpacked_and_a_broken_one_refused() {
    use std::io::Write;
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(b"time,input,output\n0,1,2\n1,3,4\n").unwrap();
    let packed = packer.finish().unwrap();
    assert_eq!(trace(&read("f.gz", &packed).unwrap()).requests.len(), 2);
    let error = read("f.gz", &packed[..packed.len() - 9]).unwrap_err();
    assert!(error.what.starts_with("the gzip file is broken"), "{error}");
}

#[test]
fn errors_say_file_line_what_and_hint() {
    let error = wrong("a,b\n1,2\n");
    assert_eq!(
        error.to_string(),
        "file line 1: no column for the time of arrival; there are: a, b"
    );
    assert!(wrong("time,input\n1,2\n").what.starts_with("no column for the output tokens"));
    assert_eq!(wrong("  \n").what, "the file is empty");
    assert_eq!(wrong("time,input,output\n").what, "no rows");
    let error = wrong("time,input,output\n0,x,1\n1,y,1\n2,1,1\n");
    assert_eq!(error.what, "2 of 3 rows cannot be read; line 2: \"x\" is not a number");
    assert!(wrong("time,input,output\n0,-1,1\n").what.contains("-1 prompt tokens cannot be"));
    assert!(wrong("time,input,output\n0,1,1\n500,1,1\n1000,1,1\n").hint.contains("timestamp_ms"));
    assert!(wrong("{\"timestamp\": 1}\n").what.contains("missing field `input_length`"));
    assert!(wrong("model,kind,quantile,tokens\n").what.contains("a table of lengths"));
    assert!(read("file", &[0xff, 0xfe, 0, 1]).is_err());
    assert!(open(Path::new("no-such-file.csv")).unwrap_err().what.starts_with("cannot be read"));
}
