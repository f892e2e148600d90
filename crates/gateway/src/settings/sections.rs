//! Every setting. The reference is written from this list, and the file is checked against it; tests
//! hold it against the structs.

use super::fields::{Kind, Section, field, required, time};
use super::tenants::MAX_ISSUERS;
use super::{MAX_MODELS, NAME_BYTES};
use crate::scan::STEERING;
use flyball_engines::Engine;
use flyball_routing::RoutingPolicy;

const GIB: u64 = 1 << 30;

pub(super) const ROOT: Section = Section {
    title: "At the top",
    fields: &[
        field("listen", Kind::Address, "Address for client connections."),
        field(
            "admin",
            Kind::Address,
            "Address of health, metrics and the admin API. It is separate from `listen` so that it \
             can stay private.",
        ),
        field("threads", Kind::Count(0, 1_024), "Worker threads; 0 means one per core."),
        field(
            "open",
            Kind::Flag,
            "Allow serving without keys on an address that others can reach. Otherwise such \
             settings are refused.",
        ),
        field(
            "collector",
            Kind::Url,
            "URL of a collector of engine loads, in another gateway or in the operator. If absent, \
             this gateway polls the engines itself.",
        ),
        field(
            "admin_clients",
            Kind::Section(&ADMIN_CLIENTS),
            "Who may use `admin` beyond health and metrics, which are open to everybody.",
        ),
        field(
            "tls",
            Kind::Section(&TLS),
            "Certificate and key. If absent, the gateway serves plain HTTP.",
        ),
        field(
            "keys",
            Kind::Sections(&KEY, MAX_MODELS),
            "API keys of callers. If absent, no key is required, unless `tenants.watch` is true.",
        ),
        field(
            "models",
            Kind::Sections(&MODEL, MAX_MODELS),
            "Models to serve, and where their engines are.",
        ),
        field(
            "kubernetes",
            Kind::Section(&KUBERNETES),
            "Discovery of models that are not in this file.",
        ),
        field("tenants", Kind::Section(&TENANTS), "Callers that are not in this file."),
        field(
            "splits",
            Kind::Sections(&SPLIT, MAX_MODELS),
            "Names that stand for several models, for canaries and mirrors.",
        ),
        field(
            "waker",
            Kind::Section(&WAKER),
            "Whom to notify when a request arrives for a model without engines. If absent, such \
             requests are refused.",
        ),
        field(
            "operator",
            Kind::Section(&OPERATOR),
            "Connection to the operator: the gateway reports the demand of each model and receives \
             directives. If absent, this gateway works alone.",
        ),
        field("recovery", Kind::Section(&RECOVERY), "How slow and broken responses are handled."),
        field("response_cache", Kind::Section(&RESPONSE_CACHE), "Cache of responses."),
        field("limits", Kind::Section(&LIMITS), "Limits on requests and connections."),
        field("timeouts", Kind::Section(&TIMEOUTS), "How long each step may take."),
        field("telemetry", Kind::Section(&TELEMETRY), "Logs and traces."),
    ],
};

const TLS: Section = Section {
    title: "`[tls]`",
    fields: &[
        required(
            "certificate",
            Kind::File,
            "PEM file with the certificate chain, the server's own certificate first.",
        ),
        required("key", Kind::File, "PEM file with the private key."),
    ],
};

const ADMIN_CLIENTS: Section = Section {
    title: "`[admin_clients]`",
    fields: &[
        field(
            "loopback",
            Kind::Flag,
            "Allow clients on 127.0.0.1 or ::1: in a pod, the pod itself and `kubectl \
             port-forward`.",
        ),
        field("open", Kind::Flag, "Allow every client that can reach the address."),
        field(
            "token_sha256",
            Kind::Sha256,
            "Allow clients that present the token with this SHA-256: `printf %s \"$TOKEN\" | \
             sha256sum`.",
        ),
        field(
            "service",
            Kind::Pool,
            "A Service. Allow clients that present a token for the audience `flyball-admin` and \
             may `get` `services/proxy` of `http:NAME:admin`; the API server decides.",
        ),
    ],
};

