//! Answers hold their schemas.

use flyball_simulator::traffic::load::read;

use super::{Converted, TraceReport};
use crate::output::{Detail, answer_json, answer_table, conforms};

#[test]
fn json_has_the_shape_of_its_schema() {
    let requests = "time,prompt_tokens,output_tokens,hash_ids,who\n0,600,5,1 2,x\n1,700,9,1 3,x\n\
                    2,y,9,1 3,x\n4,80,9,,x\n";
    let rates = "time,rps,model,input_tokens,output_tokens\n0,2,a,5,6\n60,,a,,\n120,3,a,7,8\n";
    for text in [requests, rates] {
        let report = TraceReport::new(read("file.csv", text.as_bytes()).expect("a good file"));
        conforms("trace", &answer_json(&report));
        let table = answer_table(&report, Detail::Full);
        assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    }
    conforms(
        "trace-conversion",
        &answer_json(&Converted {
            file: "a".to_owned(),
            form: "CSV of requests".to_owned(),
            output: "b".to_owned(),
            models: 1,
            rows: 2,
            unread: 0,
            remarks: Vec::new(),
        }),
    );
}
