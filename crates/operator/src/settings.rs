//! Settings of the operator: one struct, one TOML file, unknown keys refused, all problems at once.
//!
//! What differs per model is a field of its ModelService and not here.

use flyball_admin::{AdminClients, ReviewedPlace};
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// All settings of the operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OperatorSettings {
    /// Address of health, metrics and past decisions.
    pub admin: SocketAddr,
    /// Who may use it beyond health and metrics.
    pub admin_clients: AdminClients,
    /// Address for gateways.
    pub link: SocketAddr,
    /// Which gateways may connect there.
    pub gateways: GatewaySettings,
    /// Namespaces whose ModelServices the operator manages; all if empty.
    pub namespaces: Vec<String>,
    /// Service accounts of their own namespace that engine pods may use.
    pub engine_accounts: Vec<String>,
    /// Seconds between decisions. The governor was measured with 15; shorter reacts sooner to a queue
    /// and learns the same.
    pub tick_seconds: u32,
    /// Seconds after which a signal is stale. Stale signals never cause a scale-down.
    pub signal_max_age_seconds: u32,
    /// The Prometheus to query; none if absent.
    pub prometheus: Option<PrometheusSettings>,
    /// File that records the readings of each reconcile; none if absent.
    pub readings: Option<ReadingsSettings>,
    /// What is said to Kueue beside whether a Workload may hold machines.
    pub kueue: KueueSettings,
    /// Who leads.
    pub lease: Lease,
}

/// What is said to Kueue beside whether a Workload may hold machines. Both take the right to act.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KueueSettings {
    /// Answer AdmissionChecks whose controller is `flyball.dev/runs`.
    pub admission_checks: bool,
    /// Add to the priority of runs whose preemption would throw away more than that of others. It has an effect only with
    /// Kueue's feature gate `PriorityBoost`.
    pub priority_boost: bool,
}

/// Which gateways may connect, and how soon they must. Without accounts, `open` or `ca`, only gateways on the same
/// machine may.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GatewaySettings {
    /// Service accounts whose tokens are accepted, as `namespace/name`.
    pub accounts: Vec<String>,
    /// Accept every gateway that can reach the address.
    pub open: bool,
    /// Seconds that gateways have to connect to a new leader. Until then the operator does not scale
    /// down. A gateway reconnects within 25 seconds.
    pub come_within_seconds: u32,
    /// Certificate of the operator, a PEM file.
    pub certificate: Option<PathBuf>,
    /// Its key.
    pub key: Option<PathBuf>,
    /// The CA of the gateways' certificates; with it each gateway must present one.
    pub ca: Option<PathBuf>,
}

/// A server with Prometheus' HTTP API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrometheusSettings {
    /// Its address; example: `http://prometheus.monitoring:9090`.
    pub url: String,
}

/// A file of readings, one line of JSON per reconcile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadingsSettings {
    /// The file; each process starts it anew.
    pub file: PathBuf,
    /// Megabytes after which recording stops.
    #[serde(default = "most_megabytes")]
    pub most_megabytes: u32,
}

const fn most_megabytes() -> u32 {
    64
}

/// The Lease that elects the leader among several operators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Lease {
    /// Its namespace, which also holds `flyball-freeze` and the record of budgets.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Seconds without a renewal after which the leader is replaced.
    pub seconds: u32,
}

impl Default for OperatorSettings {
    fn default() -> Self {
        Self {
            admin: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 9090)),
            admin_clients: AdminClients::default(),
            link: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 9091)),
            gateways: GatewaySettings::default(),
            namespaces: Vec::new(),
            engine_accounts: vec!["default".to_owned()],
            tick_seconds: 15,
            signal_max_age_seconds: 60,
            prometheus: None,
            readings: None,
            kueue: KueueSettings::default(),
            lease: Lease::default(),
        }
    }
}

impl Default for GatewaySettings {
    fn default() -> Self {
        Self {
            accounts: Vec::new(),
            open: false,
            // They try again every 15 s at most, and give a connection to an operator that is gone up after 10.
            come_within_seconds: 60,
            certificate: None,
            key: None,
            ca: None,
        }
    }
}