const KEY: Section = Section {
    title: "`[[keys]]`",
    fields: &[
        required(
            "name",
            Kind::Name(NAME_BYTES),
            "Name of the caller, as logs and metrics show it.",
        ),
        required(
            "sha256",
            Kind::Sha256,
            "SHA-256 of the key in hexadecimal, so that this file contains no secret: `printf %s \
             \"$KEY\" | sha256sum`.",
        ),
        field(
            "requests_per_minute",
            Kind::Count(1, u32::MAX as u64),
            "Requests per minute at one gateway; unlimited if absent. Each gateway replica counts \
             by itself: three replicas allow three times as many.",
        ),
        field(
            "weight",
            Kind::Count(1, 1_000),
            "Relative share of the engines when demand exceeds capacity.",
        ),
        field(
            "priority",
            Kind::Word(&["high", "normal", "low"]),
            "Queue priority: lower priorities wait for higher ones. A request may lower its own \
             with `x-flyball-priority`.",
        ),
        field(
            "cache_group",
            Kind::Name(NAME_BYTES),
            "Callers of one group share engine cache entries. If absent, the caller shares with \
             nobody.",
        ),
    ],
};

const MODEL: Section = Section {
    title: "`[[models]]`",
    fields: &[
        required(
            "name",
            Kind::Name(NAME_BYTES),
            "Model name in client requests. It is forwarded unchanged unless `known_as` is set.",
        ),
        field(
            "known_as",
            Kind::Name(NAME_BYTES),
            "Model name that the engines expect, if it differs from the name in client requests.",
        ),
        field("endpoints", Kind::Addresses, "Engine addresses."),
        field(
            "service",
            Kind::Service,
            "`namespace/name:port` of a Service whose EndpointSlices are watched. The port is a \
             number or a name.",
        ),
        field("pool", Kind::Pool, "`namespace/name` of an `InferencePool` whose pods are watched."),
        field("engine", Kind::Word(&Engine::NAMES), "Engine type, which decides how load is read."),
        time(
            "queue_ms",
            "Maximum time in the queue. A request that would wait longer is refused at once.",
        ),
        time(
            "batch_ms",
            "Maximum time in the queue of a batch request (`service_tier: \"flex\"`, \
             `x-flyball-priority: batch`, `IdleOnly`), all its waits together.",
        ),
        time("hold_ms", "Maximum wait for a model that is waking from zero replicas."),
        field(
            "policy",
            Kind::Word(&RoutingPolicy::NAMES),
            "How an engine is chosen: by cached prefix and load, by load alone, or in turn.",
        ),
        field(
            "shadow",
            Kind::Words(&RoutingPolicy::NAMES),
            "Policies to score on live requests without routing by them.",
        ),
        field(
            "cache_responses",
            Kind::Flag,
            "Cache deterministic responses (temperature 0, one choice) and reuse them for the same \
             caller or cache group.",
        ),
        field(
            "kv_events",
            Kind::Count(1, 65_535),
            "Port on which engines publish KV cache events (vLLM's `--kv-events-config`). If \
             absent, the gateway does not subscribe.",
        ),
        field(
            "engine_keys",
            Kind::Words(&STEERING),
            "Body keys to forward although they steer engines and can affect other requests. A \
             request with such a key that is not listed is refused with 400.",
        ),
        time(
            "first_token_ms",
            "Objective: maximum time to first token (TTFT). An objective from the operator takes \
             precedence.",
        ),
        time(
            "between_tokens_ms",
            "Objective: maximum mean time between the tokens of a response. An objective from the \
             operator takes precedence.",
        ),
    ],
};

const KUBERNETES: Section = Section {
    title: "`[kubernetes]`",
    fields: &[
        field(
            "watch",
            Kind::Word(&["nothing", "model-services"]),
            "`model-services`: serve every public name of a ModelService, with its pods as \
             engines. A name that is also in this file is served from this file.",
        ),
        field(
            "namespaces",
            Kind::Namespaces,
            "Namespaces in which ModelServices and Tenants are watched; all if absent.",
        ),
    ],
};

const TENANTS: Section = Section {
    title: "`[tenants]`",
    fields: &[
        field(
            "watch",
            Kind::Flag,
            "Accept the keys of Tenants in `kubernetes.namespaces`, beside `[[keys]]`. Every request then needs a \
             key, also while no Tenant exists. Needs `kubernetes.watch`.",
        ),
        field(
            "cache_file",
            Kind::File,
            "File for the last list of Tenants, with hashes of keys and no keys, so that a gateway that starts \
             while the API server is unreachable knows which keys are valid and which are revoked. If absent, it \
             accepts no key of a Tenant until it has listed them. The last key sets of issuers are beside it.",
        ),
        field(
            "issuers",
            Kind::Sections(&ISSUER, MAX_ISSUERS),
            "Issuers whose tokens are accepted from `members` of Tenants.",
        ),
    ],
};

