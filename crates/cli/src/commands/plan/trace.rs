//! What a trace says about the load: how often, how long, how bursty.
//!
//! Files are read as everywhere else (`flyball trace`), gzipped or not. A plan needs only a few numbers of them:
//! replaying them request by request is what `backtest` is for.

use std::path::Path;

use flyball_simulator::traffic::load::{Loaded, Traffic};

use crate::commands::trace;
use crate::output::{Exit, Failure, FailureCode};

/// What a plan needs to know of a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Load {
    pub(crate) requests: usize,
    /// Requests per second over the whole trace.
    pub(crate) mean_rate: f64,
    /// Requests per second in the minute that 95 % of the minutes stay below.
    pub(crate) peak_rate: f64,
    pub(crate) input_mean: f64,
    pub(crate) output_mean: f64,
    /// Squared coefficient of variation of the prompt length.
    pub(crate) input_variation: f64,
    /// 95th percentile of the prompt length over its mean.
    pub(crate) input_p95: f64,
}

struct Request {
    seconds: f64,
    input: f64,
    output: f64,
}

/// Reads a trace, or says which line is wrong.
pub(super) fn read(file: &Path) -> Result<Load, Failure> {
    let load = summary(requests(&trace::load(file)?));
    load.map_err(|(why, hint)| {
        Failure::new(Exit::Usage, "the trace has too little data to plan with")
            .at(file.display().to_string())
            .because(why)
            .hint(hint)
            .code(FailureCode::Trace)
    })
}

/// The requests of all models together.
fn requests(loaded: &Loaded) -> Vec<Request> {
    let traces = loaded.parts.iter().filter_map(|part| match &part.traffic {
        Traffic::Trace(trace) => Some(trace),
        Traffic::Rates(_) => None,
    });
    let requests = traces.flat_map(|trace| &trace.requests).map(|one| Request {
        seconds: one.at.get(),
        input: f64::from(one.prompt),
        output: f64::from(one.output),
    });
    requests.collect()
}

fn summary(mut requests: Vec<Request>) -> Result<Load, (&'static str, &'static str)> {
    match requests.len() {
        0 => {
            return Err(("it has rates, not requests", "set --rate, --input and --output instead"));
        }
        1 => return Err(("it has one request", "set --rate, --input and --output instead")),
        _ => {}
    }
    requests.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let count = requests.len() as f64;
    let begin = requests[0].seconds;
    let length = (requests[requests.len() - 1].seconds - begin).max(1e-3);
    let mean_of = |of: fn(&Request) -> f64| requests.iter().map(of).sum::<f64>() / count;
    let input_mean = mean_of(|one| one.input).max(1.0);
    let spread = requests.iter().map(|one| (one.input - input_mean).powi(2)).sum::<f64>() / count;
    let mut inputs: Vec<f64> = requests.iter().map(|one| one.input).collect();
    Ok(Load {
        requests: requests.len(),
        mean_rate: count / length,
        peak_rate: busy_minute(&requests, begin, length).max(count / length),
        input_mean,
        output_mean: mean_of(|one| one.output).max(1.0),
        input_variation: spread / (input_mean * input_mean),
        input_p95: (p95(&mut inputs) / input_mean).max(1.0),
    })
}

/// The 95th percentile over minutes of the rate in a minute. The last, partial one is left out.
fn busy_minute(requests: &[Request], begin: f64, length: f64) -> f64 {
    let whole = (length / 60.0) as usize;
    if whole == 0 {
        return 0.0;
    }
    let mut minutes = vec![0.0; whole];
    for one in requests {
        let minute = ((one.seconds - begin) / 60.0) as usize;
        if let Some(count) = minutes.get_mut(minute) {
            *count += 1.0 / 60.0;
        }
    }
    p95(&mut minutes)
}

fn p95(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * 0.95).round() as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use flyball_simulator::traffic::load;

    fn read(text: &str) -> Load {
        summary(requests(&load::read("trace", text.as_bytes()).unwrap())).unwrap()
    }

    #[test]
    fn every_form_that_trace_writes_and_reads_can_be_planned_with() {
        let azure = read(
            "TIMESTAMP,ContextTokens,GeneratedTokens\n\
             2023-11-16 18:15:46.6805900,100,10\n\
             2023-11-16 18:15:48.6805900,300,30\n",
        );
        assert_eq!((azure.requests, azure.input_mean, azure.output_mean), (2, 200.0, 20.0));
        assert!((azure.mean_rate - 1.0).abs() < 1e-6, "{azure:?}");
        assert!((azure.input_variation - 0.25).abs() < 1e-9);
        let converted = read("time,prompt_tokens,output_tokens\n0.5,100,10\n2.5,300,30\n");
        assert_eq!(
            Load { mean_rate: 1.0, peak_rate: 1.0, ..converted },
            Load { mean_rate: 1.0, peak_rate: 1.0, ..azure }
        );
        let mooncake = read(
            "{\"timestamp\": 0, \"input_length\": 600, \"output_length\": 50, \"hash_ids\": [1, 2]}\n\
             {\"timestamp\": 500, \"input_length\": 600, \"output_length\": 50, \"hash_ids\": [1, 3]}\n",
        );
        assert!((mooncake.mean_rate - 4.0).abs() < 1e-9);
        assert_eq!(mooncake.input_p95, 1.0);
    }

    #[test]
    fn the_busy_minute_counts_and_not_the_mean() {
        let mut text = "time,input,output\n".to_owned();
        for second in 0..600 {
            let times = if second / 60 == 3 { 10 } else { 1 };
            text.push_str(&format!("{second},10,10\n").repeat(times));
        }
        let load = read(&text);
        assert!(load.peak_rate > 9.0 && load.mean_rate < 2.0, "{load:?}");
    }

    #[test]
    fn one_request_is_no_load() {
        let one = load::read("trace", b"time,input,output\n1,2,3\n").unwrap();
        assert_eq!(summary(requests(&one)).unwrap_err().0, "it has one request");
        assert_eq!(summary(Vec::new()).unwrap_err().0, "it has rates, not requests");
    }
}
