//! Names of things, checked when they are made.
//!
//! A name that came from Kubernetes is a DNS-1123 name, so it can be written back into a label,
//! an object name or a path without quoting. Each kind has its own type: a pool cannot be passed
//! where a tenant is meant. All names are ordered and survive their text form unchanged. Copies of a name
//! share its text: each look copies every name into a snapshot, a decision and its receipts.
//!
//! Nothing here knows whether the named thing exists. Start at [`ModelId`] and [`VariantId`].

use crate::units::Timestamp;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use thiserror::Error;

#[cfg(test)]
mod tests;

/// Why a text is not a name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum IdError {
    /// Too long, empty, or with characters that a DNS-1123 name cannot have.
    #[error(
        "`{text}` is not a name: use lower-case letters, digits and `{marks}`, start and end \
         with a letter or digit, at most {longest} characters"
    )]
    NotDns {
        /// What was given.
        text: String,
        /// Which marks are allowed inside.
        marks: &'static str,
        /// The longest name allowed.
        longest: usize,
    },
    /// The wrong number of parts between slashes.
    #[error("`{text}` is not of the form `{form}`")]
    WrongForm {
        /// What was given.
        text: String,
        /// What was expected, such as `namespace/name`.
        form: &'static str,
    },
}

/// A DNS-1123 label: at most 63 characters, no dots.
fn check_label(text: &str) -> Result<Arc<str>, IdError> {
    if text.len() <= 63 && is_label(text) {
        return Ok(text.into());
    }
    Err(IdError::NotDns { text: text.to_owned(), marks: "-", longest: 63 })
}

/// A DNS-1123 subdomain, which most Kubernetes objects are named by: labels joined with dots.
fn check_subdomain(text: &str) -> Result<Arc<str>, IdError> {
    if text.len() <= 253 && text.split('.').all(is_label) {
        return Ok(text.into());
    }
    Err(IdError::NotDns { text: text.to_owned(), marks: "-.", longest: 253 })
}

fn is_label(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.starts_with(plain) && text.ends_with(plain) && text.chars().all(|c| plain(c) || c == '-')
}

/// Splits at the last slash, so that each type only parses its own last part.
fn split<'a>(text: &'a str, form: &'static str) -> Result<(&'a str, &'a str), IdError> {
    text.rsplit_once('/').ok_or_else(|| IdError::WrongForm { text: text.to_owned(), form })
}

/// Declares a name that stands alone.
macro_rules! plain_name {
    ($(#[$meta:meta])* $type:ident, $check:ident) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(Arc<str>);

        impl $type {
            /// Checks the text and makes it a name.
            pub fn new(text: &str) -> Result<Self, IdError> {
                $check(text).map(Self)
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $type {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::new(text)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    };
}

/// Declares a name inside a namespace, written `namespace/name`.
macro_rules! namespaced_name {
    ($(#[$meta:meta])* $type:ident) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type {
            namespace: Namespace,
            name: Arc<str>,
        }

        impl $type {
            /// Checks both parts and makes them a name.
            pub fn new(namespace: &str, name: &str) -> Result<Self, IdError> {
                Ok(Self { namespace: Namespace::new(namespace)?, name: check_subdomain(name)? })
            }

            /// The namespace.
            pub fn namespace(&self) -> &Namespace {
                &self.namespace
            }

            /// The name inside the namespace.
            pub fn name(&self) -> &str {
                &self.name
            }
        }

        impl FromStr for $type {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                let (namespace, name) = split(text, "namespace/name")?;
                Self::new(namespace, name)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&format!("{}/{}", self.namespace, self.name))
            }
        }
    };
}

plain_name! {
    /// A Kubernetes namespace.
    Namespace, check_label
}
plain_name! {
    /// A pool of accelerators; pools belong to the whole cluster.
    PoolId, check_subdomain
}
plain_name! {
    /// A kind of accelerator, by its name in the catalogue.
    AcceleratorId, check_label
}
plain_name! {
    /// A Kubernetes node.
    NodeName, check_subdomain
}
plain_name! {
    /// The name of a variant inside its model.
    VariantName, check_label
}
namespaced_name! {
    /// A served model: `namespace/name` of its resource.
    ModelId
}
namespaced_name! {
    /// A tenant: who sends requests and who pays.
    TenantId
}
namespaced_name! {
    /// A training run.
    RunId
}
namespaced_name! {
    /// One running copy of a model: the pod that stands for it.
    ReplicaId
}

/// One way to run a model: `namespace/model/variant`. Sorts next to the others of its model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VariantId {
    model: ModelId,
    name: VariantName,
}

impl VariantId {
    /// The variant of this name of this model.
    pub const fn new(model: ModelId, name: VariantName) -> Self {
        Self { model, name }
    }

    /// The model.
    pub const fn model(&self) -> &ModelId {
        &self.model
    }

    /// The name inside the model.
    pub const fn name(&self) -> &VariantName {
        &self.name
    }
}

impl FromStr for VariantId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let (model, name) = split(text, "namespace/model/variant")?;
        Ok(Self { model: model.parse()?, name: name.parse()? })
    }
}

impl fmt::Display for VariantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/{}", self.model, self.name))
    }
}

/// One decision: which shard of the operator made it, and when. Sorts by time.
///
/// It is built from what the decision knows anyway instead of a random number, so that a replay
/// gives the same name. A shard decides at most once per microsecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DecisionId {
    at: Timestamp,
    shard: u16,
}

impl DecisionId {
    /// The decision that this shard made at this time.
    pub const fn new(at: Timestamp, shard: u16) -> Self {
        Self { at, shard }
    }

    /// When it was made.
    pub const fn at(self) -> Timestamp {
        self.at
    }

    /// Which shard made it.
    pub const fn shard(self) -> u16 {
        self.shard
    }
}

/// `microseconds-shard`, which is also a valid label value.
impl fmt::Display for DecisionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.at.as_micros(), self.shard)
    }
}

impl FromStr for DecisionId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let parts = text.split_once('-').and_then(|(at, shard)| {
            Some(Self::new(Timestamp::from_micros(at.parse().ok()?), shard.parse().ok()?))
        });
        // Only the form that is written is read back: no plus signs, no leading zeros.
        parts
            .filter(|id| id.to_string() == text)
            .ok_or_else(|| IdError::WrongForm { text: text.to_owned(), form: "microseconds-shard" })
    }
}
