//! Does the emulator keep the simulator's times? The same requests go to emulated engines over HTTP
//! and to the simulator's engine in virtual time; the difference is printed as JSON.
//!
//! `cargo run --release -p flyball-emulator --example agreement -- --trace FILE` takes the first
//! minutes of a trace; without one, arrivals are drawn from a seed. Threads and not a runtime send
//! the requests, because timers of the runtime are late by up to a millisecond.

use clap::Parser;
use flyball_core::quantile::nearest_rank;
use flyball_emulator::prompt::{BYTES_PER_TOKEN, Prompt, Reader};
use flyball_emulator::speed::{EmulatorLimits, Parts, predicted};
use flyball_emulator::{Emulator, EmulatorSettings};
use flyball_perf::architecture::Architecture;
use flyball_perf::catalog::Catalog;
use flyball_perf::models;
use flyball_perf::precision::Dtype;
use flyball_simulator::chance::{self, Purpose};
use flyball_simulator::cluster::Speed;
use flyball_simulator::engine::{Arrival, Pace, SimulatedEngine, What};
use flyball_simulator::seconds::Seconds;
use flyball_simulator::traffic::load::{self, Traffic};
use rand::RngExt;
use serde_json::{Value, json};
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Threads are started so long before their request is due.
const AHEAD: Duration = Duration::from_millis(200);

#[derive(Parser)]
struct Args {
    /// Requests; drawn from a seed if not set
    #[arg(long)]
    trace: Option<PathBuf>,
    /// Minutes of it
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// How many times as dense the requests come
    #[arg(long, default_value_t = 4.0)]
    compress: f64,
    /// Engines, which take turns
    #[arg(long, default_value_t = 4)]
    engines: usize,
    /// How many times as fast as in reality the engines run
    #[arg(long, default_value_t = 1.0)]
    speed_up: f64,
    #[arg(long, default_value = "llama-3.1-8b")]
    model: String,
    #[arg(long, default_value = "h100-sxm-80gb")]
    gpu: String,
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// One request.
struct Ask {
    /// Seconds of the engines' clock from the start.
    at: f64,
    text: String,
    prompt: Prompt,
    output: u32,
}

/// When its first and its last token came, in seconds from the planned arrival.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    first: f64,
    last: f64,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let speed = speed(&args)?;
    let asks = asks(&args, speed.settings.block_tokens)?;
    let simulated = simulate(&asks, &speed, args.engines)?;
    let measured = measure(&asks, &speed, &args)?;
    let report = report(&asks, &simulated, &measured);
    writeln!(std::io::stdout(), "{report:#}")?;
    Ok(())
}

fn speed(args: &Args) -> Result<Speed> {
    let config = models::config(&args.model).ok_or("no such model")?;
    let model = Architecture::from_config(&config)?;
    let catalog = Catalog::builtin();
    let accelerator = catalog.accelerator(&args.gpu)?;
    let parts = Parts { model: &model, cache: Dtype::Bf16, accelerator, tensor: 1 };
    let limits = EmulatorLimits { max_running: 256, step_tokens: 8192, cache_tokens: None };
    Ok(predicted(&parts, &limits)?)
}

