use super::serve::Outcome as Serve;
use super::train::Outcome as Train;
use super::{PlanArgs, What, fleet, serve, train};
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
        "flyball plan fleet --have 8xh100,4xl40s --model llama-3.1-8b,llama-3.1-70b --rate 2 --input 1k \
         --output 200",
        "flyball plan fleet --have 1xl40s --model llama-3.1-70b --rate 2 --input 1k --output 200",
        "flyball plan train --model llama-3.1-8b --tokens 300B --gpus 64 --gpu h100",
        "flyball plan train --model llama-3.1-8b --tokens 300B --budget 5 --gpu h100",
        "flyball plan train --model llama-3.1-8b --tokens 300B --gpus 64 --emit",
    ] {
        match parsed(args).what {
            What::Serve(args) => match serve::outcome(&args).unwrap() {
                Serve::Plan(answer) => conforms("plan-serve", &answer_json(&*answer)),
                Serve::Command(command) => conforms("engine-command", &answer_json(&command)),
            },
            What::Fleet(args) => {
                conforms("plan-fleet", &answer_json(&fleet::outcome(&args).unwrap()));
            }
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

#[test]
fn what_does_not_divide_is_planned_on_fewer() {
    let args = "flyball plan train --model llama-3.1-8b --tokens 300B --gpus 60 --gpu h100";
    let What::Train(args) = parsed(args).what else { panic!("not a training") };
    let Train::Plan(answer) = train::outcome(&args, &mut |_| {}).unwrap() else {
        panic!("no plan")
    };
    let json: serde_json::Value = serde_json::from_str(&answer_json(&*answer)).unwrap();
    let gpus = json["choices"][0]["gpus"].as_u64().unwrap();
    assert!((32..=60).contains(&gpus), "{gpus}");
}

#[test]
fn a_fleet_says_what_fits_and_what_is_left() {
    let plan = |have: &str| {
        let args = format!(
            "flyball plan fleet --have {have} --model llama-3.1-8b,llama-3.1-70b --rate 4,2 --input 1k --output 200"
        );
        let What::Fleet(args) = parsed(&args).what else { panic!("not a fleet") };
        let answer = answer_json(&fleet::outcome(&args).unwrap());
        serde_json::from_str::<serde_json::Value>(&answer).unwrap()
    };
    let enough = plan("16xh100,8xl40s");
    assert_eq!(enough["fits"], true);
    let used: u64 =
        enough["models"].as_array().unwrap().iter().map(|one| one["gpus"].as_u64().unwrap()).sum();
    let left: u64 =
        enough["have"].as_array().unwrap().iter().map(|one| one["left"].as_u64().unwrap()).sum();
    assert_eq!(used + left, 24);
    let few = plan("1xl40s,2xl40s");
    assert_eq!(few["fits"], false);
    assert_eq!(few["have"][0]["gpus"], 3, "the same kind twice is one kind");
}
