//! Every setting. The reference is written from this list, and the file is checked against it; tests
//! hold it against the structs.

use super::fields::{Kind, Section, field, required, time};
use super::{MAX_MODELS, NAME_BYTES};
use crate::scan::STEERING;
use flyball_engines::Engine;
use flyball_routing::RoutingPolicy;

const GIB: u64 = 1 << 30;

pub(super) const ROOT: Section = Section {
    title: "At the top",
    fields: &[
        field("listen", Kind::Address, "Where clients connect."),
        field(
            "admin",
            Kind::Address,
            "Where health and metrics are. Another address, because nobody outside needs them.",
        ),
        field("threads", Kind::Count(0, 1_024), "Threads that serve; 0 means one per core."),
        field(
            "open",
            Kind::Flag,
            "Serve without keys on an address that others can reach. Without it, such settings are \
             refused.",
        ),
        field(
            "collector",
            Kind::Url,
            "Where another gateway's or the operator's collector of \
            engine loads is. Without, this gateway asks the engines itself.",
        ),
        field(
            "askers",
            Kind::Section(&ASKERS),
            "Who may ask at `admin` for more than health and metrics, which are for anybody.",
        ),
        field("tls", Kind::Section(&TLS), "Certificate and key; plain HTTP without."),
        field(
            "keys",
            Kind::Sections(&KEY, MAX_MODELS),
            "Who may ask. Nobody is asked for a key without.",
        ),
        field("models", Kind::Sections(&MODEL, MAX_MODELS), "What is served, and where."),
        field("kubernetes", Kind::Section(&KUBERNETES), "Models that do not stand in this file."),
        field(
            "splits",
            Kind::Sections(&SPLIT, MAX_MODELS),
            "Names that stand for several models: canaries and mirrors.",
        ),
        field(
            "waker",
            Kind::Section(&WAKER),
            "Who is told that a model is wanted which has no engine. Without, requests for it are \
             refused.",
        ),
        field(
            "operator",
            Kind::Section(&OPERATOR),
            "Who is told what is wanted of each model, and says what to go by. Without, this gateway \
             stands alone.",
        ),
        field("recovery", Kind::Section(&RECOVERY), "What is done about slow and broken answers."),
        field("response_cache", Kind::Section(&RESPONSE_CACHE), "Answers that are kept."),
        field("limits", Kind::Section(&LIMITS), "What requests may cost."),
        field("timeouts", Kind::Section(&TIMEOUTS), "How long things may take."),
        field("telemetry", Kind::Section(&TELEMETRY), "Logs and traces."),
    ],
};

const TLS: Section = Section {
    title: "`[tls]`",
    fields: &[
        required("certificate", Kind::File, "PEM file with the chain, the server's own first."),
        required("key", Kind::File, "PEM file with the private key."),
    ],
};

const ASKERS: Section = Section {
    title: "`[askers]`",
    fields: &[
        field(
            "loopback",
            Kind::Flag,
            "Whoever connects from 127.0.0.1 or ::1: in a pod, the pod itself and `kubectl port-forward`.",
        ),
        field("open", Kind::Flag, "Everybody who reaches the address."),
        field(
            "token_sha256",
            Kind::Sha256,
            "Whoever has the token with this SHA-256: `printf %s \"$TOKEN\" | sha256sum`.",
        ),
        field(
            "service",
            Kind::Pool,
            "A Service: whoever shows a token for the audience `flyball-admin` and may `get` \
             `services/proxy` of `http:NAME:admin`; the API server is asked.",
        ),
    ],
};

