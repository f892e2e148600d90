//! Two command lines for every command, as somebody would type them.

/// By the words after `flyball`.
const EXAMPLES: &[(&str, [&str; 2])] = &[
    (
        "",
        [
            "flyball plan serve --model llama-3.1-70b --dtype fp8 --rate 2/s --input 2000 --output 300",
            "flyball backtest --traffic requests.csv --model llama-3.1-8b --gpu l40s",
        ],
    ),
    ("check", ["flyball check", "flyball check --context staging -o json"]),
    ("why", ["flyball why chat -n team", "flyball why chat -n team -o markdown"]),
    ("decisions", ["flyball decisions", "flyball decisions chat -n team"]),
    ("status", ["flyball status chat -n team", "flyball status -n team"]),
    ("whatif", ["flyball whatif chat -n team", "flyball whatif chat -n team -o json"]),
    ("diff", ["flyball diff --file chat.yaml", "flyball diff --file chat.yaml -o markdown"]),
    (
        "freeze",
        [
            "flyball freeze chat -n team --for 2h --reason 'load test'",
            "flyball freeze --all --reason incident-4711",
        ],
    ),
    ("resume", ["flyball resume chat -n team", "flyball resume --all"]),
    ("explain", ["flyball explain FLY-301", "flyball explain CapacityUnknown"]),
    (
        "plan",
        [
            "flyball plan serve --model qwen3-32b --rate 2/s --input 2000 --output 300",
            "flyball plan train --model llama-3.1-8b --tokens 1T --gpus 256",
        ],
    ),
    (
        "plan serve",
        [
            "flyball plan serve --model qwen3-32b --rate 2/s --input 2000 --output 300 --ttft-p95 1s",
            "flyball plan serve --model llama-3.1-70b --trace requests.csv --itl-p95 50ms",
        ],
    ),
    (
        "plan fleet",
        [
            "flyball plan fleet --have 16xl40s --model qwen3-32b --rate 2/s --input 2000 --output 300",
            "flyball plan fleet --have 8xh100,16xl40s --model a,b --rate 2/s,8/s --input 2k --output 300",
        ],
    ),
    (
        "plan train",
        [
            "flyball plan train --model llama-3.1-8b --tokens 1T --gpus 256",
            "flyball plan train --model llama-3.1-70b --tokens 500B --deadline 30d",
        ],
    ),
    (
        "fit",
        ["flyball fit llama-3.1-70b", "flyball fit qwen3-32b --dtype fp8 --request-tokens 8192"],
    ),
    (
        "backtest",
        [
            "flyball backtest --traffic requests.csv --model llama-3.1-8b --gpu l40s",
            "flyball backtest --traffic rates.csv --per-replica 2.5/s --policy governor,hpa.yaml",
        ],
    ),
    (
        "backtest train",
        [
            "flyball backtest train --availability spot.csv --work 48h --deadline 60h --on-demand 3 --spot 1",
            "flyball backtest train --availability a.json --work 2d --deadline 3d --on-demand 3 --spot 1",
        ],
    ),
    (
        "backtest tune",
        [
            "flyball backtest tune --traffic rates.csv --per-replica 2.5/s --policy keda",
            "flyball backtest tune --traffic rates.csv --per-replica 2.5/s --policy hpa-running",
        ],
    ),
    (
        "backtest why",
        [
            "flyball backtest why --traffic rates.csv --per-replica 2.5/s --at 13:05",
            "flyball backtest why --traffic requests.csv --model llama-3.1-8b --gpu l40s --at 2d13:05",
        ],
    ),
    (
        "simulate",
        [
            "flyball simulate scenarios/live-step.toml",
            "flyball simulate scenarios/live-step.toml --policy governor,hpa-running --html step.html",
        ],
    ),
    (
        "heartbeat",
        [
            "flyball heartbeat --file shared/heartbeat.json --listen 0.0.0.0:9471",
            r"flyball heartbeat --log train.log --pattern 'step (?<step>\d+)/(?<total>\d+)'",
        ],
    ),
    (
        "collect",
        [
            "flyball collect --config gateway.toml",
            "flyball collect --config gateway.toml --listen 127.0.0.1:9091",
        ],
    ),
    ("emulate", ["flyball emulate", "flyball emulate --model qwen3-32b --gpu h100 --engines 4"]),
    (
        "gateway",
        ["flyball gateway --config gateway.toml", "flyball gateway --config gateway.toml --check"],
    ),
    ("gpus", ["flyball gpus", "flyball gpus h100"]),
    (
        "models",
        ["flyball models qwen3 vl", "flyball models RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic"],
    ),
    (
        "key",
        ["flyball key create search -n ml --name nightly", "flyball key revoke ml/search nightly"],
    ),
    (
        "key create",
        [
            "flyball key create search -n ml --name nightly --expires 30d",
            "flyball key create ml/search --to-secret shop/search-key",
        ],
    ),
    (
        "key rotate",
        [
            "flyball key rotate ml/search nightly",
            "flyball key rotate ml/search nightly --overlap 7d --to-secret shop/search-key",
        ],
    ),
    (
        "key revoke",
        [
            "flyball key revoke ml/search --id k3J9xQ2mZa",
            "flyball key revoke ml/search --all --dry-run",
        ],
    ),
    ("key list", ["flyball key list ml/search", "flyball key list search -n ml -o json"]),
    ("run", ["flyball run -n team", "flyball run ft-7b -n team --watch"]),
    ("tenants", ["flyball tenants -n ml", "flyball tenants -A -o json"]),
    (
        "audit",
        [
            "flyball audit kube-apiserver-audit.log gateway-audit.jsonl",
            "flyball audit - --tenant ml/search --since 24h -o json",
        ],
    ),
    ("operator", ["flyball operator", "flyball operator --config operator.toml"]),
    ("prices", ["flyball prices", "flyball prices --gpu h100"]),
    ("top", ["flyball top", "flyball top --watch"]),
    (
        "trace",
        [
            "flyball trace inspect requests.csv",
            "flyball trace convert requests.jsonl.gz --to csv --output requests.csv",
        ],
    ),
    (
        "trace inspect",
        ["flyball trace inspect requests.csv", "flyball trace inspect requests.jsonl.gz -o json"],
    ),
    (
        "trace convert",
        [
            "flyball trace convert requests.jsonl.gz --to csv --output requests.csv",
            "flyball trace convert requests.csv --to parquet --output requests.parquet",
        ],
    ),
    (
        "trace record",
        [
            "flyball trace record --prometheus http://127.0.0.1:9090 --output week.csv",
            "flyball trace record --prometheus http://127.0.0.1:9090 --output day.csv --since 24h",
        ],
    ),
    ("help", ["flyball help plan serve", "flyball help units"]),
    (
        "completions",
        [
            "flyball completions bash > /etc/bash_completion.d/flyball",
            "flyball completions zsh > ~/.zfunc/_flyball",
        ],
    ),
    ("man", ["flyball man /usr/local/share/man/man1", "flyball man ."]),
    ("version", ["flyball version", "flyball version -o json"]),
];

/// Those of a command.
pub(super) fn of(path: &str) -> &'static [&'static str] {
    EXAMPLES.iter().find(|(name, _)| *name == path).map_or(&[], |(_, lines)| lines.as_slice())
}