/// Bytes of an issuer and of an audience, as a Tenant bounds them.
const ISSUER_BYTES: usize = 512;

const ISSUER: Section = Section {
    title: "`[[tenants.issuers]]`",
    fields: &[
        field(
            "issuer",
            Kind::Name(ISSUER_BYTES),
            "The claim `iss` of its tokens, letter by letter. With `kubernetes` the API server is asked for it if \
             it is absent.",
        ),
        field(
            "audience",
            Kind::Name(ISSUER_BYTES),
            "What the claim `aud` must contain: the name under which the issuer knows this gateway. With \
             `kubernetes` it is `flyball` if it is absent.",
        ),
        field(
            "jwks_url",
            Kind::Url,
            "URL of its key set (`jwks_uri` of its discovery document): https, or http on 127.0.0.1 or [::1]. No \
             redirect is followed and no proxy used.",
        ),
        field("jwks_file", Kind::File, "File with its key set, instead of a URL."),
        field(
            "ca",
            Kind::File,
            "PEM file with the CAs that the server of `jwks_url` is verified against. If absent, those of the \
             system, of which the image has none: `SSL_CERT_FILE` names others.",
        ),
        field(
            "kubernetes",
            Kind::Flag,
            "Accept tokens of service accounts of this cluster. Their keys come from the API server.",
        ),
    ],
};

/// Arms and rules of one split: a person reads them.
const ARMS: usize = 64;

const SPLIT: Section = Section {
    title: "`[[splits]]`",
    fields: &[
        required("name", Kind::Name(NAME_BYTES), "Model name in client requests."),
        required("arms", Kind::Sections(&ARM, ARMS), "Models that share the traffic."),
        field(
            "sticky",
            Kind::Word(&["none", "caller", "user", "header"]),
            "What pins requests to one arm: nothing, the caller, the body's `user` or \
             `prompt_cache_key`, or a header's value.",
        ),
        field("sticky_header", Kind::Header, "Header to use if `sticky` is `header`."),
        field(
            "rules",
            Kind::Sections(&RULE, ARMS),
            "Rules that send requests to one arm regardless of weights. The first match wins.",
        ),
        field(
            "mirror",
            Kind::Section(&MIRROR),
            "Where copies of requests go. Their responses are discarded.",
        ),
    ],
};

const ARM: Section = Section {
    title: "`[[splits.arms]]`",
    fields: &[
        required("model", Kind::Name(NAME_BYTES), "Name of a model in these settings."),
        required("weight", Kind::Count(0, 1_000_000), "Relative weight of this arm."),
        field(
            "known_as",
            Kind::Name(NAME_BYTES),
            "Model name that the engines expect, if it differs from the name in client requests.",
        ),
    ],
};

const RULE: Section = Section {
    title: "`[[splits.rules]]`",
    fields: &[
        field("caller", Kind::Name(NAME_BYTES), "Match this caller, by the name of its key."),
        field("header", Kind::Header, "Match requests with this header."),
        field("value", Kind::Name(NAME_BYTES), "Match this value of the header."),
        required("arm", Kind::Name(NAME_BYTES), "Model of the arm that gets matching requests."),
    ],
};

const MIRROR: Section = Section {
    title: "`[splits.mirror]`",
    fields: &[
        required("model", Kind::Name(NAME_BYTES), "Name of a model in these settings."),
        required("per_thousand", Kind::Count(1, 1_000), "Requests to copy, per thousand."),
        field(
            "known_as",
            Kind::Name(NAME_BYTES),
            "Model name that the engines expect, if it differs from the name in client requests.",
        ),
    ],
};

const WAKER: Section = Section {
    title: "`[waker]`",
    fields: &[
        field("url", Kind::Url, "URL that gets a POST with a JSON body that names the model."),
        field(
            "folder",
            Kind::File,
            "Folder in which the gateway writes a file that names the model.",
        ),
        time(
            "again_ms",
            "Time until the notification is repeated while the model is still needed.",
        ),
    ],
};

const OPERATOR: Section = Section {
    title: "`[operator]`",
    fields: &[
        required(
            "address",
            Kind::Url,
            "Address of the operator: `http://` or `https://`, host and port.",
        ),
        field(
            "token_file",
            Kind::File,
            "File with a token for the operator, read at each connection: a projected \
             service-account token with the audience `flyball-operator`.",
        ),
        field("tls", Kind::Section(&OPERATOR_TLS), "Certificates for an `https://` address."),
    ],
};

