//! What is replayed: traffic from files, cut to the wanted part, and worlds made of it.

use std::path::Path;
use std::sync::Arc;

use flyball_core::ids::ModelId;
use flyball_core::snapshot::ScalingBounds;
use flyball_core::units::{Currency, Gpus, Money, Price, Replicas, Timestamp};
use flyball_perf::serving::steady::RequestShape;
use flyball_simulator::fluid::{FluidModel, FluidPool, FluidWorld, Keep};
use flyball_simulator::seconds::Seconds;
use flyball_simulator::traffic::load::{self, LoadedPart, Traffic};
use flyball_simulator::traffic::{FlowLoad, Trace};

use super::args::{Method, ReplayArgs};
use super::capacity::{self, Capacity};
use super::clock::Clock;
use super::words;
use crate::output::{Exit, Failure, FailureCode};

/// The flow is reckoned in steps of this length.
const STEP: Seconds = Seconds(5.0);
/// A client hangs up after so many times the target; those who wait longer have long missed it.
const PATIENCE: f64 = 10.0;
/// A replica starts so quickly on an accelerator of a fixed pool that is idle, if its weights lie
/// on the node: no machine has to come, so half of the cold start is left.
const SWAP_SHARE: f64 = 0.5;
/// Tokens of a request about which nobody says anything.
const TOKENS: (f64, f64) = (1_000.0, 200.0);
/// More requests than this are replayed as a flow unless somebody insists: at some 100,000
/// requests per second and core, with several policies and seeds, it is a matter of seconds.
const SHORT: usize = 200_000;

/// All that a replay needs beside a policy and a seed.
pub(super) struct Ground {
    pub(super) subjects: Vec<Subject>,
    pub(super) clock: Clock,
    /// Length of the replay, warm-up included.
    pub(super) length: Seconds,
    pub(super) usd_per_gpu_hour: Option<f64>,
    pub(super) assumed: Vec<String>,
    /// Seconds that are replayed before scoring begins.
    pub(super) unscored: f64,
    /// Replay only so many seconds of it.
    pub(super) upto: Option<f64>,
    /// Replay single requests through an engine's steps, not a flow.
    pub(super) by_request: bool,
}

/// One model with its traffic.
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) id: ModelId,
    pub(super) traffic: String,
    pub(super) capacity: Capacity,
    /// Mean tokens of prompts and answers.
    pub(super) tokens: (f64, f64),
    /// Its single requests, where the traffic has them.
    pub(super) trace: Option<Arc<Trace>>,
    source: Source,
}

enum Source {
    /// Counted once: a trace is what it is.
    Counted(FlowLoad),
    /// Drawn anew for each seed.
    Rates(flyball_simulator::traffic::TrafficRates, std::ops::Range<usize>),
}

impl Ground {
    /// Models of which more requests miss a target than may, though nobody else is there: whoever chases that buys
    /// replicas for nothing.
    pub(super) fn unreachable(&self, args: &ReplayArgs) -> impl Iterator<Item = String> {
        let beyond = self.subjects.iter().filter(move |one| one.capacity.unavoidable > args.misses);
        beyond.map(|one| {
            format!(
                "{}: {} of the requests miss a target on an idle replica, so that no number of replicas keeps it",
                one.id.name(),
                words::percent(one.capacity.unavoidable)
            )
        })
    }