const KEY: Section = Section {
    title: "`[[keys]]`",
    fields: &[
        required("name", Kind::Name(NAME_BYTES), "Who holds it, as logs and metrics say it."),
        required(
            "sha256",
            Kind::Sha256,
            "SHA-256 of the key in hexadecimal, so that this file opens nothing: \
             `printf %s \"$KEY\" | sha256sum`.",
        ),
        field(
            "requests_per_minute",
            Kind::Count(1, u32::MAX as u64),
            "Requests per minute at one gateway; unlimited without. Each replica of a gateway counts by \
             itself, so that three let three times as many through.",
        ),
        field(
            "weight",
            Kind::Count(1, 1_000),
            "Its part of the engines when there is not enough for all.",
        ),
        field(
            "priority",
            Kind::Word(&["high", "normal", "low"]),
            "Who waits for whom. A request may lower its own with `x-flyball-priority`.",
        ),
        field(
            "cache_group",
            Kind::Name(NAME_BYTES),
            "Callers of one group share what engines have cached; without, a caller shares with \
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
            "The name that clients say. Goes to the engine as it is, unless `known_as` says another.",
        ),
        field(
            "known_as",
            Kind::Name(NAME_BYTES),
            "The name that its engines know the model by, if it is not the one that clients say.",
        ),
        field("endpoints", Kind::Addresses, "Addresses of engines."),
        field(
            "service",
            Kind::Service,
            "`namespace/name:port` of a Service; its EndpointSlices are watched. The port is a \
             number or a name.",
        ),
        field("pool", Kind::Pool, "`namespace/name` of an `InferencePool`; its pods are watched."),
        field(
            "engine",
            Kind::Word(&Engine::NAMES),
            "What the engines are: how their load is read.",
        ),
        time(
            "queue_ms",
            "The longest wait for a turn. Whoever would wait longer is told so at once.",
        ),
        time("hold_ms", "The longest wait for a model that is being woken."),
        field(
            "policy",
            Kind::Word(&RoutingPolicy::NAMES),
            "How engines are chosen: by what they may have cached and by load, by load alone, or \
             one after the other.",
        ),
        field(
            "shadow",
            Kind::Words(&RoutingPolicy::NAMES),
            "Policies that are scored on its requests without choosing by them.",
        ),
        field(
            "cache_responses",
            Kind::Flag,
            "Keep answers that would be the same again (temperature 0, one answer), and give them \
             again to the same caller or cache group.",
        ),
        field(
            "kv_events",
            Kind::Count(1, 65_535),
            "Port on which its engines publish what they store and forget (vLLM's \
             `--kv-events-config`); nobody listens without.",
        ),
        field(
            "engine_keys",
            Kind::Words(&STEERING),
            "Keys of a body that steer engines and with them the work of others, and are passed on. A \
             request with one that is not listed is refused with 400.",
        ),
        time(
            "first_token_ms",
            "Objective: the longest time to the first token. Requests are judged by it unless the operator \
             says another.",
        ),
        time(
            "between_tokens_ms",
            "Objective: the longest time between tokens, on the mean of an answer. The same holds.",
        ),
    ],
};

const KUBERNETES: Section = Section {
    title: "`[kubernetes]`",
    fields: &[
        field(
            "watch",
            Kind::Word(&["nothing", "model-services"]),
            "`model-services`: every public name of a ModelService is served, and its pods are its engines. A \
             name that stands in this file too is served from this file.",
        ),
        field(
            "namespaces",
            Kind::Namespaces,
            "Where ModelServices are looked for; everywhere without.",
        ),
    ],
};

/// Arms and rules of one split: a person reads them.
const ARMS: usize = 64;

const SPLIT: Section = Section {
    title: "`[[splits]]`",
    fields: &[
        required("name", Kind::Name(NAME_BYTES), "The name that clients say."),
        required("arms", Kind::Sections(&ARM, ARMS), "The models behind it."),
        field(
            "sticky",
            Kind::Word(&["none", "caller", "user", "header"]),
            "What keeps requests on one arm: nothing, who asks, the body's `user` or \
             `prompt_cache_key`, or a header's value.",
        ),
        field("sticky_header", Kind::Header, "The header, if `sticky` is `header`."),
        field(
            "rules",
            Kind::Sections(&RULE, ARMS),
            "Requests that go to one arm whatever the weights say. The first that fits counts.",
        ),
        field("mirror", Kind::Section(&MIRROR), "Where copies go, whose answers nobody gets."),
    ],
};

const ARM: Section = Section {
    title: "`[[splits.arms]]`",
    fields: &[
        required("model", Kind::Name(NAME_BYTES), "A model of these settings."),
        required("weight", Kind::Count(0, 1_000_000), "Its part of all weights."),
        field(
            "known_as",
            Kind::Name(NAME_BYTES),
            "The name that its engines know the model by, if it is not the one that clients say.",
        ),
    ],
};

const RULE: Section = Section {
    title: "`[[splits.rules]]`",
    fields: &[
        field("caller", Kind::Name(NAME_BYTES), "A caller, by the name of its key."),
        field("header", Kind::Header, "A header that must be there."),
        field("value", Kind::Name(NAME_BYTES), "The value that it must have."),
        required("arm", Kind::Name(NAME_BYTES), "The model of the arm."),
    ],
};

const MIRROR: Section = Section {
    title: "`[splits.mirror]`",
    fields: &[
        required("model", Kind::Name(NAME_BYTES), "A model of these settings."),
        required(
            "per_thousand",
            Kind::Count(1, 1_000),
            "Requests that are copied, in thousandths.",
        ),
        field(
            "known_as",
            Kind::Name(NAME_BYTES),
            "The name that its engines know the model by, if it is not the one that clients say.",
        ),
    ],
};