/// The requests, as text and as the engine sees them.
fn asks(args: &Args, block_tokens: u32) -> Result<Vec<Ask>> {
    let until = args.minutes * 60.0;
    let mut asks = Vec::new();
    let mut add = |at: f64, tokens: u32, output: u32, names: &[u64], name_tokens: u32| {
        let text = text(asks.len(), tokens as usize * BYTES_PER_TOKEN, names, name_tokens);
        let mut reader = Reader::new(block_tokens, "");
        reader.push(text.as_bytes());
        let at = at / args.compress;
        asks.push(Ask { at, text, prompt: reader.finish(), output: output.max(2) });
    };
    if let Some(path) = &args.trace {
        let loaded = load::open(path)?;
        let part = loaded.parts.into_iter().next().ok_or("an empty trace")?;
        let Traffic::Trace(trace) = part.traffic else {
            return Err("rates and no requests".into());
        };
        for one in trace.requests.iter().take_while(|one| one.at.get() < until) {
            add(one.at.get(), one.prompt, one.output, trace.blocks_of(one), trace.block_tokens);
        }
    } else {
        let mut chance = chance::stream(args.seed, Purpose::Arrivals, 0);
        let mut at = 0.0;
        while at < until {
            // As many per second, and as long on average, as in Azure's conversations of 2023.
            add(at, chance.random_range(100..2200), chance.random_range(20..400), &[], 0);
            at -= chance.random_range(1e-9..1.0_f64).ln() / 5.5;
        }
    }
    Ok(asks)
}

/// A prompt of so many bytes. Blocks of the same name are the same bytes; the rest is its own.
fn text(index: usize, bytes: usize, names: &[u64], name_tokens: u32) -> String {
    let mut text = String::with_capacity(bytes + 32);
    for name in names {
        let end = (text.len() + name_tokens as usize * BYTES_PER_TOKEN).min(bytes);
        while text.len() < end {
            text.push_str(&format!("{name:016x}"));
        }
        text.truncate(end);
    }
    while text.len() < bytes {
        text.push_str(&format!("own {index:012}"));
    }
    text.truncate(bytes);
    text
}

/// The simulator alone.
fn simulate(asks: &[Ask], speed: &Speed, engines: usize) -> Result<Vec<Times>> {
    let mut times = vec![Times::default(); asks.len()];
    for turn in 0..engines {
        let mut engine = SimulatedEngine::new(speed.settings, speed.step.clone(), Pace::Skipping);
        let mut note = |event: flyball_simulator::engine::Event| {
            let index = event.id as usize;
            let since = event.at.get() - asks[index].at;
            match event.what {
                What::FirstToken => times[index].first = since,
                What::Finished => times[index].last = since,
                _ => {}
            }
        };
        for (index, ask) in asks.iter().enumerate().skip(turn).step_by(engines) {
            let at = Seconds(ask.at);
            engine.advance(at, &mut note);
            let Prompt { tokens: prompt, names, .. } = &ask.prompt;
            let name_tokens = speed.settings.block_tokens;
            let arrival = Arrival { at, prompt: *prompt, output: ask.output, names, name_tokens };
            engine.submit(index as u64, &arrival)?;
        }
        engine.advance(Seconds(f64::INFINITY), &mut note);
    }
    Ok(times)
}

/// The emulator over HTTP.
fn measure(asks: &[Ask], speed: &Speed, args: &Args) -> Result<Vec<Option<Times>>> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let (speed, speed_up, engines) = (speed.clone(), args.speed_up, args.engines);
    let server = thread::spawn(move || -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let one = || {
                Emulator::start(EmulatorSettings {
                    speed_up,
                    ..EmulatorSettings::new(speed.clone())
                })
            };
            let running =
                (0..engines).map(|_| one()).collect::<std::result::Result<Vec<_>, _>>()?;
            sender.send(running.iter().map(|one| one.address).collect::<Vec<_>>())?;
            // It ends when the sender is dropped.
            let _ = ended.await;
            Ok(())
        })
    });
    let addresses = receiver.recv()?;
    let start = Instant::now() + AHEAD;
    let times = thread::scope(|scope| {
        let mut threads = Vec::new();
        for (ask, address) in asks.iter().zip(addresses.iter().cycle()) {
            let due = start + Duration::from_secs_f64(ask.at / speed_up);
            let early = due.checked_sub(AHEAD).unwrap_or(start);
            thread::sleep(early.saturating_duration_since(Instant::now()));
            let small = thread::Builder::new().stack_size(128 << 10);
            threads.push(small.spawn_scoped(scope, move || send(ask, *address, due, speed_up)));
        }
        let join = |thread: std::io::Result<thread::ScopedJoinHandle<'_, Result<Times>>>| {
            thread.ok()?.join().ok()?.ok()
        };
        threads.into_iter().map(join).collect()
    });
    drop(end);
    server.join().map_err(|_| "the emulator panicked")??;
    Ok(times)
}

