//! The few lines of an engine's page of metrics that say what it has to do.
//!
//! The page is not parsed as a whole: vLLM's has thousands of lines of histograms, and four names
//! are wanted. Everything here comes from outside and is taken with care.

use flyball_engines::{Engine, Series};
use memchr::{memchr, memrchr};

/// More than any engine has at once. A larger figure is nonsense and is cut.
const MOST: f64 = 1_000_000.0;

/// What an engine has to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ReportedLoad {
    /// Requests that it works on.
    pub running: u32,
    /// Requests that wait in it.
    pub waiting: u32,
    /// Share of its KV cache that is in use, in thousandths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_used_per_thousand: Option<u32>,
    /// Tokens that a prompt and its answer may have together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u32>,
}

impl ReportedLoad {
    /// Requests in it, however far they are.
    pub fn requests(&self) -> u32 {
        self.running.saturating_add(self.waiting)
    }
}

/// What the page says; none if it lacks what runs or what waits. Several series of one name are
/// ranks of one engine: their requests are added up, of their caches the fullest counts.
pub fn read(engine: Engine, page: &[u8]) -> Option<ReportedLoad> {
    let facts = engine.facts();
    let metrics: Vec<(&[u8], Series)> = facts
        .series
        .iter()
        .filter(|(_, series)| LOAD_SERIES.contains(series))
        .map(|(name, series)| (name.as_bytes(), *series))
        .collect();
    let (mut running, mut waiting, mut kv) = (None, None, None::<f64>);
    let mut rest = page;
    while !rest.is_empty() {
        let end = memchr(b'\n', rest).unwrap_or(rest.len());
        let line = &rest[..end];
        rest = rest.get(end + 1..).unwrap_or_default();
        if !line.starts_with(facts.prefix.as_bytes()) {
            continue;
        }
        let found = metrics.iter().find_map(|(name, series)| Some((value(line, name)?, *series)));
        match found {
            Some((value, Series::Running)) => running = Some(running.unwrap_or(0.0) + value),
            Some((value, Series::Waiting)) => waiting = Some(waiting.unwrap_or(0.0) + value),
            Some((value, _)) => kv = Some(kv.unwrap_or(0.0).max(value)),
            None => {}
        }
    }
    Some(ReportedLoad {
        running: whole(running?),
        waiting: whole(waiting?),
        kv_used_per_thousand: kv.map(|share| whole(share.min(1.0) * 1000.0)),
        context_tokens: None,
    })
}

/// What the shortest entry of a list of models says under this key; none if none does. An adapter may stand there with its
/// own entry.
pub(super) fn context(list: &[u8], key: &str) -> Option<u32> {
    let list: serde_json::Value = serde_json::from_slice(list).ok()?;
    let entries = list.get("data")?.as_array()?.iter();
    let contexts = entries.filter_map(|entry| entry.get(key)?.as_u64());
    contexts.filter_map(|tokens| u32::try_from(tokens).ok()).filter(|tokens| *tokens > 0).min()
}

/// What is looked for.
const LOAD_SERIES: [Series; 3] = [Series::Running, Series::Waiting, Series::CacheUsed];