const WAKER: Section = Section {
    title: "`[waker]`",
    fields: &[
        field("url", Kind::Url, "Gets a POST with a JSON body that names the model."),
        field("folder", Kind::File, "A folder in which a file is written that names the model."),
        time("again_ms", "Before it is told again that the model is still wanted."),
    ],
};

const OPERATOR: Section = Section {
    title: "`[operator]`",
    fields: &[
        required("address", Kind::Url, "Where it listens: `http://` or `https://`, host and port."),
        field(
            "token_file",
            Kind::File,
            "A file with a token for it, read at each connection: a projected service-account token \
             with the audience `flyball-operator`.",
        ),
        field("tls", Kind::Section(&OPERATOR_TLS), "Certificates, if it is `https://`."),
    ],
};

const OPERATOR_TLS: Section = Section {
    title: "`[operator.tls]`",
    fields: &[
        required("ca", Kind::File, "PEM file with who signs the operator's certificate."),
        field(
            "certificate",
            Kind::File,
            "PEM file with the chain of this gateway, its own first, if the operator asks for one.",
        ),
        field("key", Kind::File, "PEM file with its private key."),
    ],
};

const RECOVERY: Section = Section {
    title: "`[recovery]`",
    fields: &[
        field(
            "hedge_per_thousand",
            Kind::Count(0, 1_000),
            "Prompt tokens that may be sent a second time because the first engine is slow, in \
             thousandths of all. 0 turns it off.",
        ),
        field(
            "continue_streams",
            Kind::Flag,
            "Whether a stream that broke off is continued by another engine.",
        ),
    ],
};

const RESPONSE_CACHE: Section = Section {
    title: "`[response_cache]`",
    fields: &[
        field("bytes", Kind::Count(1 << 20, 64 * GIB), "Bytes of all that are kept."),
        field("ttl_s", Kind::Count(1, 30 * 24 * 60 * 60), "Seconds that one is kept."),
    ],
};

const LIMITS: Section = Section {
    title: "`[limits]`",
    fields: &[
        field("body_bytes", Kind::Count(1_024, GIB), "Bytes of a body."),
        field(
            "held_bytes",
            Kind::Count(1_024, 1_024 * GIB),
            "Bytes of all bodies that are held at once. With several keys, each may have as many as are \
             left for the others.",
        ),
        field("head_bytes", Kind::Count(8 << 10, 1 << 20), "Bytes of a request's head."),
        field("connections", Kind::Count(1, 10_000_000), "Connections at once."),
        field(
            "in_flight",
            Kind::Count(1, 10_000_000),
            "Requests at once. With several keys, each may have as many as are left for the others.",
        ),
        field(
            "queued",
            Kind::Count(1, 1_000_000),
            "Requests that wait for one model, held ones among them.",
        ),
        field(
            "streams_per_connection",
            Kind::Count(1, 10_000),
            "Streams at once on one HTTP/2 connection.",
        ),
        field("answers", Kind::Count(1, 10_000), "Answers to one request (`n`, `best_of`)."),
    ],
};

const TIMEOUTS: Section = Section {
    title: "`[timeouts]`, in milliseconds",
    fields: &[
        time("head_ms", "From the first byte of a head to its last."),
        time("body_idle_ms", "Between two pieces of a body."),
        time(
            "body_ms",
            "A whole body, and a second more for each 8 KB that came of it: who sends slower is late in \
             the end.",
        ),
        time("connect_ms", "To connect to an engine."),
        time("first_byte_ms", "From the last byte sent to an engine to the first that comes back."),
        time("answer_idle_ms", "Between two pieces of an answer that carry something."),
        time(
            "client_idle_ms",
            "A client that does not read what is there for it; of a stream of HTTP/2, at least 4 KiB in \
             this time.",
        ),
        time("keep_alive_ms", "A connection without a request."),
        field(
            "settle_ms",
            Kind::Count(0, 86_400_000),
            "From SIGTERM to the last new connection: as long as load balancers take to hear of it. 2000 \
             is enough inside a cluster; an AWS NLB with IP targets takes 120000.",
        ),
        time("drain_ms", "From then on to the end, whatever still runs."),
    ],
};

const TELEMETRY: Section = Section {
    title: "`[telemetry]`",
    fields: &[
        field("access_log", Kind::Flag, "One line of JSON per request on standard output."),
        field(
            "otlp",
            Kind::Url,
            "An OTLP (gRPC) receiver, for example `http://127.0.0.1:4317`; no traces without.",
        ),
        field(
            "sampled_per_thousand",
            Kind::Count(0, 1_000),
            "Traces kept of those that the caller did not decide on, in thousandths.",
        ),
        field(
            "audit_log",
            Kind::File,
            "A file to which a line is added for every act that is not a request: changed settings, \
             wake calls, quarantines, the end. On standard error without.",
        ),
    ],
};
