//! Who sells accelerators, and how many of them are connected, from providers.csv.

use super::problems::{CatalogError, Reader};
use super::table;
use serde::Deserialize;

/// What kind of seller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderKind {
    /// Sells whole data centres.
    Hyperscaler,
    /// Sells its own hosts.
    Cloud,
    /// Sells the hosts of others, as they come.
    Marketplace,
}

/// One seller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    pub name: String,
    pub kind: ProviderKind,
    /// The most accelerators that are connected, where a source says so.
    pub connected: Option<u32>,
    pub source: String,
}

/// Accelerators of a host: as many are always connected.
const HOST: u32 = 8;

impl Provider {
    /// The most accelerators that one can get connected from it. Of a cloud about which no source was read that is a
    /// host; a hyperscaler has more than anybody asks for.
    pub fn most_connected(&self) -> u32 {
        self.connected.unwrap_or(match self.kind {
            ProviderKind::Hyperscaler => u32::MAX,
            ProviderKind::Cloud | ProviderKind::Marketplace => HOST,
        })
    }
}

const COLUMNS: &[&str] = &["provider", "kind", "connected_gpus", "source", "note"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    provider: String,
    kind: String,
    connected_gpus: String,
    source: String,
    #[serde(rename = "note")]
    _note: String,
}

/// Reads providers.csv.
pub(super) fn read(file: &str, text: &str) -> Result<Vec<Provider>, CatalogError> {
    let mut reader = Reader::new(file);
    let mut providers: Vec<Provider> = Vec::new();
    for (line, row) in table::rows::<Row>(&mut reader, text, COLUMNS) {
        reader.line = line;
        let kind = match row.kind.as_str() {
            "hyperscaler" => Some(ProviderKind::Hyperscaler),
            "cloud" => Some(ProviderKind::Cloud),
            "marketplace" => Some(ProviderKind::Marketplace),
            other => {
                let what = format!("kind is `{other}`");
                reader.wrong(what, "write hyperscaler, cloud or marketplace");
                None
            }
        };
        let connected = match row.connected_gpus.as_str() {
            "" => None,
            text => reader.whole("connected_gpus", text),
        };
        if providers.iter().any(|known| known.name == row.provider) {
            reader.wrong(format!("a second row of {}", row.provider), "keep one");
        }
        if let Some(kind) = kind {
            let (name, source) = (row.provider, row.source);
            providers.push(Provider { name, kind, connected, source });
        }
    }
    reader.finish(providers)
}
