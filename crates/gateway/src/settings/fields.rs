//! Every setting: its name, what it takes, and what it is for. The reference is written from this
//! list, and the file is checked against it; tests hold it against the structs.

/// What a setting takes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// `IP:PORT`.
    Address,
    /// A list of `IP:PORT`.
    Addresses,
    /// `true` or `false`.
    Flag,
    /// A whole number from the first to the second.
    Count(u64, u64),
    /// A name: printable, no longer than this many bytes.
    Name(usize),
    /// 64 hexadecimal digits.
    Sha256,
    /// A file.
    File,
    /// `namespace/name:port`.
    Service,
    /// `namespace/name`.
    Pool,
    /// `http://HOST:PORT`.
    Url,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A section of its own.
    Section(&'static Section),
    /// A list of sections, at most this many.
    Sections(&'static Section, usize),
}

/// One setting.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) required: bool,
    pub(super) what: &'static str,
}

/// Settings that stand together.
#[derive(Debug)]
pub(super) struct Section {
    /// As the reference heads it.
    pub(super) title: &'static str,
    pub(super) fields: &'static [Field],
}

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
const GIB: u64 = 1 << 30;

/// A name of a model may be a path; a label in Prometheus should stay readable.
const NAME_BYTES: usize = 256;

/// Models, keys and engines of one model: what one cluster carries (10^4 each) and a bit.
const MANY: usize = 20_000;

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
        field("tls", Kind::Section(&TLS), "Certificate and key; plain HTTP without."),
        field(
            "keys",
            Kind::Sections(&KEY, MANY),
            "Who may ask. Nobody is asked for a key without.",
        ),
        field("models", Kind::Sections(&MODEL, MANY), "What is served, and where."),
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
            "Requests per minute; unlimited without.",
        ),
    ],
};

const MODEL: Section = Section {
    title: "`[[models]]`",
    fields: &[
        required(
            "name",
            Kind::Name(NAME_BYTES),
            "The name that clients say. Goes to the engine as it is.",
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
            Kind::Word(&["vllm", "sglang", "llama-cpp"]),
            "What the engines are: how their load is read.",
        ),
    ],
};

const LIMITS: Section = Section {
    title: "`[limits]`",
    fields: &[
        field("body_bytes", Kind::Count(1_024, GIB), "Bytes of a body."),
        field(
            "held_bytes",
            Kind::Count(1_024, 1_024 * GIB),
            "Bytes of all bodies that are held at once.",
        ),
        field("head_bytes", Kind::Count(8 << 10, 1 << 20), "Bytes of a request's head."),
        field("connections", Kind::Count(1, 10_000_000), "Connections at once."),
        field("in_flight", Kind::Count(1, 10_000_000), "Requests at once."),
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
        time("connect_ms", "To connect to an engine."),
        time("first_byte_ms", "From the last byte sent to an engine to the first that comes back."),
        time("answer_idle_ms", "Between two pieces of an answer that carry something."),
        time("client_idle_ms", "A client that reads nothing of what is there for it."),
        time("keep_alive_ms", "A connection without a request."),
        time("drain_ms", "From SIGTERM to the end, whatever still runs."),
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
    ],
};

const fn field(name: &'static str, kind: Kind, what: &'static str) -> Field {
    Field { name, kind, required: false, what }
}

const fn required(name: &'static str, kind: Kind, what: &'static str) -> Field {
    Field { name, kind, required: true, what }
}

const fn time(name: &'static str, what: &'static str) -> Field {
    field(name, Kind::Count(1, DAY_MS), what)
}

impl Section {
    /// The field of this name.
    pub(super) fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The name that somebody probably meant.
    pub(super) fn nearest(&self, name: &str) -> Option<&'static str> {
        self.fields
            .iter()
            .map(|field| (strsim::jaro_winkler(field.name, name), field.name))
            // Below this the names have so little in common that a guess would only distract.
            .filter(|(likeness, _)| *likeness > 0.8)
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, name)| name)
    }
}

impl Kind {
    /// What it takes, in words.
    pub(super) fn words(self) -> String {
        match self {
            Self::Address => "`IP:PORT`".to_owned(),
            Self::Addresses => "list of `IP:PORT`".to_owned(),
            Self::Flag => "`true` or `false`".to_owned(),
            Self::Count(least, most) => format!("{least} to {most}"),
            Self::Name(bytes) => format!("text of 1 to {bytes} printable bytes"),
            Self::Sha256 => "64 hexadecimal digits".to_owned(),
            Self::File => "path of a file".to_owned(),
            Self::Service => "`namespace/name:port`".to_owned(),
            Self::Pool => "`namespace/name`".to_owned(),
            Self::Url => "`http://HOST:PORT`".to_owned(),
            Self::Word(words) => {
                words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
            }
            Self::Section(section) => format!("section {}", section.title),
            Self::Sections(section, most) => format!("sections {}, at most {most}", section.title),
        }
    }
}