/// The value of a line if it is of exactly this name. Labels are skipped, whatever is in them.
fn value(line: &[u8], name: &[u8]) -> Option<f64> {
    let rest = line.strip_prefix(name)?;
    let rest = match rest.first()? {
        b'{' => &rest[memrchr(b'}', rest)? + 1..],
        b' ' | b'\t' => rest,
        _ => return None,
    };
    let value: f64 =
        std::str::from_utf8(rest).ok()?.split_ascii_whitespace().next()?.parse().ok()?;
    (value.is_finite() && value >= 0.0).then_some(value)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "values are finite and not negative, and cut to MOST"
)]
fn whole(value: f64) -> u32 {
    value.min(MOST).round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn load(running: u32, waiting: u32, kv: Option<u32>) -> Option<ReportedLoad> {
        Some(ReportedLoad { running, waiting, kv_used_per_thousand: kv, context_tokens: None })
    }

    #[test]
    fn vllm_is_read_and_its_ranks_are_added_up() {
        let page = b"# HELP vllm:num_requests_running Number of requests\n\
            # TYPE vllm:num_requests_running gauge\n\
            vllm:num_requests_running{engine=\"0\",model_name=\"a}b {c\"} 3.0\n\
            vllm:num_requests_running{engine=\"1\",model_name=\"a\"} 2.0\n\
            vllm:num_requests_waiting{engine=\"0\"} 1.0\n\
            vllm:num_requests_waiting_by_reason{engine=\"0\",reason=\"capacity\"} 77.0\n\
            vllm:kv_cache_usage_perc{engine=\"0\"} 0.25\n\
            vllm:kv_cache_usage_perc{engine=\"1\"} 0.984\n\
            vllm:e2e_request_latency_seconds_bucket{le=\"0.3\"} 0.0\n";
        assert_eq!(read(Engine::Vllm, page), load(5, 1, Some(984)));
        assert_eq!(read(Engine::Sglang, page), None);
    }

    #[test]
    fn sglang_and_llama_cpp_are_read() {
        let sglang = b"sglang:num_running_reqs{model_name=\"m\"} 4.0\n\
            sglang:num_running_reqs_offline_batch{model_name=\"m\"} 9.0\n\
            sglang:num_queue_reqs{model_name=\"m\"} 0.0\n\
            sglang:token_usage{model_name=\"m\"} 0.5";
        assert_eq!(read(Engine::Sglang, sglang), load(4, 0, Some(500)));
        let llama = b"llamacpp:requests_processing 8\r\nllamacpp:requests_deferred 24 1700000000\n";
        assert_eq!(read(Engine::LlamaCpp, llama), load(8, 24, None));
    }

    #[test]
    fn the_names_of_every_engine_are_read() {
        for engine in Engine::ALL {
            let name = |series| engine.facts().names(series).next();
            let (running, waiting) = (name(Series::Running), name(Series::Waiting));
            let mut page = format!("{} 3\n{} 2\n", running.unwrap(), waiting.unwrap());
            let used = name(Series::CacheUsed);
            page.extend(used.map(|used| format!("{used}{{a=\"b\"}} 0.5\n")));
            let kv = used.map(|_| 500);
            assert_eq!(read(engine, page.as_bytes()), load(3, 2, kv), "{engine}");
        }
    }

    #[test]
    fn what_is_missing_or_nonsense_is_not_zero() {
        assert_eq!(read(Engine::LlamaCpp, b"llamacpp:requests_processing 8\n"), None);
        for value in ["NaN", "-1", "+Inf", "x", ""] {
            let page =
                format!("llamacpp:requests_processing {value}\nllamacpp:requests_deferred 0\n");
            assert_eq!(read(Engine::LlamaCpp, page.as_bytes()), None, "{value}");
        }
        let huge = b"llamacpp:requests_processing 1e300\nllamacpp:requests_deferred 0\n";
        assert_eq!(read(Engine::LlamaCpp, huge), load(1_000_000, 0, None));
    }

    #[test]
    fn a_list_of_models_says_the_shortest_context() {
        let of = |list: &str| context(list.as_bytes(), "max_model_len");
        let entry = |more: &str| {
            format!(r#"{{"data":[{{"id":"m"{more}}},{{"id":"adapter","max_model_len":null}}]}}"#)
        };
        assert_eq!(of(&entry(r#","max_model_len":4096"#)), Some(4_096));
        for nothing in [
            "",
            r#","max_model_len":0"#,
            r#","max_model_len":-1"#,
            r#","max_model_len":9999999999"#,
        ] {
            assert_eq!(of(&entry(nothing)), None, "{nothing}");
        }
        for wrong in ["", "{", "[]", r#"{"data":{}}"#, r#"{"data":[7]}"#] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        let two = r#"{"data":[{"max_model_len":8192},{"max_model_len":4096}]}"#;
        assert_eq!(of(two), Some(4_096));
    }

    proptest! {
        #[test]
        fn no_page_makes_it_panic(page in prop::collection::vec(any::<u8>(), 0..400)) {
            read(Engine::Vllm, &page);
            let line = [b"vllm:num_requests_running".as_slice(), &page].concat();
            read(Engine::Vllm, &line);
        }
    }
}
