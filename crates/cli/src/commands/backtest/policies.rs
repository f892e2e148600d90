//! Policies by what people type: a name, a name with a number, or a file.

use std::path::Path;

use flyball_simulator::policy::Policy;
use flyball_simulator::rivals::{self, Facts, Fleet, Settings};
use flyball_simulator::seconds::Seconds;

use super::args::ReplayArgs;
use super::ground::{Ground, Subject};
use crate::output::{Exit, Failure, FailureCode};

/// A policy that can be made afresh for each replay: policies remember.
#[derive(Clone, Debug)]
pub(super) struct Named {
    /// As it was typed; a file without its folder.
    pub(super) name: String,
    maker: Maker,
}

#[derive(Clone, Debug)]
enum Maker {
    /// One law per model.
    Rival(Vec<Settings>),
}

impl Named {
    /// Reads what was typed after --policy.
    pub(super) fn read(typed: &str, ground: &Ground, args: &ReplayArgs) -> Result<Named, Failure> {
        if Path::new(typed).extension().is_some_and(|end| end == "yaml" || end == "yml") {
            return from_file(typed);
        }
        if typed == "governor" {
            return Err(Failure::new(Exit::Usage, "the governor cannot be replayed yet")
                .hint("name a rival with --policy, such as hpa, keda or static")
                .code(FailureCode::Policy));
        }
        let settings: Result<Vec<Settings>, Failure> = ground
            .subjects
            .iter()
            .map(|subject| {
                rivals::named(typed, &facts(subject, ground, args))
                    .map_err(|why| refused(typed, &why))
            })
            .collect();
        Ok(Named { name: typed.to_owned(), maker: Maker::Rival(settings?) })
    }

    /// One setting for every model, as `tune` tries it.
    pub(super) fn rival(name: String, settings: Vec<Settings>) -> Named {
        Named { name, maker: Maker::Rival(settings) }
    }

    pub(super) fn make(&self) -> Box<dyn Policy> {
        match &self.maker {
            Maker::Rival(settings) => {
                let laws = settings.iter().map(Settings::law).collect();
                Box::new(Fleet::new(self.name.clone(), laws))
            }
        }
    }
}

/// What whoever set up the rival would have known: the model, and the warm-up as its past.
pub(super) fn facts(subject: &Subject, ground: &Ground, args: &ReplayArgs) -> Facts {
    let capacity = &subject.capacity;
    let facts = Facts {
        replica_per_second: capacity.per_second,
        prompt_tokens_per_second: capacity.prompt_tokens_per_second,
        prompt_tokens: subject.tokens.0,
        max_running: capacity.running,
        first_token: Seconds(args.ttft.as_secs_f64()),
        between_tokens: Seconds(args.tpot.as_secs_f64()),
        cold_start: args.cold_start.quantile(0.5),
        min: args.min,
        max: args.max.max(args.min),
        peak_per_second: None,
        week: Vec::new(),
        starts_at: ground.into_week(),
    };
    match args.warm_up > 0.0 {
        true => facts.with_week(&subject.rates(Seconds(args.warm_up))),
        // Without a past, "static" is told the largest minute of what comes.
        false => {
            let all = subject.rates(ground.length);
            let peak = all.iter().map(|(_, rate)| *rate).max_by(f64::total_cmp);
            Facts { peak_per_second: peak, ..facts }
        }
    }
}

fn from_file(file: &str) -> Result<Named, Failure> {
    Err(Failure::new(Exit::Usage, "policies from files are not read yet")
        .at(file)
        .code(FailureCode::Policy))
}

fn refused(typed: &str, why: &rivals::Refused) -> Failure {
    let why = why.to_string();
    let (because, hint) = match why.split_once("; hint: ") {
        Some((because, hint)) => (because.to_owned(), hint.to_owned()),
        None => (why, "flyball explain FLY-712 lists the policies".to_owned()),
    };
    Failure::new(Exit::Usage, format!("there is no policy `{typed}`"))
        .because(because)
        .hint(hint)
        .code(FailureCode::Policy)
}
