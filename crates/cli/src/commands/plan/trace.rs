//! What a trace says about the load: how often, how long, how bursty.
//!
//! Two forms are read. A CSV file whose header names a time and two token columns (the Azure LLM
//! traces fit), and JSON lines with `timestamp` in milliseconds, `input_length` and
//! `output_length` (the Mooncake traces). A plan needs only a few numbers of it: replaying it
//! request by request is what `backtest` is for.

use std::io::BufRead;

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
pub(crate) fn read(mut text: impl BufRead) -> Result<Load, String> {
    let begin = text.fill_buf().map_err(|error| format!("line 1: {error}"))?;
    // Spreadsheets put a byte order mark before the first letter.
    if begin.starts_with("\u{feff}".as_bytes()) {
        text.consume("\u{feff}".len());
    }
    let begin = text.fill_buf().map_err(|error| format!("line 1: {error}"))?;
    let lines = begin.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    summary(if lines { json_lines(text)? } else { csv_rows(text)? })
}

fn json_lines(text: impl BufRead) -> Result<Vec<Request>, String> {
    let mut requests = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let at = |what: String| format!("line {}: {what}", number + 1);
        let line = line.map_err(|error| at(error.to_string()))?;
        if !line.trim().is_empty() {
            requests.push(json_request(&line).map_err(at)?);
        }
    }
    Ok(requests)
}

fn csv_rows(text: impl BufRead) -> Result<Vec<Request>, String> {
    // Rows of another length are told apart below, where the cell is named that is missing.
    let mut reader =
        csv::ReaderBuilder::new().flexible(true).trim(csv::Trim::All).from_reader(text);
    let header = reader.headers().map_err(|error| format!("line 1: {error}"))?;
    let columns = Columns::named(header).map_err(|what| format!("line 1: {what}"))?;
    let mut requests = Vec::new();
    // Whole numbers in a column of plain seconds, which may be milliseconds.
    let mut whole = !columns.milliseconds;
    for row in reader.records() {
        let row = row.map_err(|error| error.to_string())?;
        let line = row.position().map_or(0, csv::Position::line);
        let request = csv_request(&row, &columns).map_err(|what| format!("line {line}: {what}"))?;
        whole &= row.get(columns.time).is_some_and(|cell| cell.parse::<u64>().is_ok());
        requests.push(request);
    }
    if whole && median_gap(&requests) > LONGEST_GAP {
        return Err(format!(
            "times are whole numbers more than {LONGEST_GAP} apart: if they are milliseconds, give \
             seconds, or name the column timestamp_ms"
        ));
    }
    Ok(requests)
}

/// Seconds between two requests beyond which nobody would plan for the load.
const LONGEST_GAP: f64 = 100.0;

fn median_gap(requests: &[Request]) -> f64 {
    let mut times: Vec<f64> = requests.iter().map(|one| one.seconds).collect();
    times.sort_by(f64::total_cmp);
    let mut gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_by(f64::total_cmp);
    gaps.get(gaps.len() / 2).copied().unwrap_or(0.0)
}

struct Columns {
    time: usize,
    /// Times are in milliseconds.
    milliseconds: bool,
    input: usize,
    output: usize,
}

impl Columns {
    fn named(header: &csv::StringRecord) -> Result<Self, String> {
        let names: Vec<String> = header.iter().map(str::to_ascii_lowercase).collect();
        let find = |what: &str, known: &[&str]| {
            names.iter().position(|name| known.contains(&name.as_str())).ok_or_else(|| {
                format!("no column for the {what}: name one of them {}", known.join(" or "))
            })
        };
        let times = ["timestamp", "arrival", "time", "seconds", "timestamp_ms"];
        let time = find("time of arrival", &times)?;
        Ok(Self {
            time,
            milliseconds: names[time] == "timestamp_ms",
            input: find(
                "prompt tokens",
                &["contexttokens", "input_tokens", "input_length", "input"],
            )?,
            output: find(
                "output tokens",
                &["generatedtokens", "output_tokens", "output_length", "output"],
            )?,
        })
    }
}

fn csv_request(row: &csv::StringRecord, columns: &Columns) -> Result<Request, String> {
    let cell = |place: usize| row.get(place).ok_or_else(|| format!("only {} cells", row.len()));
    let number = |place: usize| {
        let text = cell(place)?;
        text.parse::<f64>().map_err(|_| format!("{text:?} is not a number"))
    };
    let time = cell(columns.time)?;
    let seconds = match time.parse::<f64>() {
        Ok(milliseconds) if columns.milliseconds => milliseconds / 1e3,
        Ok(seconds) => seconds,
        Err(_) => moment(time).ok_or_else(|| format!("{time:?} is not a time"))?,
    };
    Ok(Request { seconds, input: number(columns.input)?, output: number(columns.output)? })
}

