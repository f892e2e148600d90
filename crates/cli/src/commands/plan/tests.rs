use super::serve::Outcome as Serve;
use super::train::Outcome as Train;
use super::{PlanArgs, What, serve, train};
use crate::args::{Cli, Command};
use crate::output::{answer_json, conforms};
use clap::Parser;

fn parsed(args: &str) -> PlanArgs {
    match Cli::parse_from(args.split_whitespace()).command {
        Command::Plan(args) => args,
        other => panic!("{other:?}"),
    }
}

#[test]
fn json_has_the_shape_of_its_schema() {
    for args in [
        "flyball plan serve --model llama-3.1-8b --rate 5 --input 1k --output 200 --itl-p95 50ms",
        "flyball plan serve --model llama-3.1-8b --rate 5 --input 1k --output 200 --explain --spot",
        "flyball plan serve --model qwen3-32b --rate 5 --input 1k --output 200 --itl-p95 1ms",
        "flyball plan serve --model gpt-oss-120b --rate 5 --input 1k --output 200 --emit",
        "flyball plan train --model llama-3.1-8b --tokens 300B --gpus 64 --accelerators h100",
        "flyball plan train --model llama-3.1-8b --tokens 300B --budget 5 --accelerators h100",
        "flyball plan train --model llama-3.1-8b --tokens 300B --gpus 64 --emit",
    ] {
        match parsed(args).what {
            What::Serve(args) => match serve::outcome(&args).unwrap() {
                Serve::Plan(answer) => conforms("plan-serve", &answer_json(&*answer)),
                Serve::Command(command) => conforms("engine-command", &answer_json(&command)),
            },
            What::Train(args) => match train::outcome(&args, &mut |_| {}).unwrap() {
                Train::Plan(answer) => conforms("plan-train", &answer_json(&*answer)),
                Train::Command(command) => conforms("training-command", &answer_json(&command)),
            },
        }
    }
}

#[test]
fn one_of_three_sizes_must_be_fixed() {
    let none = "flyball plan train --model llama-3.1-8b --tokens 1T";
    assert!(Cli::try_parse_from(none.split_whitespace()).is_err());
    let two = format!("{none} --gpus 8 --deadline 3d");
    assert!(Cli::try_parse_from(two.split_whitespace()).is_err());
}