const OPERATOR_TLS: Section = Section {
    title: "`[operator.tls]`",
    fields: &[
        required("ca", Kind::File, "PEM file with the CA of the operator's certificate."),
        field(
            "certificate",
            Kind::File,
            "PEM file with this gateway's certificate chain, its own certificate first, if the \
             operator requires one.",
        ),
        field("key", Kind::File, "PEM file with this gateway's private key."),
    ],
};

const RECOVERY: Section = Section {
    title: "`[recovery]`",
    fields: &[
        field(
            "hedge_per_thousand",
            Kind::Count(0, 1_000),
            "Hedging budget: prompt tokens that may be sent to a second engine because the first \
             is slow, per thousand of all. 0 turns hedging off.",
        ),
        field("continue_streams", Kind::Flag, "Continue a broken stream on another engine."),
    ],
};

const RESPONSE_CACHE: Section = Section {
    title: "`[response_cache]`",
    fields: &[
        field("bytes", Kind::Count(1 << 20, 64 * GIB), "Maximum bytes of all cached responses."),
        field(
            "ttl_s",
            Kind::Count(1, 30 * 24 * 60 * 60),
            "Lifetime of a cached response, in seconds.",
        ),
    ],
};

const LIMITS: Section = Section {
    title: "`[limits]`",
    fields: &[
        field("body_bytes", Kind::Count(1_024, GIB), "Maximum bytes of a request body."),
        field(
            "held_bytes",
            Kind::Count(1_024, 1_024 * GIB),
            "Maximum bytes of all request bodies in memory. With several keys, a caller may use at \
             most as much as it leaves free for the others.",
        ),
        field("head_bytes", Kind::Count(8 << 10, 1 << 20), "Maximum bytes of a request head."),
        field("connections", Kind::Count(1, 10_000_000), "Maximum client connections."),
        field(
            "in_flight",
            Kind::Count(1, 10_000_000),
            "Maximum requests in flight. With several keys, a caller may use at most as much as it \
             leaves free for the others.",
        ),
        field(
            "queued",
            Kind::Count(1, 1_000_000),
            "Maximum queued requests of one model, including held ones.",
        ),
        field(
            "streams_per_connection",
            Kind::Count(1, 10_000),
            "Maximum concurrent streams on one HTTP/2 connection.",
        ),
        field(
            "answers",
            Kind::Count(1, 10_000),
            "Maximum completions of one request (`n`, `best_of`).",
        ),
    ],
};

const TIMEOUTS: Section = Section {
    title: "`[timeouts]`, in milliseconds",
    fields: &[
        time("head_ms", "From the first to the last byte of a request head."),
        time("body_idle_ms", "Between two chunks of a request body."),
        time(
            "body_ms",
            "A whole request body, plus one second for each 8 KB received, so that slow uploads \
             time out.",
        ),
        time("connect_ms", "Connecting to an engine."),
        time(
            "first_byte_ms",
            "From the last byte sent to an engine to the first byte of its response.",
        ),
        time("answer_idle_ms", "Between two chunks of a response that carry data."),
        time(
            "client_idle_ms",
            "A client that does not read its response. An HTTP/2 stream must read at least 4 KiB \
             in this time.",
        ),
        time("keep_alive_ms", "An idle connection."),
        field(
            "settle_ms",
            Kind::Count(0, 86_400_000),
            "From SIGTERM until new connections are no longer accepted: as long as load balancers \
             need to notice. 2000 is enough inside a cluster; an AWS NLB with IP targets needs \
             120000.",
        ),
        time("drain_ms", "From then until the process ends, whatever is still in flight."),
    ],
};

const TELEMETRY: Section = Section {
    title: "`[telemetry]`",
    fields: &[
        field("access_log", Kind::Flag, "Write one line of JSON per request to standard output."),
        field(
            "otlp",
            Kind::Url,
            "OTLP (gRPC) receiver, for example `http://127.0.0.1:4317`. If absent, no traces are \
             exported.",
        ),
        field(
            "sampled_per_thousand",
            Kind::Count(0, 1_000),
            "Traces to sample where the caller did not decide, per thousand.",
        ),
        field(
            "audit_log",
            Kind::File,
            "File to which a line is appended for every action that is not a request: settings \
             changes, wake calls, quarantines, shutdown. Standard error if absent.",
        ),
    ],
};