    pub(super) fn read(args: &ReplayArgs) -> Result<Ground, Failure> {
        let mut assumed = Vec::new();
        let mut subjects = Vec::new();
        let mut clock = Clock::default();
        paired(args)?;
        let catalog = args.catalog.load()?;
        for (index, given) in args.traffic.iter().enumerate() {
            let (loaded, part) = open(given)?;
            let origin = loaded
                .start
                .and_then(|start| jiff::Timestamp::from_microsecond((start * 1e6) as i64).ok());
            // Models share one clock; the first that knows the time sets it.
            clock.origin = clock.origin.or(origin);
            let name = args.model.get(index).cloned();
            let name = name.or(part.model.clone()).unwrap_or_else(|| stem(given));
            let tokens = tokens(&part, args, &mut assumed);
            let capacity =
                match (args.per_replica.get(index).or(args.per_replica.first()), &args.gpu) {
                    (Some(rate), _) => capacity::given(*rate, args, tokens),
                    (None, Some(gpu)) => {
                        let shape = shape(&part, tokens);
                        capacity::predicted(&name, gpu, args, &catalog, shape, &part.traffic)?
                    }
                    (None, None) => return Err(no_capacity(&name)),
                };
            let id = identity(&name, &subjects)?;
            let trace = match &part.traffic {
                Traffic::Trace(trace) => Some(Arc::new(trace.clone())),
                Traffic::Rates(_) => None,
            };
            let source = source(part, &capacity);
            let traffic = without_folder(given);
            subjects.push(Subject { name, id, traffic, capacity, tokens, trace, source });
        }
        if subjects.iter().any(|subject| subject.capacity.weights.is_none()) {
            assumed.push("every request is equal work".to_owned());
        }
        // A snapshot lists its models by name, and policies see them in that order.
        subjects.sort_by(|a, b| a.id.cmp(&b.id));
        let usd = subjects.iter().find_map(|subject| subject.capacity.usd_per_gpu_hour);
        let mut ground = Ground {
            subjects,
            clock,
            length: Seconds::ZERO,
            usd_per_gpu_hour: usd,
            assumed,
            unscored: args.warm_up,
            upto: None,
            by_request: false,
        };
        ground.cut(args)?;
        ground.by_request = ground.method(args)?;
        Ok(ground)
    }

    /// Whether single requests are replayed: as asked, or if it is possible and quick.
    fn method(&self, args: &ReplayArgs) -> Result<bool, Failure> {
        match args.method {
            Method::Auto => Ok(possible(self) && short(self)),
            Method::Rates => Ok(false),
            Method::Requests if possible(self) => Ok(true),
            Method::Requests => {
                Err(Failure::new(Exit::Usage, "single requests cannot be replayed here")
                    .because("that needs traffic with single requests, and --gpu for the engine")
                    .hint("remove --method, or add --gpu h100")
                    .code(FailureCode::ReplicaCapacity))
            }
        }
    }

    /// Keeps what lies between --from and --to.
    fn cut(&mut self, args: &ReplayArgs) -> Result<(), Failure> {
        let steps = self.subjects.iter().map(|subject| subject.source.steps()).max().unwrap_or(0);
        let place = |flag: &str, text: &Option<String>, otherwise: usize| match text {
            None => Ok(otherwise),
            Some(text) => self
                .clock
                .read(text)
                .map(|at| ((at / STEP.get()).round().max(0.0) as usize).min(steps))
                .map_err(|why| {
                    Failure::new(
                        Exit::Usage,
                        format!("{flag} {text} is not a time of this traffic"),
                    )
                    .hint(why)
                }),
        };
        let (from, to) = (place("--from", &args.from, 0)?, place("--to", &args.to, steps)?);
        if from >= to {
            return Err(Failure::new(Exit::Usage, "nothing lies between --from and --to")
                .because(format!("the traffic lasts {}", words_of(steps))));
        }
        for subject in &mut self.subjects {
            subject.source.cut(from, to);
            if let Some(trace) = &mut subject.trace {
                let (from, to) = (STEP * from as f64, STEP * to as f64);
                *trace = Arc::new(part(trace, from, to));
            }
        }
        let offset = jiff::SignedDuration::from_secs_f64(from as f64 * STEP.get());
        self.clock.origin = self.clock.origin.and_then(|origin| origin.checked_add(offset).ok());
        self.length = STEP * (to - from) as f64;
        if args.warm_up >= self.length.get() {
            return Err(Failure::new(Exit::Usage, "nothing is left to score after --warm-up")
                .because(format!("the replayed part lasts {}", words_of(to - from))));
        }
        Ok(())
    }

