//! What no single setting shows: settings that contradict each other, and a door left open.

mod issuers;

use super::problem::{Code, SettingProblem};
use super::{
    GatewaySettingsFile, ModelSettings, Operator, RequestLimits, SHADOWED_MODELS, Split, Sticky,
    Timeouts, WakerSettings,
};
use std::collections::BTreeMap;

/// What contradicts. `wrong` are paths of settings that are known to be wrong already and were
/// taken out; nothing is said about what they are part of, because that may not be so once they
/// are mended.
pub(super) fn check(settings: &GatewaySettingsFile, wrong: &[&str]) -> Vec<SettingProblem> {
    let mut problems = Vec::new();
    let sound = |paths: &[&str]| {
        let inside = |path: &&str, of: &&str| path.starts_with(of);
        !wrong.iter().any(|path| paths.iter().any(|of| inside(path, of)))
    };
    let watches = settings.kubernetes.watches();
    if sound(&["models", "kubernetes"]) && settings.models.is_empty() && !watches {
        problems.push(SettingProblem::new(
            Code::BadValue,
            "models",
            "no model is configured",
            "add a [[models]] section with a name and endpoints, service or pool, or watch = \
             \"model-services\" to [kubernetes]",
        ));
    }
    for (index, model) in settings.models.iter().enumerate() {
        if sound(&[&format!("models[{index}]")]) {
            problems.extend(places_of(index, model));
        }
    }
    let names = settings.models.iter().map(|model| model.name.as_str());
    problems.extend(doubles("models", "name", names));
    problems.extend(doubles("keys", "name", settings.keys.iter().map(|key| key.name.as_str())));
    let hashes: Vec<_> = settings.keys.iter().map(|key| key.sha256.to_lowercase()).collect();
    problems.extend(doubles("keys", "sha256", hashes.iter().map(String::as_str)));
    if sound(&["splits", "models"]) {
        problems.extend(splits(settings));
    }
    if sound(&["waker"]) {
        problems.extend(settings.waker.as_ref().and_then(waker));
    }
    if sound(&["operator"]) {
        problems.extend(settings.operator.as_ref().and_then(operator));
    }
    if sound(&["limits"]) {
        problems.extend(limits(&settings.limits));
    }
    if sound(&["timeouts"]) {
        problems.extend(timeouts(&settings.timeouts));
    }
    if sound(&["listen", "admin"]) {
        problems.extend(one_address(settings));
    }
    if sound(&["tenants", "kubernetes", "open"]) {
        problems.extend(tenants(settings));
        problems.extend(issuers::check(&settings.tenants));
    }
    if sound(&["listen", "keys", "open", "tenants"]) {
        problems.extend(open_door(settings));
    }
    problems
}

/// What is allowed and yet worth a word.
pub(super) fn warnings(settings: &GatewaySettingsFile) -> Vec<String> {
    let mut warnings = Vec::new();
    let reachable = !settings.listen.ip().is_loopback();
    let closed = settings.tenants.watch || !settings.keys.is_empty();
    if reachable && settings.tls.is_none() && closed {
        warnings.push(format!(
            "{} receives keys in plain text: set [tls], or let only a TLS-terminating proxy reach \
             it",
            settings.listen
        ));
    }
    if reachable && !closed && settings.open {
        warnings
            .push(format!("every client that can reach {} may use every model", settings.listen));
    }
    if settings.admin_clients.open && !settings.admin.ip().is_loopback() {
        warnings.push(format!(
            "every client that can reach {} may read the settings and the state of all callers: \
             restrict admin_clients",
            settings.admin
        ));
    }
    if let Some(operator) = &settings.operator
        && operator.token_file.is_some()
        && operator.tls.is_none()
    {
        let address = &operator.address;
        warnings.push(format!(
            "the token is sent to {address} in plain text: use https and [operator.tls], or \
             encrypt the network between"
        ));
    }
    let shadowed = settings.models.iter().filter(|model| !model.shadow.is_empty()).count();
    if shadowed > SHADOWED_MODELS {
        warnings.push(format!(
            "{shadowed} models list shadow; only the first {SHADOWED_MODELS} are scored"
        ));
    }
    warnings
}

