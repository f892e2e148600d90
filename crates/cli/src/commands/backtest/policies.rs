//! Policies by what people type: a name, a name with a number, or a file.

use std::path::Path;

use flyball_governor::policy::{Law, ModelPolicy};
use flyball_simulator::policies::Governor;
use flyball_simulator::policy::ScalingPolicy;
use flyball_simulator::rivals::{self, NAMES, RivalError, RivalFacts, RivalFleet, RivalSettings};
use flyball_simulator::seconds::Seconds;
use flyball_tuner::Tuned;

use super::args::ReplayArgs;
use super::ground::{Ground, Subject};
use crate::output::{Exit, Failure, FailureCode};

/// A policy that can be made afresh for each replay: policies remember.
#[derive(Clone, Debug)]
pub(in crate::commands) struct Named {
    /// As it was typed; a file without its folder.
    pub(in crate::commands) name: String,
    maker: Maker,
    /// What its file says that changes nothing in a replay.
    pub(in crate::commands) notes: Vec<String>,
}

#[derive(Clone, Debug)]
enum Maker {
    /// Ours as it runs: it finds its settings itself.
    Governor,
    /// Ours without its tuner, with a miss taken so many times as dear.
    Untuned(f64),
    /// One law per model.
    Rival(Vec<RivalSettings>),
}

/// A model that policies scale, as they are told of it.
#[derive(Clone, Debug)]
pub(in crate::commands) struct Scaled {
    /// As people call it.
    pub(in crate::commands) name: String,
    /// The name of its workload.
    pub(in crate::commands) workload: String,
    pub(in crate::commands) facts: RivalFacts,
}

impl Named {
    /// Reads what was typed after --policy.
    pub(in crate::commands) fn read(typed: &str, models: &[Scaled]) -> Result<Named, Failure> {
        if Path::new(typed).extension().is_some_and(|end| end == "yaml" || end == "yml") {
            return from_file(typed, models);
        }
        if typed == "governor" {
            return Ok(Named::of(typed, Maker::Governor));
        }
        if let Some(text) = typed.strip_prefix("governor@") {
            let care = text.parse().ok().filter(|care: &f64| *care > 0.0 && care.is_finite());
            let refused = || refused(typed, &RivalError::NotANumber(text.to_owned()));
            return Ok(Named::of(typed, Maker::Untuned(care.ok_or_else(refused)?)));
        }
        let settings = models.iter().map(|model| rivals::named(typed, &model.facts));
        let settings: Result<Vec<RivalSettings>, Failure> =
            settings.map(|one| one.map_err(|why| refused(typed, &why))).collect();
        Ok(Named::of(typed, Maker::Rival(settings?)))
    }

    /// One setting for every model, as `tune` tries it.
    pub(in crate::commands) fn rival(name: String, settings: Vec<RivalSettings>) -> Named {
        Named { name, maker: Maker::Rival(settings), notes: Vec::new() }
    }

    fn of(name: &str, maker: Maker) -> Named {
        Named { name: name.to_owned(), maker, notes: Vec::new() }
    }

    pub(in crate::commands) fn is_governor(&self) -> bool {
        matches!(self.maker, Maker::Governor)
    }

    pub(in crate::commands) fn make(&self) -> Box<dyn ScalingPolicy> {
        match &self.maker {
            Maker::Governor => Box::new(Tuned::new(flyball_governor::Policy::default())),
            Maker::Untuned(care) => {
                let default =
                    ModelPolicy { law: Law::Forecast { care: *care }, ..ModelPolicy::default() };
                let policy = flyball_governor::Policy { default, ..Default::default() };
                Box::new(Governor::new(policy).named(&self.name))
            }
            Maker::Rival(settings) => {
                let laws = settings.iter().map(RivalSettings::law).collect();
                Box::new(RivalFleet::new(self.name.clone(), laws))
            }
        }
    }
}

/// All policies that were typed, each once.
pub(in crate::commands) fn all(typed: &[String], models: &[Scaled]) -> Result<Vec<Named>, Failure> {
    let mut policies: Vec<Named> = Vec::new();
    for one in typed {
        let policy = Named::read(one, models)?;
        if policies.iter().all(|known| known.name != policy.name) {
            policies.push(policy);
        }
    }
    Ok(policies)
}

/// Says which of them are settings that people copy, and not the best that is known of their kind.
pub(super) fn copied(policies: &[Named]) -> Option<String> {
    let names: Vec<&str> = policies.iter().map(|policy| policy.name.as_str()).collect();
    let copied: Vec<&str> = ["hpa", "keda"].into_iter().filter(|one| names.contains(one)).collect();
    let verb = if copied.len() == 1 { "scales" } else { "scale" };
    (!copied.is_empty()).then(|| {
        format!(
            "{} {verb} on 5 waiting requests, the target that tutorials copy",
            copied.join(" and ")
        )
    })
}