/// `2023-11-16 18:15:46.6805900`, with or without a zone.
fn moment(text: &str) -> Option<f64> {
    let stamp = text.parse::<jiff::Timestamp>().ok().or_else(|| {
        let civil = text.replace('T', " ").parse::<jiff::civil::DateTime>().ok()?;
        civil.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
    })?;
    Some(stamp.as_microsecond() as f64 / 1e6)
}

fn json_request(line: &str) -> Result<Request, String> {
    let value: serde_json::Value =
        serde_json::from_str(line).map_err(|error| format!("not JSON: {error}"))?;
    let number = |key: &str| {
        value[key].as_f64().ok_or_else(|| format!("`{key}` is missing or not a number"))
    };
    Ok(Request {
        seconds: number("timestamp")? / 1e3,
        input: number("input_length")?,
        output: number("output_length")?,
    })
}

fn summary(mut requests: Vec<Request>) -> Result<Load, String> {
    if requests.len() < 2 {
        return Err("a trace needs at least two requests".to_owned());
    }
    if let Some(wrong) = requests.iter().position(|one| {
        ![one.seconds, one.input, one.output].iter().all(|value| value.is_finite() && *value >= 0.0)
    }) {
        return Err(format!("request {} has a negative or endless number", wrong + 1));
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

    #[test]
    fn an_azure_trace_is_read() {
        let text = "TIMESTAMP,ContextTokens,GeneratedTokens\n\
                    2023-11-16 18:15:46.6805900,100,10\n\
                    2023-11-16 18:15:48.6805900,300,30\n";
        let load = read(text.as_bytes()).unwrap();
        assert_eq!((load.requests, load.input_mean, load.output_mean), (2, 200.0, 20.0));
        assert!((load.mean_rate - 1.0).abs() < 1e-6, "{load:?}");
        assert!((load.input_variation - 0.25).abs() < 1e-9);
    }

    #[test]
    fn a_mooncake_trace_is_read() {
        let text = "{\"timestamp\": 0, \"input_length\": 6000, \"output_length\": 50}\n\
                    {\"timestamp\": 500, \"input_length\": 6000, \"output_length\": 50}\n";
        let load = read(text.as_bytes()).unwrap();
        assert!((load.mean_rate - 4.0).abs() < 1e-9);
        assert_eq!(load.input_p95, 1.0);
    }

    #[test]
    fn the_busy_minute_counts_and_not_the_mean() {
        let mut text = "time,input,output\n".to_owned();
        for second in 0..600 {
            let times = if second / 60 == 3 { 10 } else { 1 };
            text.push_str(&format!("{second},10,10\n").repeat(times));
        }
        let load = read(text.as_bytes()).unwrap();
        assert!(load.peak_rate > 9.0 && load.mean_rate < 2.0, "{load:?}");
    }

    #[test]
    fn quotes_and_a_byte_order_mark_are_read() {
        let text = "\u{feff}\"time\",\"input\",\"output\"\r\n\"0\",\"10\",20\r\n1,\"10\",20\r\n";
        let load = read(text.as_bytes()).unwrap();
        assert_eq!((load.requests, load.input_mean), (2, 10.0));
    }

    #[test]
    fn milliseconds_are_read_where_they_are_called_so_and_else_refused() {
        let text = |name: &str| format!("{name},input,output\n0,9,9\n500,9,9\n1000,9,9\n");
        let load = read(text("timestamp_ms").as_bytes()).unwrap();
        assert!((load.mean_rate - 3.0).abs() < 1e-9, "{load:?}");
        let wrong = read(text("timestamp").as_bytes()).unwrap_err();
        assert!(wrong.contains("name the column timestamp_ms"), "{wrong}");
        let slow = read("time,input,output\n0.0,9,9\n500.5,9,9\n1000.0,9,9\n".as_bytes());
        assert!(slow.is_ok(), "{slow:?}");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let wrong = |text: &str| read(text.as_bytes()).unwrap_err();
        assert!(wrong("a,b\n1,2\n").starts_with("line 1: no column for the time of arrival"));
        assert_eq!(wrong("time,input,output\n1,2,3\n1,x,3\n"), "line 3: \"x\" is not a number");
        assert!(wrong("{\"timestamp\": 1}\n").contains("`input_length` is missing"));
        assert_eq!(wrong("time,input,output\n1,2,3\n"), "a trace needs at least two requests");
        assert!(wrong("time,input,output\n1,2,3\n1,-2,3\n").contains("negative"));
    }
}