fn places_of(index: usize, model: &ModelSettings) -> Option<SettingProblem> {
    let places = [!model.endpoints.is_empty(), model.service.is_some(), model.pool.is_some()];
    let count = places.into_iter().filter(|places| *places).count();
    if count == 1 {
        return None;
    }
    let what = match count {
        0 => "no setting says where its engines are",
        _ => "more than one setting says where its engines are",
    };
    let hint = "set exactly one of endpoints, service and pool";
    Some(SettingProblem::new(Code::Contradiction, format!("models[{index}]"), what, hint))
}

fn doubles<'a>(
    section: &str,
    field: &str,
    values: impl Iterator<Item = &'a str>,
) -> Vec<SettingProblem> {
    let mut first = BTreeMap::new();
    let mut problems = Vec::new();
    for (index, value) in values.enumerate().filter(|(_, value)| !value.is_empty()) {
        if let Some(before) = first.insert(value, index) {
            problems.push(SettingProblem::new(
                Code::Contradiction,
                format!("{section}[{index}].{field}"),
                format!("duplicates {section}[{before}]"),
                "make each unique, or remove one",
            ));
        }
    }
    problems
}

fn splits(settings: &GatewaySettingsFile) -> Vec<SettingProblem> {
    let names = settings.splits.iter().map(|split| split.name.as_str());
    let mut problems = doubles("splits", "name", names);
    let is_model = |name: &str| settings.models.iter().any(|model| model.name == name);
    let contradiction = |path: String, what: &str, hint: &str| {
        SettingProblem::new(Code::Contradiction, path, what.to_owned(), hint.to_owned())
    };
    for (index, split) in settings.splits.iter().enumerate() {
        let path = format!("splits[{index}]");
        if is_model(&split.name) {
            let what = "is also the name of a model, which is ambiguous";
            problems.push(contradiction(format!("{path}.name"), what, "choose another name"));
        }
        if split.arms.iter().all(|arm| arm.weight == 0) {
            let what = "all weights are 0, so no request can be routed";
            problems.push(contradiction(
                format!("{path}.arms"),
                what,
                "give at least one arm a weight",
            ));
        }
        if (split.sticky == Sticky::Header) != split.sticky_header.is_some() {
            let what = "`header` and sticky_header must be set together";
            let hint = "set both or neither";
            problems.push(contradiction(format!("{path}.sticky"), what, hint));
        }
        let arms = split.arms.iter().map(|arm| arm.model.as_str());
        problems.extend(doubles(&format!("{path}.arms"), "model", arms));
        // A ModelService may come and go; an arm without a model is told of when it is asked for.
        let named = models_of(&path, split).filter(|_| !settings.kubernetes.watches());
        for (path, _) in named.filter(|(_, name)| !is_model(name)) {
            problems.push(contradiction(path, "is not a model", "name one of [[models]]"));
        }
        for (number, rule) in split.rules.iter().enumerate() {
            let path = format!("{path}.rules[{number}]");
            if !split.arms.iter().any(|arm| arm.model == rule.arm) {
                let hint = "name the model of one of the arms";
                problems.push(contradiction(format!("{path}.arm"), "is not an arm", hint));
            }
            if rule.caller.is_none() && rule.header.is_none() {
                let hint = "set a caller or a header";
                problems.push(contradiction(path, "matches every request", hint));
            } else if rule.value.is_some() && rule.header.is_none() {
                let hint = "set header too";
                problems.push(contradiction(
                    format!("{path}.value"),
                    "has no header to match",
                    hint,
                ));
            }
        }
    }
    problems
}

/// Each model that a split names, with its place.
fn models_of<'a>(path: &'a str, split: &'a Split) -> impl Iterator<Item = (String, &'a str)> {
    let arms = split.arms.iter().enumerate();
    let arms = arms.map(move |(n, arm)| (format!("{path}.arms[{n}].model"), arm.model.as_str()));
    let mirror = split.mirror.iter();
    arms.chain(mirror.map(move |mirror| (format!("{path}.mirror.model"), mirror.model.as_str())))
}

fn waker(waker: &WakerSettings) -> Option<SettingProblem> {
    (waker.url.is_some() == waker.folder.is_some()).then(|| {
        let what = "exactly one of url and folder must be set";
        let hint = "set url or folder, not both";
        SettingProblem::new(Code::Contradiction, "waker", what, hint)
    })
}

