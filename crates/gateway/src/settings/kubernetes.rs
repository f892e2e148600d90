//! What a gateway reads in Kubernetes, and what of a model comes from there.

use flyball_engines::Engine;
use serde::{Deserialize, Serialize};

/// What a gateway reads in Kubernetes beside the places that its models name.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct KubernetesSettings {
    /// Where models come from beside this file.
    pub watch: WatchSetting,
    /// Namespaces that are looked at; all if there are none.
    pub namespaces: Vec<String>,
}

/// Where models come from beside the settings file.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum WatchSetting {
    /// From nowhere else.
    #[default]
    Nothing,
    /// From ModelServices.
    ModelServices,
}

impl KubernetesSettings {
    /// Whether models come from ModelServices too.
    pub fn watches(&self) -> bool {
        self.watch == WatchSetting::ModelServices
    }
}

/// The ModelService that a model comes from, and where its engines are.
#[derive(Clone, Debug, Default, Serialize, PartialEq, Eq)]
pub struct ModelServicePods {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The pods of its variants, as far as they are known.
    pub variants: Vec<VariantPods>,
}

/// The pods of one variant.
#[derive(Clone, Debug, Default, Serialize, PartialEq, Eq)]
pub struct VariantPods {
    /// Its name.
    pub variant: String,
    /// Which pods, as a label selector in text.
    pub selector: String,
    /// The port of the engines.
    pub port: u16,
    /// Whether a pod that declares a port named `http` answers on that one.
    pub named_port: bool,
    /// What they are.
    pub engine: Engine,
}