    /// The world of one seed.
    pub(super) fn world(&self, args: &ReplayArgs, seed: u64, keep: Keep) -> FluidWorld {
        let bounds = ScalingBounds {
            min: Replicas::new(args.min),
            max: Replicas::new(args.max.max(args.min)),
            may_sleep: args.min == 0,
        };
        let model = |subject: &Subject| {
            let mut load = subject.source.load(seed);
            if let Some(upto) = self.upto {
                let steps = (upto / STEP.get()).round() as usize;
                load = load.part(0..steps.min(load.requests.len()));
            }
            let initial = subject.initial(&load).clamp(args.min, args.max.max(args.min));
            FluidModel {
                id: subject.id.clone(),
                per_replica: subject.capacity.per_second,
                pooling: subject.capacity.pooling,
                at_most: subject.capacity.at_most,
                reading_per_million: subject.capacity.reading_per_million,
                first_token: Seconds(subject.capacity.first_token),
                first_token_objective: Seconds(args.ttft.as_secs_f64()),
                between_tokens_objective: Seconds(args.tpot.as_secs_f64()),
                patience: Seconds(PATIENCE * args.ttft.as_secs_f64()),
                service: Seconds(subject.capacity.service),
                tokens: subject.tokens,
                gpus: Gpus::new(args.tensor),
                bounds,
                initial: Replicas::new(initial),
                attainment_per_million: ((1.0 - args.misses) * 1e6).round() as u32,
                load,
            }
        };
        let start = self.clock.origin.map_or(0, |origin| origin.as_millisecond().max(0) as u64);
        FluidWorld {
            start: Timestamp::from_millis(start),
            models: self.subjects.iter().map(model).collect(),
            cold_start: args.cold_start.clone(),
            pool: args.pool.map(|gpus| FluidPool {
                swap: args.cold_start.quantile(0.5) * SWAP_SHARE,
                idle: Seconds(600.0),
                fixed: Some(gpus / args.tensor),
                training: None,
            }),
            price: self.price(),
            unscored: Seconds(self.unscored),
            gaps_are_outages: false,
            seed,
            keep,
        }
    }

    /// How far into its week, from Monday midnight, the replay begins; Monday if nobody knows.
    pub(super) fn since_monday(&self) -> Seconds {
        // 1 January 1970 was a Thursday.
        let since = |origin: jiff::Timestamp| (origin.as_second() + 3 * 86_400).rem_euclid(604_800);
        Seconds(self.clock.origin.map_or(0.0, |origin| since(origin) as f64))
    }

    fn price(&self) -> Option<Price> {
        let micros = (self.usd_per_gpu_hour? * 1e6).round() as i64;
        Price::per_gpu_hour(Money::from_micros(micros, Currency::USD)).ok()
    }
}

impl Subject {
    /// Requests per second of the first so much of the traffic, minute by minute, without gaps.
    pub(super) fn rates(&self, upto: Seconds) -> Vec<(Seconds, f64)> {
        let load = self.source.load(0);
        let masked = load.mask();
        let each = (60.0 / load.step.get()).round().max(1.0) as usize;
        let steps = ((upto.get() / load.step.get()) as usize).min(load.requests.len());
        let minutes = load.requests[..steps].chunks(each).zip(masked.chunks(each)).enumerate();
        minutes
            .filter(|(_, (_, masked))| masked.iter().all(|masked| !masked))
            .map(|(minute, (requests, _))| {
                let sum: f64 = requests.iter().map(|one| f64::from(*one)).sum();
                (Seconds(60.0 * minute as f64), sum / (requests.len() as f64 * load.step.get()))
            })
            .collect()
    }

    /// Replicas that carry the first ten minutes, as whoever ran it before would have had.
    fn initial(&self, load: &FlowLoad) -> u32 {
        let first = &load.work[..load.work.len().min(120)];
        let mean =
            first.iter().map(|work| f64::from(*work)).sum::<f64>() / first.len().max(1) as f64;
        let work = 1.2 * mean / load.step.get() / self.capacity.per_second;
        self.capacity.pooling.replicas(work).ceil().max(1.0) as u32
    }

    /// What each replica carries where there are as many as the traffic needs on the mean, over what one carries alone:
    /// whoever measures a replica before writing an autoscaler measures one of those that run.
    pub(super) fn pooled(&self) -> f64 {
        let load = self.source.load(0);
        let pooling = self.capacity.pooling;
        pooling.each(pooling.replicas(load.mean_rate() / self.capacity.per_second).ceil())
    }
}

impl Source {
    fn steps(&self) -> usize {
        match self {
            Source::Counted(load) => load.requests.len(),
            Source::Rates(_, part) => part.len(),
        }
    }