fn operator(operator: &Operator) -> Option<SettingProblem> {
    let encrypted = operator.address.starts_with("https:");
    let problem = |path: &str, what: &str, hint: &str| {
        Some(SettingProblem::new(Code::Contradiction, path, what.to_owned(), hint.to_owned()))
    };
    match &operator.tls {
        None if encrypted => problem(
            "operator.address",
            "begins with https, but no CA is set",
            "set `ca` in [operator.tls]",
        ),
        Some(_) if !encrypted => problem(
            "operator.tls",
            "is set, but the address does not begin with https",
            "begin the address with https, or remove [operator.tls]",
        ),
        Some(tls) if tls.certificate.is_some() != tls.key.is_some() => problem(
            "operator.tls",
            "certificate and key must be set together",
            "set both or neither",
        ),
        _ => None,
    }
}

fn tenants(settings: &GatewaySettingsFile) -> Vec<SettingProblem> {
    let problem = |path: &str, what: &str, hint: &str| {
        SettingProblem::new(Code::Contradiction, path, what.to_owned(), hint.to_owned())
    };
    let mut problems = Vec::new();
    let watch = settings.tenants.watch;
    if watch && !settings.kubernetes.watches() {
        problems.push(problem(
            "tenants.watch",
            "is true, but kubernetes.watch is `nothing`",
            "set watch = \"model-services\" in [kubernetes], or remove it here",
        ));
    }
    if watch && settings.open {
        problems.push(problem(
            "open",
            "is true, but every request needs a key where tenants.watch is true",
            "remove one of the two",
        ));
    }
    if !watch && settings.tenants.cache_file.is_some() {
        problems.push(problem(
            "tenants.cache_file",
            "is set, but tenants.watch is not true",
            "set watch = true in [tenants], or remove it",
        ));
    }
    problems
}

fn limits(limits: &RequestLimits) -> Vec<SettingProblem> {
    let mut problems = Vec::new();
    if limits.body_bytes > limits.held_bytes {
        problems.push(SettingProblem::new(
            Code::Contradiction,
            "limits.body_bytes",
            "is more than limits.held_bytes, so such a body never fits",
            "raise held_bytes to a few times body_bytes",
        ));
    }
    let streams = limits.connections.saturating_mul(limits.streams_per_connection as usize);
    if limits.in_flight > streams {
        problems.push(SettingProblem::new(
            Code::Contradiction,
            "limits.in_flight",
            "is more than all connections with all their streams can carry",
            "raise connections, or lower in_flight",
        ));
    }
    problems
}

fn timeouts(timeouts: &Timeouts) -> Vec<SettingProblem> {
    let mut problems = Vec::new();
    if timeouts.connect_ms >= timeouts.first_byte_ms {
        problems.push(SettingProblem::new(
            Code::Contradiction,
            "timeouts.connect_ms",
            "is not less than first_byte_ms, so an unreachable engine would look like a slow one",
            "lower connect_ms; 1000 is plenty inside a cluster",
        ));
    }
    if timeouts.head_ms > timeouts.keep_alive_ms {
        problems.push(SettingProblem::new(
            Code::Contradiction,
            "timeouts.head_ms",
            "is more than keep_alive_ms, so a slow head would be closed as an idle connection",
            "raise keep_alive_ms, or lower head_ms",
        ));
    }
    problems
}

fn one_address(settings: &GatewaySettingsFile) -> Option<SettingProblem> {
    let (listen, admin) = (settings.listen, settings.admin);
    // Port 0 is any free port, which is never the same one.
    let same_ip =
        listen.ip() == admin.ip() || listen.ip().is_unspecified() || admin.ip().is_unspecified();
    let same = same_ip && listen.port() == admin.port() && listen.port() != 0;
    same.then(|| {
        let what = "is also the address of listen, so clients could read health and metrics";
        SettingProblem::new(Code::Contradiction, "admin", what, "use another port")
    })
}

fn open_door(settings: &GatewaySettingsFile) -> Option<SettingProblem> {
    let reachable = !settings.listen.ip().is_loopback();
    let closed = settings.tenants.watch || !settings.keys.is_empty();
    (reachable && !closed && !settings.open).then(|| {
        SettingProblem::new(
            Code::OpenDoor,
            "listen",
            format!("{} can be reached from outside without keys", settings.listen),
            "add [[keys]], set watch = true in [tenants], listen on 127.0.0.1, or set `open = true` if every client \
             may use it",
        )
    })
}