impl Default for Lease {
    fn default() -> Self {
        Self { namespace: "flyball".to_owned(), name: "flyball-operator".to_owned(), seconds: 15 }
    }
}

impl OperatorSettings {
    /// Reads the text of a settings file, or reports every problem in it.
    pub fn parse(text: &str) -> Result<Self, Vec<String>> {
        let settings: Self = toml::from_str(text).map_err(|error| vec![error.to_string()])?;
        match settings.problems() {
            problems if problems.is_empty() => Ok(settings),
            problems => Err(problems),
        }
    }

    /// Everything that cannot be.
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut within = |name: &str, value: u32, least: u32, most: u32| {
            if !(least..=most).contains(&value) {
                problems.push(format!("`{name}` must be from {least} to {most}, not {value}"));
            }
        };
        within("tick_seconds", self.tick_seconds, 1, 300);
        within("signal_max_age_seconds", self.signal_max_age_seconds, 5, 3_600);
        within("gateways.come_within_seconds", self.gateways.come_within_seconds, 10, 3_600);
        within("lease.seconds", self.lease.seconds, 5, 300);
        if let Some(readings) = &self.readings {
            within("readings.most_megabytes", readings.most_megabytes, 1, 65_536);
        }
        if self.admin == self.link && self.admin.port() != 0 {
            problems.push("`admin` and `link` must be different addresses".to_owned());
        }
        if self
            .admin_clients
            .service
            .as_ref()
            .is_some_and(|service| ReviewedPlace::read(service).is_none())
        {
            problems.push("`admin_clients.service` must be namespace/name of a Service".to_owned());
        }
        let hash = self.admin_clients.token_sha256.as_ref();
        if hash.is_some_and(|hash| hash.len() != 64 || !hash.bytes().all(|b| b.is_ascii_hexdigit()))
        {
            problems.push("`admin_clients.token_sha256` must be 64 hexadecimal digits".to_owned());
        }
        if self.gateways.certificate.is_some() != self.gateways.key.is_some() {
            problems
                .push("`gateways.certificate` and `gateways.key` must be set together".to_owned());
        }
        for account in &self.gateways.accounts {
            if account.split('/').filter(|part| !part.is_empty()).count() != 2 {
                problems.push(format!(
                    "`gateways.accounts` has {account:?}; it must be namespace/name"
                ));
            }
        }
        let url = self.prometheus.as_ref().map(|prometheus| prometheus.url.parse::<http::Uri>());
        if let Some(Err(error)) = url {
            problems.push(format!("`prometheus.url` must be an address: {error}"));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_a_whole_file() {
        assert_eq!(OperatorSettings::parse(""), Ok(OperatorSettings::default()));
    }

    #[test]
    fn the_reference_page_is_the_defaults_and_has_every_setting() {
        let page = include_str!("../../../docs/reference/operator-settings.md");
        let example = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
        assert_eq!(OperatorSettings::parse(example), Ok(OperatorSettings::default()));
        // With what is optional, too.
        let mut whole = String::new();
        for line in example.lines() {
            let setting = line.strip_prefix("# ").filter(|rest| {
                rest.starts_with('[') || rest.contains(" = ") && !rest.contains(". ")
            });
            whole += setting.unwrap_or(line);
            whole.push('\n');
        }
        let whole = OperatorSettings::parse(&whole).unwrap();
        assert!(whole.prometheus.is_some() && whole.gateways.ca.is_some());
        assert!(whole.readings.is_some());
        assert!(
            whole.admin_clients.service.is_some() && whole.admin_clients.token_sha256.is_some()
        );
    }

    #[test]
    fn all_that_is_wrong_is_said_at_once_and_unknown_keys_are_refused() {
        let problems =
            OperatorSettings::parse("tick_seconds = 0\nsignal_max_age_seconds = 1\n").unwrap_err();
        assert_eq!(problems.len(), 2, "{problems:?}");
        let problems =
            OperatorSettings::parse("[admin_clients]\nservice = \"a\"\ntoken_sha256 = \"b\"\n")
                .unwrap_err();
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(OperatorSettings::parse("tick_secs = 5").unwrap_err()[0].contains("tick_secs"));
    }
}