    fn cut(&mut self, from: usize, to: usize) {
        match self {
            Source::Counted(load) => {
                let end = to.min(load.requests.len());
                *load = load.part(from.min(end)..end);
            }
            Source::Rates(_, part) => {
                let end = to.min(part.end);
                *part = from.min(end)..end;
            }
        }
    }

    fn load(&self, seed: u64) -> FlowLoad {
        match self {
            Source::Counted(load) => load.clone(),
            Source::Rates(rates, part) => {
                FlowLoad::from_rates(rates, STEP, seed).part(part.clone())
            }
        }
    }
}

/// Whether all that is needed is there: single requests of every model, and its engine's steps.
fn possible(ground: &Ground) -> bool {
    ground.subjects.iter().all(|one| one.trace.is_some() && one.capacity.speed.is_some())
}

/// Whether it is also quick.
fn short(ground: &Ground) -> bool {
    let count = |subject: &Subject| subject.trace.as_ref().map_or(0, |trace| trace.requests.len());
    ground.subjects.iter().map(count).sum::<usize>() <= SHORT
}

/// Each traffic has its model, and each model what a replica carries.
fn paired(args: &ReplayArgs) -> Result<(), Failure> {
    let (files, models, rates) = (args.traffic.len(), args.model.len(), args.per_replica.len());
    if models != 0 && models != files {
        return Err(Failure::new(Exit::Usage, "each --traffic needs its own --model")
            .because(format!("there are {files} of --traffic and {models} of --model"))
            .hint("--traffic a.csv --model a --traffic b.csv --model b"));
    }
    if rates > 1 && rates != files {
        return Err(Failure::new(Exit::Usage, "--per-replica is given once, or once per model")
            .because(format!("there are {files} of --traffic and {rates} of --per-replica")));
    }
    Ok(())
}

/// `FILE` or `FILE#NAME`.
fn open(given: &str) -> Result<(load::Loaded, LoadedPart), Failure> {
    let (file, part_name) = match given.rsplit_once('#') {
        Some((file, name)) if !Path::new(given).exists() => (file, Some(name)),
        _ => (given, None),
    };
    let refused = |error: load::LoadError| {
        let place = match error.line {
            Some(line) => format!("{} line {line}", error.file),
            None => error.file.clone(),
        };
        Failure::new(Exit::Unknown, "the traffic cannot be read")
            .at(place)
            .because(format!("{}; {}", error.what, error.hint))
            .hint("flyball explain FLY-711 shows the forms that are read")
            .code(FailureCode::Traffic)
    };
    let loaded = load::open(Path::new(file)).map_err(refused)?;
    let part = loaded.part(part_name).map_err(refused)?.clone();
    Ok((loaded, part))
}

/// Mean tokens of prompts and answers: from the traffic, from the flags, or assumed.
fn tokens(part: &LoadedPart, args: &ReplayArgs, assumed: &mut Vec<String>) -> (f64, f64) {
    let seen = match (&part.traffic, &part.lengths) {
        (Traffic::Trace(trace), _) if !trace.requests.is_empty() => {
            let count = trace.requests.len() as f64;
            let sum = |of: fn(&flyball_simulator::traffic::Request) -> u32| {
                trace.requests.iter().map(|request| f64::from(of(request))).sum::<f64>() / count
            };
            Some((sum(|request| request.prompt), sum(|request| request.output)))
        }
        (_, Some(lengths)) => Some(lengths.means()),
        _ => None,
    };
    let given = args.input.zip(args.output);
    match given.or(seen.filter(|(prompt, output)| *prompt >= 1.0 && *output >= 1.0)) {
        Some(tokens) => tokens,
        None => {
            let words = format!("{} tokens in, {} out", TOKENS.0, TOKENS.1);
            if !assumed.contains(&words) {
                assumed.push(words);
            }
            TOKENS
        }
    }
}

/// What requests look like, for the prediction.
fn shape(part: &LoadedPart, (input, output): (f64, f64)) -> RequestShape {
    let p95 = match (&part.traffic, &part.lengths) {
        (Traffic::Trace(trace), _) if !trace.requests.is_empty() => prompt_p95(trace),
        (_, Some(lengths)) => lengths.quantiles(0.95).0,
        // As `plan` assumes it of requests of which only the mean is known.
        _ => 2.5 * input,
    };
    RequestShape { input, output, input_variation: 1.0, input_p95: (p95 / input).max(1.0) }
}