/// Sends one request when it is due, and reads its stream.
fn send(ask: &Ask, to: SocketAddr, due: Instant, speed_up: f64) -> Result<Times> {
    let body = json!({"model": "emulated", "prompt": ask.text, "max_tokens": ask.output,
                      "stream": true})
    .to_string();
    let mut stream = TcpStream::connect(to)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(120)))?;
    let head = "POST /v1/completions HTTP/1.1\r\nhost: emulator\r\nconnection: close";
    let request = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    thread::sleep(due.saturating_duration_since(Instant::now()));
    stream.write_all(request.as_bytes())?;
    let (mut first, mut last, mut events) = (due, due, 0);
    for line in BufReader::new(stream).lines() {
        let line = line?;
        if line.starts_with("data: {") {
            last = Instant::now();
            first = if events == 0 { last } else { first };
            events += 1;
        }
    }
    // One more than tokens: the reason of the end.
    if events != ask.output + 1 {
        return Err(format!("{events} events of {} tokens", ask.output).into());
    }
    let since = |then: Instant| then.saturating_duration_since(due).as_secs_f64() * speed_up;
    Ok(Times { first: since(first), last: since(last) })
}

/// What is compared: the worst of these is the figure.
const HEADLINES: [(&str, &str); 5] =
    [("ttft", "mean"), ("ttft", "p50"), ("ttft", "p90"), ("itl", "mean"), ("itl", "p50")];

fn report(asks: &[Ask], simulated: &[Times], measured: &[Option<Times>]) -> Value {
    let pairs = || {
        let all = asks.iter().zip(simulated).zip(measured);
        all.filter_map(|((ask, simulated), measured)| measured.map(|m| (ask, *simulated, m)))
    };
    let compare = |of: &dyn Fn(&Ask, Times) -> f64| {
        let (a, b): (Vec<f64>, Vec<f64>) = pairs().map(|(k, s, m)| (of(k, s), of(k, m))).unzip();
        let each = a.iter().zip(&b).map(|(a, b)| 100.0 * (b / a - 1.0).abs()).collect();
        let (simulator, emulator) = (spread(a), spread(b));
        let percent = |name: &str| {
            let of = |value: &Value| value[name].as_f64().unwrap_or(f64::NAN);
            100.0 * (of(&emulator) / of(&simulator) - 1.0)
        };
        let names = ["mean", "p50", "p90", "p99"];
        let apart: serde_json::Map<String, Value> =
            names.iter().map(|name| ((*name).to_owned(), json!(percent(name)))).collect();
        json!({"simulator_seconds": simulator, "emulator_seconds": emulator,
               "apart_pct": apart, "each_request_apart_pct": spread(each)})
    };
    let ttft = compare(&|_, times| times.first);
    let itl = compare(&|ask, times| (times.last - times.first) / f64::from(ask.output - 1));
    let mut report = json!({"requests": asks.len(), "failed": asks.len() - pairs().count(),
                            "ttft": ttft, "itl": itl});
    let apart = |report: &Value, quantity: &str, name: &str| {
        report[quantity]["apart_pct"][name].as_f64().map_or(f64::NAN, f64::abs)
    };
    let worst = HEADLINES.iter().map(|(q, name)| apart(&report, q, name)).fold(0.0, f64::max);
    report["vs_simulator_pct"] = json!(worst);
    report
}

fn spread(mut values: Vec<f64>) -> Value {
    values.sort_by(f64::total_cmp);
    let at = |share| nearest_rank(&values, share);
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    json!({"mean": mean, "p50": at(0.5), "p90": at(0.9), "p99": at(0.99)})
}
