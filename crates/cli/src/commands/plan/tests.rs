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
        "flyball plan train --model llama-3.1-8b --tokens 300B --gpus 64 --emit trainingrun --image train:1",
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
                Train::Manifest(one) => conforms("training-run-manifest", &answer_json(&one)),
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

/// The lines that a plan comes to.
fn training_run(args: &str) -> Vec<String> {
    let args = format!(
        "flyball plan train --model llama-3.1-8b --emit trainingrun --image train:1 {args}"
    );
    let What::Train(args) = parsed(&args).what else { panic!("not a training") };
    let Train::Manifest(manifest) = train::outcome(&args, &mut |_| {}).unwrap() else {
        panic!("no TrainingRun")
    };
    let json: serde_json::Value = serde_json::from_str(&answer_json(&manifest)).unwrap();
    let lines = json["lines"].as_array().unwrap().iter();
    lines.map(|line| line.as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_plan_becomes_a_training_run_of_fifteen_lines_at_most() {
    use flyball_resources::TrainingRun;
    let all =
        "--tokens 300B --gpus 64 --gpu h100 --name ft --pool h100 --queue research --claim ft";
    let mut lines = training_run(all);
    assert_eq!(lines.len(), 15);
    let run: TrainingRun = serde_saphyr::from_str(&lines.join("\n")).unwrap();
    let job = run.spec.job.unwrap();
    assert_eq!((job.nodes, job.gpus_per_node, job.command[0].as_str()), (8, 8, "torchrun"));
    let deadline: jiff::Timestamp = run.spec.deadline.unwrap().parse().unwrap();
    assert!(deadline > jiff::Timestamp::now());
    lines[5] = "  deadline: THEN".to_owned();
    insta::assert_snapshot!(lines.join("\n"));
    let own = "--tokens 300B --deadline 90d --gpu h100 -- python train.py --say \"";
    let own: TrainingRun = serde_saphyr::from_str(&training_run(own).join("\n")).unwrap();
    assert_eq!(own.metadata.name.as_deref(), Some("llama-3-1-8b"));
    assert_eq!(own.spec.job.unwrap().command, ["python", "train.py", "--say", "\""]);
}

#[test]
fn a_training_run_takes_an_image_and_a_command_takes_a_training_run() {
    let refused = |args: &str| {
        let args = format!("flyball plan train --model llama-3.1-8b --tokens 1B --gpus 8 {args}");
        let What::Train(args) = parsed(&args).what else { panic!("not a training") };
        train::outcome(&args, &mut |_| {}).err().unwrap().what
    };
    assert_eq!(refused("--emit trainingrun"), "no image is given");
    let effect = "a command has an effect only with --emit trainingrun";
    assert_eq!(refused("-- python train.py"), effect);
    assert_eq!(refused("--emit -- python train.py"), effect);
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