fn prompt_p95(trace: &Trace) -> f64 {
    let mut prompts: Vec<u32> = trace.requests.iter().map(|request| request.prompt).collect();
    prompts.sort_unstable();
    f64::from(prompts[(prompts.len() - 1) * 95 / 100])
}

fn source(part: LoadedPart, capacity: &Capacity) -> Source {
    match part.traffic {
        Traffic::Trace(trace) => {
            let (prompt, output) = capacity.weights.unwrap_or((0.0, 0.0));
            let cost = |tokens_in: u32, tokens_out: u32| match capacity.weights {
                Some(_) => prompt * f64::from(tokens_in) + output * f64::from(tokens_out),
                None => 1.0,
            };
            Source::Counted(FlowLoad::from_trace(&trace, STEP, cost))
        }
        Traffic::Rates(rates) => {
            let per_window = (rates.window.get() / STEP.get()).round().max(1.0) as usize;
            let steps = rates.windows() * per_window;
            Source::Rates(rates, 0..steps)
        }
    }
}

/// A name that Kubernetes would take, and that no other model has.
fn identity(name: &str, others: &[Subject]) -> Result<ModelId, Failure> {
    let last = name.trim_end_matches('/').rsplit('/').next().unwrap_or(name);
    let plain: String = last
        .to_ascii_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let plain = plain.trim_matches('-');
    let plain = if plain.is_empty() { "model" } else { plain };
    let mut tried = plain.to_owned();
    let mut number = 2;
    loop {
        let id = ModelId::new("backtest", &tried).map_err(|error| {
            Failure::new(Exit::Usage, format!("{name:?} is no name for a model"))
                .because(error.to_string())
        })?;
        if others.iter().all(|other| other.id != id) {
            return Ok(id);
        }
        tried = format!("{plain}-{number}");
        number += 1;
    }
}

/// The requests between two moments, counted from the first.
fn part(trace: &Trace, from: Seconds, to: Seconds) -> Trace {
    let requests = trace.requests.iter().filter(|one| one.at >= from && one.at < to);
    let gaps = trace.gaps.iter().filter(|gap| gap.end > from && gap.start < to);
    Trace {
        requests: requests
            .cloned()
            .map(|mut one| {
                one.at = one.at - from;
                one
            })
            .collect(),
        blocks: trace.blocks.clone(),
        block_tokens: trace.block_tokens,
        gaps: gaps
            .map(|gap| (gap.start - from).max(Seconds::ZERO)..gap.end.min(to) - from)
            .collect(),
    }
}

fn no_capacity(model: &str) -> Failure {
    Failure::new(Exit::Usage, format!("the capacity of a replica of {model} is unknown"))
        .hint("add --per-replica 1.4rps if you measured it, or --gpu h100 --tp 4 to predict it")
        .code(FailureCode::ReplicaCapacity)
}

/// The file alone: whole paths differ from machine to machine.
fn without_folder(given: &str) -> String {
    let (file, part) = given.split_once('#').unwrap_or((given, ""));
    let file = Path::new(file).file_name().map_or(file.into(), |name| name.to_string_lossy());
    if part.is_empty() { file.into_owned() } else { format!("{file}#{part}") }
}

fn stem(file: &str) -> String {
    let stem = Path::new(file).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    stem.unwrap_or_else(|| "model".to_owned())
}

fn words_of(steps: usize) -> String {
    super::words::span(steps as f64 * STEP.get())
}

#[cfg(test)]
#[test]
fn a_part_of_a_trace_begins_at_zero() {
    use flyball_simulator::traffic::Request;
    let one = |at| Request { at: Seconds(at), prompt: 1, output: 1, blocks: 0..0, patience: None };
    let trace = Trace {
        requests: [0.0, 10.0, 20.0, 30.0].map(one).to_vec(),
        gaps: std::iter::once(Seconds(5.0)..Seconds(15.0)).collect(),
        ..Trace::default()
    };
    let cut = part(&trace, Seconds(10.0), Seconds(30.0));
    assert_eq!(cut.requests, [one(0.0), one(10.0)]);
    assert_eq!(cut.gaps.first(), Some(&(Seconds(0.0)..Seconds(5.0))));
}