/// The models of a replay.
pub(super) fn scaled(ground: &Ground, args: &ReplayArgs) -> Vec<Scaled> {
    let one = |subject: &Subject| Scaled {
        name: subject.name.clone(),
        workload: subject.id.name().to_string(),
        facts: facts(subject, ground, args),
    };
    ground.subjects.iter().map(one).collect()
}

/// What whoever set up the rival would have known: the model, and the warm-up as its past.
pub(super) fn facts(subject: &Subject, ground: &Ground, args: &ReplayArgs) -> RivalFacts {
    let (capacity, pooled) = (&subject.capacity, subject.pooled());
    let facts = RivalFacts {
        replica_per_second: pooled * capacity.per_second,
        prompt_tokens_per_second: pooled * capacity.prompt_tokens_per_second,
        prompt_tokens: subject.tokens.0,
        max_running: pooled * capacity.running,
        first_token: Seconds(args.ttft.as_secs_f64()),
        between_tokens: Seconds(args.tpot.as_secs_f64()),
        cold_start: args.cold_start.quantile(0.5),
        min: args.min,
        max: args.max.max(args.min),
        peak_per_second: None,
        week: Vec::new(),
        starts_at: ground.since_monday(),
    };
    match ground.unscored > 0.0 {
        true => facts.with_week(&subject.rates(Seconds(ground.unscored))),
        // Without a past, "static" is told the largest minute of what comes.
        false => {
            let all = subject.rates(ground.length);
            let peak = all.iter().map(|(_, rate)| *rate).max_by(f64::total_cmp);
            RivalFacts { peak_per_second: peak, ..facts }
        }
    }
}

/// A file of HorizontalPodAutoscalers and ScaledObjects: one for all models, or each model's own.
fn from_file(file: &str, models: &[Scaled]) -> Result<Named, Failure> {
    let wrong = |what: &str| Failure::new(Exit::Usage, what).at(file).code(FailureCode::Policy);
    let text = std::fs::read_to_string(file).map_err(|error| {
        wrong("the policy cannot be read")
            .because(error.to_string())
            .hint("kubectl get hpa,scaledobject -o yaml > hpa.yaml writes such a file")
    })?;
    let all = rivals::yaml::read(&text).map_err(|rivals::yaml::PolicyFileProblems(problems)| {
        wrong("the policy cannot be replayed")
            .problems(problems)
            .hint("flyball explain FLY-712 lists what is supported")
    })?;
    let mut settings = Vec::new();
    for model in models {
        let own = all.iter().find(|one| {
            let target = one.target.rsplit('/').next().unwrap_or_default();
            target == model.workload || target == model.name
        });
        let only = all.first().filter(|_| all.len() == 1);
        let Some(one) = own.or(only) else {
            let targets: Vec<&str> = all.iter().map(|one| one.target.as_str()).collect();
            return Err(wrong("several policies, and none is for this model")
                .because(format!("{} is none of {}", model.name, targets.join(", ")))
                .hint("set --model to the name of the workload that the policy scales"));
        };
        settings.push(one.clone().starting_at(model.facts.starts_at).settings);
    }
    let name = Path::new(file).file_name().map_or(file.into(), |name| name.to_string_lossy());
    let notes = all.iter().flat_map(|one| &one.notes).map(|note| format!("{name}: {note}"));
    let notes = notes.collect();
    Ok(Named { name: name.into_owned(), maker: Maker::Rival(settings), notes })
}

fn refused(typed: &str, why: &RivalError) -> Failure {
    let failure = |what: String| Failure::new(Exit::Usage, what).code(FailureCode::Policy);
    match why {
        RivalError::Unknown(name) => {
            let names = NAMES.iter().copied().chain(["governor"]);
            let near = names
                .map(|known| (strsim::jaro_winkler(known, name), known))
                .max_by(|a, b| a.0.total_cmp(&b.0))
                // Below this the names have so little in common that a guess would only distract.
                .filter(|(likeness, _)| *likeness > 0.75);
            let failure = failure(format!("there is no policy `{typed}`"));
            match near {
                Some((_, near)) => failure.hint(format!("did you mean: --policy {near}")),
                None => failure.hint("flyball explain FLY-712 lists them"),
            }
        }
        RivalError::NotANumber(number) => failure(format!("`{number}` is not a number above zero"))
            .at(format!("--policy {typed}"))
            .hint("--policy static@8 has a number after the @"),
        RivalError::NeedsWeek(name) => failure(format!("`{name}` has no past to learn from"))
            .hint("flyball backtest --warm-up 7d replays a past that it learns from"),
    }
}
