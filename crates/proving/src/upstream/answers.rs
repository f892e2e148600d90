//! The fixed bytes, made once.

/// Everything the upstream ever says.
pub(super) struct Answers {
    pub(super) completion: Vec<u8>,
    pub(super) stream_head: Vec<u8>,
    pub(super) stream_chunk: Vec<u8>,
    pub(super) stream_end: Vec<u8>,
    models: Vec<u8>,
    model_info: Vec<u8>,
    metrics: Vec<u8>,
    healthy: Vec<u8>,
    missing: Vec<u8>,
}

impl Answers {
    pub(super) fn new(model: &str) -> Self {
        let completion = format!(
            r#"{{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"{model}","choices":[{{"index":0,"message":{{"role":"assistant","content":"{TEXT}"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":200,"completion_tokens":30,"total_tokens":230}}}}"#
        );
        let models = format!(
            r#"{{"object":"list","data":[{{"id":"{model}","object":"model","created":1,"owned_by":"proving","max_model_len":262144}}]}}"#
        );
        // What sglang-router asks for before it sends anything to a worker.
        let model_info = format!(
            r#"{{"model_path":"{model}","served_model_name":"{model}","tokenizer_path":"{model}","is_generation":true,"tp_size":1,"dp_size":1,"version":"0"}}"#
        );
        let event = format!(
            "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"{model}\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\" token\"}},\"finish_reason\":null}}]}}\n\n"
        );
        let last = format!(
            "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"{model}\",\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n"
        );
        Self {
            completion: json("200 OK", &completion),
            stream_head: b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n".to_vec(),
            stream_chunk: chunk(&event),
            stream_end: [chunk(&last), b"0\r\n\r\n".to_vec()].concat(),
            models: json("200 OK", &models),
            model_info: json("200 OK", &model_info),
            metrics: plain("vllm:num_requests_running 0\nvllm:num_requests_waiting 0\nvllm:kv_cache_usage_perc 0\n"),
            healthy: json("200 OK", "{}"),
            missing: json("404 Not Found", r#"{"error":{"message":"not here","type":"invalid_request_error"}}"#),
        }
    }

    /// What a path that is no completion gets; nothing if it is one.
    pub(super) fn fixed_page(&self, method: &str, path: &str) -> Option<&[u8]> {
        if method == "POST" {
            return None;
        }
        let path = path.split('?').next().unwrap_or(path);
        Some(match path {
            "/" | "/health" | "/health_generate" | "/healthz" | "/readyz" | "/ping" => {
                &self.healthy
            }
            "/v1/models" => &self.models,
            "/get_model_info" | "/model_info" | "/get_server_info" | "/server_info" => {
                &self.model_info
            }
            "/metrics" => &self.metrics,
            _ => &self.missing,
        })
    }
}

/// Thirty words: an answer as long as a short one of a chat.
const TEXT: &str = "one two three four five six seven eight nine ten one two three four five six \
                    seven eight nine ten one two three four five six seven eight nine ten";

fn json(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
}

fn plain(body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/plain; version=0.0.4\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
}

fn chunk(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}
